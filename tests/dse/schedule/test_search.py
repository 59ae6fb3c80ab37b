"""The search: the optimum of all tilings, and clear when nothing fits."""

from __future__ import annotations

import re
from itertools import product

import pytest

from dse.schedule.compiler import compile_program
from dse.schedule.explore import Objective
from dse.schedule.predict import Prediction, predict
from dse.schedule.search import best_tiling
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import Grouping
from sim.memory import MemoryTiming

TIMING = MemoryTiming(12, 14, 25)
DESIGN = Design(rows=2, cols=2, input_bytes=1024, weight_bytes=1024, output_bytes=1024, psum_bytes=1024)
LAYERS = [
    Layer.conv(K=8, C=6, OY=5, OX=4, FY=3, FX=3, P=1),
    Layer.conv(K=4, C=5, OY=5, OX=3, FY=1, FX=1, S=2),
    Layer.conv(K=6, C=6, G=6, OY=6, OX=5, FY=3, FX=3, P=1),
    Layer.conv(K=4, C=4, OY=3, OX=3, FY=2, FX=2, B=2),
    Layer.linear(K=12, C=24),
]


def everything(design: Design, layer: Layer) -> list[Prediction]:
    """Every tiling there could be, one by one, by the tile-by-tile prediction."""
    group = Grouping.of(design, layer)
    found = []
    sizes = (range(1, total + 1) for total in (group.count, group.outputs, group.words, layer.OY, layer.OX))
    for ts, tk, tc, ty, tx in product(*sizes):
        for order, resident in product(Order, (False, True)):
            try:
                plan = TilePlan(design, layer, Tiling(ts=ts, tk=tk, tc=tc, ty=ty, tx=tx, order=order, resident=resident))
            except IllegalTiling:
                continue
            if plan.fits:
                found.append(predict(plan, compile_program(plan), TIMING))
    return found


def moved(prediction: Prediction) -> int:
    return prediction.beats_read + prediction.beats_written


@pytest.mark.parametrize("design", [DESIGN, DESIGN.with_(lanes=2, bus_bits=32), DESIGN.with_(psum_bytes=0, bus_bits=64)],
                         ids=["plain", "lanes", "no psum"])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_no_tiling_of_all_there_are_is_better(design: Design, layer: Layer) -> None:
    all_of_them = everything(design, layer)
    assert len(all_of_them) > 3
    fewest = min(prediction.cycles for prediction in all_of_them)
    near = [prediction for prediction in all_of_them if prediction.cycles <= 1.01 * fewest]
    best = {objective: best_tiling(design, layer, TIMING, objective=objective) for objective in Objective}
    assert best[Objective.CYCLES].prediction.cycles == fewest
    assert moved(best[Objective.CYCLES].prediction) == min(moved(p) for p in all_of_them if p.cycles == fewest)
    assert moved(best[Objective.BYTES].prediction) == min(map(moved, all_of_them))
    assert (moved(best[Objective.BOTH].prediction), best[Objective.BOTH].prediction.cycles) == min((moved(p), p.cycles) for p in near)


def test_more_bandwidth_or_larger_banks_never_cost_cycles_or_bytes() -> None:
    layer = Layer.conv(K=16, C=16, OY=12, OX=12, FY=3, FX=3, P=1)
    design = Design(rows=4, cols=4, input_bytes=2048, weight_bytes=2048, psum_bytes=2048)
    cycles = [best_tiling(design, layer, MemoryTiming(12, num, 100)).prediction.cycles for num in (10, 30, 60, 100)]
    assert cycles == sorted(cycles, reverse=True)
    larger = [best_tiling(design.with_(input_bytes=size, weight_bytes=size), layer, TIMING, objective=Objective.BYTES).bytes
              for size in (2048, 4096, 16384)]
    assert larger == sorted(larger, reverse=True)


TINY = Design(rows=1, cols=1, accumulator_bits=32, input_bytes=1024, weight_bytes=1024)
WHAT_IS_MISSING = {
    # Larger weight banks would do too, for four block RAMs more.
    "one bank": (Design(rows=4, cols=4, weight_bytes=8192), Layer.linear(K=1000, C=4096), (
        "design.weight_bytes: no tile fits the weight banks: the closest needs 32768 bytes of weight (8192 there); "
        "it fits with psum_bytes=2048 (1 block RAM more)")),
    # Weight banks of 240000 bytes would have over 65536 entries.
    "two banks": (TINY, Layer.linear(K=4, C=60000), (
        "design.weight_bytes: no tile fits the weight and input banks: the closest needs 240000 bytes of weight (1024 asked for, whole "
        "block RAMs hold 2048) and 60000 bytes of input (1024 asked for, whole block RAMs hold 2048); "
        "it fits with psum_bytes=2048 (1 block RAM more)")),
    "input rows": (TINY.with_(psum_bytes=2048), Layer.conv(K=1, C=1, OY=1, OX=1, FY=60, FX=60), (
        "design.input_bytes: no tile fits the input and weight banks: the closest needs 7200 bytes of input (1024 asked for, whole "
        "block RAMs hold 2048) and 3600 bytes of weight (1024 asked for, whole block RAMs hold 2048); "
        "it fits with input_bytes=8192, weight_bytes=4096 (4 block RAMs more)"))}


@pytest.mark.parametrize("name", WHAT_IS_MISSING)
def test_a_layer_that_fits_no_bank_names_the_banks_and_a_design_that_fits(name: str) -> None:
    design, layer, message = WHAT_IS_MISSING[name]
    with pytest.raises(InputError) as caught:
        best_tiling(design, layer, TIMING)
    assert str(caught.value) == message
    suggested = {kind: int(size) for kind, size in re.findall(r"(\w+_bytes)=(\d+)", message)}
    choice = best_tiling(design.with_(**suggested), layer, TIMING)
    assert choice.plan.design.block_rams - design.block_rams == int(re.search(r"\((\d+) block RAMs? more", message)[1])
