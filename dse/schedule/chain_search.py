"""Which tensors between consecutive layers stay on chip, and how the layers are tiled then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dse.schedule.axes import Booleans, Floats, Sizes
from dse.schedule.banks import BANKS
from dse.schedule.chain import ChainPrediction, ChainRun, check_chain, place_chain, predict_chain, why_not_kept
from dse.schedule.closed_form import Run
from dse.schedule.explore import CYCLE_TOLERANCE, Objective
from dse.schedule.link_form import Link, LinkSpace, LinkTilings, every_size_up_to, link_space
from dse.schedule.search import Choice, bank_depths, best_tiling
from dse.schedule.tiling import Tiling
from dse.sweep.pareto import pareto_mask
from hdl.design import Design
from hdl.layer import Layer
from sim.memory import MemoryTiming

Integers = NDArray[np.int64]
Spaces = Callable[[Run, Link], LinkSpace]
MAX_TILINGS = 30_000
"""Of a layer with its input, its output or both kept: up to so many tilings are all compared, of more the even ones."""


@dataclass(frozen=True)
class ChainPlan:
    """How consecutive layers run: in runs, the tensors inside each on chip.

    ``runs``, ``predictions``: in order; a run of one layer is that layer's best mapping by itself. ``alone``: the best mapping of every
    layer by itself, from memory to memory. ``tilings``: of linked layers, that fit and were compared. ``exhaustive``: they were all.
    """

    design: Design
    layers: tuple[Layer, ...]
    runs: tuple[ChainRun, ...]
    predictions: tuple[ChainPrediction, ...]
    alone: tuple[Choice, ...]
    tilings: int
    exhaustive: bool

    @cached_property
    def links(self) -> tuple[bool, ...]:
        """For each layer but the last: whether its output stays on chip for the next one."""
        return tuple(plan.output_is_kept for run in self.runs for plan in run.plans)[:-1]

    @property
    def cycles(self) -> int:
        return sum(prediction.cycles for prediction in self.predictions)

    @property
    def cycles_alone(self) -> int:
        """Of running the layers one by one."""
        return sum(choice.prediction.cycles for choice in self.alone)

    @property
    def bytes(self) -> int:
        """External bytes, programs included."""
        return sum(prediction.beats for prediction in self.predictions) * self.design.bus_bits // 8

    @property
    def bytes_alone(self) -> int:
        return sum(choice.bytes for choice in self.alone)

    @property
    def saved_bytes(self) -> int:
        """Bytes that running the layers one by one would move, less those of this plan."""
        return self.bytes_alone - self.bytes


def plan_chain(design: Design, layers: Sequence[Layer], timing: MemoryTiming, *, objective: Objective = Objective.BOTH,
               spaces: Spaces | None = None, alone: Sequence[Choice] | None = None) -> ChainPlan:
    """Which tensors stay on chip, and the tilings: the best by exact prediction.

    ``layers`` read each other's output. Every choice of the tensors that stay is compared, with every tiling of the linked layers (of
    those with over ``MAX_TILINGS`` all even ones, or those of ``spaces``); a layer whose input and output travel has its best mapping by
    itself, ``alone`` where it is known. Exact for every objective: fewest cycles, fewest bytes, or the fewest bytes of all ways within 1 %
    of the fewest cycles. Raises InputError where a layer does not read what the one before it writes, where the design cannot chain, and
    where a layer does not fit.
    """
    check_chain(design, layers)
    if alone is None:
        alone = [best_tiling(design, layer, timing, objective=objective) for layer in layers]
    depths = tuple(bank_depths(design).tolist())
    search = LineSearch(design, layers, timing, objective, spaces or (lambda run, link: every_size_up_to(run, link, MAX_TILINGS)),
                        tuple((depth,) for depth in depths))
    way = search.best(depths, [Figures.of(choice) for choice in alone])
    tilings = [choice.plan.tiling if tiling is None else tiling for choice, tiling in zip(alone, way.tilings(), strict=True)]
    runs = tuple(place_chain(design, layers[part], tilings[part]) for part in way.runs)
    predictions = tuple(predict_chain(run, timing) for run in runs)
    assert (sum(one.cycles for one in predictions), sum(one.beats for one in predictions)) == (
        way.figures.cycles, way.figures.beats), "closed form and prediction differ"
    return ChainPlan(design, tuple(layers), runs, predictions, tuple(alone), search.compared, search.exhaustive)


# -- the search -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """Of a layer or several; see :class:`dse.schedule.predict.Prediction`."""

    cycles: int = 0
    beats_read: int = 0
    beats_written: int = 0
    compute_bound_cycles: int = 0
    memory_bound_cycles: int = 0
    drain_bound_cycles: int = 0

    @property
    def beats(self) -> int:
        return self.beats_read + self.beats_written

    @classmethod
    def of(cls, choice: Choice) -> Figures:
        return cls(*(getattr(choice.prediction, name) for name in cls.__dataclass_fields__))

    @classmethod
    def linked(cls, tilings: LinkTilings, at: int) -> Figures:
        return cls(*(int(values[at]) for values in (
            tilings.cycles, tilings.beats_read, tilings.beats_written, tilings.issue_cycles, tilings.memory_bound_cycles,
            tilings.drain_bound_cycles)))

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Way:
    """How a line of layers runs. ``chosen``: of each layer its tiling, as a row of linked tilings; None: its best one by itself.
    ``kept``: of each layer, whether its output stays on chip."""

    figures: Figures
    chosen: tuple[tuple[LinkTilings, int] | None, ...]
    kept: tuple[bool, ...]

    @property
    def runs(self) -> list[slice]:
        """The layers of each run."""
        ends = [at + 1 for at, kept in enumerate(self.kept) if not kept]
        return [slice(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]

    def tilings(self) -> list[Tiling | None]:
        return [None if choice is None else choice[0].tiling(choice[1]) for choice in self.chosen]


@dataclass(frozen=True)
class _Options:
    """The ways to run one layer, arrays of one length; the first is its best one by itself. ``entries``: that it needs of an input bank,
    the next layer's region apart. ``first``, ``second``: what the objective compares, and what decides among the best."""

    input_kept: Booleans
    output_kept: Booleans
    entries: Integers
    first: Integers
    second: Integers


class LineSearch:
    """The best way to run ``layers`` one after the other, for designs that differ in their bank depths alone.

    ``levels``: of the input, weight, output and psum banks, the depths that will be asked for. All options of a layer are evaluated
    once; those that another beats in everything are left out. Then for each depth the best way is found exactly: the cheapest way
    through each option bounds what may be part of it, and of what is left all combinations compete.
    """

    def __init__(self, design: Design, layers: Sequence[Layer], timing: MemoryTiming, objective: Objective, spaces: Spaces,
                 levels: tuple[tuple[int, ...], ...]) -> None:
        self.objective, self.compared, self.exhaustive = objective, 0, True
        linkable = [why_not_kept(design, a, b) is None for a, b in zip(layers, layers[1:], strict=False)]
        self.linked: list[list[tuple[Link, LinkTilings]]] = []
        for layer, before, after in zip(layers, [False, *linkable], [*linkable, False], strict=True):
            links = [Link(i, o) for i in (False, True)[:1 + before] for o in (False, True)[:1 + after] if i or o]
            tables = []
            for link in links:
                space = spaces(Run(design, replace(layer, name="layer"), timing), link)  # so that equal layers share
                compared, table = _competing(space, levels)
                tables.append((link, table))
                self.compared += compared
                self.exhaustive &= space.sizes is Sizes.ALL
            self.linked.append(tables)

    def best(self, depths: Sequence[int], alone: Sequence[Figures]) -> Way:
        """``depths``: of the input, weight, output and psum banks. ``alone``: every layer's best mapping by itself at these depths."""
        fitting = [self._fitting(tables, depths) for tables in self.linked]
        options = [self._options(tables, figures) for tables, figures in zip(fitting, alone, strict=True)]
        chosen = [0] * len(options) if not _may_link(options, depths[0]) else _best(options, depths[0], self._tolerance)
        result, kept, total = [], [], Figures()
        for at, figures, tables, which in zip(chosen, alone, fitting, options, strict=True):
            choice, place = None, at - 1
            for _, table in tables:
                if choice is None and 0 <= place < len(table):
                    choice = table, place
                place -= len(table)
            result.append(choice)
            kept.append(bool(which.output_kept[at]))
            total += figures if choice is None else Figures.linked(*choice)
        return Way(total, tuple(result), tuple(kept))

    @property
    def _tolerance(self) -> float:
        return 1 + CYCLE_TOLERANCE if self.objective is Objective.BOTH else 1.0

    def _fitting(self, tables: list[tuple[Link, LinkTilings]], depths: Sequence[int]) -> list[tuple[Link, LinkTilings]]:
        limits = np.array(depths).reshape(-1, 1)
        return [(link, table.take(np.flatnonzero((table.needs[:len(BANKS)] <= limits).all(axis=0)))) for link, table in tables]

    def _options(self, tables: list[tuple[Link, LinkTilings]], alone: Figures) -> _Options:
        cycles = np.concatenate([[alone.cycles], *(table.cycles for _, table in tables)])
        beats = np.concatenate([[alone.beats], *(table.beats for _, table in tables)])
        entries = np.concatenate([[0], *(table.needs[0] for _, table in tables)])
        input_kept, output_kept = (np.concatenate([[False], *(np.full(len(table), getattr(link, name)) for link, table in tables)])
                                   for name in ("input_kept", "output_kept"))
        first, second = (beats, cycles) if self.objective is Objective.BYTES else (cycles, beats)
        return _Options(input_kept, output_kept, entries, first, second)


@lru_cache(maxsize=512)
def _competing(space: LinkSpace, levels: tuple[tuple[int, ...], ...]) -> tuple[int, LinkTilings]:
    """(how many fit the largest banks, those of them that no other beats in entries, cycles and beats).

    Of weight, output and psum banks only the smallest of the depths that holds a tiling counts; of input banks the entries do, which
    must leave room for another layer's.
    """
    table = space.fitting(tuple(depths[-1] for depths in levels))  # type: ignore[arg-type]
    classes = [np.searchsorted(depths, need) for depths, need in zip(levels[1:], table.needs[1:], strict=False)]
    best = pareto_mask(np.stack([table.needs[0], *classes, table.cycles, table.beats], axis=1)) if len(table) else np.zeros(0, bool)
    return len(table), table.take(best)


def _may_link(options: list[_Options], depth: int) -> bool:
    """Whether the smallest regions of some neighbours fit beside each other."""
    for before, after in zip(options, options[1:], strict=False):
        writes, reads = before.entries[before.output_kept], after.entries[after.input_kept]
        if len(writes) and len(reads) and writes.min() + reads.min() <= depth:
            return True
    return False


def _cheapest(costs: Floats, entries: Integers, room: Integers) -> Floats:
    """For each ``room`` the least cost of what takes at most so many entries; infinite where there is nothing."""
    order = np.argsort(entries, kind="stable")
    least = np.concatenate([[np.inf], np.minimum.accumulate(costs[order])])
    result: Floats = least[np.searchsorted(entries[order], room, side="right")]
    return result


def _beside(costs: Floats, near: _Options, linked: Booleans, here: _Options, kept: Booleans, depth: int) -> Floats:
    """The least of the neighbour's ``costs`` that each option of ``here`` can have: of those that are ``linked`` and leave room, where
    it is ``kept`` itself, else of the others."""
    apart = costs[~linked].min() if (~linked).any() else np.inf
    return np.where(kept, _cheapest(costs[linked], near.entries[linked], depth - here.entries), apart)


def _best(options: list[_Options], depth: int, tolerance: float) -> list[int]:
    """The option of each layer: of all ways within ``tolerance`` of the least ``first`` the one with the least ``second``."""
    count = len(options)
    onward: list[Floats] = [np.zeros(0)] * count  # the least cost from an option to the end of the line, itself included
    so_far: list[Floats] = [np.zeros(0)] * count  # and from the beginning to before it
    for at in reversed(range(count)):
        here, rest = options[at], np.zeros(len(options[at].first))
        if at + 1 < count:
            after = options[at + 1]
            rest = _beside(onward[at + 1], after, after.input_kept, here, here.output_kept, depth)
        onward[at] = here.first + rest
    for at in range(count):
        here, so_far[at] = options[at], np.zeros(len(options[at].first))
        if at:
            before = options[at - 1]
            so_far[at] = _beside(so_far[at - 1] + before.first, before, before.output_kept, here, here.input_kept, depth)
    limit = onward[0].min() * tolerance
    # From the last layer to the first: the ways on that none beats in the first layer's entries, first and second cost.
    ways: tuple[Integers, Integers, Integers] | None = None  # option, first, second
    steps: list[tuple[Integers, Integers]] = []  # of each layer's ways, the option and which way of the next layer follows
    for at in reversed(range(count)):
        here = options[at]
        few = np.flatnonzero(so_far[at] + onward[at] <= limit)
        if ways is None:
            option, follows = few, np.zeros(len(few), np.int64)
            first, second = here.first[few], here.second[few]
        else:
            after, (theirs, their_first, their_second) = options[at + 1], ways
            kept, beside = here.output_kept[few][:, None], after.input_kept[theirs][None, :]
            fits = here.entries[few][:, None] + after.entries[theirs][None, :] <= depth
            within = (so_far[at] + here.first)[few][:, None] + their_first[None, :] <= limit
            a, follows = np.nonzero((kept == beside) & (fits | ~kept) & within)
            option = few[a]
            first, second = here.first[option] + their_first[follows], here.second[option] + their_second[follows]
        kept_here = here.input_kept[option]
        best = pareto_mask(np.stack([kept_here, -1.0 * kept_here, here.entries[option] * kept_here, first, second], axis=1))
        ways = option[best], first[best], second[best]
        steps.append((ways[0], follows[best]))
    assert ways is not None
    _, first, second = ways
    at, chosen = int(np.lexsort((first, second))[0]), list[int]()
    for option, follows in reversed(steps):
        chosen.append(int(option[at]))
        at = int(follows[at])
    return chosen


def even_spaces(run: Run, link: Link) -> LinkSpace:
    """As a sweep compares: even tilings only."""
    return link_space(run, link, Sizes.EVEN)
