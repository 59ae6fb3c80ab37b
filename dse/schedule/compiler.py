"""Compiles a tiled layer to the program that runs it, and lays out external memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dse.schedule.tiling import INPUT_LOOPS, LOOPS, OUTPUT_LOOPS, PARAMETER_LOOPS, WEIGHT_LOOPS, Part, TilePlan
from hdl.compatibility import output_range
from hdl.errors import InputError
from hdl.mapping import output_beats
from hdl.program import (
    EXTERNAL_ADDRESS_BITS,
    FIRST_TILE_LEVEL,
    Mode,
    Opcode,
    ProgramBuilder,
    has_columns,
    slot_bits,
)

LEVEL_TABLE = FIRST_TILE_LEVEL + 1


@dataclass(frozen=True)
class Region:
    """Part of external memory, in beats."""

    address: int
    beats: int


@dataclass(frozen=True)
class MemoryMap:
    """Where everything lies in external memory, in beats."""

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


def compile_program(plan: TilePlan) -> Program:
    """The program of a tiled layer. Raises InputError when program or data exceed what the hardware addresses."""
    # Addresses are constants of the program, but its length does not depend on their values' order of magnitude once they are
    # loaded as data: compile once to learn the length, then with the real addresses.
    beats = 0
    for _ in range(8):
        memory = _memory_map(plan, beats)
        compiler = _Compiler(plan, memory)
        words = compiler.builder.words()
        actual = program_beats(plan.design.bus_bits, len(words))
        if actual == beats:
            return Program(tuple(words), beats, memory, compiler.builder.config_instructions + compiler.builder.tile_instructions,
                           compiler.builder.tile_instructions)
        beats = max(beats, actual)
    raise AssertionError("program length does not settle")


def _memory_map(plan: TilePlan, program: int) -> MemoryMap:
    layer = plan.layer
    count = {name: len(loop) for name, loop in plan.loops.items()}
    sizes = {
        "program": program,
        "parameters": count["S"] * count["K"] * parameter_stride(plan),
        "weights": count["S"] * count["K"] * count["C"] * weight_stride(plan),
        "input": layer.B * layer.IY * layer.IX * plan.pixel_beats,
        "output": layer.B * layer.OY * layer.OX * plan.output_pixel_beats,
    }
    regions, address = {}, 0
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


class _Compiler:
    """Writes every field, as a constant or into the tile routine, by what it depends on."""

    def __init__(self, plan: TilePlan, memory: MemoryMap) -> None:
        self.plan, self.memory = plan, memory
        self.builder = ProgramBuilder(plan.design)
        # Levels are numbered from the innermost loop that has more than one tile.
        names = [name for name in reversed(LOOPS[plan.tiling.order]) if len(plan.loops[name]) > 1]
        self.level = {name: number for number, name in enumerate(names)}
        self._tile_code: list[Callable[[], None]] = []
        self._layer()
        self._addresses()
        self._load()
        self._compute()
        self._store()
        for name, level in self.level.items():
            self.builder.variable(f"left_{name}", len(plan.loops[name]) - 1)
        self.builder.entry()
        for name, level in self.level.items():
            self.builder.load(f"left_{name}")
            self.builder.step(level, len(plan.loops[name]) - 1)
            self.builder.store(f"left_{name}")
        for emit in self._tile_code:
            emit()
        self.builder.end()

    # -- how a field depends on the tile ------------------------------------------------------------------------------

    def constant(self, name: str, value: int) -> None:
        if name in self.builder.fields:
            self.builder.constant(name, int(value))

    def by_class(self, name: str, loop: str, value: Callable[[Part], int]) -> None:
        """A field that depends on whether the tile is the first, a middle or the last of one loop."""
        self.by_classes(name, None, {loop: self._indexed(loop, value)})

    def by_index(self, name: str, loop: str, values: Sequence[int]) -> None:
        self.by_classes(name, None, {loop: values})

    def by_classes(self, name: str, variable: str | None, terms: Mapping[str, Sequence[int]], constant: int = 0) -> None:
        """``variable`` plus a class-dependent term for each loop, plus a constant."""
        if name not in self.builder.fields:
            return
        index = self.builder.fields[name].index
        tables = {}
        for loop, values in terms.items():
            if len(set(values)) == 1:
                constant += values[0]
            else:
                tables[loop] = _class_table(values)
        if variable is None and not tables:
            self.constant(name, constant)
            return
        operands: list[Callable[[Opcode, int | None], None]] = []
        if variable is not None:
            def read(opcode: Opcode, field: int | None) -> None:
                assert opcode is Opcode.LOAD
                self.builder.load(variable, field=field)
            operands.append(read)
        for loop, table in tables.items():
            shifted = tuple(word + constant for word in table)
            constant = 0

            def add(opcode: Opcode, field: int | None, loop: str = loop, table: tuple[int, ...] = shifted) -> None:
                self.builder.table(opcode, Mode.CLASS, table, level=self.level[loop], field=field)
            operands.append(add)
        if constant:
            def offset(opcode: Opcode, field: int | None, word: int = constant) -> None:
                self.builder.table(opcode, Mode.DIRECT, (word,), field=field)
            operands.append(offset)

        def emit() -> None:
            for number, operand in enumerate(operands):
                operand(Opcode.ADD if number else Opcode.LOAD, index if number == len(operands) - 1 else None)
        self._tile_code.append(emit)

    def by_pair(self, name: str, loops: tuple[str, str], value: Callable[[Part, Part], int]) -> None:
        """A field that depends on two loops' classes at once."""
        outer, inner = loops
        outer_parts, inner_parts = self.plan.loops[outer], self.plan.loops[inner]
        if len(outer_parts) == 1:
            self.by_class(name, inner, lambda part: value(outer_parts[0], part))
        elif len(inner_parts) == 1:
            self.by_class(name, outer, lambda part: value(part, inner_parts[0]))
        else:
            rows = [_class_table([value(a, b) for b in inner_parts]) for a in outer_parts]
            columns = [_class_table([row[number] for row in rows]) for number in range(4)]
            table = tuple(columns[b][a] for a in range(4) for b in range(4))
            index = self.builder.fields[name].index
            self._tile_code.append(lambda: self.builder.table(
                Opcode.LOAD, Mode.PAIR, table, level=self.level[outer], level_b=self.level[inner], field=index))

    def running(self, variable: str, initial: int, strides: dict[str, int]) -> None:
        """A variable that is ``initial`` plus each loop's index times its stride, kept up by one addition a tile."""
        levels = sorted(self.level.items(), key=lambda item: item[1])
        table = [0] * LEVEL_TABLE
        rewind = 0
        for name, level in levels:
            stride = strides.get(name, 0)
            table[level] = stride - rewind
            rewind += stride * (len(self.plan.loops[name]) - 1)
        self._update(variable, initial, Opcode.ADD, table)

    def toggling(self, variable: str, loops: frozenset[str], slot: int) -> None:
        """A variable that is 0 and ``slot`` in turn, one change whenever one of ``loops`` moves on."""
        table = [0] * LEVEL_TABLE
        if self.plan.slots(loops) > 1:
            for level in range(len(self.level)):
                table[level] = slot if self._moves(level, loops) else 0
        self._update(variable, 0, Opcode.XOR, table)

    def _input_slot(self, variable: str, slot: int) -> None:
        """Where the input tile lies: one of two regions in turn, or each tile in its own."""
        if not self.plan.input_is_resident:
            self.toggling(variable, INPUT_LOOPS, slot)
            return
        strides = {}
        for name in ("C", "X", "Y", "B"):
            strides[name] = slot
            slot *= len(self.plan.loops[name])
        self.running(variable, 0, strides)

    def _moves(self, level: int, loops: frozenset[str]) -> bool:
        """Whether data that depends on ``loops`` differs after this level advanced (and all inner ones started over)."""
        return any(name in loops for name, number in self.level.items() if number <= level)

    def _update(self, variable: str, initial: int, opcode: Opcode, table: list[int]) -> None:
        self.builder.variable(variable, initial)
        if any(table):
            def emit() -> None:
                self.builder.load(variable)
                self.builder.table(opcode, Mode.LEVEL, tuple(table))
                self.builder.store(variable)
            self._tile_code.append(emit)

    def when_moved(self, name: str, loops: frozenset[str]) -> None:
        """A flag: this tile differs from the one before in one of ``loops`` (the first tile does)."""
        table = [int(self._moves(level, loops)) if level < len(self.level) else 0 for level in range(LEVEL_TABLE)]
        table[FIRST_TILE_LEVEL] = 1
        index = self.builder.fields[name].index
        self._tile_code.append(lambda: self.builder.table(Opcode.LOAD, Mode.LEVEL, tuple(table), field=index))

    def _indexed(self, loop: str, value: Callable[[Part], int]) -> list[int]:
        return [int(value(part)) for part in self.plan.loops[loop]]

    # -- the fields ---------------------------------------------------------------------------------------------------

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
        }
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
        row, pixel = layer.IX * plan.pixel_beats, plan.pixel_beats
        self.running("input_at", memory.input.address - y.pad * row - x.pad * pixel, {
            "B": layer.IY * row, "Y": tiling.ty * y.stride * y.step * row, "X": tiling.tx * x.stride * x.step * pixel,
            "S": plan.input_format.beats(tiling.ts * group.words), "C": plan.input_format.beats(tiling.tc),
        })
        self.by_classes("input_address", "input_at", {
            "Y": [window.low * y.step * row for window in plan.y_windows],
            "X": [window.low * x.step * pixel for window in plan.x_windows],
        })
        channels, block = len(plan.loops["C"]), weight_stride(plan)
        self.running("weights_at", memory.weights.address, {
            "C": block, "K": channels * block, "S": len(plan.loops["K"]) * channels * block})
        self.by_classes("weight_address", "weights_at", {})
        block = parameter_stride(plan)
        self.running("parameters_at", memory.parameters.address, {"K": block, "S": len(plan.loops["K"]) * block})
        self.by_classes("parameter_address", "parameters_at", {})
        row, pixel = layer.OX * plan.output_pixel_beats, plan.output_pixel_beats
        self.running("output_at", memory.output.address, {
            "B": layer.OY * row, "Y": tiling.ty * row, "X": tiling.tx * pixel,
            "S": self._output_offset(tiling.ts * group.outputs), "K": self._output_offset(tiling.tk),
        })
        self.by_classes("output_address", "output_at", {})

    def _output_offset(self, channels: int) -> int:
        """Beats before output channel ``channels`` of a pixel (a tile boundary)."""
        return output_beats(self.plan.design, channels)

    def _load(self) -> None:
        plan = self.plan
        if plan.input_is_resident:
            self.by_index("load_input", "K", [int(at == 0) for at in range(len(plan.loops["K"]))])
        else:
            self.when_moved("load_input", INPUT_LOOPS)
        self.when_moved("load_weights", WEIGHT_LOOPS)
        self.when_moved("load_parameters", PARAMETER_LOOPS)
        y, rows = plan.y_axis, plan.y_windows
        self.by_index("input_rows_last", "Y", [window.rows - 1 for window in rows])
        self.by_index("input_row_first", "Y", [window.low for window in rows])
        self.by_index("input_span_last", "Y", [y.span(window.band) - 1 for window in rows])
        self.by_index("load_band_rows", "Y", [window.band * y.stride for window in rows])
        self.by_index("load_band_entries", "Y", [window.band * y.stride * plan.row_entries for window in rows])
        columns = [window.rows for window in plan.x_windows]
        self.by_index("input_pixels_last", "X", [count - 1 for count in columns])
        first = {name: loop[0] for name, loop in plan.loops.items()}
        words = "S" if len(plan.loops["C"]) == 1 else "C"

        def of_words(measure: Callable[[Part, Part], int]) -> Callable[[Part], int]:
            return lambda part: measure(part, first["C"]) if words == "S" else measure(first["S"], part)

        if plan.input_is_contiguous:
            self.constant("input_bursts_last", 0)
            self.by_index("input_beats", "X", [count * plan.pixel_beats for count in columns])
        else:
            self.by_index("input_bursts_last", "X", [count - 1 for count in columns])
            self.by_class("input_beats", words, of_words(plan.input_beats))
        self.by_class("input_entries_last", words, of_words(lambda s, c: plan.input_entries(s, c) - 1))
        self._input_slot("input_slot", plan.input_slot)
        self.by_classes("input_entry", "input_slot", {"Y": [(window.low - window.shift) * plan.row_entries for window in rows]})
        self.toggling("weight_slot", WEIGHT_LOOPS, plan.weight_slot)
        self.by_classes("weight_entry", "weight_slot", {})
        self.by_class("run_entries_last", "C", lambda c: plan.run_entries(c) - 1)
        self.by_class("records_last", "K", lambda k: plan.records(k) - 1)
        self.toggling("parameter_slot", PARAMETER_LOOPS, plan.parameter_slot)
        self.by_classes("parameter_entry", "parameter_slot", {})
        if plan.tiling.ts > 1:
            self.by_class("weight_beats", "S", lambda s: plan.weight_beats(s, first["K"], first["C"]))
            self.by_class("parameter_beats", "S", lambda s: plan.parameter_beats(s, first["K"]))
        else:
            self.by_pair("weight_beats", ("K", "C"), lambda k, c: plan.weight_beats(first["S"], k, c))
            self.by_class("parameter_beats", "K", lambda k: plan.parameter_beats(first["S"], k))

    def _compute(self) -> None:
        plan, design, group = self.plan, self.plan.design, self.plan.grouping
        words = plan.input_format.words_per_entry
        row, pixel = plan.row_entries * words, plan.pixel_entries * words
        shifts = {"Y": [-window.shift * row for window in plan.y_windows], "X": [-window.shift * pixel for window in plan.x_windows]}
        slot = "input_slot"
        if words > 1:
            slot = "input_word_slot"
            self._input_slot(slot, plan.input_slot * words)
        self.by_classes("input_word", slot, shifts)
        words, slot = plan.weight_format.words_per_entry, "weight_slot"
        if words > 1:
            slot = "weight_word_slot"
            self.toggling(slot, WEIGHT_LOOPS, plan.weight_slot * words)
        self.by_classes("weight_word", slot, {})
        self.by_classes("parameter_word", "parameter_slot", {})
        self.by_class("words_last", "C", lambda c: c.size - 1)
        self.by_class("run_words", "C", lambda c: plan.run_entries(c) * words)
        self.by_class("blocks_last", "K", lambda k: plan.blocks(k) - 1)
        self.by_class("groups_last", "S", lambda s: s.size - 1)
        self.by_class("rows_final", "K", lambda k: k.size - (group.passes * plan.blocks(k) - 1) * design.rows)
        self.by_class("x_last", "X", lambda x: x.size - 1)
        self.by_index("y_last", "Y", [window.band - 1 for window in plan.y_windows])
        self.by_index("x_low", "X", [window.low for window in plan.x_windows])
        self.by_index("x_high", "X", [window.high for window in plan.x_windows])
        self.by_index("y_low", "Y", [window.low for window in plan.y_windows])
        self.by_index("y_high", "Y", [window.high for window in plan.y_windows])
        self.by_index("band_rows", "Y", [window.band * plan.y_axis.stride for window in plan.y_windows])
        self.by_class("tile_rows", "Y", lambda y: y.size)
        count = len(plan.loops["C"])
        self.by_index("first_channels", "C", [int(at == 0) for at in range(count)])
        self.by_index("final_channels", "C", [int(at == count - 1) for at in range(count)])
        self.toggling("output_slot", OUTPUT_LOOPS, plan.output_slot)
        self.by_classes("output_entry", "output_slot", {})
        rest = group.group_inputs - (group.words - 1) * design.cols
        self.by_class("final_word_channels", "C", lambda c: rest if c.start + c.size == group.words else design.cols)

    def _store(self) -> None:
        plan = self.plan
        count = len(plan.loops["C"])
        self.by_index("store_output", "C", [int(at == count - 1) for at in range(count)])
        self.by_class("output_rows_last", "Y", lambda y: y.size - 1)
        channels = "S" if plan.tiling.ts > 1 else "K"
        first = {name: loop[0] for name, loop in plan.loops.items()}

        def beats(part: Part) -> int:
            return plan.output_tile_beats(part, first["K"]) if channels == "S" else plan.output_tile_beats(first["S"], part)

        if plan.output_is_contiguous:
            self.constant("output_bursts_last", 0)
            self.by_class("output_beats", "X", lambda x: x.size * plan.output_pixel_beats)
        else:
            self.by_class("output_bursts_last", "X", lambda x: x.size - 1)
            self.by_class("output_beats", channels, beats)
        self.by_pair("output_row_length", ("X", channels), lambda x, part: x.size * beats(part) - 1)
        self.by_index("store_band_last", "Y", [window.band - 1 for window in plan.y_windows])
        self.by_classes("store_entry", "output_slot", {})


def _class_table(values: Sequence[int]) -> tuple[int, int, int, int]:
    """Values by tile index -> by class: middle, first, last, only."""
    middle = set(values[1:-1])
    assert len(middle) <= 1, "the tiling's checks admit one kind of middle tile"
    only = values[0] if len(values) == 1 else 0
    return (middle.pop() if middle else 0, values[0], values[-1], only)
