"""The search of :mod:`dse.schedule.explore` and exact grids of tilings as compiled code (``kernel.cpp``): a tenth of NumPy's time or less.

This module compiles it, and lays out what it works on: tables of cuts, structures with their kinds of phases, program lengths. All are
cached, since a sweep meets the same ones again and again.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.schedule.axes import ChannelCuts, Cuts, Floats, Sizes, SpatialCuts, array_alone, channel_cuts, spatial_cuts
from dse.schedule.closed_form import BEFORE_CYCLES, ProgramTables, Run, channel_codes, program_tables, spatial_codes
from dse.schedule.phase_kinds import Structure, kinds, structures
from dse.schedule.tiling import INPUT_LOOPS, MAX_BURST_BEATS, PARAMETER_LOOPS, PIXEL_LOOPS, WEIGHT_LOOPS, Order, Tiling
from hdl import timing as hardware
from hdl.design import FIXED_DEPTHS, Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import Axis, Format, Grouping, x_axis, y_axis
from sim.memory import MemoryTiming

Integers = NDArray[np.int64]
SOURCES = tuple(Path(__file__).with_name(name) for name in (
    "kernel.cpp", "kernel_model.h", "kernel_grid.h", "kernel_bounds.h", "kernel_search.h"))
# The last two: nobody looks at the flags of exceptions, so that comparisons may be vectorised; and a product and a sum are rounded one by
# one, as NumPy does it.
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-shared", "-fvisibility=default", "-w", "-fno-trapping-math", "-ffp-contract=off")
GOALS = ("both", "cycles", "bytes")
LOOPS = "SKCBYX"  # by bit
FACTORS = ("rest", "inner", "tail", "three")
MOST_MOVES, MOST_LIMITS = 192, 40  # of a structure's kinds of phases: kernel.cpp has room for so many

# -- the library -------------------------------------------------------------------------------------------------------


@cache
def library(build: bool) -> ctypes.CDLL | None:
    """The compiled kernel; None where it is not in the cache and not to be built, or there is no compiler that builds it."""
    try:
        path = _find(build)
        found = None if path is None else ctypes.CDLL(str(path))
    except (InputError, OSError):  # CXX is no command, the disk is full, nothing in that directory can be run: then without
        found = None
    if found is not None:
        pointer = ctypes.c_void_p
        found.nearmac_search.argtypes, found.nearmac_search.restype = [pointer] * 13, ctypes.c_int64
        found.nearmac_grid.argtypes, found.nearmac_grid.restype = [pointer] * 10, None
        found.nearmac_missing.argtypes, found.nearmac_missing.restype = [pointer] * 7 + [ctypes.c_int64, pointer], None
    return found


def _find(build: bool) -> Path | None:
    from sim import verilator_build as tools  # it takes long to import what else that module needs
    from sim.artifacts import digest, open_cache

    compiler = tools.find_compiler()
    if compiler is None:
        return None
    flags = (*FLAGS, "-march=native") if tools.accepts_native(compiler) else FLAGS
    sources = (source.read_bytes() for source in SOURCES)
    key = digest("kernel", *sources, *flags, *compiler, tools.compiler_version(compiler), tools.processor())
    artifacts = open_cache(lambda message: print(f"nearmac: {message}", file=sys.stderr))
    path = artifacts.find(key, ".so")
    if path is not None or not build:
        return path
    with tempfile.TemporaryDirectory(prefix="nearmac-") as name:
        target = Path(name) / "kernel.so"
        done = subprocess.run([*compiler, *flags, "-o", str(target), str(SOURCES[0])], capture_output=True)
        return artifacts.add(key, target.read_bytes(), ".so") if done.returncode == 0 else None


def _at(values: NDArray[Any]) -> int:
    """Address of a contiguous array that may be written."""
    return ctypes.addressof(ctypes.c_char.from_buffer(values.data)) if values.size else 0  # four times as fast as ``values.ctypes``


# -- tables ------------------------------------------------------------------------------------------------------------


def _rows(cuts: Cuts, *more: NDArray[Any]) -> Floats:
    """One row a cut: its fields in their order, those by class four numbers each; then ``more``."""
    return np.ascontiguousarray(np.vstack([*cuts.arrays(), *more]).T, np.float64)


def _spatial_table(cuts: SpatialCuts) -> Floats:
    """Cut of kernel_model.h."""
    rows = _rows(cuts, spatial_codes(cuts))[:, [*range(17), 19]]  # without ``varies`` and ``windows_vary``, which are the code
    return np.ascontiguousarray(rows)


def _channel_table(cuts: ChannelCuts) -> Floats:
    """Channel of kernel_model.h."""
    return _rows(cuts, channel_codes(cuts), (cuts.s_count > 1) * 4 + (cuts.k_count > 1) * 2 + (cuts.c_count > 1))


@lru_cache(maxsize=512)
def _spatial_rows(axis: Axis, lanes: int, sizes: Sizes) -> tuple[Floats, bytes]:
    """(table; whether there are cuts of one tile (0), of several (1))."""
    cuts = spatial_cuts(axis, lanes, sizes)
    return _spatial_table(cuts), _occurring(cuts.count > 1)


@lru_cache(maxsize=256)
def _channel_rows(array: Design, layer: Layer, sizes: Sizes) -> tuple[Floats, bytes]:
    """(table; the sets of loops with several tiles)."""
    table = _channel_table(channel_cuts(array, layer, sizes))
    return table, _occurring(table[:, -1])


def _occurring(values: NDArray[Any]) -> bytes:
    return np.unique(values).astype(np.uint8).tobytes()


@dataclass(frozen=True, eq=False)
class _Plan:
    """The structures of a layer, and the addresses of their flattened forms."""

    structures: tuple[Structure, ...]
    flat: tuple[NDArray[np.int32], ...]
    addresses: NDArray[np.uint64]


@lru_cache(maxsize=1024)
def _plan(batch: int, channels: bytes, y: bytes, x: bytes) -> _Plan:
    """In the order of the blocks in :mod:`dse.schedule.explore`. ``channels``, ``y``, ``x``: which of their loops have several tiles."""
    found = [structure for tiled, y_tiled, x_tiled in product(channels, y, x)
             for structure in structures(batch, (bool(tiled & 4), bool(tiled & 2), bool(tiled & 1)), bool(y_tiled), bool(x_tiled))]
    flat = tuple(map(_flattened, found))
    return _Plan(tuple(found), flat, np.array([_at(each) for each in flat], np.uint64))


@lru_cache(maxsize=1024)
def _flattened(structure: Structure) -> NDArray[np.int32]:
    """Structure of kernel.cpp with its Moved, Limit and kinds."""
    moves: dict[tuple[int, ...], int] = {}
    limits: dict[tuple[int, ...], int] = {}
    phases: list[int] = []

    def key(values: tuple[int, ...] | None, length: int) -> tuple[int, ...]:
        return (0,) * (length + 1) if values is None else (1, *values)

    for kind in kinds(structure):
        inputs, weights, parameters = kind.load
        moved = key(weights, 3) + key(parameters, 2) + key(inputs, 3) + key(kind.store, 3)
        limit = (*key(kind.compute, 5), int(kind.evaluates))
        phases.append(moves.setdefault(moved, len(moves)) if any((inputs, weights, parameters, kind.store)) else -1)
        phases += [limits.setdefault(limit, len(limits)), len(kind.counts)]
        for factors in kind.counts:
            phases += [len(factors), *(LOOPS.index(loop) * len(FACTORS) + FACTORS.index(count) for loop, count in factors)]
    assert len(moves) <= MOST_MOVES and len(limits) <= MOST_LIMITS
    loops, pixels_outer = set(structure.loops), structure.order is Order.PIXELS_OUTER
    header = [
        sum(bit for loop, bit in (("S", 4), ("K", 2), ("C", 1)) if loop in loops), sum(1 << LOOPS.index(loop) for loop in loops),
        pixels_outer, structure.resident,
        bool(set(structure.repeats(WEIGHT_LOOPS, structure.resident and pixels_outer)) & PIXEL_LOOPS),
        bool(set(structure.repeats(PARAMETER_LOOPS, False)) & PIXEL_LOOPS),
        "K" in structure.repeats(INPUT_LOOPS, structure.resident and not pixels_outer),
        {None: 0, "K": 1}.get(structure.revisiting_loop, 2), len(moves), len(limits), len(kinds(structure))]
    return np.array([*map(int, header), *(value for table in (moves, limits) for row in table for value in row), *phases], np.int32)


@lru_cache(maxsize=2048)
def _program_addresses(tables: ProgramTables, plan: _Plan, grouped: bool) -> tuple[NDArray[np.uint64], list[Floats]]:
    """Of the program lengths of each structure, and what they are addresses of."""
    found = [tables.of(structure, grouped) for structure in plan.structures]
    return np.array([_at(table) for table in found], np.uint64), found


@lru_cache(maxsize=64)
def _levels(depths: bytes) -> tuple[list[int], Floats, NDArray[np.int32]]:
    """Of rows of four depths: (how many levels each bank has, all levels, the rows' levels)."""
    columns = np.frombuffer(depths, np.int64).reshape(-1, 4).T
    levels, places = zip(*(np.unique(column, return_inverse=True) for column in columns), strict=True)
    return list(map(len, levels)), np.concatenate(levels).astype(np.float64), np.stack(places, axis=1).astype(np.int32)


@lru_cache(maxsize=1024)
def _array_constants(design: Design) -> tuple[int, int, int, int]:
    """Drain and fixed compute cycles, beats of a channel's parameters, steps of a drain."""
    run = Run(design, Layer.linear(K=1, C=1), MemoryTiming(hardware.MIN_MEMORY_LATENCY_CYCLES, 1, 1))  # the design alone matters
    return run.drain, run.fixed_compute_cycles, design.parameter_beats, design.drain_steps


@dataclass(frozen=True, eq=False)
class _Tables:
    """What a layer's tilings are made of. ``grouped``: there are several supergroups; ``passes``: of each. ``row_beats``: beats of a pixel
    of the input where its rows are single bursts, else 0."""

    channels: Floats
    ys: Floats
    xs: Floats
    plan: _Plan
    grouped: bool
    passes: int
    row_beats: int

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.channels, self.ys, self.xs, self.plan.addresses

    @property
    def counts(self) -> list[int]:
        return [len(self.channels), len(self.ys), len(self.xs), len(self.plan.structures)]


@lru_cache(maxsize=256)
def _tables(array: Design, lanes: int, layer: Layer, sizes: Sizes) -> _Tables:
    """``array``: the design as its channels are cut."""
    channels, tiled = _channel_rows(array, layer, sizes)
    (ys, y), (xs, x) = (_spatial_rows(axis, several, sizes) for axis, several in ((y_axis(layer), lanes), (x_axis(layer), 1)))
    group = Grouping.of(array, layer)
    row_beats = Format.of(array, "input").beats(group.count * group.words) if x_axis(layer).step == 1 else 0
    return _Tables(channels, ys, xs, _plan(min(layer.B, 2), tiled, y, x), group.count > 1, group.passes, row_beats)


def _constants(run: Run, tables: _Tables, tolerance: float = 1.0) -> Floats:
    """Constants of kernel_model.h."""
    drain, fixed_compute, parameter_beats, drain_steps = _array_constants(run.design)
    layer, timing = run.layer, run.timing
    return np.array([
        drain, fixed_compute, parameter_beats, tables.passes, drain_steps, layer.B, layer.OY, layer.OX, timing.latency_cycles, timing.num,
        timing.den, tables.row_beats, MAX_BURST_BEATS, FIXED_DEPTHS["parameter"], hardware.MEMORY_START_CYCLES,
        hardware.MEMORY_END_CYCLES, hardware.PHASE_CHANGE_CYCLES, BEFORE_CYCLES, hardware.INSTRUCTION_CYCLES, hardware.EVALUATION_CYCLES,
        tolerance], np.float64)


# -- the search --------------------------------------------------------------------------------------------------------


class KernelSearch:
    """What ``_Search`` of :mod:`dse.schedule.explore` does, with the same results."""

    def __init__(self, kernel: ctypes.CDLL, run: Run, depths: Integers, goal: str, tolerance: float, sizes: Sizes) -> None:
        self._kernel, self._run, self._goal, self._depths = kernel, run, GOALS.index(goal), depths
        self._tables = _tables(array_alone(run.design), run.design.lanes, run.layer, sizes)
        self._constants = _constants(run, self._tables, tolerance)
        self.compared = 0
        self._tilings, self._figures = np.zeros((0, 4), np.int32), np.zeros((0, 6))

    def _sizes(self, *more: int) -> Integers:
        return np.array([self._goal, *self._tables.counts, *more], np.int64)

    def best(self) -> Integers:
        """For each row of depths the index of its best tiling among those found, or -1."""
        count, tables = len(self._depths), self._tables
        counts, levels, wanted = _levels(self._depths.tobytes())
        place, compared = np.empty(count, np.int32), np.zeros(1, np.int64)
        tilings, figures = np.empty((count, 4), np.int32), np.empty((count, 6))
        programs, _ = _program_addresses(program_tables(self._run.design, self._run.layer), tables.plan, tables.grouped)
        arrays = (self._constants, self._sizes(count, *counts), *tables.arrays, programs, levels, wanted, place, tilings, figures, compared)
        found = self._kernel.nearmac_search(*(_at(array) for array in arrays))
        self.compared, self._tilings, self._figures = int(compared[0]), tilings[:found], figures[:found]
        return place.astype(np.int64)

    def figures(self) -> Floats:
        """Of the tilings found, (6, n): cycles, beats read and written, issue, memory bound, drain bound cycles."""
        return self._figures.T

    def tilings(self) -> list[Tiling]:
        """Those found."""
        numbers, m, y, x = self._tilings.T
        tables = self._tables
        sizes = np.column_stack([tables.channels[m, :3], tables.ys[y, 0], tables.xs[x, 0]]).astype(int).tolist()
        used = [tables.plan.structures[number] for number in numbers.tolist()]
        return [Tiling(ts=ts, tk=tk, tc=tc, ty=ty, tx=tx, order=structure.order, resident=structure.resident)
                for structure, (ts, tk, tc, ty, tx) in zip(used, sizes, strict=True)]

    def closest(self, depths: Floats) -> Floats:
        """Entries that the tiling needs which comes closest to banks of these depths, the parameters' last: both (n, 5). Negative where
        there is no tiling."""
        result = np.empty(depths.shape)
        arrays = (self._constants, self._sizes(), *self._tables.arrays, depths)
        self._kernel.nearmac_missing(*(_at(array) for array in arrays), len(depths), _at(result))
        return result


# -- grids -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Part:
    """The tilings of one structure: tables of its channel, row and column cuts."""

    structure: Structure
    channels: Floats
    ys: Floats
    xs: Floats


@lru_cache(maxsize=64)
def _parts(array: Design, lanes: int, layer: Layer, sizes: Sizes) -> tuple[Part, ...]:
    tables = _tables(array, lanes, layer, sizes)

    channels = [np.ascontiguousarray(tables.channels[tables.channels[:, -1] == tiled]) for tiled in range(8)]
    ys, xs = ([np.ascontiguousarray(table[(table[:, 1] > 1) == several]) for several in (False, True)] for table in (tables.ys, tables.xs))
    return tuple(Part(structure, channels[int(flat[0])], ys["Y" in structure.loops], xs["X" in structure.loops])
                 for structure, flat in zip(tables.plan.structures, tables.plan.flat, strict=True))


class KernelGrids:
    """Exact figures of all tilings of a layer, structure by structure, as :class:`dse.schedule.closed_form.ClosedForm` has them."""

    def __init__(self, kernel: ctypes.CDLL, run: Run, sizes: Sizes) -> None:
        array, lanes = array_alone(run.design), run.design.lanes
        tables = _tables(array, lanes, run.layer, sizes)
        self._kernel, self._constants, self._grouped = kernel, _constants(run, tables), tables.grouped
        self._programs = program_tables(run.design, run.layer)
        self.parts = _parts(array, lanes, run.layer, sizes)  # in the order of explore.py's blocks

    def evaluate(self, part: Part, channels: Floats) -> tuple[Floats, Floats, Floats]:
        """(cycles, beats read, beats written) of ``channels`` (some of the part's) with all row and column cuts: two of shape (channels,
        rows, columns), then (channels, 1, 1)."""
        shape = len(channels), len(part.ys), len(part.xs)
        cycles, read, written = np.empty(shape), np.empty(shape), np.empty((shape[0], 1, 1))
        tables = channels, part.ys, part.xs, _flattened(part.structure), self._programs.of(part.structure, self._grouped)
        arrays = (self._constants, np.array(shape, np.int64), *tables, cycles, read, written)
        self._kernel.nearmac_grid(*(_at(array) for array in arrays))
        return cycles, read, written
