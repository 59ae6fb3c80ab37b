"""What a sweep promises: its points are what the hardware does, and its optimum behaves as an optimum must."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import numpy as np
import pytest

from boards import load_board
from dse.choose import board_timing
from dse.fidelity.check import Point, check_point
from dse.schedule.banks import BANKS
from dse.schedule.compiler import Program, compile_program
from dse.schedule.explore import LayerSpace, Objective
from dse.schedule.predict import predict, tile_costs
from dse.schedule.search import bank_depths
from dse.schedule.tiling import TilePlan, Tiling
from dse.sweep.columns import COLUMNS, INT, LONG, REAL
from dse.sweep.evaluate import TILE_SIZES, evaluate_family
from dse.sweep.family import Family, families
from dse.sweep.layers import layer_table
from dse.sweep.space import default_space
from dse.sweep.workload import Workload
from dse.workload.zoo import load_network
from hdl.design import Design
from hdl.layer import Layer
from hdl.timing import (
    EVALUATION_CYCLES,
    FETCH_END_CYCLES,
    FIRST_EVALUATION_CYCLES,
    INSTRUCTION_CYCLES,
    MEMORY_END_CYCLES,
    MEMORY_START_CYCLES,
    MIN_MEMORY_LATENCY_CYCLES,
    PHASE_CHANGE_CYCLES,
    START_CYCLES,
)
from sim.memory import MemoryTiming

BOARD = load_board("papilio-pro")
MAX_CYCLES = 60_000
SWEEPS = {"w8a8": ("digits-cnn", "lenet5"), "w1a1": ("lfc", "cnv")}
DESIGNS_A_PRECISION = {"w8a8": 10, "w1a1": 4}


@cache
def layers(precision: str) -> tuple[Layer, ...]:
    """Small layers of the zoo; the binary networks' first ones have other activations."""
    bits = int(precision.rpartition("a")[2])
    found = []
    for name in SWEEPS[precision]:
        found += [operator.layer for operator in load_network(name).array_operators if operator.activation_bits == bits]
    return tuple(layer for layer in found if layer.macs < 1_100_000)


@cache
def designs(precision: str) -> tuple[Design, ...]:
    """Feasible points of real sweeps: of the default space, one of each of some families."""
    random, workload = Random(5), Workload("zoo", tuple((layer.name, layer, 1) for layer in layers(precision)))
    found: list[Design] = []
    for family in random.sample(families(default_space(BOARD, (precision,)), BOARD, workload), 60):
        table = evaluate_family(family, workload, BOARD)
        feasible = np.flatnonzero(table["feasible"].to_numpy(zero_copy_only=False))
        if len(feasible) and len(found) < DESIGNS_A_PRECISION[precision] and family.design.macs_per_cycle >= 8:
            found.append(family.point(int(random.choice(feasible.tolist()))))
        if len(found) == DESIGNS_A_PRECISION[precision]:
            break
    return tuple(found)


def mapped(design: Design, layer: Layer, timing: MemoryTiming, objective: Objective = Objective.BOTH) -> tuple[int, int, int, Tiling]:
    best = LayerSpace(design, layer, TILE_SIZES).best(bank_depths(design)[None, :], timing, objective)
    assert best.feasible[0]
    return int(best.cycles[0]), int(best.beats_read[0]), int(best.beats_written[0]), best.tilings[0]


def points(design: Design, precision: str) -> Iterator[tuple[Point, tuple[int, int, int]]]:
    """The design's points that are short enough to simulate, each with the cycles and beats that the sweep gives."""
    timing = board_timing(BOARD, design)
    for number, layer in enumerate(layers(precision)):
        cycles, read, written, tiling = mapped(design, layer, timing)
        if cycles <= MAX_CYCLES:
            yield Point(design, layer, tiling, timing, number), (cycles, read, written)


@pytest.mark.parametrize("precision, number", [(precision, number) for precision, count in DESIGNS_A_PRECISION.items()
                                               for number in range(count)])
def test_points_of_real_sweeps_are_what_the_hardware_does(precision: str, number: int) -> None:
    for point, predicted in points(designs(precision)[number], precision):
        outcome = check_point(point)
        assert outcome.mismatches == ()
        assert (outcome.result.cycles, outcome.result.beats_read, outcome.result.beats_written) == predicted


def test_a_hundred_points_were_simulated() -> None:
    assert sum(len(list(points(design, precision))) for precision in SWEEPS for design in designs(precision)) >= 100


@pytest.mark.parametrize("precision", SWEEPS)
def test_more_of_any_bank_never_costs_bytes_or_cycles(precision: str) -> None:
    """Each for its own objective: fewest bytes, fewest cycles."""
    steps = [512, 1024, 2048, 4096]
    for design in designs(precision)[:4]:
        timing = board_timing(BOARD, design)
        for layer in layers(precision)[::2]:
            space = LayerSpace(design.with_(psum_bytes=4096), layer, TILE_SIZES)
            for kind in range(len(BANKS)):
                depths = np.full((len(steps), len(BANKS)), 1024)
                depths[:, kind] = steps
                for objective, value in ((Objective.BYTES, lambda best: best.beats_read + best.beats_written),
                                         (Objective.CYCLES, lambda best: best.cycles)):
                    best = space.best(depths, timing, objective)
                    values = value(best)[best.feasible].tolist()
                    assert values == sorted(values, reverse=True)
                    assert best.feasible.tolist() == sorted(best.feasible.tolist())


def test_more_bandwidth_never_costs_cycles_and_its_average_never_exceeds_what_is_offered() -> None:
    for precision in SWEEPS:
        for design in designs(precision)[:4]:
            for layer in layers(precision)[::2]:
                before = None
                for num in (10, 25, 50, 80, 100):
                    cycles, read, written, _ = mapped(design, layer, MemoryTiming(12, num, 100), Objective.CYCLES)
                    assert (read + written) * 100 <= cycles * num
                    assert before is None or cycles <= before
                    before = cycles


def test_figures_are_whole_and_none_is_negative() -> None:
    for precision in SWEEPS:
        for design in designs(precision)[:4]:
            for layer in layers(precision):
                best = LayerSpace(design, layer, TILE_SIZES).best(bank_depths(design)[None, :], board_timing(BOARD, design))
                for name in ("cycles", "beats_read", "beats_written", "issue_cycles", "memory_bound_cycles", "drain_bound_cycles"):
                    values = getattr(best, name)
                    assert values.dtype == np.int64 and (values > 0).all()
                assert best.cycles[0] > best.issue_cycles[0]


def test_every_column_and_component_is_whole_and_at_least_zero() -> None:
    for precision in SWEEPS:
        workload = Workload("zoo", tuple((layer.name, layer, 1) for layer in layers(precision)))
        for design in designs(precision)[:4]:
            family = Family(BOARD.name, design, np.array([[getattr(design, f"{kind}_bytes") for kind in BANKS]]), 0)
            table = evaluate_family(family, workload, BOARD)
            for name, column in COLUMNS.items():
                if column.type in (INT, LONG) and name not in ("saved_cycles", "saved_bytes"):
                    assert min(table[name].to_pylist()) >= 0, name
                elif column.type == REAL and name != "miss":
                    assert min(table[name].to_pylist()) > 0, name
            for layer in layers(precision):
                *_, tiling = mapped(design, layer, board_timing(BOARD, design))
                plan = TilePlan(design, layer, tiling)
                # Whole tiles, side by side, that make up the loop.
                for loop, parts in plan.loops.items():
                    ends = [0, *(part.start + part.size for part in parts)]
                    assert [part.start for part in parts] == ends[:-1] and all(part.size > 0 for part in parts), loop
                assert [plan.loops[loop][-1].start + plan.loops[loop][-1].size for loop in "BYX"] == [layer.B, layer.OY, layer.OX]
                prediction = predict(plan, compile_program(plan), board_timing(BOARD, design))
                for values in (*vars(tile_costs(plan)).values(), prediction.phase_cycles):
                    assert values.dtype == np.int64 and (values >= 0).all()
                components = {name: value for name, value in vars(prediction).items() if name != "phase_cycles"}
                assert all(type(value) is int and value >= 0 for value in components.values()), components


UNLIMITED = MemoryTiming(MIN_MEMORY_LATENCY_CYCLES, 1, 1)
"""A beat in every cycle: the channel takes no more, whatever the memory. And the least latency that the hardware accepts."""


def without_waiting(plan: TilePlan, program: Program) -> int | None:
    """Cycles of a run in which nothing waits between first load and last store: those of the array, tile after tile. None where a tile's
    beats, at one a cycle, take longer than its neighbour's computation, or the evaluation of the program does: no memory helps there."""
    costs = tile_costs(plan)
    evaluation = EVALUATION_CYCLES + INSTRUCTION_CYCLES * program.tile_instructions
    loads, stores = np.append(costs.load_beats[1:], 0), np.append(0, costs.store_beats[:-1])  # beside each tile's computation
    busy = loads + stores + MEMORY_START_CYCLES + UNLIMITED.latency_cycles + MEMORY_END_CYCLES
    if (busy > costs.compute_cycles).any() or (costs.compute_cycles < evaluation).any():
        return None
    before = (START_CYCLES + UNLIMITED.latency_cycles + program.beats + FETCH_END_CYCLES + FIRST_EVALUATION_CYCLES
              + INSTRUCTION_CYCLES * program.first_instructions + PHASE_CHANGE_CYCLES)
    first_load = MEMORY_START_CYCLES + UNLIMITED.latency_cycles + int(costs.load_beats[0]) + MEMORY_END_CYCLES
    last_store = MEMORY_START_CYCLES + UNLIMITED.latency_cycles + int(costs.store_beats[-1]) + 1
    return (before + max(first_load, evaluation) + PHASE_CHANGE_CYCLES + int((costs.compute_cycles + PHASE_CHANGE_CYCLES).sum())
            + last_store)


def test_with_unlimited_bandwidth_nothing_waits_between_first_load_and_last_store() -> None:
    """Where the array has enough to do (:func:`without_waiting`), the simulated hardware takes the array's cycles and no more."""
    found = several = 0
    for design in designs("w8a8")[:3]:
        for number, layer in enumerate(layers("w8a8")):
            cycles, _, _, tiling = mapped(design, layer, UNLIMITED)
            plan = TilePlan(design, layer, tiling)
            program = compile_program(plan)
            wanted = without_waiting(plan, program)
            prediction = predict(plan, program, UNLIMITED)
            assert wanted is None or prediction.memory_stall_cycles == 0
            if wanted is not None and cycles <= MAX_CYCLES:
                outcome = check_point(Point(design, layer, tiling, UNLIMITED, number))
                assert outcome.mismatches == () and outcome.result.cycles == wanted
                found, several = found + 1, several + (len(prediction.phase_cycles) > 4)
    assert found >= 6 and several >= 2


def test_a_sweep_predicts_no_stall_where_the_memory_offers_more_than_the_layer_takes() -> None:
    """On average over the layer, four times as much; the beats of single tiles are more than the average."""
    workload = Workload("zoo", tuple((layer.name, layer, 1) for layer in layers("w8a8")))
    slow = Design(rows=1, cols=1, accumulator_bits=32, input_bytes=16384, weight_bytes=32768, output_bytes=8192, bus_bits=128, clock_mhz=10)
    calm = [entry for entry in layer_table(slow, workload, BOARD) if 4 * entry["compute_bound_mb_s"] < BOARD.offered_mb_s]
    assert len(calm) >= 5 and [entry["memory_stall_cycles"] for entry in calm] == [0] * len(calm)
    assert all(entry["bound"] != "memory" for entry in calm)
    fast = Design(rows=8, cols=8, accumulator_bits=32, multiplier="lut", drains=2, output_multiplier="dsp", bus_bits=16)
    starved = [entry for entry in layer_table(fast, workload, BOARD) if entry["compute_bound_mb_s"] > 4 * BOARD.offered_mb_s]
    assert starved and all(entry["bound"] == "memory" for entry in starved)
    assert any(entry["memory_stall_cycles"] > 0 for entry in starved)  # not of those that one load brings whole
