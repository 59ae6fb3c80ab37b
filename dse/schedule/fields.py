"""Writes fields into a program: as constants, or into the tile routine by what they depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dse.schedule.tiling import LOOPS, Part, TilePlan
from hdl.program import FIRST_TILE_LEVEL, Mode, Opcode, ProgramBuilder

LEVEL_TABLE = FIRST_TILE_LEVEL + 1


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

def _class_table(values: Sequence[int]) -> tuple[int, int, int, int]:
    """Values by tile index -> by class: middle, first, last, only."""
    middle = set(values[1:-1])
    assert len(middle) <= 1, "the tiling's checks admit one kind of middle tile"
    only = values[0] if len(values) == 1 else 0
    return (middle.pop() if middle else 0, values[0], values[-1], only)
