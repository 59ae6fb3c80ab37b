"""What goes in: the layer's counts, the board's memory, the design's words, and how the layer's dimensions are folded onto the array."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from boards.figures import Figure
from boards.schema import Board
from dse.estimate.bounds import compulsory_bytes, real_macs, used_inputs
from dse.explain.derivation import Derivation
from hdl.array import capture_cycles, readout_cycles
from hdl.design import MULTIPLIER_BITS, SHIFT_BITS, Design
from hdl.drain import drain_cycles, output_unit, tail_cycles
from hdl.layer import Layer
from hdl.mapping import Grouping, x_axis, y_axis
from hdl.timing import READ_CYCLES
from sim.memory import MemoryTiming

LAYER = {"B": "batch", "K": "output channels", "C": "input channels", "G": "groups", "OY": "output rows", "OX": "output columns",
         "FY": "filter rows", "FX": "filter columns", "IY": "input rows", "IX": "input columns", "SY": "stride of rows",
         "SX": "stride of columns", "DY": "dilation of rows", "DX": "dilation of columns", "PT": "padding above", "PL": "padding left"}


def explain_layer(d: Derivation, design: Design, layer: Layer) -> None:
    """MACs, elements, and the bytes that no schedule can do without."""
    d.section("Layer")
    for name, meaning in LAYER.items():
        d.given(name, getattr(layer, name), "", f"the layer: {meaning}")
    d.given("weight_bits", design.weight_bits, "bits", "the design's precision")
    d.given("activation_bits", design.activation_bits, "bits", "the design's precision")
    d.let("macs", "B*K*(C/G)*FY*FX*OY*OX", "MACs", "padded taps included")
    d.let("ops", "2*macs", "ops", "1 MAC = 2 ops")
    d.given("real_macs", real_macs(layer), "MACs", "counted: those whose input is no padding")
    d.let("weights", "K*(C/G)*FY*FX", "elements")
    d.let("outputs", "B*K*OY*OX", "elements")
    d.given("used_inputs", used_inputs(layer), "elements", "counted: those that a tap reads")
    d.let("compulsory_bits", "weights*weight_bits + used_inputs*activation_bits + outputs*activation_bits", "bits",
          "each operand crosses the channel once")
    d.let("compulsory_bytes", "floor(compulsory_bits/8)", "bytes", "no schedule moves fewer")
    d.let("compulsory_ops_per_byte", "ops*8/compulsory_bits", "ops/byte")
    d.check("macs", layer.macs)
    d.check("compulsory_bytes", compulsory_bytes(design, layer))


def explain_memory(d: Derivation, design: Design, timing: MemoryTiming, board: Board | None) -> None:
    """Beats a cycle: from the pins of the board's memory; without a board the timing alone is stated."""
    if board is None:
        d.section("Memory")
        d.given("clock_mhz", Fraction(str(design.clock_mhz)), "MHz", "the design")
        d.given("bus_bits", design.bus_bits, "bits", "the design: a beat of the memory channel")
        d.given("latency_cycles", timing.latency_cycles, "cycles", "the memory's timing")
        d.given("beats_per_cycle", timing.beats_per_cycle, "beats/cycle", "the memory's timing")
        d.let("offered_mb_s", "beats_per_cycle*bus_bits/8*clock_mhz", "MB/s")
        return
    memory = board.memory
    assert memory is not None
    d.section("Board and memory")
    clock = "the board's" if design.clock_mhz == board.clock_mhz.value else f"the design's; the board's is {board.clock_mhz.value:g}"
    _figure(d, "clock_mhz", type(board.clock_mhz)(design.clock_mhz, board.clock_mhz.source, board.clock_mhz.trust), "MHz", clock)
    _figure(d, "memory_width_bits", memory.width_bits, "bits")
    _figure(d, "memory_mt_s", memory.mt_s, "million transfers/s")
    _figure(d, "memory_efficiency", memory.efficiency, "", "share of transfers that carry data")
    _figure(d, "latency_cycles", memory.latency_cycles, "cycles")
    d.given("bus_bits", design.bus_bits, "bits", "the design: a beat of the memory channel")
    d.let("peak_mb_s", "memory_width_bits/8*memory_mt_s", "MB/s")
    d.let("offered_mb_s", "peak_mb_s*memory_efficiency", "MB/s")
    d.let("offered_bytes_per_cycle", "offered_mb_s/clock_mhz", "bytes/cycle")
    d.let("beats_per_cycle", "min(1, offered_bytes_per_cycle/(bus_bits/8))", "beats/cycle", "the bus moves at most one a cycle")
    d.check("beats_per_cycle", timing.beats_per_cycle)


def _figure(d: Derivation, name: str, figure: Figure[int] | Figure[float], unit: str, more: str = "") -> None:
    note = f"{figure.trust}: {figure.source}"
    d.given(name, figure.exact, unit, f"{more}; {note}" if more else note)


def explain_design(d: Derivation, design: Design) -> None:
    """Array, drains, words and beats of the design."""
    d.section("Design")
    for name in ("rows", "cols", "lanes", "drains", "accumulator_bits"):
        d.given(name, getattr(design, name), "bits" if name.endswith("bits") else "", "the design")
    d.let("macs_per_cycle", "rows*cols*lanes", "MACs/cycle")
    d.let("peak_gops", "2*macs_per_cycle*clock_mhz/1000", "Gop/s", "the array's compute roof; 1 MAC = 2 ops")
    for kind, bits in (("input", "activation_bits"), ("weight", "weight_bits"), ("output", "activation_bits")):
        d.let(f"{kind}_word_bits", f"cols*{bits}", "bits")
        slot = f"ceil({kind}_word_bits/bus_bits)*bus_bits" if design.word_bits(kind) >= design.bus_bits else f"pow2({kind}_word_bits)"
        d.let(f"{kind}_slot_bits", slot, "bits", "a word as it travels")
        d.let(f"{kind}_words_per_entry", f"max(1, floor(bus_bits/{kind}_slot_bits))", "words")
        d.let(f"{kind}_beats_per_entry", f"max(1, floor({kind}_slot_bits/bus_bits))", "beats")
        d.check(f"{kind}_slot_bits", design.word_slot_bits(kind))
    if design.has_threshold_output:
        d.let("parameter_bits", "(accumulator_bits + 1) + 1", "bits", "threshold and flip of a channel")
    else:
        d.given("multiplier_bits", MULTIPLIER_BITS, "bits", "output stage: hdl/design.py")
        d.given("shift_bits", SHIFT_BITS, "bits", "output stage: hdl/design.py")
        d.let("parameter_bits", "accumulator_bits + multiplier_bits + shift_bits", "bits", "bias, multiplier and shift of a channel")
    d.let("parameter_beats", "ceil(parameter_bits/bus_bits)", "beats")
    d.check("parameter_beats", design.parameter_beats)
    unit = output_unit(design)
    what = "thresholds" if design.has_threshold_output else f"{design.output_multiplier} multiplier"
    d.given("II", unit.initiation_interval, "cycles", f"between two results of a drain: {what}, hdl/requantize.py")
    d.given("output_latency", unit.latency_cycles, "cycles", "of the output stage, hdl/requantize.py")
    d.given("capture", capture_cycles(design), "cycles", "from a reduction's last vector to its captured sum, hdl/array.py")
    d.given("readout", readout_cycles(design), "cycles", "from a drain's step to its result, hdl/array.py")
    d.given("READ_CYCLES", READ_CYCLES, "cycles", "hdl/timing.py")
    d.let("drain", "(rows*lanes/drains)*II", "cycles", "a pixel group occupies its drains")
    d.let("tail", "READ_CYCLES + capture + (drain - II) + max(READ_CYCLES + 1, readout) + 1 + output_latency + 1", "cycles",
          "from a tile's last vector to its last output beat")
    d.check("drain", drain_cycles(design))
    d.check("tail", tail_cycles(design))


def explain_folding(d: Derivation, design: Design, layer: Layer) -> None:
    """How channels and groups lie on rows and columns of the array, and rows and columns on the grid that taps touch."""
    group = Grouping.of(design, layer)
    d.section("Folding: C on columns, K on rows, OY on lanes")
    d.given("packed", group.packed, "groups", "side by side in a word: as many as fit, divide G and suit the rows (hdl/mapping.py)")
    d.let("supergroups", "G/packed")
    d.let("words", "ceil(packed*(C/G)/cols)", "words", "of a pixel and supergroup: C folded on cols")
    d.let("group_outputs", "K/G", "channels")
    d.let("supergroup_outputs", "packed*group_outputs", "channels")
    if group.packed == 1:
        d.let("passes", "1", "", "one group a word: no pass over masked columns")
    elif design.rows % group.group_outputs == 0:
        d.let("passes", "ceil(supergroup_outputs/rows)", "", "over the same weight words, column masks moved on")
    else:
        d.let("passes", "packed", "", "over the same weight words, column masks moved on")
    for name, axis, first, last in (("rows", y_axis(layer), "Y", "T"), ("columns", x_axis(layer), "X", "L")):
        s, dil, pad, taps, size = f"S{first}", f"D{first}", f"P{last}", f"F{first}", f"I{first}"
        step = f"gcd({s}, {dil})" if axis.taps > 1 else s
        # A step that would jump over the whole input is one.
        natural = d.let(f"{name}_step", step if _natural_step(axis.taps, layer, first) == axis.step else "1", "",
                        f"every so many input {name} are ever read")
        assert natural == axis.step
        d.let(f"{name}_first", f"ceil({pad}/{name}_step)", "", "the first on the grid that is no padding")
        d.let(f"{name}_count", f"floor(({size} - 1 - ({name}_first*{name}_step - {pad}))/{name}_step) + 1", "", "on the grid")
        d.let(f"{name}_stride", f"{s}/{name}_step", "", "on the grid")
        d.let(f"{name}_dilation", f"{dil}/{name}_step" if axis.taps > 1 else "1", "", "on the grid")
        d.let(f"{name}_reach", f"({taps} - 1)*{name}_dilation", "", "of the taps, on the grid")
        for part in ("first", "count", "stride"):
            d.check(f"{name}_{part}", getattr(axis, part))
    for name, expected in (("supergroups", group.count), ("words", group.words), ("supergroup_outputs", group.outputs),
                           ("passes", group.passes)):
        d.check(name, expected)


def _natural_step(taps: int, layer: Layer, axis: str) -> int:
    stride, dilation = getattr(layer, f"S{axis}"), getattr(layer, f"D{axis}")
    return gcd(stride, dilation) if taps > 1 else stride
