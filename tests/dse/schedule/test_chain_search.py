"""The choice of what stays on chip: the traffic it saves is measured, and no other way to run the layers is better."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import pytest

from dse.fidelity.chains import check_run
from dse.fidelity.check import Point, check_point
from dse.schedule.chain import place_chain, predict_chain
from dse.schedule.chain_search import ChainPlan, Figures, LineSearch, _best, _Options, even_spaces, plan_chain
from dse.schedule.explore import Objective
from dse.schedule.frame import ANYWHERE
from dse.schedule.search import bank_depths
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import Grouping
from sim.memory import MemoryTiming

TIMING = MemoryTiming(12, 14, 25)
DESIGN = Design(rows=4, cols=4, accumulator_bits=24, chaining=True)
LAYERS = (Layer.conv(name="a", K=8, C=4, OY=10, OX=8, FY=3, FX=3, P=1), Layer.conv(name="b", K=8, C=8, OY=10, OX=8, FY=1, FX=1),
          Layer.conv(name="c", K=6, C=8, IY=10, IX=8, FY=3, FX=3, P=1, S=2))


def measured_bytes(plan: ChainPlan) -> tuple[int, int]:
    """Of the plan's runs, and of every layer by itself; every run is held against prediction and NumPy."""
    together = alone = 0
    for run in plan.runs:
        outcome = check_run(run, TIMING, 5)
        assert outcome.mismatches == ()
        together += outcome.result.beats_read + outcome.result.beats_written
    for layer, choice in zip(plan.layers, plan.alone, strict=True):
        single = check_point(Point(plan.design, layer, choice.plan.tiling, TIMING, 5))
        assert single.mismatches == ()
        alone += single.result.beats_read + single.result.beats_written
    return together * plan.design.bus_bits // 8, alone * plan.design.bus_bits // 8


def test_the_traffic_saved_is_what_is_measured() -> None:
    plan = plan_chain(DESIGN, LAYERS, TIMING)
    together, alone = measured_bytes(plan)
    assert plan.links == (True, True) and len(plan.runs) == 1
    assert (plan.bytes, plan.bytes_alone, plan.saved_bytes) == (together, alone, alone - together)
    # At least each tensor's way out and back in: 10 x 8 pixels of 8 bytes, both times.
    assert plan.saved_bytes >= 2 * 2 * 10 * 8 * 8
    assert plan.cycles < plan.cycles_alone


def test_what_does_not_fit_travels() -> None:
    design = DESIGN.with_(input_bytes=2048)  # 512 entries: 160 and 160 fit, 384 and 160 do not
    wide = (Layer.conv(name="a", K=16, C=8, OY=12, OX=8, FY=1, FX=1), Layer.conv(name="b", K=8, C=16, OY=12, OX=8, FY=1, FX=1),
            Layer.conv(name="c", K=8, C=8, OY=12, OX=8, FY=1, FX=1), Layer.conv(name="d", K=40, C=8, OY=12, OX=8, FY=1, FX=1),
            Layer.conv(name="e", K=4, C=40, OY=12, OX=8, FY=1, FX=1))
    plan = plan_chain(design, wide, TIMING, spaces=even_spaces)
    assert plan.links[-1] is False  # 12 x 8 pixels of 10 words
    assert [len(run.plans) for run in plan.runs][-1] == 1
    assert sum(len(run.plans) for run in plan.runs) == 5 and len(plan.links) == 4


def every_tiling(design: Design, layer: Layer) -> Iterator[Tiling]:
    """All sizes, whether they are legal or not."""
    group = Grouping.of(design, layer)
    sizes = (range(1, size + 1) for size in (group.count, group.outputs, group.words, layer.OY, layer.OX))
    for (ts, tk, tc, ty, tx), order, resident in product(product(*sizes), Order, (False, True)):
        yield Tiling(ts=ts, tk=tk, tc=tc, ty=ty, tx=tx, order=order, resident=resident)


TWO_LANES = DESIGN.with_(lanes=2)
SMALL = (Layer.conv(name="a", K=8, C=4, OY=3, OX=1, FY=3, FX=1, PT=1, PB=1),
         Layer.conv(name="b", K=3, C=8, OY=3, OX=1, FY=1, FX=1))


@cache
def every_way() -> list[tuple[int, int]]:
    """(cycles, beats) of every pair of tilings of SMALL, the tensor between them on chip."""
    def legal(at: int, tiling: Tiling) -> bool:
        try:
            return TilePlan(TWO_LANES, SMALL[at], tiling, input_entry=0 if at else None, output_frame=None if at else ANYWHERE).fits
        except IllegalTiling:
            return False

    choices = [[tiling for tiling in every_tiling(TWO_LANES, layer) if legal(at, tiling)] for at, layer in enumerate(SMALL)]
    found = []
    for tilings in product(*choices):
        prediction = predict_chain(place_chain(TWO_LANES, SMALL, tilings), TIMING)
        found.append((prediction.cycles, prediction.beats))
    return found


@pytest.mark.parametrize("objective", list(Objective))
def test_no_way_at_all_is_better(objective: Objective) -> None:
    plan, together = plan_chain(TWO_LANES, SMALL, TIMING, objective=objective), every_way()
    apart = sum(choice.prediction.cycles for choice in plan.alone), plan.bytes_alone // 2
    found = [*together, apart]
    assert plan.exhaustive and len(together) > 100 and (plan.cycles, plan.bytes // 2) in found
    fewest = min(found)
    expected = {
        Objective.CYCLES: fewest, Objective.BYTES: min(found, key=lambda way: way[::-1]),
        Objective.BOTH: min((way for way in found if way[0] <= 1.01 * fewest[0]), key=lambda way: way[::-1])}
    assert (plan.cycles, plan.bytes // 2) == expected[objective]


def random_options(random: np.random.Generator, first: bool, last: bool) -> _Options:
    """The first is a layer by itself; of the others at least one end is kept."""
    ends = [(i, o) for i, o in ((True, False), (False, True), (True, True)) if not (first and i or last and o)]
    kept = [(False, False), *(ends[at] for at in random.integers(0, len(ends), 5))]
    entries, costs, others = random.integers(1, 40, 6), random.integers(100, 110, 6), random.integers(1, 100, 6)
    return _Options(np.array([i for i, _ in kept]), np.array([o for _, o in kept]), np.where(np.arange(6) > 0, entries, 0), costs, others)


@pytest.mark.parametrize("tolerance", [1.0, 1.01, 1.05])
def test_the_best_way_is_that_of_all_ways(tolerance: float) -> None:
    """Invented options, with banks that hold some pairs and others not: every combination, one by one."""
    random = np.random.default_rng(7)
    linked = 0
    for _ in range(20):
        options = [random_options(random, at == 0, at == 3) for at in range(4)]
        ways = {}
        for way in product(range(6), repeat=4):
            pairs = list(zip(options, options[1:], way, way[1:], strict=False))
            if all(a.output_kept[i] == b.input_kept[j] for a, b, i, j in pairs) and all(
                    a.entries[i] + b.entries[j] <= 40 for a, b, i, j in pairs if a.output_kept[i]):
                chosen = list(zip(options, way, strict=True))
                ways[way] = sum(int(o.first[at]) for o, at in chosen), sum(int(o.second[at]) for o, at in chosen)
        limit = tolerance * min(first for first, _ in ways.values())
        best = min((second, first) for first, second in ways.values() if first <= limit)
        found = tuple(_best(options, 40, tolerance))
        assert ways[found] == best[::-1]
        linked += any(o.output_kept[at] for o, at in zip(options, found, strict=True))
    assert linked > 5


def test_one_search_serves_many_banks() -> None:
    designs = [DESIGN.with_(input_bytes=size, weight_bytes=weights) for size in (2048, 4096, 8192) for weights in (2048, 16384)]
    depths = [tuple(bank_depths(design).tolist()) for design in designs]
    levels = tuple(tuple(sorted(set(column))) for column in zip(*depths, strict=True))
    layers = tuple(Layer.conv(name=name, K=8, C=C, OY=20, OX=12, FY=1, FX=1) for name, C in (("a", 4), ("b", 8), ("c", 8)))
    search = LineSearch(designs[-1], layers, TIMING, Objective.BOTH, even_spaces, levels)
    kept = set()
    for design, have in zip(designs, depths, strict=True):
        plan = plan_chain(design, layers, TIMING, spaces=even_spaces)
        way = search.best(have, [Figures.of(choice) for choice in plan.alone])
        assert (way.figures.cycles, way.figures.beats * 2, way.kept[:-1]) == (plan.cycles, plan.bytes, plan.links)
        kept.add(way.kept)
    assert len(kept) > 1


def test_a_layer_that_does_not_follow_is_refused() -> None:
    with pytest.raises(InputError, match=r"^layers\[1\].C: c does not read what a writes, got 9; allowed: 8, the K before it$"):
        plan_chain(DESIGN, (LAYERS[0], Layer.conv(name="c", K=4, C=9, OY=10, OX=8, FY=1, FX=1)), TIMING)
