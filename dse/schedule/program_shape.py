"""How long the program of a tiling is, without compiling it.

Lengths depend on which tile loops have several tiles and along which of them sizes or windows differ, never on values
(:class:`dse.schedule.fields.FieldWriter`). So one small stand-in plan is counted for each set of tiled loops: what the compiler would
write of it, for every combination of differences at once. The counts are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.schedule.compiler import NOWHERE, Compiler, memory_map, program_beats
from dse.schedule.fields import LEVEL_TABLE, Base
from dse.schedule.frame import ANYWHERE
from dse.schedule.tiling import Order, Part, TilePlan, Tiling, Window
from hdl.design import Design
from hdl.layer import Layer
from hdl.program import IMMEDIATE_BITS, PROGRAM_DEPTH, Opcode, Stage, fields

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]
CODES = (8, 4, 4)
"""Combinations of loops along which tiles differ: channels (bits: sizes along S, K, C), rows, columns (bits: sizes, windows)."""
ALL = (1 << 128) - 1
"""A set of combinations is a number with a bit for each of them; this is the set of all."""


def _set_of(where: Booleans) -> int:
    return int.from_bytes(np.packbits(where.reshape(-1), bitorder="little").tobytes(), "little")


def _count(sets: Sequence[int]) -> Integers:
    """Of every combination: in how many of ``sets`` it is."""
    data = np.frombuffer(b"".join(each.to_bytes(16, "little") for each in sets), np.uint8).reshape(-1, 16)
    return np.unpackbits(data, axis=1, bitorder="little").sum(axis=0, dtype=np.int64).reshape(CODES)


SIZES_VARY = {loop: _set_of(np.indices(CODES)[axis] & bit > 0)
              for loop, axis, bit in (("S", 0, 1), ("K", 0, 2), ("C", 0, 4), ("Y", 1, 1), ("X", 2, 1))}
WINDOWS_VARY = {loop: _set_of(np.indices(CODES)[axis] & 2 > 0) for loop, axis in (("Y", 1), ("X", 2))}


@dataclass(frozen=True)
class Pattern:
    """What the length of a program depends on, the design apart.

    ``tiled``: loops with several tiles, a subset of ``"SKBYXC"``. ``varying``: loops along which sizes differ. ``windows``: ``"Y"``,
    ``"X"`` where windows differ. ``grouped``: several supergroups a tile. ``stepped``: columns of the input are skipped.
    ``dense``: whole output pixels lie side by side, without beats of padding. ``input_kept``, ``output_kept``: on chip, from the layer
    before and for the next one.
    """

    order: Order
    resident: bool
    tiled: frozenset[str]
    varying: frozenset[str]
    windows: frozenset[str]
    grouped: bool
    stepped: bool
    dense: bool
    input_kept: bool = False
    output_kept: bool = False

    @classmethod
    def of(cls, plan: TilePlan) -> Pattern:
        tiled = frozenset(name for name, loop in plan.loops.items() if len(loop) > 1)
        return cls(plan.tiling.order, plan.tiling.resident, tiled, frozenset(filter(plan.varies, tiled)),
                   frozenset(filter(plan.windows_vary, tiled & frozenset("YX"))), plan.tiling.ts > 1, plan.x_axis.step > 1,
                   plan.output_is_dense, plan.input_is_kept, plan.output_is_kept)


@dataclass(frozen=True)
class ProgramShape:
    """Words of a program, and its instructions as :class:`dse.schedule.compiler.Program` counts them."""

    words: int
    first_instructions: int
    tile_instructions: int

    @property
    def fits(self) -> bool:
        return self.words <= PROGRAM_DEPTH

    def beats(self, bus_bits: int) -> int:
        return program_beats(bus_bits, self.words)


@dataclass(frozen=True)
class ProgramShapes:
    """:class:`ProgramShape` of every combination of differences: arrays of shape ``CODES``."""

    words: Integers
    first_instructions: Integers
    tile_instructions: Integers

    def table(self, bus_bits: int) -> Floats:
        """Shape (*CODES, 4): words (infinite where they exceed the program RAM), beats, first instructions, tile instructions."""
        words = np.where(self.words <= PROGRAM_DEPTH, self.words, np.inf)
        beats = program_beats(bus_bits, 1) * self.words
        return np.stack([words, beats, self.first_instructions, self.tile_instructions], axis=-1)


def program_shape(design: Design, pattern: Pattern) -> ProgramShape:
    """The shape of every program of ``design`` with that pattern. Only the first call for a kind of design counts anything."""
    found = program_shapes(design, replace(pattern, varying=frozenset(), windows=frozenset()))
    varies, shifts = ([int(loop in loops) for loop in "SKCYX"] for loops in (pattern.varying, pattern.windows))
    at = varies[0] + 2 * varies[1] + 4 * varies[2], varies[3] + 2 * shifts[3], varies[4] + 2 * shifts[4]
    return ProgramShape(int(found.words[at]), int(found.first_instructions[at]), int(found.tile_instructions[at]))


def program_shapes(design: Design, pattern: Pattern) -> ProgramShapes:
    """Of every combination of differences with that pattern, which has none itself."""
    constants, singles, traits = program_config(design)
    counts = _counts(pattern, traits)
    first = constants + counts.constants + 1 + counts.tile
    position = 1 + first + counts.variables
    for length, count in counts.tables:
        if length == 1:
            count = count + singles
        position = np.where(count > 0, -(-position // length) * length + length * count, position)
    return ProgramShapes(position, first, counts.tile)


@dataclass(frozen=True)
class _Counts:
    """``constants``: of fields that are no configuration; ``tile``: instructions; ``tables``: (length, how many), long ones first, without
    the configuration's. All by combination of differences."""

    constants: Integers
    tile: Integers
    variables: int
    tables: tuple[tuple[int, Integers], ...]


@dataclass(frozen=True)
class _Traits:
    """What of a design decides which fields a program sets; equal for all designs that set the same ones."""

    names: tuple[tuple[str, bool], ...]
    several_words: tuple[bool, bool]
    design: _Design


class _Design:
    """Any design with those traits: equal to every other, so that it does not count as one."""

    def __init__(self, design: Design) -> None:
        self.design = design

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Design)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=1024)
def program_config(design: Design) -> tuple[int, int, _Traits]:
    """Constants of the configuration, how many of them take a word of data, and the design's traits."""
    constants = singles = 0
    names = []
    for field in fields(design).values():
        wide = field.bits > IMMEDIATE_BITS
        if field.stage is Stage.CONFIG:
            chunks = -(-field.bits // 32)
            constants += chunks
            singles += chunks if wide else 0
        else:
            names.append((field.name, wide))
    several = (design.words_per_entry("input") > 1, design.words_per_entry("weight") > 1)
    return constants, singles, _Traits(tuple(names), several, _Design(design))


@lru_cache(maxsize=4096)
def _counts(pattern: Pattern, traits: _Traits) -> _Counts:
    return _Counter(_StandIn(traits.design.design, pattern)).counts()


class _Counter(Compiler):
    """Counts what a compiler writes for a stand-in plan, instead of writing it.

    ``plan.varies`` and ``plan.windows_vary`` are sets of combinations, and so is what is counted.
    """

    def __init__(self, plan: _StandIn) -> None:
        self.constants, self.tile = list[int](), list[int]()
        self.variables: set[str] = set()
        self.tables: dict[tuple[str, int], int] = {}  # (key, words) -> where there is such a table
        super().__init__(plan, memory_map(plan, 0), NOWHERE)

    def counts(self) -> _Counts:
        lengths = sorted({words for _, words in self.tables} | {1}, reverse=True)
        return _Counts(_count(self.constants), _count(self.tile), len(self.variables), tuple(
            (length, _count([where for (_, words), where in self.tables.items() if words == length])) for length in lengths))

    def _table(self, key: str, words: int, where: int) -> None:
        self.tables[key, words] = self.tables.get((key, words), 0) | where

    def _read(self, key: str, words: int, where: int = ALL) -> None:
        """An instruction of the tile routine that reads a table."""
        self._table(key, words, where)
        self.tile.append(where)

    # -- what FieldWriter writes -----------------------------------------------------------------------------------------

    def finish(self) -> None:
        for name, level in self.level.items():
            self.variables.add(f"left_{name}")
            self._read(f"reload {level}", 1)
        self.tile += [ALL] * (2 * len(self.level) + 1)

    def constant(self, name: str, value: int) -> None:
        self._constant(name, ALL)

    def _constant(self, name: str, where: int) -> None:
        """The configuration's constants are the same for all programs of a design: :func:`program_config` counts them."""
        field = self.builder.fields.get(name)
        if field is None or field.stage is Stage.CONFIG:
            return
        for chunk in range(-(-field.bits // 32)):
            self.constants.append(where)
            if field.bits > IMMEDIATE_BITS:
                self._table(f"{name}[{chunk}]", 1, where)

    def _by_class(self, name: str, loop: str, values: Sequence[int], varies: int, like: str | None) -> None:
        where = ALL if varies is True else varies
        self._constant(name, ALL ^ where)
        if name in self.builder.fields:
            self._read(like or name, 4, where)

    def by_windows(self, name: str, base: Base, terms: Mapping[str, Sequence[int]]) -> None:
        if name not in self.builder.fields:
            return
        varying = {loop: self.plan.windows_vary(loop) for loop in terms}
        none = ALL
        for where in varying.values():
            none &= ~where
        if base.variable is None:
            self._constant(name, none)
        else:
            self.tile.append(ALL)
            if terms:
                self._read(name, 1, none)
        for loop, where in varying.items():
            self._read(f"{name} {loop}", 4, where)

    def by_pair(self, name: str, loops: tuple[str, str], value: Callable[[Part, Part], int]) -> None:
        outer, inner = (self.plan.varies(loop) for loop in loops)
        self._constant(name, ALL ^ (outer | inner))
        if name in self.builder.fields:
            self._read(name, 4, outer ^ inner)
            self._read(name, 16, outer & inner)

    def _update(self, variable: str, initial: int, opcode: Opcode, table: list[int], changes: bool) -> Base:
        if not changes:
            return Base(None, initial)
        self.variables.add(variable)
        self._read(variable, LEVEL_TABLE)
        self.tile += [ALL, ALL]
        return Base(variable, initial)

    def when_moved(self, name: str, loops: frozenset[str]) -> None:
        self._read(name, LEVEL_TABLE)


class _StandIn(TilePlan):
    """A plan of three tiles along every tiled loop; its numbers mean nothing."""

    def __init__(self, design: Design, pattern: Pattern) -> None:
        self.pattern = pattern
        layer = Layer.conv(K=1, C=1, IY=8, IX=8, FY=1, FX=1, SX=2 if pattern.stepped else 1)
        super().__init__(design, layer, Tiling(ts=1, tk=1, tc=1, ty=layer.OY, tx=layer.OX))
        self.input_entry = 0 if pattern.input_kept else None
        self.output_frame = ANYWHERE if pattern.output_kept else None
        self.tiling = Tiling(ts=2 if pattern.grouped else 1, tk=1, tc=1, ty=1, tx=1, order=pattern.order, resident=pattern.resident)
        self.loops = {loop: tuple(Part(at, 2) for at in range(3 if loop in pattern.tiled else 1)) for loop in "SKBYXC"}
        self.y_windows, self.x_windows = (tuple(Window(part, 0, 2, part.size, 0) for part in self.loops[loop]) for loop in "YX")

    def varies(self, loop: str) -> Any:
        """The set of combinations in which it does."""
        return SIZES_VARY.get(loop, 0) if loop in self.pattern.tiled else 0

    def windows_vary(self, loop: str) -> Any:
        """The set of combinations in which they do."""
        return WINDOWS_VARY[loop] if loop in self.pattern.tiled else 0

    @property
    def output_is_dense(self) -> bool:
        return self.pattern.dense
