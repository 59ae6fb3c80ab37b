"""Cycles and beats of tiled layers in closed form: exact, without walking tiles, for arrays of tilings at once.

A phase stores tile p-2, computes tile p-1 and loads tile p. Along each loop only the first, second, last and the other tiles can differ,
so a run has a few kinds of phases, each so many times: cycles are a sum of ``count * max(memory, compute, evaluation)``. `docs/timing.md`
derives the kinds. Equal to :func:`dse.schedule.predict.predict`, to the tile graph and to the hardware, always.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from dse.schedule.axes import FIRST, LAST, Booleans, ChannelCuts, Floats, SpatialCuts
from dse.schedule.phase_kinds import Factor, Key, Kind, Structure, kinds, store_key
from dse.schedule.program_shape import Pattern, program_config, program_shapes
from dse.schedule.tiling import INPUT_LOOPS, MAX_BURST_BEATS, OUTPUT_LOOPS, PARAMETER_LOOPS, WEIGHT_LOOPS, Order
from hdl import timing as hardware
from hdl.design import Design
from hdl.drain import drain_cycles, tail_cycles
from hdl.layer import Layer
from hdl.mapping import Format, Grouping, output_beats, x_axis
from sim.memory import MemoryTiming

Codes = NDArray[np.int64]
BEFORE_CYCLES = hardware.START_CYCLES + hardware.FETCH_END_CYCLES + hardware.FIRST_EVALUATION_CYCLES + hardware.PHASE_CHANGE_CYCLES
"""Before the first phase, beyond fetching the program and its first instructions."""

# -- the sum -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What does not depend on the tiling: design, layer, memory."""

    design: Design
    layer: Layer
    timing: MemoryTiming

    @cached_property
    def grouping(self) -> Grouping:
        return Grouping.of(self.design, self.layer)

    @cached_property
    def drain(self) -> int:
        """Cycles that a pixel group occupies its drains."""
        return drain_cycles(self.design)

    @cached_property
    def fixed_compute_cycles(self) -> int:
        """Of a tile, whatever its size: start and tail."""
        return hardware.COMPUTE_START_CYCLES + self.design.lanes - 1 + tail_cycles(self.design)


def sum_over(values: Floats, count: Floats) -> Floats:
    """Over all tiles of a loop, of a quantity (by class) that only the last tile's size changes."""
    return values[FIRST] * (count - 1) + np.where(count > 1, values[LAST], values[FIRST])


class ClosedForm:
    """Cycles and beats of the tilings that combine ``channels``, ``y`` and ``x`` cuts.

    The three tables' arrays must broadcast against each other: shapes (m, 1, 1), (ny, 1), (nx,) make the whole grid, three arrays of one
    length a list of tilings. All cuts of a table have several tiles along a loop, or none has: ``structure.loops`` says which.
    """

    def __init__(self, run: Run, structure: Structure, channels: ChannelCuts, y: SpatialCuts, x: SpatialCuts,
                 programs: Floats | None = None) -> None:
        self.run, self.structure, self.channels, self.y, self.x = run, structure, channels, y, x
        self._programs = programs
        self.count: dict[str, Floats | float] = {
            "S": channels.s_count, "K": channels.k_count, "C": channels.c_count, "B": float(run.layer.B), "Y": y.count, "X": x.count}
        self.parameter_beats = run.design.parameter_beats
        self._factors: dict[Factor, Floats | float] = {}

    def _tiles(self, loops: tuple[str, ...]) -> Floats | float:
        result: Floats | float = 1.0
        for loop in loops:
            result = result * self.count[loop]
        return result

    @cached_property
    def tiles(self) -> Floats | float:
        return self._tiles(self.structure.loops)

    # -- beats: sums of products ------------------------------------------------------------------------------------------

    @cached_property
    def loaded_beats(self) -> Floats:
        c, structure = self.channels, self.structure
        weights_outer = structure.order is Order.WEIGHTS_OUTER
        words = (sum_over(c.input_beats, c.c_count) * c.s_count if structure.words_loop == "C"
                 else sum_over(c.input_beats, c.s_count))
        pixels = self.y.load_sum * self.x.load_sum * self.run.layer.B
        inputs = pixels * (words * self._tiles(structure.repeats(INPUT_LOOPS, structure.resident and weights_outer)))
        groups = sum_over(c.groups, c.s_count)
        weights = groups * sum_over(c.records, c.k_count) * sum_over(c.runs, c.c_count)
        parameters = groups * sum_over(c.channels, c.k_count) * self.parameter_beats
        return (inputs + weights * self._tiles(structure.repeats(WEIGHT_LOOPS, structure.resident and not weights_outer))
                + parameters * self._tiles(structure.repeats(PARAMETER_LOOPS, False)))

    @cached_property
    def stored_beats(self) -> Floats:
        c = self.channels
        count = c.k_count if self.structure.channels_loop == "K" else c.s_count
        layer = self.run.layer
        repeats = c.s_count if self.structure.channels_loop == "K" else 1.0
        return sum_over(c.output_beats, count) * (repeats * (layer.B * layer.OY * layer.OX))

    @cached_property
    def last_store_beats(self) -> Floats:
        key = store_key(self.structure, dict.fromkeys(self.structure.loops, LAST))
        assert key is not None
        return self._store(key)

    # -- array ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def _pixel_groups(self) -> Floats:
        """Of the layer, all channel tiles' apart: bands * columns * groups * blocks."""
        c, layer = self.channels, self.run.layer
        blocks = sum_over(c.groups, c.s_count) * sum_over(c.blocks, c.k_count) * self.run.grouping.passes
        return self.y.band_sum * (blocks * (layer.B * layer.OX))

    @cached_property
    def issue_cycles(self) -> Floats:
        return self._pixel_groups * sum_over(self.channels.vectors, self.channels.c_count)

    @cached_property
    def drain_bound_cycles(self) -> Floats:
        """As :class:`dse.schedule.predict.Prediction` has it."""
        vectors, count = self.channels.vectors, self.channels.c_count
        limited = (self.run.drain > vectors[FIRST]) | ((count > 1) & (self.run.drain > vectors[LAST]))
        spaced = sum_over(np.maximum(vectors, self.run.drain), count)
        return self._pixel_groups * np.where(limited, spaced, count * self.run.drain)

    @property
    def memory_bound_cycles(self) -> Floats:
        """All beats but the program's at the offered rate."""
        return np.ceil((self.loaded_beats + self.stored_beats) * self.run.timing.den / self.run.timing.num)

    # -- program -------------------------------------------------------------------------------------------------------------

    @cached_property
    def program_codes(self) -> tuple[Codes, Codes, Codes, Floats]:
        """(code of the channel cut, of the row cut, of the column cut, table by ``16 * channel + 4 * row + column``).

        Columns of the table: words (infinite where they exceed the program RAM), beats, first instructions, tile instructions.
        """
        table = self._programs
        if table is None:
            table = program_tables(self.run.design, self.run.layer).of(self.structure, self.run.grouping.count > 1)
        return channel_codes(self.channels), spatial_codes(self.y), spatial_codes(self.x), table

    @cached_property
    def _program(self) -> tuple[Floats, Floats, Floats, Floats]:
        """(words, beats, first instructions, tile instructions) of every tiling."""
        channel, row, column, table = self.program_codes
        code = channel * 16 + row * 4 + column
        return table[:, 0].take(code), table[:, 1].take(code), table[:, 2].take(code), table[:, 3].take(code)

    @property
    def beats_read(self) -> Floats:
        return self.loaded_beats + self._program[1]

    @cached_property
    def evaluation_cycles(self) -> Floats:
        return hardware.EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * self._program[3]

    def before_cycles(self, program_beats: Floats, first_instructions: Floats) -> Floats:
        """Before the first phase."""
        timing = self.run.timing
        fetch = np.ceil(program_beats * timing.den / timing.num) + timing.latency_cycles
        result: Floats = BEFORE_CYCLES + fetch + hardware.INSTRUCTION_CYCLES * first_instructions
        return result

    @cached_property
    def ends_cycles(self) -> Floats:
        """Before the first phase, and the last phase: a store alone."""
        timing = self.run.timing
        _, beats, first, _ = self._program
        last = np.ceil(self.last_store_beats * timing.den / timing.num) + timing.latency_cycles
        return self.before_cycles(beats, first) + (hardware.MEMORY_START_CYCLES + last + 1)

    # -- cycles --------------------------------------------------------------------------------------------------------------

    def _store(self, key: Key) -> Floats:
        y, x, channels = key
        return self.y.outputs[y] * self.x.outputs[x] * self.channels.output_beats[channels]

    def _moved(self, kind: Kind) -> Floats | None:
        """Beats that a phase of that kind moves, times ``timing.den``; None where there are none."""
        c, den = self.channels, self.run.timing.den
        inputs, weights, parameters = kind.load
        parts: list[Floats] = []
        if weights is not None:
            s, k, w = weights
            parts.append(c.groups[s] * c.records[k] * c.runs[w] * den)
        if parameters is not None:
            s, k = parameters
            parts.append(c.groups[s] * c.channels[k] * (self.parameter_beats * den))
        parts = [sum(parts[1:], parts[0])] if parts else []
        if inputs is not None:
            y, x, w = inputs
            parts.append((self.y.load[y] * self.x.load[x]) * (c.input_beats[w] * den))
        if kind.store is not None:
            y, x, channels = kind.store
            parts.append((self.y.outputs[y] * self.x.outputs[x]) * (c.output_beats[channels] * den))
        return sum(parts[1:], parts[0]) if parts else None

    def _compute(self, key: Key) -> Floats:
        y, x, s, k, w = key
        c = self.channels
        vectors = c.vectors[w]
        spaced = np.maximum(vectors, self.run.drain)
        per_pixel = c.groups[s] * c.blocks[k] * (self.run.grouping.passes * spaced)
        return (self.y.band[y] * self.x.outputs[x]) * per_pixel + (self.run.fixed_compute_cycles + vectors - spaced)

    def _count(self, counts: tuple[tuple[Factor, ...], ...]) -> Floats | float:
        total: Floats | float = 0.0
        for factors in counts:
            times: Floats | float = 1.0
            for factor in factors:
                if factor not in self._factors:
                    n = self.count[factor[0]]
                    self._factors[factor] = {"rest": lambda n: n - 1, "inner": lambda n: n - 2, "tail": lambda n: np.maximum(n - 3, 0),
                                             "three": lambda n: (n > 2) * 1.0}[factor[1]](n)
                times = times * self._factors[factor]
            total = total + times
        return total

    @cached_property
    def cycles(self) -> Floats:
        """From the cycle that takes ``start`` to that of the last write beat."""
        # Every phase that moves anything takes this long beyond its beats: it is taken off the other two and added once, at the end.
        fixed = hardware.MEMORY_START_CYCLES + self.run.timing.latency_cycles + hardware.MEMORY_END_CYCLES
        evaluation = self.evaluation_cycles - fixed
        limits: dict[tuple[Key | None, bool], Floats] = {}
        memory: dict[tuple[object, ...], Floats] = {}
        total = np.array(self.ends_cycles + (hardware.PHASE_CHANGE_CYCLES + fixed) * (self.tiles + 1))
        phase = np.empty_like(total)
        for kind in kinds(self.structure):
            limit = limits.get((kind.compute, kind.evaluates))
            if limit is None:
                limit = evaluation if kind.compute is None else self._compute(kind.compute) - fixed
                if kind.evaluates and kind.compute is not None:
                    limit = np.maximum(limit, evaluation)
                limits[kind.compute, kind.evaluates] = limit
            key = kind.load, kind.store
            if key not in memory and (moved := self._moved(kind)) is not None:
                moved /= self.run.timing.num
                memory[key] = np.ceil(moved, out=moved)
            longest = np.maximum(memory[key], limit, out=phase) if key in memory else limit
            total += np.multiply(longest, self._count(kind.counts), out=phase) if kind.counts != ((),) else longest
        return total

    # -- banks ---------------------------------------------------------------------------------------------------------------

    def entries_needed(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Of each input, weight, output, psum and parameter bank; see :meth:`dse.schedule.tiling.TilePlan.needs`."""
        c, structure, design = self.channels, self.structure, self.run.design
        loops = set(structure.loops)

        def slots(data: frozenset[str]) -> float:
            return 2.0 if loops & data else 1.0

        weights_outer = structure.order is Order.WEIGHTS_OUTER
        input_slots: Floats | float = slots(INPUT_LOOPS)
        weight_slots: Floats | float = slots(WEIGHT_LOOPS)
        if structure.resident and weights_outer:
            input_slots = self._tiles(tuple(loop for loop in structure.loops if loop in INPUT_LOOPS))
        elif structure.resident:
            weight_slots = self._tiles(tuple(loop for loop in structure.loops if loop in WEIGHT_LOOPS))
        pixels = self.y.band[FIRST] * self.x.outputs[FIRST]
        groups = c.groups[FIRST] * self.run.grouping.passes * c.blocks[FIRST] * design.drain_steps
        return (self.y.frame * self.x.frame * (c.pixel_entries * input_slots), c.weight_slot * weight_slots,
                pixels * (c.output_beats[FIRST] * slots(OUTPUT_LOOPS)), pixels * (groups if "C" in loops else 0 * groups),
                c.parameter_slot * slots(PARAMETER_LOOPS))

    def legal(self) -> Floats:
        """Whether bursts fit their length fields and the program its RAM."""
        c, structure, design, layer = self.channels, self.structure, self.run.design, self.run.layer
        weights = c.groups[FIRST] * c.records[FIRST] * c.runs[FIRST]
        parameters = c.groups[FIRST] * c.channels[FIRST] * self.parameter_beats
        whole = "C" not in structure.loops and "S" not in structure.loops and x_axis(layer).step == 1
        pixel = Format.of(design, "input").beats(self.run.grouping.count * self.run.grouping.words)
        rows = self.x.frame * (pixel if whole else 0)
        leaving = self.x.outputs[FIRST] * c.output_beats[FIRST]
        most = np.maximum(np.maximum(weights, parameters), np.maximum(rows, leaving))
        return (most <= MAX_BURST_BEATS) & np.isfinite(self._program[0])


def channel_codes(c: ChannelCuts) -> Codes:
    """What of channel cuts the length of a program depends on: 0 to 15."""

    def varies(values: Floats, count: Floats) -> Booleans:
        return (count > 1) & (values[FIRST] != values[LAST])

    result: Codes = varies(c.groups, c.s_count) + 2 * varies(c.channels, c.k_count) + 4 * varies(c.vectors, c.c_count) + 8 * (c.ts > 1)
    return result


def spatial_codes(cuts: SpatialCuts) -> Codes:
    """The same of row or column cuts: 0 to 3."""
    result: Codes = cuts.varies + 2 * cuts.windows_vary
    return result


class ProgramTables:
    """Lengths of the programs of all designs and layers of a kind, filled in as they are asked for."""

    def __init__(self, stepped: bool, dense: bool) -> None:
        self._stepped, self._dense = stepped, dense
        self._tables: dict[tuple[Structure, bool], Floats] = {}
        self.design: Design | None = None  # any of that kind

    def of(self, structure: Structure, grouped: bool) -> Floats:
        """Shape (256, 4): see :attr:`ClosedForm.program_codes`. ``grouped``: the layer has several supergroups."""
        key = structure, grouped and not {"K", "C"} & set(structure.loops)  # several of them make a tile only with all of their channels
        if key not in self._tables:
            one = self._table(structure, False)
            several = self._table(structure, True) if key[1] else np.full_like(one, inf)
            self._tables[key] = np.concatenate([one, several]).reshape(-1, 4)
        return self._tables[key]

    def _table(self, structure: Structure, grouped: bool) -> Floats:
        assert self.design is not None
        pattern = Pattern(structure.order, structure.resident, frozenset(structure.loops), frozenset(), frozenset(), grouped,
                          self._stepped, self._dense)
        return program_shapes(self.design, pattern).table(self.design.bus_bits)


def program_tables(design: Design, layer: Layer) -> ProgramTables:
    """Shared by all designs and layers whose programs are as long."""
    dense = output_beats(design, layer.K) == Format.of(design, "output").beats(-(-layer.K // design.cols))
    return _design_tables(design, x_axis(layer).step > 1, dense)


@lru_cache(maxsize=4096)
def _design_tables(design: Design, stepped: bool, dense: bool) -> ProgramTables:
    tables = _kind_tables(program_config(design), design.bus_bits, stepped, dense)
    tables.design = tables.design or design
    return tables


@lru_cache(maxsize=256)
def _kind_tables(config: Hashable, bus_bits: int, stepped: bool, dense: bool) -> ProgramTables:
    """``config``: all that :func:`program_shapes` looks at in a design."""
    return ProgramTables(stepped, dense)
