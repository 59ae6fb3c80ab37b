"""What an accelerator is made of, counted for the estimate of its look-up tables and flip-flops: so many of each thing, by name.

Each count is of bits that a register or a row of logic has in ``hdl/``; what one of them costs on a family is a coefficient, fitted to
synthesis (:mod:`dse.estimate.calibration`). A design's banks enter by the bits of their addresses alone, so that those may be arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from boards.primitives import FAMILIES, RAMS
from hdl.array import capture_cycles, readout_cycles
from hdl.choices import Accumulate, Multiplier, OutputMultiplier
from hdl.design import Design
from hdl.drain import addend_cycles, drain_cycles, drain_interval, output_unit
from hdl.multiply import booth_rows
from hdl.popcount import compression
from hdl.program import COORDINATE_BITS, EXTERNAL_ADDRESS_BITS, LENGTH_BITS, has_columns, slot_bits
from hdl.reduce import SELECT_INDEX_BITS, tree_levels

Number = Any
"""A number, or an array of them: one a configuration of the banks."""
Counts = dict[str, Number]

REQUANTISE_BITS = 18
"""Operand of the output stage's multiplier."""


def entry_bits(design: Design) -> dict[str, Number]:
    """Bits of an entry's address, by kind of bank; 0 where there is no psum RAM."""
    kinds = ("input", "weight", "output", *(("psum",) if design.psum_bytes else ()))
    return {"psum": 0, **{kind: design.bank_depth(kind).bit_length() - 1 for kind in kinds}}


def flip_flops(design: Design, entries: Mapping[str, Number]) -> Counts:
    """Registers, in bits; those that synthesis may move into DSP blocks are apart. ``entries``: as :func:`entry_bits` has them."""
    return {**_control_registers(design, entries), **_array_registers(design), **_drain_registers(design, entries)}


def look_up_tables(design: Design, entries: Mapping[str, Number]) -> Counts:
    """Rows of logic, in bits. ``entries``: as :func:`entry_bits` has them."""
    return {**_control_logic(design, entries), **_array_logic(design), **_drain_logic(design, entries)}


def _at_most(value: Number, most: int) -> Number:
    return min(value, most) if isinstance(value, int) else np.minimum(value, most)


# -- sequencer, addresses, memory channel -----------------------------------------------------------------------------


def _words(design: Design, entries: Mapping[str, Number]) -> tuple[Number, Number]:
    """Address bits of words of the input banks, of the weight banks."""
    return tuple(entries[kind] + (design.words_per_entry(kind) - 1).bit_length() for kind in ("input", "weight"))


def field_bits(design: Design, entries: Mapping[str, Number]) -> Number:
    """Bits of the field file's registers: each field as often as it has phases to wait for (:func:`hdl.program.fields`)."""
    words_in, words_w = _words(design, entries)
    entries_in, entries_w, entries_out = (entries[kind] for kind in ("input", "weight", "output"))
    several, value = int(design.lanes > 1), design.activation_bits + 1
    tile = _at_most(entries_out, 12)
    rows = _at_most(tile + max(1, (design.lanes - 1).bit_length()), 12)
    parameter = design.bank_depth("parameter").bit_length() - 1
    config = 39 + 4 * EXTERNAL_ADDRESS_BITS + 5 * words_in + 2 * entries_in + design.rows
    config = config + (0 if design.is_xnor else 1 + value) + (0 if design.has_threshold_output else 3 * value)
    if has_columns(design):
        config = config + slot_bits(design) * (design.rows + design.cols + 2)
    if design.chaining:
        config = config + EXTERNAL_ADDRESS_BITS + LENGTH_BITS + 1 + several * (2 * COORDINATE_BITS + entries_in)
    load = (3 + 3 * EXTERNAL_ADDRESS_BITS + 3 * LENGTH_BITS + 36 + 2 * entries_in + several * (3 * COORDINATE_BITS + entries_in)
            + 3 * entries_w + 6 + parameter)
    compute = (3 * words_in + 3 * words_w + parameter + design.rows.bit_length() + 2 * tile + 4 * COORDINATE_BITS
               + several * (COORDINATE_BITS + rows + 2) + 2 * (entries["psum"] > 0) + entries_out
               + (design.cols.bit_length() if design.is_xnor else 0))
    store = (1 + EXTERNAL_ADDRESS_BITS + 2 * LENGTH_BITS + rows + tile + several * tile + entries_out
             + (several * COORDINATE_BITS if design.chaining else 0))
    return config + 2 * load + 3 * compute + 4 * store


def _control_registers(design: Design, entries: Mapping[str, Number]) -> Counts:
    words_in, words_w = _words(design, entries)
    entries_in, entries_w, entries_out = (entries[kind] for kind in ("input", "weight", "output"))
    lanes, bus = design.lanes, design.bus_bits
    beats = max(design.beats_per_entry("input"), design.beats_per_entry("weight"), design.parameter_beats)
    gathered = max(beats - 1, 1) * bus if beats > 1 or bus < 32 else 0
    return {
        "one": 1,
        "fields": field_bits(design, entries),
        "addresses": 8 * words_in + 4 * words_w + 4 * entries_in + 4 * entries_w + (1 + lanes) * entries_out,
        "lanes": (lanes - 1) * (6 * COORDINATE_BITS + entries_in),
        "rows": design.rows * (1 + (slot_bits(design) if has_columns(design) else 0)),
        "beats": gathered + lanes * bus,
        "performance counters": 288 if design.counters else 0,
        "chaining": (50 + 3 * entries_in + (lanes - 1) * (COORDINATE_BITS + entries_in)
                     + (design.beats_per_entry("input") - 1) * bus) if design.chaining else 0,
        "distributed": _distributed_bits(design, entries),
    }


def _distributed_bits(design: Design, entries: Mapping[str, Number]) -> Number:
    """Bits read from distributed RAM: they go to registers outside of it."""
    bits: Number = 0
    for kind in ("input", "weight", "output", "psum"):
        depth = 1 << entries[kind]
        bits = bits + (depth <= design.distributed_depth) * (depth > 1) * design.bank_count(kind) * design.bank_width_bits(kind)
    return bits


def _deep_banks(design: Design, entries: Mapping[str, Number], inputs: int) -> Number:
    """Choices among block RAMs on top of each other, for banks that are deeper than one."""
    rows = RAMS[FAMILIES[design.family].block_ram].widths[-1][0]
    bits: Number = 0
    for kind in ("input", "weight", "output", "psum"):
        above = (1 << entries[kind]) // rows
        above = above - (above > 0)
        bits = bits + design.bank_count(kind) * design.bank_width_bits(kind) * above / (3 if inputs >= 6 else 1)
    return bits


def _control_logic(design: Design, entries: Mapping[str, Number]) -> Counts:
    words_in, words_w = _words(design, entries)
    entries_in, entries_w, entries_out = (entries[kind] for kind in ("input", "weight", "output"))
    lanes, bus, inputs = design.lanes, design.bus_bits, FAMILIES[design.family].lut_inputs
    spread = design.lanes * design.word_bits("input") * mux_luts(design.words_per_entry("input"), inputs)
    spread += design.rows * design.word_bits("weight") * mux_luts(design.words_per_entry("weight"), inputs)
    spread += bus * mux_luts(lanes, inputs)
    return {
        "one": 1,
        "addresses": 8 * words_in + 4 * words_w + 4 * entries_in + 4 * entries_w + (1 + lanes) * entries_out,
        "lanes": (lanes - 1) * (10 * COORDINATE_BITS + 2 * entries_in),
        "rows": design.rows * (3 + (slot_bits(design) if has_columns(design) else 0)),
        "columns": design.rows * design.cols * -(-2 * slot_bits(design) // inputs) if has_columns(design) else 0,
        "words": spread,
        "beats": lanes * bus,
        "deep banks": _deep_banks(design, entries, inputs),
        "performance counters": 288 if design.counters else 0,
        "chaining": (100 + 3 * entries_in + (lanes - 1) * (COORDINATE_BITS + 2 * entries_in) + lanes * entries_in
                     + design.beats_per_entry("input") * bus) if design.chaining else 0,
        "distributed": _distributed_bits(design, entries),
    }


@lru_cache(maxsize=1024)
def mux_luts(count: int, inputs: int) -> float:
    """Look-up tables a bit of a choice of one out of ``count``: four options in one with six inputs, two in one with four."""
    if inputs >= 6:
        return (count - 1) / 3 if count > 4 else float(count > 1)
    return float(count - 1)


# -- array ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def tree_bits(count: int, term_bits: int, sum_bits: int) -> tuple[int, int]:
    """(bits of the adders, bits of the registers) of :class:`hdl.reduce.AdderTree`."""
    adders = registers = 0
    for depth in range(1, tree_levels(count) + 1):
        bits = min(term_bits + depth, sum_bits)
        adders += count // 2 * bits
        count = -(-count // 2)
        registers += count * bits
    return adders, registers


def _sums(design: Design) -> int:
    """Accumulators of the array."""
    return design.rows * design.lanes * (design.cols if design.accumulate is Accumulate.PER_COLUMN else 1)


def _accumulates_in_dsps(design: Design) -> bool:
    """Whether a product goes to its accumulator at once, so that one DSP block may be both."""
    return design.multiplier is Multiplier.DSP and (design.accumulate is Accumulate.PER_COLUMN or design.cols == 1)


def _first_adders(design: Design) -> int:
    """Bits of the adders of two products each, which a DSP block may take over from the second."""
    if design.multiplier is not Multiplier.DSP or design.accumulate is not Accumulate.TREE:
        return 0
    return design.rows * design.lanes * (design.cols // 2) * min(design.term_bits + 1, design.accumulator_bits)


def _select_registers(design: Design) -> int:
    """Registers a bit of a drain's choice among its results."""
    left, registers = design.drain_steps, 0
    while True:
        left = -(-left // (1 << SELECT_INDEX_BITS))
        registers += left
        if left == 1:
            return registers


@lru_cache(maxsize=256)
def _counter(cols: int, inputs: int) -> tuple[int, int]:
    """(compressors' outputs, registers between them) of :class:`hdl.popcount.MatchCounter`, the sum apart."""
    levels = compression(cols, inputs).levels
    group = 3 if inputs >= 6 else 2
    heights = [cols // group + cols % group, cols // group] + [0] * (len(levels) + 12)
    registers = outputs = 0
    for number, level in enumerate(levels, start=1):
        if number % 2 == 0:
            registers += sum(heights)
        arriving = [0] * len(heights)
        for weight, kinds in enumerate(level):
            for kind in kinds:
                heights[weight] -= kind.low
                heights[weight + 1] -= kind.high
                outputs += kind.outputs
                for output in range(kind.outputs):
                    arriving[weight + output] += 1
        heights = [have + new for have, new in zip(heights, arriving, strict=True)]
    if (len(levels) + 1) % 2 == 0:
        registers += sum(heights)
    return 2 * (cols // group) + cols % group + outputs, registers


def _array_registers(design: Design) -> Counts:
    dots, acc, cols = design.rows * design.lanes, design.accumulator_bits, design.cols
    select = design.drains * _select_registers(design)
    if design.is_xnor:
        _, between = _counter(cols, FAMILIES[design.family].lut_inputs)
        return {"operands": (design.rows + design.lanes) * cols, "counters' stages": dots * between,
                "sums": dots * (cols.bit_length() + 2 * (acc - 1)) + design.lanes * (cols.bit_length() + 2 * acc),
                "select": select * (2 * acc - 1) + design.drains * acc}
    paired, dsp = design.multiplier is Multiplier.DSP_PAIR, design.multiplier is Multiplier.DSP
    weights = design.rows // 2 * cols * design.pair_operand_bits if paired else design.rows * cols * design.weight_operand_bits
    activations = design.lanes * cols * design.activation_operand_bits
    products = (design.macs_per_cycle // 2 * (design.pair_operand_bits + design.activation_operand_bits) if paired
                else design.macs_per_cycle * design.term_bits)
    lut = not (paired or dsp)
    tree = dots * tree_bits(cols, design.term_bits, acc)[1] if design.accumulate is Accumulate.TREE else 0
    first = _first_adders(design)
    sums = _sums(design) * acc
    columns = cols if design.accumulate is Accumulate.PER_COLUMN else 1
    return {
        "operands": weights + activations if lut else 0,
        "operands in blocks": 0 if lut else weights + activations,
        "products": products if lut else 0,
        "products in blocks": 0 if lut else products,
        "pairs in blocks": design.macs_per_cycle * design.term_bits if paired else 0,
        "tree": tree - first,
        "tree in blocks": first,
        "sums": sums * (2 - _accumulates_in_dsps(design)),
        "sums in blocks": sums * _accumulates_in_dsps(design),
        "select": select * acc * columns + design.drains * tree_bits(columns, acc, acc)[1],
    }


def _array_logic(design: Design) -> Counts:
    dots, acc, cols, inputs = design.rows * design.lanes, design.accumulator_bits, design.cols, FAMILIES[design.family].lut_inputs
    if design.is_xnor:
        compressors, _ = _counter(cols, inputs)
        # A select of 6-input tables cannot share them with anything; that of the lanes' counts is one of few.
        return {"counters": dots * compressors, "counters' sums": dots * cols.bit_length(),
                "sums": dots * (acc - 1) + design.lanes * acc,
                "select": design.drains * acc * (mux_luts(design.drain_steps, inputs) + 1 + mux_luts(design.lanes_per_drain, inputs))}
    lut, paired = design.multiplier is Multiplier.LUT, design.multiplier is Multiplier.DSP_PAIR
    w, a = design.weight_operand_bits, design.activation_operand_bits
    rows = booth_rows(w, a)
    other = a if rows == -(-w // 2) else w
    columns = cols if design.accumulate is Accumulate.PER_COLUMN else 1
    return {
        "zero points": design.lanes * cols * a if design.activation_bits > 1 else 0,
        "pairs": design.rows // 2 * cols * design.weight_bits if paired else 0,
        "products": design.macs_per_cycle * rows * (other + 2) if lut else 0,
        "tree": dots * tree_bits(cols, design.term_bits, acc)[0] - _first_adders(design) if design.accumulate is Accumulate.TREE else 0,
        "tree in blocks": _first_adders(design),
        "sums": 0 if _accumulates_in_dsps(design) else _sums(design) * acc,
        "sums in blocks": _sums(design) * acc if _accumulates_in_dsps(design) else 0,
        "select": design.drains * acc * columns * mux_luts(design.drain_steps, inputs),
        "select's tree": design.drains * tree_bits(columns, acc, acc)[0],
    }


# -- drains -----------------------------------------------------------------------------------------------------------


def _requantizer(design: Design) -> tuple[Counts, Counts]:
    """(logic, registers) of a drain's output stage."""
    acc, activation = design.accumulator_bits, design.activation_bits
    window = activation + 3
    if design.has_threshold_output:
        return {"threshold": acc + 1}, {"threshold": acc + 4}
    kind, latency = design.output_multiplier, output_unit(design).latency_cycles
    finish = 4 * window
    if kind is OutputMultiplier.SERIAL:
        return ({"serial": 2 * acc + 2 * (window + 15), "finish": finish},
                {"serial": acc + acc + 2 + 19 + 6 + window + 15 + 6, "finish": window + 3 + activation + latency})
    rows = booth_rows(acc, REQUANTISE_BITS)
    shift = window + 15 + window + 3
    finishing = window + 3 + activation + latency + shift + 12
    if kind is OutputMultiplier.DSP:
        blocks = design.output_dsps
        chunk = min(design.output_chunk_bits, -(-acc // blocks))
        whole = chunk + REQUANTISE_BITS
        inside = sum((max(1, at) + (2 if at else 1)) * whole + at * chunk for at in range(blocks))
        return ({"parallel": 2 * (window + 15) + acc + window, "finish": finish, "blocks": (blocks - 1) * whole},
                {"parallel": 6 * latency, "finish": finishing, "blocks": inside})
    registers = sum((acc + 2) + 2 * row + acc + (REQUANTISE_BITS - 2 * row) for row in range(rows)) + 6 * rows
    return ({"parallel": 2 * (window + 15) + acc + window, "finish": finish, "products": rows * (acc + 2)},
            {"parallel": registers, "finish": finishing})


def _drain_registers(design: Design, entries: Mapping[str, Number]) -> Counts:
    acc, drains, parts = design.accumulator_bits, design.drains, design.drains_per_lane
    _, stage = _requantizer(design)
    at_once = drain_interval(design) == 1
    held = parts * design.parameter_bits if at_once else 0
    late = drains * acc * (addend_cycles(design) - readout_cycles(design)) if at_once else 0
    token = drains + max(1, (design.lanes_per_drain - 1).bit_length()) + 3
    delays = token * (addend_cycles(design) + 1 + output_unit(design).latency_cycles) + (design.lanes + 3) * capture_cycles(design)
    delays += 2 * max(1, (drain_cycles(design) - 1).bit_length()) + 3 * 9
    psum = entries["psum"] * (1 + addend_cycles(design) + drains)
    return {"drains": drains * (2 * acc + (0 if design.has_threshold_output else 23)) + held + late, "delays": delays, "psum": psum,
            **{f"output {name}": drains * bits for name, bits in stage.items()}}


def _drain_logic(design: Design, entries: Mapping[str, Number]) -> Counts:
    acc, drains = design.accumulator_bits, design.drains
    logic, _ = _requantizer(design)
    has_psum = entries["psum"] > 0
    return {"drains": drains * acc, "drains' control": drains, "psum": has_psum * drains * acc + entries["psum"],
            "lanes' drains": design.lanes * design.drains_per_lane * design.activation_bits,
            **{f"output {name}": drains * bits for name, bits in logic.items()}}
