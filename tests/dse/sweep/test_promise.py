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
from dse.schedule.explore import LayerSpace, Objective
from dse.schedule.search import bank_depths
from dse.schedule.tiling import Tiling
from dse.sweep.evaluate import TILE_SIZES, evaluate_family
from dse.sweep.family import families
from dse.sweep.space import default_space
from dse.sweep.workload import Workload
from dse.workload.zoo import load_network
from hdl.design import Design
from hdl.layer import Layer
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
