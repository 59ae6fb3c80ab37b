"""Writes fields into a program: as constants, or into the tile routine by what they depend on.

How long a program gets depends on *which* loops have several tiles, and along which of them sizes or windows differ; never on the
values. So the length of a program is known without compiling it (`dse/schedule/program_shape.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dse.schedule.tiling import LOOPS, Part, TilePlan
from hdl.program import FIRST_TILE_LEVEL, Mode, Opcode, ProgramBuilder

LEVEL_TABLE = FIRST_TILE_LEVEL + 1


@dataclass(frozen=True)
class Base:
    """What a field's value starts from: a variable that the tile routine keeps up, or (``variable`` None) ``initial`` for ever."""

    variable: str | None
    initial: int


ZERO = Base(None, 0)


class FieldWriter:
    """Collects how every field depends on the tile; :meth:`finish` writes the tile routine.

    Fields that the design does not have are left out. Levels are numbered from the innermost loop with more than one tile.
    """

    def __init__(self, plan: TilePlan) -> None:
        self.plan = plan
        self.builder = ProgramBuilder(plan.design)
        names = [name for name in reversed(LOOPS[plan.tiling.order]) if len(plan.loops[name]) > 1]
        self.level = {name: number for number, name in enumerate(names)}
        self._tile_code: list[Callable[[], None]] = []

    def finish(self) -> None:
        """The odometer, then the collected code."""
        for name in self.level:
            self.builder.variable(f"left_{name}", len(self.plan.loops[name]) - 1)
        self.builder.entry()
        for name, level in self.level.items():
            self.builder.load(f"left_{name}")
            self.builder.step(level, len(self.plan.loops[name]) - 1)
            self.builder.store(f"left_{name}")
        for emit in self._tile_code:
            emit()
        self.builder.end()

    def constant(self, name: str, value: int) -> None:
        if name in self.builder.fields:
            self.builder.constant(name, int(value))

    # -- by the class of the tile: first, middle or last of a loop ------------------------------------------------------

    def by_size(self, name: str, loop: str, value: Callable[[Part], int], *, like: str | None = None) -> None:
        """A field that depends on the tile's size along one loop. ``like``: the field whose table has the same values."""
        values = [int(value(part)) for part in self.plan.loops[loop]]
        self._by_class(name, loop, values, self.plan.varies(loop), like)

    def by_window(self, name: str, loop: str, values: Sequence[int], *, like: str | None = None) -> None:
        """A field that depends on how the tile's window lies along ``"Y"`` or ``"X"``; one value a tile."""
        self._by_class(name, loop, values, self.plan.windows_vary(loop), like)

    def by_index(self, name: str, loop: str, value: Callable[[int], int], *, like: str | None = None) -> None:
        """A field that depends on the tile's number along one loop."""
        count = len(self.plan.loops[loop])
        self._by_class(name, loop, [int(value(at)) for at in range(count)], count > 1, like)

    def _by_class(self, name: str, loop: str, values: Sequence[int], varies: bool, like: str | None) -> None:
        if not varies:
            self.constant(name, values[0])
        elif name in self.builder.fields:
            index, table = self.builder.fields[name].index, _class_table(values)
            self._tile_code.append(lambda: self.builder.table(
                Opcode.LOAD, Mode.CLASS, table, key=like or name, level=self.level[loop], field=index))

    def by_windows(self, name: str, base: Base, terms: Mapping[str, Sequence[int]]) -> None:
        """``base`` plus a term that depends on the tile's window along each axis of ``terms``."""
        if name not in self.builder.fields:
            return
        index = self.builder.fields[name].index
        tables = {loop: _class_table(values) for loop, values in terms.items() if self.plan.windows_vary(loop)}
        constant = sum(values[0] for loop, values in terms.items() if loop not in tables)
        if base.variable is None:
            constant += base.initial
            if not tables:
                self.constant(name, constant)
                return
        operands: list[Callable[[Opcode, int | None], None]] = []
        if base.variable is not None:
            variable = base.variable
            operands.append(lambda _, field: self.builder.load(variable, field=field))
            if terms and not tables:
                operands.append(lambda opcode, field: self.builder.table(opcode, Mode.DIRECT, (constant,), key=name, field=field))
        for number, (loop, table) in enumerate(tables.items()):
            shifted = tuple(word + constant for word in table) if number == 0 else table

            def add(opcode: Opcode, field: int | None, loop: str = loop, table: tuple[int, ...] = shifted) -> None:
                self.builder.table(opcode, Mode.CLASS, table, key=f"{name} {loop}", level=self.level[loop], field=field)
            operands.append(add)

        def emit() -> None:
            for number, operand in enumerate(operands):
                operand(Opcode.ADD if number else Opcode.LOAD, index if number == len(operands) - 1 else None)
        self._tile_code.append(emit)

    def by_pair(self, name: str, loops: tuple[str, str], value: Callable[[Part, Part], int]) -> None:
        """A field that depends on the tile's size along two loops."""
        outer, inner = loops
        outer_parts, inner_parts = self.plan.loops[outer], self.plan.loops[inner]
        if not self.plan.varies(outer):
            self.by_size(name, inner, lambda part: value(outer_parts[0], part))
        elif not self.plan.varies(inner):
            self.by_size(name, outer, lambda part: value(part, inner_parts[0]))
        else:
            rows = [_class_table([value(a, b) for b in inner_parts]) for a in outer_parts]
            columns = [_class_table([row[number] for row in rows]) for number in range(4)]
            table = tuple(columns[b][a] for a in range(4) for b in range(4))
            index = self.builder.fields[name].index
            self._tile_code.append(lambda: self.builder.table(
                Opcode.LOAD, Mode.PAIR, table, key=name, level=self.level[outer], level_b=self.level[inner], field=index))

    # -- from one tile to the next --------------------------------------------------------------------------------------

    def running(self, variable: str, initial: int, strides: dict[str, int]) -> Base:
        """A variable that is ``initial`` plus each loop's index times its stride, kept up by one addition a tile."""
        levels = sorted(self.level.items(), key=lambda item: item[1])
        table = [0] * LEVEL_TABLE
        rewind = 0
        for name, level in levels:
            stride = strides.get(name, 0)
            table[level] = stride - rewind
            rewind += stride * (len(self.plan.loops[name]) - 1)
        return self._update(variable, initial, Opcode.ADD, table, any(name in strides for name in self.level))

    def toggling(self, variable: str, loops: frozenset[str], slot: int) -> Base:
        """A variable that is 0 and ``slot`` in turn, one change whenever one of ``loops`` moves on."""
        table = [slot if self._moves(level, loops) else 0 for level in range(len(self.level))]
        table += [0] * (LEVEL_TABLE - len(table))
        return self._update(variable, 0, Opcode.XOR, table, self.plan.slots(loops) > 1)

    def _moves(self, level: int, loops: frozenset[str]) -> bool:
        """Whether data that depends on ``loops`` differs after this level advanced (and all inner ones started over)."""
        return any(name in loops for name, number in self.level.items() if number <= level)

    def _update(self, variable: str, initial: int, opcode: Opcode, table: list[int], changes: bool) -> Base:
        if not changes:
            return Base(None, initial)
        self.builder.variable(variable, initial)

        def emit() -> None:
            self.builder.load(variable)
            self.builder.table(opcode, Mode.LEVEL, tuple(table), key=variable)
            self.builder.store(variable)
        self._tile_code.append(emit)
        return Base(variable, initial)

    def by_base(self, name: str, base: Base) -> None:
        """A field that is ``base``."""
        self.by_windows(name, base, {})

    def when_moved(self, name: str, loops: frozenset[str]) -> None:
        """A flag: this tile differs from the one before in one of ``loops`` (the first tile does)."""
        table = [int(self._moves(level, loops)) if level < len(self.level) else 0 for level in range(LEVEL_TABLE)]
        table[FIRST_TILE_LEVEL] = 1
        index = self.builder.fields[name].index
        self._tile_code.append(lambda: self.builder.table(Opcode.LOAD, Mode.LEVEL, tuple(table), key=name, field=index))


def _class_table(values: Sequence[int]) -> tuple[int, int, int, int]:
    """Values by tile index -> by class: middle, first, last, only."""
    middle = set(values[1:-1])
    assert len(middle) <= 1, "the tiling's checks admit one kind of middle tile"
    only = values[0] if len(values) == 1 else 0
    return (middle.pop() if middle else 0, values[0], values[-1], only)
