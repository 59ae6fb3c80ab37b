from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dse.sweep.pareto import BLOCK, DEFAULT_GOALS, Goal, goal_values, pareto_mask


def brute_force(values: np.ndarray) -> list[int]:
    """The definition, pair by pair."""
    kept = []
    for at, row in enumerate(values):
        beaten = any((other <= row).all() and (other < row).any() for other in values)
        if not beaten and not any((values[before] == row).all() for before in range(at)):
            kept.append(at)
    return kept


@given(st.integers(1, 4).flatmap(lambda k: arrays.arrays(float, st.tuples(st.integers(0, 40), st.just(k)), elements=st.sampled_from(
    [-np.inf, -1.5, 0.0, -0.0, 1.0, 2.0, 3.0, 1e300, np.inf]))))
def test_small_sets_with_many_ties(values):
    assert np.flatnonzero(pareto_mask(values)).tolist() == brute_force(values)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", ["random", "opposed"])
def test_sets_larger_than_a_block(k, shape):
    rng = np.random.default_rng(k)
    values = rng.integers(0, 60, (4 * BLOCK, k)).astype(float)
    if shape == "opposed" and k > 1:  # almost everything is on the front
        values[:, -1] = -values[:, :-1].sum(axis=1) + rng.integers(0, 2, len(values))
    assert np.flatnonzero(pareto_mask(values)).tolist() == brute_force(values)


def test_of_equal_rows_the_first():
    assert pareto_mask(np.array([[2.0, 2.0], [1.0, 3.0], [1.0, 3.0], [2.0, 2.0]])).tolist() == [True, True, False, False]


def test_a_front_of_fronts_is_the_front():
    """A sweep adds its parts up one by one."""
    values = np.random.default_rng(5).integers(0, 40, (400, 3)).astype(float)
    kept = np.zeros(0, int)
    for part in np.array_split(np.arange(len(values)), 7):
        rows = np.concatenate([kept, part])
        kept = rows[pareto_mask(values[rows])]
    assert kept.tolist() == np.flatnonzero(pareto_mask(values)).tolist()


def test_no_rows():
    assert pareto_mask(np.zeros((0, 3))).tolist() == []


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((3, 0)), np.array([[1.0, np.nan]])])
def test_what_has_no_front(values):
    with pytest.raises(ValueError, match="values must be"):
        pareto_mask(values)


def test_goal_values_are_minimised():
    table = pa.table({"fps": [2.0, 5.0], "external_mb_s": [1.0, 3.0], "luts": [7, 8]})
    assert goal_values(table, [Goal.FPS, Goal.MB_S, Goal.LUTS]).tolist() == [[-2, 1, 7], [-5, 3, 8]]


def test_every_goal_is_a_column():
    from dse.sweep.columns import SCHEMA
    from dse.sweep.pareto import COLUMNS
    assert all(COLUMNS.get(goal, str(goal)) in SCHEMA.names for goal in Goal) and set(DEFAULT_GOALS) <= set(Goal)
