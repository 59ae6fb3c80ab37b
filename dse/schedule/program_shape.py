"""How long the program of a tiling is, without compiling it.

Lengths depend on which tile loops have several tiles and along which of them sizes or windows differ, never on values
(:class:`dse.schedule.fields.FieldWriter`). So one small stand-in plan for each such pattern is compiled, once, and its counts are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dse.schedule.compiler import compile_fields, program_beats
from dse.schedule.frame import ANYWHERE
from dse.schedule.tiling import Order, Part, TilePlan, Tiling, Window
from hdl.design import Design
from hdl.layer import Layer
from hdl.program import IMMEDIATE_BITS, PROGRAM_DEPTH, Stage, fields


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


def program_shape(design: Design, pattern: Pattern) -> ProgramShape:
    """The shape of every program of ``design`` with that pattern. Only the first call for a kind of design compiles anything."""
    constants, singles, traits = program_config(design)
    counts = _counts(pattern, traits)
    first = constants + counts.constants + 1 + counts.tile
    position = 1 + first + counts.variables
    for length, count in sorted(counts.tables, reverse=True):
        position = -(-position // length) * length + length * (count + (singles if length == 1 else 0))
    return ProgramShape(position, first, counts.tile)


@dataclass(frozen=True)
class _Counts:
    """``constants``: of fields that are no configuration; ``tile``: instructions; ``tables``: (length, how many)."""

    constants: int
    tile: int
    variables: int
    tables: tuple[tuple[int, int], ...]


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


@lru_cache(maxsize=65536)
def _counts(pattern: Pattern, traits: _Traits) -> _Counts:
    design = traits.design.design
    constants, singles, _ = program_config(design)
    builder = compile_fields(_StandIn(design, pattern))
    lengths = builder.table_lengths
    tables = {length: lengths.count(length) for length in {*lengths, 1}}
    tables[1] -= singles
    return _Counts(builder.config_instructions - 1 - constants, builder.tile_instructions, builder.variables, tuple(tables.items()))


class _StandIn(TilePlan):
    """A plan of three tiles along every tiled loop, with a pattern's differences; its numbers mean nothing."""

    def __init__(self, design: Design, pattern: Pattern) -> None:
        self.pattern = pattern
        layer = Layer.conv(K=1, C=1, IY=8, IX=8, FY=1, FX=1, SX=2 if pattern.stepped else 1)
        super().__init__(design, layer, Tiling(ts=1, tk=1, tc=1, ty=layer.OY, tx=layer.OX))
        self.input_entry = 0 if pattern.input_kept else None
        self.output_frame = ANYWHERE if pattern.output_kept else None
        self.tiling = Tiling(ts=2 if pattern.grouped else 1, tk=1, tc=1, ty=1, tx=1, order=pattern.order, resident=pattern.resident)

        def parts(loop: str) -> tuple[Part, ...]:
            sizes = (2, 2, 1 if loop in pattern.varying else 2) if loop in pattern.tiled else (2,)
            return tuple(Part(at, size) for at, size in enumerate(sizes))

        self.loops = {loop: parts(loop) for loop in "SKBYXC"}
        self.y_windows, self.x_windows = (
            tuple(Window(part, int(loop in pattern.windows and at == 0), 2, part.size, 0) for at, part in enumerate(self.loops[loop]))
            for loop in "YX")

    @property
    def output_is_dense(self) -> bool:
        return self.pattern.dense
