"""Pareto fronts: the points that no other beats in every objective."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
BLOCK = 128
"""Front members that are compared with all that is left, at a time."""
CELLS = 1 << 22
"""Comparisons in memory at a time."""


class Goal(StrEnum):
    """What a front is made of; all but ``fps`` are minimised."""

    CYCLES = "cycles"
    SECONDS = "seconds"
    FPS = "fps"
    EXTERNAL_BYTES = "external_bytes"
    MB_S = "mb_s"
    LUTS = "luts"
    FFS = "ffs"
    DSPS = "dsps"
    BLOCK_RAMS = "block_rams"


COLUMNS = {Goal.MB_S: "external_mb_s"}
"""The columns that are not called as their goals."""
DEFAULT_GOALS = (Goal.SECONDS, Goal.EXTERNAL_BYTES, Goal.LUTS)


def goal_values(table: pa.Table, goals: Sequence[Goal]) -> Values:
    """(rows, goals) of a table of feasible points, so that less is better everywhere."""
    from dse.sweep.arrays import to_numpy

    columns = [to_numpy(table[COLUMNS.get(goal, str(goal))]).astype(np.float64) for goal in goals]
    return np.stack([-column if goal is Goal.FPS else column for goal, column in zip(goals, columns, strict=True)], axis=1)


def pareto_mask(values: Values) -> Mask:
    """Which rows of ``values`` (n, k) no other row beats: is nowhere above and somewhere below. Of equal rows the first alone.

    Cost: a sort for one or two columns; for more, the rows times the front's, divided by how fast the front's best empty the field.
    """
    values = np.asarray(values, np.float64)
    if values.ndim != 2 or values.shape[1] < 1:
        raise ValueError(f"values must be (rows, objectives), not {values.shape}")
    if np.isnan(values).any():
        raise ValueError("values must be numbers")
    mask = np.zeros(len(values), bool)
    # Ranks order like the values; and lexsort is stable, so that of equal rows the first comes first.
    ranks = np.zeros(values.shape, np.int64)
    for at, column in enumerate(values.T):
        ranks[:, at] = np.unique(column, return_inverse=True)[1]
    order = np.lexsort(ranks.T[::-1])
    ranks = ranks[order]
    distinct = np.ones(len(order), bool)
    distinct[1:] = (ranks[1:] != ranks[:-1]).any(axis=1)
    order, ranks = order[distinct], ranks[distinct]
    front = _staircase(ranks) if values.shape[1] <= 2 else _sieve(ranks)
    mask[order[front]] = True
    return mask


def _staircase(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of distinct rows in lexical order with one or two columns: those whose last is below all before."""
    last = ranks[:, -1]
    best = np.minimum.accumulate(last) if len(last) else last
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(last)), bool), last[1:] < best[:-1]]))


def _sieve(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of distinct rows: the front. A row is beaten only by rows of a smaller sum of ranks, so the smallest that are left settle first."""
    left = np.argsort(ranks.sum(axis=1), kind="stable")
    columns = ranks.astype(np.int32)
    front = []
    while len(left):
        head, left = left[:BLOCK], left[BLOCK:]
        head = head[~_beaten(columns[head], columns[head])]
        front.append(head)
        left = left[~_beaten(columns[left], columns[head])]
    return np.concatenate(front) if front else np.zeros(0, np.int64)


def _beaten(rows: NDArray[np.int32], by: NDArray[np.int32]) -> Mask:
    """Which of ``rows`` some other row of ``by`` is nowhere above; all rows are distinct, but may be in both."""
    result = np.zeros(len(rows), bool)
    step = max(1, CELLS // max(1, len(by)))
    for start in range(0, len(rows), step):
        part = rows[start:start + step]
        below = np.ones((len(part), len(by)), bool)
        same = np.ones_like(below)
        for column in range(rows.shape[1]):
            a, b = part[:, column, None], by[None, :, column]
            below &= b <= a
            same &= b == a
        result[start:start + step] = (below & ~same).any(axis=1)
    return result
