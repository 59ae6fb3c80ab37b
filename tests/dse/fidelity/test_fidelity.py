"""The promise: on random designs, layers, tilings and memories, prediction, hardware and NumPy agree exactly."""

from __future__ import annotations

from functools import lru_cache

import pytest

from dse.fidelity.check import Point, check_point
from dse.fidelity.points import GEOMETRIES, PRECISIONS, random_points
from dse.schedule.compiler import compile_program
from dse.schedule.graph import critical_path, graph_cycles, tile_graph
from dse.schedule.predict import predict
from dse.schedule.tiling import TilePlan

DESIGNS, PER_DESIGN, SEED = 40, 5, 20261130


@lru_cache(maxsize=1)
def points() -> tuple[Point, ...]:
    return tuple(random_points(SEED, DESIGNS, PER_DESIGN))


@pytest.mark.parametrize("number", range(DESIGNS))
def test_prediction_equals_simulation_and_bits_equal_numpy(number: int) -> None:
    for point in points()[number * PER_DESIGN:(number + 1) * PER_DESIGN]:
        assert check_point(point).mismatches == (), point


@pytest.mark.parametrize("number", range(0, DESIGNS, 10))
def test_random_stalls_change_cycles_but_no_bit(number: int) -> None:
    point = points()[number * PER_DESIGN]
    outcome = check_point(point, stall_seed=number + 1)
    assert outcome.mismatches == (), point
    assert outcome.result.cycles > outcome.prediction.cycles


@pytest.mark.parametrize("number", range(0, DESIGNS * PER_DESIGN, 67))
def test_both_engines_agree_cycle_for_cycle(number: int) -> None:
    point = points()[number]
    mine, theirs = (check_point(point, engine=engine).result for engine in ("amaranth", "verilator"))
    assert (mine.cycles, mine.done_cycle, mine.issue_cycles, mine.beats_read, mine.beats_written) == \
        (theirs.cycles, theirs.done_cycle, theirs.issue_cycles, theirs.beats_read, theirs.beats_written)
    assert (mine.memory == theirs.memory).all()
    assert mine.counters == theirs.counters


def test_tile_graph_gives_the_same_cycles() -> None:
    for point in points():
        plan = TilePlan(point.design, point.layer, point.tiling)
        program = compile_program(plan)
        graph = tile_graph(plan, program, point.timing)
        assert graph_cycles(graph) == predict(plan, program, point.timing).cycles, point
        path = critical_path(graph)
        assert path[0].kind == "fetch" and path[-1].kind == "store"


def test_points_cover_what_they_should() -> None:
    designs = {point.design for point in points()}
    assert len(designs) == DESIGNS and len(points()) == DESIGNS * PER_DESIGN >= 200
    assert {(design.weight_bits, design.activation_bits) for design in designs} == set(PRECISIONS)
    layers, plans = [point.layer for point in points()], [TilePlan(p.design, p.layer, p.tiling) for p in points()]
    assert {layer.name for layer in layers} == set(GEOMETRIES)
    assert {design.multiplier for design in designs} | {design.accumulate for design in designs} == \
        {"dsp", "lut", "tree", "per_column"}
    assert {design.output_multiplier for design in designs} == {"dsp", "lut", "serial"}
    assert {design.bus_bits for design in designs} == {16, 32, 64, 128}
    classes = {
        "several drains a lane": any(design.drains_per_lane > 1 for design in designs),
        "several lanes a drain": any(design.lanes_per_drain > 1 for design in designs),
        "smaller than the array": any(p.layer.K < p.design.rows and p.layer.C < p.design.cols for p in points()),
        "channel tiles": any(len(plan.loops["C"]) > 1 for plan in plans),
        "remainders": any(len({part.size for part in plan.loops["Y"]}) > 1 for plan in plans),
        "packed groups": any(plan.grouping.packed > 1 for plan in plans),
        "unpacked groups": any(plan.grouping.packed == 1 and plan.layer.G > 1 for plan in plans),
        "asymmetric pads": any(layer.PT != layer.PB for layer in layers),
        "dilation": any(layer.DY > 1 or layer.DX > 1 for layer in layers),
        "unsigned with zero point": any(not layer.activations_signed and layer.input_zero_point for layer in layers),
        "resident input": any(plan.input_is_resident for plan in plans),
        "batch": any(layer.B > 1 for layer in layers),
    }
    assert [name for name, found in classes.items() if not found] == []
