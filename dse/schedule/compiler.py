"""Compiles a tiled layer to the program that runs it, and lays out external memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dse.schedule.fields import Base, FieldWriter
from dse.schedule.tiling import INPUT_LOOPS, OUTPUT_LOOPS, PARAMETER_LOOPS, WEIGHT_LOOPS, Part, TilePlan
from hdl.compatibility import output_range
from hdl.errors import InputError
from hdl.mapping import output_beats
from hdl.program import EXTERNAL_ADDRESS_BITS, has_columns, slot_bits


@dataclass(frozen=True)
class Region:
    """Part of external memory, in beats."""

    address: int
    beats: int


NOWHERE = Region(0, 0)


@dataclass(frozen=True)
class MemoryMap:
    """Where everything lies in external memory, in beats. ``beats``: where it ends."""

    program: Region
    parameters: Region
    weights: Region
    input: Region
    output: Region

    @property
    def beats(self) -> int:
        return self.output.address + self.output.beats


@dataclass(frozen=True)
class Program:
    """A compiled layer.

    ``words``: 32-bit program words. ``beats``: of the program in memory. ``first_instructions``, ``tile_instructions``: executed before
    the first phase (header not counted), and for every further tile.
    """

    words: tuple[int, ...]
    beats: int
    memory: MemoryMap
    first_instructions: int
    tile_instructions: int


def program_beats(bus_bits: int, words: int) -> int:
    return words * max(1, 32 // bus_bits)


def compile_program(plan: TilePlan, *, address: int = 0, following: Region = NOWHERE) -> Program:
    """The program of a tiled layer. Raises InputError when program or data exceed what the hardware addresses.

    ``address``: of the first beat in external memory. ``following``: the program that runs next, if any; needs ``design.chaining``.
    """
    # The program's length does not depend on the addresses in it, nor on any other value.
    beats = program_beats(plan.design.bus_bits, len(Compiler(plan, memory_map(plan, 0), NOWHERE).builder.words()))
    memory = memory_map(plan, beats, address)
    builder = Compiler(plan, memory, following).builder
    words = builder.words()
    assert program_beats(plan.design.bus_bits, len(words)) == beats
    return Program(tuple(words), beats, memory, builder.config_instructions + builder.tile_instructions, builder.tile_instructions)


def memory_map(plan: TilePlan, program: int, address: int = 0) -> MemoryMap:
    """Where a layer's data lies behind its program of ``program`` beats at ``address``; what stays on chip has no beats."""
    layer = plan.layer
    count = {name: len(loop) for name, loop in plan.loops.items()}
    sizes = {
        "program": program,
        "parameters": count["S"] * count["K"] * parameter_stride(plan),
        "weights": count["S"] * count["K"] * count["C"] * weight_stride(plan),
        "input": 0 if plan.input_is_kept else layer.B * layer.IY * layer.IX * plan.pixel_beats,
        "output": 0 if plan.output_is_kept else layer.B * layer.OY * layer.OX * plan.output_pixel_beats,
    }
    regions = {}
    for name, beats in sizes.items():
        regions[name] = Region(address, beats)
        address += beats
    if address > 1 << EXTERNAL_ADDRESS_BITS:
        raise InputError("the layer's tensors exceed the memory channel's address space", where="layer",
                         value=f"{address} beats of {plan.design.bus_bits} bits", allowed=f"{1 << EXTERNAL_ADDRESS_BITS} beats")
    return MemoryMap(**regions)


def weight_stride(plan: TilePlan) -> int:
    """Beats from one weight tile to the next in external memory: those of the largest."""
    return plan.weight_beats(plan.loops["S"][0], plan.loops["K"][0], plan.loops["C"][0])


def parameter_stride(plan: TilePlan) -> int:
    return plan.parameter_beats(plan.loops["S"][0], plan.loops["K"][0])


class Compiler(FieldWriter):
    """Every field of a tiled layer."""

    def __init__(self, plan: TilePlan, memory: MemoryMap, following: Region) -> None:
        super().__init__(plan)
        self.memory, self.following = memory, following
        self._layer()
        self._addresses()
        self._load()
        self._compute()
        self._store()
        self.finish()

    def _slot(self, variable: str, kind: str, slot: int) -> Base:
        """Where a tile of the ``kind`` lies in its banks: in one of two regions in turn, or each tile in its own."""
        plan = self.plan
        loops = {"input": INPUT_LOOPS, "weight": WEIGHT_LOOPS}[kind]
        if not (plan.input_is_resident if kind == "input" else plan.weights_are_resident):
            return self.toggling(variable, loops, slot)
        strides: dict[str, int] = {}
        for name in ("C", "K", "X", "Y", "B", "S"):
            if name in loops:
                strides[name] = slot
                slot *= len(plan.loops[name])
        return self.running(variable, 0, strides)

    def _layer(self) -> None:
        plan, layer, design = self.plan, self.plan.layer, self.plan.design
        y, x, group = plan.y_axis, plan.x_axis, plan.grouping
        words = plan.input_format.words_per_entry
        row, pixel = plan.row_entries * words, plan.pixel_entries * words
        low, high = output_range(design, layer)
        values = {
            "signed": layer.activations_signed, "zero_point": layer.input_zero_point,
            "low": low, "high": high, "output_zero_point": layer.output_zero_point,
            "fy_last": layer.FY - 1, "fx_last": layer.FX - 1,
            "stride_y": y.stride, "stride_x": x.stride, "dilation_y": y.dilation, "dilation_x": x.dilation,
            "tap_y_words": y.dilation * row, "tap_x_words": x.dilation * pixel,
            "pixel_y_words": y.stride * row, "pixel_x_words": x.stride * pixel, "group_words": group.words,
            "row_entries": plan.row_entries, "pixel_entries": plan.pixel_entries,
            "input_row_beats": y.step * layer.IX * plan.pixel_beats, "input_pixel_beats": x.step * plan.pixel_beats,
            "output_row_beats": layer.OX * plan.output_pixel_beats, "output_pixel_beats": plan.output_pixel_beats,
            "row_pattern": group.row_pattern,
            "next_program_address": self.following.address, "next_program_beats": self.following.beats,
            "store_on_chip": plan.output_is_kept, "next_span_last": 0, "next_band_rows": 0, "next_band_entries": 0,
        }
        if plan.output_frame is not None:
            frame = plan.output_frame
            values |= {"output_row_beats": frame.row_entries, "output_pixel_beats": frame.pixel_entries,
                       "next_span_last": frame.span_last, "next_band_rows": frame.band_rows, "next_band_entries": frame.band_entries}
        for name, value in values.items():
            self.constant(name, value)
        if has_columns(design):
            bits = slot_bits(design)
            self.constant("row_slots", sum(slot << bits * at for at, slot in enumerate(group.row_slots)))
            self.constant("column_slots", sum(slot << bits * at for at, slot in enumerate(group.column_slots)))
            self.constant("slots_per_pass", group.slots_per_pass)
            self.constant("passes_last", group.passes - 1)

    def _addresses(self) -> None:
        plan, memory, tiling = self.plan, self.memory, self.plan.tiling
        layer, y, x, group = plan.layer, plan.y_axis, plan.x_axis, plan.grouping
        if not plan.input_is_kept:
            row, pixel = layer.IX * plan.pixel_beats, plan.pixel_beats
            input_at = self.running("input_at", memory.input.address - y.pad * row - x.pad * pixel, {
                "B": layer.IY * row, "Y": tiling.ty * y.stride * y.step * row, "X": tiling.tx * x.stride * x.step * pixel,
                "S": plan.input_format.beats(tiling.ts * group.words), "C": plan.input_format.beats(tiling.tc),
            })
            self.by_windows("input_address", input_at, {
                "Y": [window.low * y.step * row for window in plan.y_windows],
                "X": [window.low * x.step * pixel for window in plan.x_windows],
            })
        channels, block = len(plan.loops["C"]), weight_stride(plan)
        self.by_base("weight_address", self.running("weights_at", memory.weights.address, {
            "C": block, "K": channels * block, "S": len(plan.loops["K"]) * channels * block}))
        block = parameter_stride(plan)
        self.by_base("parameter_address", self.running(
            "parameters_at", memory.parameters.address, {"K": block, "S": len(plan.loops["K"]) * block}))
        row, pixel, first, per_entry = layer.OX * plan.output_pixel_beats, plan.output_pixel_beats, memory.output.address, 1
        if plan.output_frame is not None:  # entries of the input banks, which tiles of channels fill
            frame = plan.output_frame
            row, pixel, first, per_entry = frame.row_entries, frame.pixel_entries, frame.entry + frame.origin, \
                plan.input_format.beats_per_entry
            if "next_row_first" in self.builder.fields:
                self.by_base("next_row_first", self.running("next_row", frame.row_first, {"Y": tiling.ty}))
        self.by_base("output_address", self.running("output_at", first, {
            "B": layer.OY * row, "Y": tiling.ty * row, "X": tiling.tx * pixel,
            "S": output_beats(plan.design, tiling.ts * group.outputs) // per_entry,
            "K": output_beats(plan.design, tiling.tk) // per_entry,
        }))

    def _load(self) -> None:
        plan = self.plan
        first = {name: loop[0] for name, loop in plan.loops.items()}
        if plan.input_is_kept:
            self.constant("load_input", 0)
        else:
            self._when_loaded("load_input", INPUT_LOOPS, plan.input_is_resident)
        self._when_loaded("load_weights", WEIGHT_LOOPS, plan.weights_are_resident)
        self.when_moved("load_parameters", PARAMETER_LOOPS)
        if not plan.input_is_kept:
            self._load_input()
        self.weight_slot = self._slot("weight_slot", "weight", plan.weight_slot)
        self.by_base("weight_entry", self.weight_slot)
        self.by_size("run_entries_last", "C", lambda c: plan.run_entries(c) - 1)
        self.by_size("records_last", "K", lambda k: plan.records(k) - 1)
        self.parameter_slot = self.toggling("parameter_slot", PARAMETER_LOOPS, plan.parameter_slot)
        self.by_base("parameter_entry", self.parameter_slot)
        if plan.tiling.ts > 1:
            self.by_size("weight_beats", "S", lambda s: plan.weight_beats(s, first["K"], first["C"]))
            self.by_size("parameter_beats", "S", lambda s: plan.parameter_beats(s, first["K"]))
        else:
            self.by_pair("weight_beats", ("K", "C"), lambda k, c: plan.weight_beats(first["S"], k, c))
            self.by_size("parameter_beats", "K", lambda k: plan.parameter_beats(first["S"], k))

    def _load_input(self) -> None:
        plan = self.plan
        y, rows = plan.y_axis, plan.y_windows
        bands = {part: window.band for part, window in zip(plan.loops["Y"], rows, strict=True)}
        self.by_window("input_rows_last", "Y", [window.rows - 1 for window in rows])
        self.by_window("input_row_first", "Y", [window.low for window in rows])
        self.by_size("input_span_last", "Y", lambda part: y.span(bands[part]) - 1)
        self.by_size("load_band_rows", "Y", lambda part: bands[part] * y.stride)
        self.by_size("load_band_entries", "Y", lambda part: bands[part] * y.stride * plan.row_entries)
        columns = [window.rows for window in plan.x_windows]
        self.by_window("input_pixels_last", "X", [count - 1 for count in columns])
        first = {name: loop[0] for name, loop in plan.loops.items()}
        words = "S" if len(plan.loops["C"]) == 1 else "C"

        def of_words(measure: Callable[[Part, Part], int]) -> Callable[[Part], int]:
            return lambda part: measure(part, first["C"]) if words == "S" else measure(first["S"], part)

        if plan.input_is_contiguous:
            self.constant("input_bursts_last", 0)
            self.by_window("input_beats", "X", [count * plan.pixel_beats for count in columns])
        else:
            self.by_window("input_bursts_last", "X", [count - 1 for count in columns], like="input_pixels_last")
            self.by_size("input_beats", words, of_words(plan.input_beats))
        self.by_size("input_entries_last", words, of_words(lambda s, c: plan.input_entries(s, c) - 1))
        self.input_slot = self._slot("input_slot", "input", plan.input_slot)
        self.by_windows("input_entry", self.input_slot, {"Y": [(window.low - window.shift) * plan.row_entries for window in rows]})

    def _when_loaded(self, name: str, loops: frozenset[str], resident: bool) -> None:
        if resident:
            self.by_index(name, self.plan.revisiting_loop, lambda at: at == 0)
        else:
            self.when_moved(name, loops)

    def _compute(self) -> None:
        plan, design, group = self.plan, self.plan.design, self.plan.grouping
        words = plan.input_format.words_per_entry
        row, pixel = plan.row_entries * words, plan.pixel_entries * words
        if plan.input_entry is not None:  # every tile reads its part of one region
            tiling, y, x = plan.tiling, plan.y_axis, plan.x_axis
            self.by_base("input_word", self.running(
                "input_word_at", plan.input_entry * words - plan.kept_shift * row - x.first * pixel,
                {"Y": tiling.ty * y.stride * row, "X": tiling.tx * x.stride * pixel, "S": tiling.ts * group.words, "C": tiling.tc}))
        else:
            input_slot = self.input_slot
            if words > 1:
                input_slot = self._slot("input_word_slot", "input", plan.input_slot * words)
            self.by_windows("input_word", input_slot, {"Y": [-window.shift * row for window in plan.y_windows],
                                                       "X": [-window.shift * pixel for window in plan.x_windows]})
        weight_slot = self.weight_slot
        words = plan.weight_format.words_per_entry
        if words > 1:
            weight_slot = self._slot("weight_word_slot", "weight", plan.weight_slot * words)
        self.by_base("weight_word", weight_slot)
        self.by_base("parameter_word", self.parameter_slot)
        bands = {part: window.band for part, window in zip(plan.loops["Y"], plan.y_windows, strict=True)}
        self.by_size("words_last", "C", lambda c: c.size - 1)
        self.by_size("run_words", "C", lambda c: plan.run_entries(c) * words)
        self.by_size("blocks_last", "K", lambda k: plan.blocks(k) - 1)
        self.by_size("groups_last", "S", lambda s: s.size - 1)
        self.by_size("rows_final", "K", lambda k: k.size - (group.passes * plan.blocks(k) - 1) * design.rows)
        self.by_size("x_last", "X", lambda x: x.size - 1)
        self.by_size("y_last", "Y", lambda y: bands[y] - 1)
        self.by_window("x_low", "X", [window.low for window in plan.x_windows])
        self.by_window("x_high", "X", [window.high for window in plan.x_windows])
        self.by_window("y_low", "Y", [window.low for window in plan.y_windows], like="input_row_first")
        self.by_window("y_high", "Y", [window.high for window in plan.y_windows])
        self.by_size("band_rows", "Y", lambda y: bands[y] * plan.y_axis.stride, like="load_band_rows")
        self.by_size("tile_rows", "Y", lambda y: y.size)
        count = len(plan.loops["C"])
        self.by_index("first_channels", "C", lambda at: at == 0)
        self.by_index("final_channels", "C", lambda at: at == count - 1, like="store_output")
        self.output_slot = self.toggling("output_slot", OUTPUT_LOOPS, plan.output_slot)
        self.by_base("output_entry", self.output_slot)
        rest = group.group_inputs - (group.words - 1) * design.cols
        self.by_index("final_word_channels", "C", lambda at: rest if at == count - 1 else design.cols)

    def _store(self) -> None:
        plan = self.plan
        count = len(plan.loops["C"])
        bands = {part: window.band for part, window in zip(plan.loops["Y"], plan.y_windows, strict=True)}
        self.by_index("store_output", "C", lambda at: at == count - 1)
        self.by_size("output_rows_last", "Y", lambda y: y.size - 1)
        channels = "S" if plan.tiling.ts > 1 else "K"
        first = {name: loop[0] for name, loop in plan.loops.items()}

        def beats(part: Part) -> int:
            return plan.output_tile_beats(part, first["K"]) if channels == "S" else plan.output_tile_beats(first["S"], part)

        if plan.output_is_contiguous:
            self.constant("output_bursts_last", 0)
            self.by_size("output_beats", "X", lambda x: x.size * plan.output_pixel_beats)
        else:
            self.by_size("output_bursts_last", "X", lambda x: x.size - 1, like="x_last")
            self.by_size("output_beats", channels, beats)
        self.by_pair("output_row_length", ("X", channels), lambda x, part: x.size * beats(part) - 1)
        self.by_size("store_band_last", "Y", lambda y: bands[y] - 1, like="y_last")
        self.by_base("store_entry", self.output_slot)
