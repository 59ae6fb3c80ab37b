"""The search: best among all it enumerates, and clear when nothing fits."""

from __future__ import annotations

import pytest

from dse.schedule.compiler import compile_program
from dse.schedule.predict import predict
from dse.schedule.search import best_tiling, fitting_plans, tile_sizes, total_bytes
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

TIMING = MemoryTiming(12, 14, 25)
DESIGN = Design(rows=4, cols=4, input_bytes=2048, weight_bytes=2048, psum_bytes=2048)


@pytest.mark.parametrize("layer", [
    Layer.conv(K=16, C=16, OY=8, OX=8, FY=3, FX=3, P=1),
    Layer.conv(K=8, C=12, OY=9, OX=5, FY=1, FX=1, S=2),
    Layer.conv(K=8, C=8, G=8, OY=10, OX=10, FY=3, FX=3, P=1),
    Layer.linear(K=40, C=64),
], ids=str)
def test_choice_is_the_best_of_all_candidates(layer: Layer) -> None:
    choice = best_tiling(DESIGN, layer, TIMING)
    everything = [predict(plan, compile_program(plan), TIMING) for plan in fitting_plans(DESIGN, layer)]
    fewest = min(prediction.cycles for prediction in everything)
    near = [total_bytes(DESIGN, prediction) for prediction in everything if prediction.cycles <= 1.01 * fewest]
    assert choice.prediction.cycles <= 1.01 * fewest
    assert choice.bytes == min(near)


def test_tile_sizes_end_on_steps_and_include_the_whole() -> None:
    assert tile_sizes(13, 1, 20) == [1, 2, 3, 4, 5, 7, 13]
    assert tile_sizes(192, 4, 4)[0] == 4 and tile_sizes(192, 4, 4)[-1] == 192
    assert all(size % 4 == 0 for size in tile_sizes(190, 4, 100)[:-1])


def test_more_bandwidth_or_larger_banks_never_cost_cycles_or_bytes() -> None:
    layer = Layer.conv(K=16, C=16, OY=12, OX=12, FY=3, FX=3, P=1)
    cycles = [best_tiling(DESIGN, layer, MemoryTiming(12, num, 100)).prediction.cycles for num in (10, 30, 60, 100)]
    assert cycles == sorted(cycles, reverse=True)
    larger = [best_tiling(DESIGN.with_(input_bytes=size, weight_bytes=size), layer, TIMING).prediction.cycles
              for size in (2048, 4096, 16384)]
    assert larger == sorted(larger, reverse=True)


def test_a_layer_that_fits_no_bank_names_the_bank_and_what_is_missing() -> None:
    with pytest.raises(InputError) as caught:
        best_tiling(Design(rows=4, cols=4, weight_bytes=8192), Layer.linear(K=1000, C=4096), TIMING)
    assert str(caught.value) == (
        "design.weight_bytes: no tile fits the weight banks: the smallest needs 32768 bytes, 24576 more than there are, got 8192; "
        "allowed: at least 32768 for this layer; the nearest design that fits has weight_bytes=32768")
    best_tiling(Design(rows=4, cols=4, weight_bytes=32768), Layer.linear(K=1000, C=4096), TIMING)
