"""The best mapping of a layer: over every tiling and loop order, for one design or for many that differ in their banks.

All tilings are bounded from below (:attr:`ClosedForm.cycles_bound`, close to exact); only those that the bounds cannot rule out are
evaluated. What is ruled out is provably no better, so the result is the optimum of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dse.schedule.axes import Booleans, Floats, Sizes, channel_cuts, spatial_cuts
from dse.schedule.banks import BANKS, alike
from dse.schedule.closed_form import Run
from dse.schedule.factors import Block, Index, Some
from dse.schedule.kernel import KernelSearch, library
from dse.schedule.phase_kinds import structures
from dse.schedule.tiling import Tiling
from hdl.compatibility import check_layer
from hdl.design import FIXED_DEPTHS, Design
from hdl.layer import Layer
from hdl.mapping import x_axis, y_axis
from sim.memory import MemoryTiming

Integers = NDArray[np.int64]
CYCLE_TOLERANCE = 0.01
"""With ``Objective.BOTH``, mappings within this share of the fewest cycles compete on bytes."""
COMPILED = True
"""Searches use the compiled kernel where there is one; the results are the same."""
CHUNK = 1 << 16
"""Tilings bounded at a time: so many fit a processor's cache."""
ROUND = 1 << 19
"""Tilings kept at a time before those that cannot win are ruled out."""
BATCH = 4096
"""Tilings evaluated exactly at a time, between two rounds of ruling out."""


class Objective(StrEnum):
    """What a mapping is chosen for."""

    BOTH = "both"  # fewest cycles; within 1 % of that, fewest bytes
    CYCLES = "cycles"  # fewest cycles, then fewest bytes
    BYTES = "bytes"  # fewest bytes, then fewest cycles


FIGURES = ("cycles", "beats_read", "beats_written", "issue_cycles", "memory_bound_cycles", "drain_bound_cycles")


@dataclass(frozen=True)
class Missing:
    """Why no tiling fits: the banks that are too small for the one that comes closest, the worst one first: kind, entries that it
    needs, entries there. None: no tile ends where words and beats do."""

    banks: tuple[tuple[str, int, int], ...] = ()

    @property
    def summary(self) -> str:
        if not self.banks:
            return "no tile of the layer ends where words and beats do"
        return f"no tile fits the {' and '.join(kind for kind, _, _ in self.banks)} banks"

    def __str__(self) -> str:
        needs = ", ".join(f"{entries} {kind} entries of {there}" for kind, entries, there in self.banks)
        return f"{self.summary}: the closest needs {needs}" if needs else self.summary


@dataclass(frozen=True)
class Mappings:
    """The best mapping of a layer for each of n bank configurations; arrays of length n, zero where not ``feasible``.

    ``reasons``: why not, by index, of the infeasible ones. ``tilings``: distinct tilings, unless they were not asked for; ``tiling_index``
    into them (-1: none).
    ``compared``: all tilings of the layer, whether they fit or not. Cycles and beats as :class:`dse.schedule.predict.Prediction` has them.
    """

    feasible: Booleans
    cycles: Integers
    beats_read: Integers
    beats_written: Integers
    issue_cycles: Integers
    memory_bound_cycles: Integers
    drain_bound_cycles: Integers
    tiling_index: Integers
    tilings: tuple[Tiling, ...]
    reasons: dict[int, Missing]
    compared: int

    @property
    def compute_bound_cycles(self) -> Integers:
        return self.issue_cycles


class LayerSpace:
    """The legal tilings of ``layer`` on the array of ``design``, whose bank sizes and clock do not matter.

    ``sizes``: of the tiles; with ``Sizes.EVEN`` the search is an order of magnitude faster, and its optimum that of the even ones.
    Raises InputError when the design cannot compute the layer whatever its banks.
    """

    def __init__(self, design: Design, layer: Layer, sizes: Sizes = Sizes.ALL) -> None:
        check_layer(design, layer)
        self.design, self.layer, self.sizes = design, layer, sizes

    def best(self, depths: Integers, timing: MemoryTiming, objective: Objective = Objective.BOTH, *,
             figures_only: bool = False) -> Mappings:
        """``depths``: (n, 4) entries of each bank, in the order of ``BANKS``; psum 0: none. ``figures_only``: leave ``tilings`` empty."""
        depths = np.asarray(depths, np.int64)
        rows, inverse = _distinct(depths.tobytes())
        found = np.zeros((len(FIGURES), len(rows)), np.int64)
        index, tilings, reasons = np.full(len(rows), -1, np.int64), list[Tiling](), dict[int, Missing]()
        compared = start = 0
        for design, which in alike(self.design, rows.tobytes()):
            search = _search(Run(design, self.layer, timing), rows[which], objective, self.sizes)
            place = search.best()
            compared += search.compared
            fits = place >= 0
            if not fits.all():
                reasons |= _missing(search, which[~fits], rows)
                which, place = which[fits], place[fits]
            figures = search.figures()
            found[:, which] = figures[:, place]
            index[which] = start + place
            start += figures.shape[1]
            tilings += [] if figures_only else search.tilings()
        found, index = found[:, inverse], index[inverse]
        return Mappings(index >= 0, **dict(zip(FIGURES, found, strict=True)), tiling_index=index, tilings=tuple(tilings), compared=compared,
                        reasons={at: reasons[row] for at, row in enumerate(inverse.tolist()) if row in reasons} if reasons else {})

    def smallest_needs(self, timing: MemoryTiming) -> Integers:
        """Entries that each way to cut the channels needs at least: (5, n), in the order of ``BANKS``, then the parameter bank."""
        blocks = tiling_blocks(Run(self.design, self.layer, timing), self.sizes)
        needs = [block.smallest_needs() for block in blocks if not block.structure.resident]
        return np.concatenate(needs or [np.zeros((len(BANKS) + 1, 0))], axis=1).astype(np.int64)


def _search(run: Run, depths: Integers, objective: Objective, sizes: Sizes) -> _Search | KernelSearch:
    """Compiled where it can be. What one search of all sizes takes is not worth the compiler's time: it uses what is there."""
    kernel = library(build=sizes is Sizes.EVEN) if COMPILED else None
    if kernel is None:
        return _Search(run, depths, objective, sizes)
    tolerance = 1 + CYCLE_TOLERANCE if objective is Objective.BOTH else 1.0
    return KernelSearch(kernel, run, depths, objective, tolerance, sizes)


@lru_cache(maxsize=64)
def _distinct(depths: bytes) -> tuple[Integers, Index]:
    """(the distinct rows, of each row the place among them); a sweep asks for the same ones layer by layer."""
    rows, inverse = np.unique(np.frombuffer(depths, np.int64).reshape(-1, len(BANKS)), axis=0, return_inverse=True)
    return rows, inverse.reshape(-1)


def _missing(search: _Search | KernelSearch, which: Index, rows: Integers) -> dict[int, Missing]:
    """Why these rows of depths hold nothing, by their index."""
    depths = np.concatenate([rows[which], np.full((len(which), 1), FIXED_DEPTHS["parameter"])], axis=1).astype(np.float64)
    closest = search.closest(depths)
    by_share = np.argsort(-closest / np.maximum(depths, 0.5), axis=1, kind="stable")
    kinds, result = (*BANKS, "parameter"), {}
    for at, order, needs, have in zip(which.tolist(), by_share.tolist(), closest.astype(int).tolist(), depths.astype(int).tolist(),
                                      strict=True):
        result[at] = Missing(tuple((kinds[bank], needs[bank], have[bank]) for bank in order if needs[bank] > have[bank]))
    return result


def tiling_blocks(run: Run, sizes: Sizes, weight_depth: float = np.inf) -> list[Block]:
    """All tilings of a layer whose weights fit banks of that depth, by structure."""
    design, layer = run.design, run.layer
    channels = channel_cuts(design, layer, sizes)
    channels = channels.take(channels.weight_slot <= weight_depth)
    y, x = spatial_cuts(y_axis(layer), design.lanes, sizes), spatial_cuts(x_axis(layer), 1, sizes)
    kinds = (channels.s_count > 1) * 4 + (channels.k_count > 1) * 2 + (channels.c_count > 1)
    result = []
    for kind, y_tiled, x_tiled in product(np.unique(kinds).tolist(), (False, True), (False, True)):
        ys, xs = (cuts.take((cuts.count > 1) == tiled) for cuts, tiled in ((y, y_tiled), (x, x_tiled)))
        if len(ys.size) and len(xs.size):
            part = channels.take(kinds == kind)
            for structure in structures(layer.B, (bool(kind & 4), bool(kind & 2), bool(kind & 1)), y_tiled, x_tiled):
                result.append(Block(run, structure, part, ys, xs))
    return result


@dataclass(frozen=True)
class _Candidates:
    """Tilings that may be the best of some cell: cuts ``m``, ``p`` of a block; ``cell``: the smallest one that holds them."""

    block: Index
    m: Index
    p: Index
    bound: Floats
    beats: Floats
    cell: Index

    def take(self, which: Booleans | Index | slice) -> _Candidates:
        return _Candidates(*(getattr(self, field.name)[which] for field in fields(self)))

    @classmethod
    def join(cls, parts: list[_Candidates]) -> _Candidates:
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


class _Search:
    """One search: designs that differ in bank depths only.

    The depths that occur of each kind are its *levels*; a *cell* is a combination of levels. A tiling fits a cell if its own level is at
    most the cell's in every kind, so what is known of a cell holds for all larger ones (:meth:`_spread`).
    """

    def __init__(self, run: Run, depths: Integers, objective: Objective, sizes: Sizes) -> None:
        self.run, self.objective, self.sizes = run, objective, sizes
        self.blocks = tiling_blocks(run, sizes, float(depths[:, 1].max()))
        self.levels = [np.unique(depths[:, kind]) for kind in range(len(BANKS))]
        self.cells = tuple(len(levels) for levels in self.levels)
        self.wanted = np.stack([np.searchsorted(levels, depths[:, kind]) for kind, levels in enumerate(self.levels)], axis=1)
        self.compared = sum(block.size for block in tiling_blocks(run, sizes))
        self.candidates: _Candidates | None = None
        self.cycles: Floats = np.zeros(0)
        self.chosen = np.zeros(0, np.int64)

    def best(self) -> Integers:
        """For each row of depths the index of its best tiling among the ``chosen`` ones, or -1."""
        best = self._best()
        fits = best >= 0
        self.chosen, best[fits] = np.unique(best[fits], return_inverse=True)
        return best

    def _best(self) -> Integers:
        """For each row of depths the index of the best candidate, or -1."""
        candidates = self._bounded()
        if candidates is None or not len(candidates.m):  # nothing fits, or no program of what fits does
            return np.full(len(self.wanted), -1, np.int64)
        self._evaluate(candidates)
        candidates, cycles = self.candidates, self.cycles
        assert candidates is not None
        limit = np.full(self.cells, np.inf)
        if self.objective is Objective.BOTH:
            limit = self._spread_min(candidates.cell, cycles) * (1 + CYCLE_TOLERANCE)
        # Larger cells have lower limits, so what its own cell does not accept none does.
        possible = np.flatnonzero(cycles <= limit.reshape(-1)[candidates.cell])
        # What the objective compares, most important first; then the order of enumeration.
        goals = (cycles, candidates.beats) if self.objective is Objective.CYCLES else (candidates.beats, cycles)
        order = possible[np.lexsort([values[possible] for values in (candidates.p, candidates.m, candidates.block, *reversed(goals))])]
        level, cycles = np.stack(np.unravel_index(candidates.cell[order], self.cells)), cycles[order]
        result = np.full(len(self.wanted), -1, np.int64)
        for at, cell in enumerate(self.wanted.tolist()):
            good = cycles <= limit[tuple(cell)]
            for have, need in zip(cell, level, strict=True):
                good &= need <= have
            if good.any():
                result[at] = order[good.argmax()]
        return result

    # -- bounds -----------------------------------------------------------------------------------------------------------

    def _bounded(self) -> _Candidates | None:
        """Every tiling that fits and that no bound rules out."""
        known = np.full(self.cells, np.inf)  # of each cell: cycles (or beats) that some tiling reaches
        most = tuple(float(levels[-1]) for levels in self.levels)
        parts, waiting = [], 0
        for number, block in enumerate(self.blocks):
            for some in block.fitting(most, CHUNK):  # type: ignore[arg-type]
                part = self._candidates(number, some)
                parts.append(part.take(self._possible(part, known)))
                waiting += len(parts[-1].m)
                if waiting > ROUND:
                    parts, waiting = [self._rule_out(_Candidates.join(parts), known)], 0
        return self._rule_out(_Candidates.join(parts), known) if parts else None

    def _possible(self, part: _Candidates, known: Floats) -> Booleans:
        """Whose bound is no worse than what their cell is known to reach."""
        tolerance = 1 + CYCLE_TOLERANCE if self.objective is Objective.BOTH else 1.0
        result: Booleans = part.bound <= known.reshape(-1)[part.cell] * tolerance
        return result

    def _candidates(self, number: int, some: Some) -> _Candidates:
        block, beats = self.blocks[number], self.blocks[number].beats(some)
        some, beats = some.take(runs := np.isfinite(beats)), beats[runs]
        cell: Index = np.zeros(len(some.m), np.intp)
        for need, levels in zip(some.needs, self.levels, strict=True):
            cell = cell * len(levels) + (np.searchsorted(levels, need) if len(levels) > 1 else 0)
        bound = beats if self.objective is Objective.BYTES else block.cycles_bound(some, beats)
        return _Candidates(np.full(len(some.m), number, np.int16), some.m, some.p, bound, beats, cell)

    def _rule_out(self, part: _Candidates, known: Floats) -> _Candidates:
        """The possible ones, after the most promising of each cell have been evaluated, which improves ``known``."""
        if self.objective is Objective.BYTES:
            np.minimum(known, self._spread_min(part.cell, part.bound), out=known)
            return part.take(self._possible(part, known))
        if len(part.m):
            lowest = np.full(known.size, np.inf)
            np.minimum.at(lowest, part.cell, part.bound)
            promising = np.flatnonzero((part.bound == lowest[part.cell]) & (part.bound < known.reshape(-1)[part.cell]))
            promising = promising[np.unique(part.cell[promising], return_index=True)[1]]
            if len(promising):
                few = part.take(promising)
                np.minimum(known, self._spread_min(few.cell, self._exact(few)), out=known)
                part = part.take(self._possible(part, known))
        return part

    def _spread_min(self, cell: Index, values: Floats) -> Floats:
        """The least value in every cell and all smaller ones."""
        table = np.full(self.cells, np.inf)
        np.minimum.at(table.reshape(-1), cell, values)
        for axis in range(len(self.cells)):
            np.minimum.accumulate(table, axis=axis, out=table)
        return table

    # -- exact cycles -----------------------------------------------------------------------------------------------------

    def _exact(self, candidates: _Candidates) -> Floats:
        result = np.empty(len(candidates.m))
        for number in np.unique(candidates.block):
            which = candidates.block == number
            result[which] = self.blocks[number].points(candidates.m[which], candidates.p[which]).cycles
        return result

    def _evaluate(self, candidates: _Candidates) -> None:
        """Exact cycles of the candidates, fewest beats first. One that another one, no larger, beats in both is left out."""
        rest = candidates.take(np.argsort(candidates.beats, kind="stable"))
        known = np.full(self.cells, np.inf)
        done: list[tuple[_Candidates, Floats]] = []
        while len(rest.m):
            batch, rest = rest.take(slice(BATCH)), rest.take(slice(BATCH, None))
            cycles = self._exact(batch)
            done.append((batch, cycles))
            # The rest moves more beats, or as many: it must take fewer cycles (or may tie, with as many beats).
            np.minimum(known, self._spread_min(batch.cell, cycles), out=known)
            if len(rest.m):
                limit = known.reshape(-1)[rest.cell]
                ties = rest.beats == batch.beats[-1]
                rest = rest.take((rest.bound < limit) | ties & (rest.bound <= limit))
        self.candidates = _Candidates.join([batch for batch, _ in done])
        self.cycles = np.concatenate([cycles for _, cycles in done])

    # -- results ----------------------------------------------------------------------------------------------------------

    def figures(self) -> Floats:
        """Of the chosen candidates: (6, n), in the order of ``FIGURES``."""
        result = np.zeros((len(FIGURES), len(self.chosen)))
        if not len(self.chosen):
            return result
        assert self.candidates is not None
        few = self.candidates.take(self.chosen)
        for number in np.unique(few.block):
            which = few.block == number
            form = self.blocks[number].points(few.m[which], few.p[which])
            values = (form.cycles, form.beats_read, form.stored_beats, form.issue_cycles, form.memory_bound_cycles, form.drain_bound_cycles)
            for row, value in zip(result, values, strict=True):
                row[which] = value
        return result

    def tilings(self) -> list[Tiling]:
        """Of the chosen candidates."""
        result = []
        for at in self.chosen.tolist():
            assert self.candidates is not None
            result.append(self.blocks[int(self.candidates.block[at])].tiling(int(self.candidates.m[at]), int(self.candidates.p[at])))
        return result

    def closest(self, depths: Floats) -> Floats:
        """Entries that the tiling needs which comes closest to banks of these depths, the parameters' last: both (n, 5). Negative where
        there is no tiling."""
        result = np.full(depths.shape, -1.0)
        for row, have in zip(result, depths, strict=True):
            least = np.inf
            for needs in self._smallest:
                worst = (needs / np.maximum(have, 0.5)[:, None]).max(axis=0)
                at = int(worst.argmin())
                if worst[at] < least:
                    least, row[:] = float(worst[at]), needs[:, at]
        return result

    @cached_property
    def _smallest(self) -> list[Floats]:
        """Of each block, the entries that its channel cuts need with the smallest pixel cuts: (5, m)."""
        return [block.smallest_needs() for block in tiling_blocks(self.run, self.sizes) if not block.structure.resident]
