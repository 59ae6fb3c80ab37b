"""The same promise for chains: on random designs, layers, tilings and memories, prediction, hardware and NumPy agree exactly."""

from __future__ import annotations

from functools import lru_cache

import pytest

from dse.fidelity.chains import ChainPoint, check_chain_point, random_chains
from dse.schedule.chain import place_chain
from dse.schedule.program_shape import Pattern, program_shape

DESIGNS, PER_DESIGN, SEED = 5, 5, 4


@lru_cache(maxsize=1)
def points() -> tuple[ChainPoint, ...]:
    return tuple(random_chains(SEED, DESIGNS, PER_DESIGN))


@pytest.mark.parametrize("number", range(DESIGNS))
def test_prediction_equals_simulation_and_bits_equal_numpy(number: int) -> None:
    for point in points()[number * PER_DESIGN:(number + 1) * PER_DESIGN]:
        assert check_chain_point(point).mismatches == (), point


def test_the_length_of_a_program_is_known_without_compiling_it() -> None:
    for point in points():
        run = place_chain(point.design, point.layers, point.tilings)
        for plan, program in zip(run.plans, run.programs, strict=True):
            shape = program_shape(point.design, Pattern.of(plan))
            assert (shape.words, shape.first_instructions, shape.tile_instructions) == (
                len(program.words), program.first_instructions, program.tile_instructions), point


def test_points_cover_what_they_should() -> None:
    plans = [plan for point in points() for plan in place_chain(point.design, point.layers, point.tilings).plans]
    producers, consumers = [plan for plan in plans if plan.output_is_kept], [plan for plan in plans if plan.input_is_kept]
    assert len(points()) == DESIGNS * PER_DESIGN >= 20
    classes = {
        "three layers": any(len(point.layers) == 3 for point in points()),
        "several lanes": any(plan.design.lanes > 1 for plan in plans),
        "XNOR": any(plan.design.is_xnor for plan in plans),
        "words of several beats": any(plan.input_format.beats_per_entry > 1 for plan in producers),
        "beats of several words": any(plan.input_format.words_per_entry > 1 for plan in producers),
        "a last word that is cut": any(plan.output_tile_beats(plan.loops["S"][0], plan.loops["K"][-1]) % plan.input_format.beats_per_entry
                                       for plan in producers),
        "stride": any(plan.layer.SY > 1 for plan in consumers),
        "rows that no tap touches": any(plan.y_axis.first + plan.y_axis.count > plan.kept_span for plan in consumers),
        **{f"producer tiled along {loop}": any(len(plan.loops[loop]) > 1 for plan in producers) for loop in "KYX"},
        **{f"consumer tiled along {loop}": any(len(plan.loops[loop]) > 1 for plan in consumers) for loop in "KYXC"},
        "groups": any(plan.layer.G > 1 for plan in consumers),
    }
    assert [name for name, found in classes.items() if not found] == []
