"""Prediction: rules that hold without a simulation (`tests/dse/fidelity` compares with one)."""

from __future__ import annotations

import pytest

from dse.fidelity.points import random_points
from dse.schedule.compiler import compile_program
from dse.schedule.predict import ProgramLength, predict, tile_costs
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

LAYER = Layer.conv(K=16, C=8, OY=8, OX=8, FY=3, FX=3, P=1)
DESIGN = Design(rows=4, cols=4)
PLAN = TilePlan(DESIGN, LAYER, Tiling(ts=1, tk=4, tc=2, ty=4, tx=8, resident=True))
TIMING = MemoryTiming(12, 14, 25)


def test_issue_cycles_are_the_macs_over_the_array_where_all_divides() -> None:
    prediction = predict(PLAN, compile_program(PLAN), TIMING)
    assert prediction.issue_cycles == LAYER.macs // DESIGN.macs_per_cycle == prediction.compute_bound_cycles


def test_beats_are_counted_by_hand() -> None:
    costs = tile_costs(PLAN)
    # Weight tiles are loaded once each: 4 channels of 18 words, two beats a word, and four beats of parameters a channel. Both input
    # tiles are resident after the first weight tile: rows 0..4 and 3..7 of 8 pixels of two words.
    weights, inputs = 4 * (18 * 2 + 4), 5 * 8 * 2 * 2
    assert costs.load_beats.tolist() == [weights + inputs, inputs, weights, 0, weights, 0, weights, 0]
    assert costs.store_beats.tolist() == [4 * 8 * 2] * 8


def test_resident_weights_are_loaded_with_the_first_pixels() -> None:
    tiling = Tiling(ts=1, tk=4, tc=2, ty=4, tx=8, order=Order.PIXELS_OUTER, resident=True)
    weights, parameters, inputs = 4 * 18 * 2, 4 * 4, 5 * 8 * 2 * 2
    loads = tile_costs(TilePlan(DESIGN, LAYER, tiling)).load_beats.tolist()
    assert loads == [weights + parameters + inputs, *[weights + parameters] * 3, inputs + parameters, *[parameters] * 3]


def test_nothing_stays_resident_that_is_not_visited_again() -> None:
    for order in Order:
        with pytest.raises(IllegalTiling, match="visited again"):
            TilePlan(DESIGN, LAYER, Tiling(ts=1, tk=16, tc=2, ty=8, tx=8, order=order, resident=True))
    with pytest.raises(IllegalTiling, match="no weight tile is visited again along one loop"):
        TilePlan(DESIGN, LAYER, Tiling(ts=1, tk=4, tc=2, ty=4, tx=4, order=Order.PIXELS_OUTER, resident=True))


def test_the_shortest_program_gives_a_lower_bound() -> None:
    assert predict(PLAN, ProgramLength(), TIMING).cycles < predict(PLAN, compile_program(PLAN), TIMING).cycles


def test_no_phase_is_longer_than_its_longest_part() -> None:
    program = compile_program(PLAN)
    free, slow = (predict(PLAN, program, MemoryTiming(12, num, 100)) for num in (100, 1))
    # 18 vectors a group, but four results of ten cycles each.
    assert slow.bound[0] == "memory" and free.bound[0] == "drain"
    assert slow.cycles > free.cycles


def test_faster_memory_never_means_more_waiting() -> None:
    for point in random_points(3, 20, 3):
        plan = TilePlan(point.design, point.layer, point.tiling)
        program = compile_program(plan)
        stalls = [predict(plan, program, MemoryTiming(12, num, 100)).memory_stall_cycles for num in (1, 5, 20, 50, 100)]
        assert stalls == sorted(stalls, reverse=True) and stalls[-1] >= 0
        phases = predict(plan, program, MemoryTiming(12, 1, 100)).phase_cycles
        assert stalls[0] <= int(phases[1:-1].sum())


def test_latency_must_cover_the_lanes() -> None:
    design = Design(rows=1, cols=4, lanes=16)
    plan = TilePlan(design, Layer.conv(K=4, C=4, OY=16, OX=4, FY=1, FX=1), Tiling(ts=1, tk=4, tc=1, ty=16, tx=4))
    with pytest.raises(InputError) as caught:
        predict(plan, ProgramLength(), MemoryTiming(8, 1, 1))
    assert str(caught.value) == ("latency_cycles: the lanes' row limits settle one lane a cycle, during the memory's latency, got 8; "
                                 "allowed: at least 16 for 16 lanes")
