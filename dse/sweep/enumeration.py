"""Walks a space: every combination of its axes that a design can have and its conditions keep, as families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boards.schema import Board
from dse.estimate.resources import estimate_logic, usable
from dse.schedule.banks import BANKS
from dse.sweep.axis import ARRAY_AXES, BANK_AXES, Axis
from dse.sweep.constraints import RESOURCES
from dse.sweep.expression import Expression
from dse.sweep.family import Family, bank_shapes, bank_sizes, entry_bits, fixed_block_rams
from dse.sweep.workload import Workload
from hdl.design import Design, Multiplier, parse_precision
from hdl.errors import InputError

if TYPE_CHECKING:
    from dse.sweep.space import Space

Integers = NDArray[np.int64]
MAX_POINTS = 20_000_000
OPTIONS = ("rows", "cols", "lanes", "weight_bits", "activation_bits", "accumulator_bits", "multiplier", "accumulate", "drains",
           "output_multiplier", "distributed_depth", "chaining", "bus_bits", "clock_mhz")
DSPS, BLOCK_RAMS = "dsps", "block_rams"
BITS = ("weight_bits", "activation_bits")
BOARD_NAMES = tuple(f"usable_{name}" for name in RESOURCES)
"""What the board lets a design use, for expressions."""
DEFAULT_NEEDS = {"accumulator_bits": ("precision",), "multiplier": ("precision",), "bus_bits": ("clock_mhz",)}
"""What the value of an axis that is left out depends on."""


@dataclass
class Enumeration:
    """The points of a space on a board.

    ``dropped``: combinations that no design can have, by the option that is refused. ``examples``: option -> what was wrong, once.
    """

    families: list[Family] = field(default_factory=list)
    points: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def drop(self, option: str, count: int, example: str) -> None:
        self.dropped[option] += count
        self.examples.setdefault(option, example)


def binding_order(axes: dict[str, Axis], names: Iterable[str], *, where: str) -> list[str]:
    """``names``, each after those that its expressions or its default need. Raises InputError for axes that need each other."""
    order: list[str] = []
    names = list(names)

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in order or name not in names:
            return
        if name in path:
            cycle = [*path[path.index(name):], name]
            raise InputError("axes that need each other", where=f"{where}: {name}", value=" -> ".join(cycle))
        needs = axes[name].names if name in axes else frozenset(DEFAULT_NEEDS.get(name, ()))
        if needs & set(BITS):
            needs |= {"precision"}
        for need in [other for other in names if other in needs]:
            visit(need, (*path, name))
        order.append(name)

    for name in names:
        visit(name, ())
    return order


class Enumerator:
    """One walk over ``space`` for a board and a workload."""

    def __init__(self, space: Space, board: Board, workload: Workload) -> None:
        self.space, self.board, self.workload = space, board, workload
        self.axes = space.axes
        self.order = binding_order(self.axes, ARRAY_AXES, where=space.where_from)
        self.bank_order = binding_order(self.axes, [name for name in BANK_AXES if name in self.axes], where=space.where_from)
        room = usable(space.constraints.applied_to(board))
        self.last_banks: tuple[tuple[Any, ...], dict[str, Integers]] | None = None
        self.start = {f"usable_{name}": room[name] for name in RESOURCES}
        self._schedule_conditions()

    def _schedule_conditions(self) -> None:
        """Each condition goes where all that it names is known first: an axis, the array's DSP blocks, or what all takes with its banks."""
        steps = [*self.order, DSPS, *self.bank_order, BLOCK_RAMS]
        self.conditions: dict[str, list[Expression]] = {name: [] for name in steps}
        stage = {name: "precision" for name in BITS} | {name: BLOCK_RAMS for name in RESOURCES if name != DSPS}
        for condition in self.space.where:
            needs = {stage.get(name, name) for name in condition.names} - set(BOARD_NAMES)
            self.conditions[max(needs, key=steps.index, default=steps[0])].append(condition)
        bank_expressions = [term for name in self.bank_order for term in self.axes[name].terms if isinstance(term, Expression)]
        bank_expressions += [condition for name in self.bank_order for condition in self.conditions[name]]
        self.bank_needs = sorted(frozenset().union(*(expression.names for expression in bank_expressions)) - set(self.bank_order))

    def run(self, first_index: int) -> Enumeration:
        self.found, self.index = Enumeration(), first_index
        self._bind(0, dict(self.start))
        return self.found

    # -- the array --------------------------------------------------------------------------------------------------------

    def _bind(self, at: int, env: dict[str, Any]) -> None:
        if at == len(self.order):
            self._add_family(env)
            return
        name = self.order[at]
        for value in self._values(name, env):
            env[name] = value
            if name == "precision":
                env["weight_bits"], env["activation_bits"] = parse_precision(value)
            if all(condition.evaluate(env) for condition in self.conditions[name]):
                self._bind(at + 1, env)

    def _values(self, name: str, env: dict[str, Any]) -> list[Any]:
        if name in self.axes:
            return self.axes[name].values(env)
        match name:
            case "accumulator_bits":
                return [self.workload.accumulator_bits(env["weight_bits"], env["activation_bits"])]
            case "multiplier":
                family = self.board.device.family
                in_dsps = env["usable_dsps"] > 0 and Design.fits_dsp(family, env["weight_bits"], env["activation_bits"])
                return [str(Multiplier.DSP if in_dsps else Multiplier.LUT)]
            case "bus_bits":
                return [self.board.default_bus_bits(env["clock_mhz"])]
            case "clock_mhz":
                return [self.board.clock_mhz.value]
        return [{"lanes": 1, "precision": "w8a8", "accumulate": "tree", "drains": 1, "output_multiplier": "serial",
                 "distributed_depth": 0, "chaining": False}[name]]

    def _add_family(self, env: dict[str, Any]) -> None:
        try:
            base = smallest_banks({"family": self.board.device.family, **{name: env[name] for name in OPTIONS}})
        except InputError as error:
            option = (error.where or "").removeprefix("design.")
            value = f" ({error.value!r})" if error.has_value else ""
            self.found.drop(option, len(next(iter(self._bank_columns(env).values()))), f"{error.what}{value}")
            return
        if self.conditions[DSPS] or self.conditions[BLOCK_RAMS]:
            env = {**env, DSPS: base.dsps}
            if not all(condition.evaluate(env) for condition in self.conditions[DSPS]):
                return
        banks, columns = self._legal_banks(base, self._bank_columns(env))
        if self.conditions[BLOCK_RAMS]:
            banks = banks[self._kept(self.conditions[BLOCK_RAMS], {**env, **columns}, len(banks))]
        if not len(banks):
            return
        self.found.families.append(Family(self.board.name, base.with_(**bank_sizes(banks[0])), banks, self.index))
        self.found.points += len(banks)
        self.index += len(banks)
        if self.found.points > MAX_POINTS:
            raise InputError(f"over {MAX_POINTS} points", where=self.space.where_from, suggestion="use fewer values, or conditions (where)")

    # -- banks ------------------------------------------------------------------------------------------------------------

    def _bank_columns(self, env: dict[str, Any]) -> dict[str, Integers]:
        """All combinations of the bank axes, as arrays of one length; the last axis varies fastest."""
        key = tuple(env[name] for name in self.bank_needs)
        if self.last_banks is not None and self.last_banks[0] == key:  # mostly they need nothing of the array
            return self.last_banks[1]
        columns: dict[str, Integers] = {}
        count = 1
        for name in self.bank_order:
            axis = self.axes[name]
            if count * len(axis.terms) > MAX_POINTS:
                raise InputError(f"over {MAX_POINTS} points", where=f"{self.space.where_from}: {name}", suggestion="use fewer values")
            scope = {**env, **columns}
            terms = [_column(term.evaluate(scope) if isinstance(term, Expression) else term, count) for term in axis.terms]
            columns = {other: np.repeat(values, len(terms)) for other, values in columns.items()}
            columns[name] = np.stack(terms, axis=1).reshape(-1)
            count *= len(terms)
            keep = self._kept(self.conditions[name], {**env, **columns}, count)
            if len(terms) > 1 and axis.names:  # a computed value may be that of another term
                rows = np.stack(list(columns.values()), axis=1)
                keep &= np.isin(np.arange(count), np.unique(rows, axis=0, return_index=True)[1])
            if not keep.all():
                columns, count = {other: values[keep] for other, values in columns.items()}, int(keep.sum())
        self.last_banks, self.last_count = (key, columns), count
        self.distinct = {name: np.unique(values, return_inverse=True) for name, values in columns.items()}
        return columns

    def _kept(self, conditions: list[Expression], env: dict[str, Any], count: int) -> NDArray[np.bool_]:
        keep = np.ones(count, bool)
        for condition in conditions:
            keep &= np.asarray(condition.evaluate(env), bool)
        return keep

    def _legal_banks(self, base: Design, columns: dict[str, Integers]) -> tuple[Integers, dict[str, Integers]]:
        """(n, 4) bytes that ``Design`` takes, and the columns of these rows with their block RAMs; the others are counted as dropped."""
        sizes, rams, entries, legal = [], [], {}, np.ones(self.last_count, bool)
        code, tied = np.zeros(self.last_count, np.int64), False
        for kind in BANKS:
            width, count = base.bank_width_bits(kind), base.bank_count(kind)
            by_depth = f"{kind}_depth" in columns
            values, place = self.distinct[f"{kind}_{'depth' if by_depth else 'bytes'}"]
            asked = -(-values * width * count // 8) if by_depth else values  # exactly so many entries, in whole bytes
            depths, blocks = bank_shapes(base, kind, asked)
            wrong = legal & (depths < 0)[place]
            if wrong.any():  # counted once, for the first bank that is wrong
                self.found.drop(f"{kind}_bytes", int(wrong.sum()),
                                f"{asked[depths < 0][0]} bytes in {count} bank{'s' if count > 1 else ''} of {width} bits")
                legal &= ~wrong
            # Depths that whole RAMs make equal are one point, the first.
            kinds, alike = np.unique(depths, return_inverse=True) if by_depth else (values, np.arange(len(values)))
            tied |= len(kinds) < len(values)
            code = code * len(kinds) + alike[place]
            sizes.append(asked[place])
            entries[kind] = depths[place]
            rams.append(blocks[place])
        if tied:
            legal &= np.isin(np.arange(len(code)), np.unique(code, return_index=True)[1])
        columns = {**columns, BLOCK_RAMS: fixed_block_rams(base) + np.sum(rams, axis=0)}
        if any(condition.names & {"luts", "ffs"} for condition in self.conditions[BLOCK_RAMS]):
            columns["luts"], columns["ffs"] = estimate_logic(base, entry_bits(entries))
        banks = np.stack(sizes, axis=1)
        return (banks, columns) if legal.all() else (banks[legal], {name: values[legal] for name, values in columns.items()})


def smallest_banks(options: dict[str, Any]) -> Design:
    """A design of these options whose banks Design takes for certain."""
    rows, cols, lanes, bus = options["rows"], options["cols"], options["lanes"], options["bus_bits"]
    whole = all(isinstance(value, int) and value > 0 for value in (rows, cols, lanes))  # else Design says so
    input_width = max(cols * options["activation_bits"], bus) if whole else bus
    weight_width = max(cols * options["weight_bits"], bus) if whole else bus
    banks = (max(1, lanes), max(1, rows), max(1, lanes)) if whole else (1, 1, 1)
    return Design(input_bytes=banks[0] * input_width * 64, weight_bytes=banks[1] * weight_width * 64,
                  output_bytes=banks[2] * bus * 64, psum_bytes=0, **options)


def _column(value: Any, count: int) -> Integers:
    return np.broadcast_to(np.asarray(value, np.int64), (count,))

