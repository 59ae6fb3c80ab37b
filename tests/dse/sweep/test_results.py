"""Fronts a part at a time, and rows that come back from the files as they were."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from boards.loader import load_board
from dse.sweep.constraints import Constraints
from dse.sweep.evaluate import evaluate_family, unevaluated
from dse.sweep.pareto import Goal
from dse.sweep.results import Tally, design_of, pareto_front, read_front, write_front, write_points
from dse.sweep.space import Space
from dse.workload.layer_file import load_design
from tests.dse.sweep.example import SPACE, workload

GOALS = (Goal.SECONDS, Goal.FPS, Goal.LUTS)


def random_table(seed: int, rows: int = 400) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table({"index": np.arange(rows), "board": draw.choice(["a", "b"], rows), "precision": draw.choice(["w8a8", "w1a1"], rows),
                     "seconds": draw.integers(1, 12, rows).astype(float), "fps": draw.integers(1, 12, rows).astype(float),
                     "luts": draw.integers(1, 12, rows), "feasible": draw.random(rows) < 0.8,
                     "limiting": draw.choice(["luts", "tiling", "error"], rows), "reason": [None] * rows,
                     "miss": draw.random(rows)})


def beats(one: dict, other: dict) -> bool:
    """Nowhere worse and somewhere better, of one board and precision; written out for these goals."""
    if (one["board"], one["precision"]) != (other["board"], other["precision"]):
        return False
    no_worse = one["seconds"] <= other["seconds"] and one["fps"] >= other["fps"] and one["luts"] <= other["luts"]
    return no_worse and (one["seconds"], one["fps"], one["luts"]) != (other["seconds"], other["fps"], other["luts"])


@pytest.mark.parametrize("seed", range(4))
def test_a_front_made_part_by_part_is_the_front_of_all(seed):
    table = random_table(seed)
    tally = Tally(GOALS)
    for start in range(0, table.num_rows, 37):
        tally.add(table.slice(start, 37))
    rows = table.to_pylist()
    good, bad = [row for row in rows if row["feasible"]], [row for row in rows if not row["feasible"]]
    expected, seen = [], set()
    for row in good:
        key = tuple(row[name] for name in ("board", "precision", "seconds", "fps", "luts"))
        if key not in seen and not any(beats(other, row) for other in good):
            expected.append(row)
        seen.add(key)
    assert tally.front.to_pylist() == expected
    assert tally.front.equals(pareto_front(table.filter(table["feasible"]), GOALS))
    assert (tally.summary.points, tally.summary.feasible) == (len(rows), len(good))
    assert tally.errors == sum(row["limiting"] == "error" for row in bad)
    assert tally.summary.removed == {name: sum(row["limiting"] == name for row in bad) for name in ("luts", "tiling", "error")}


@pytest.fixture(scope="module")
def parts() -> list[pa.Table]:
    """Real rows, good ones and failed ones."""
    board, space = load_board("atlys"), Space.from_dict({**SPACE, "rows": [1], "cols": [3]})
    first, *others = space.enumerate(board, workload()).families
    return [unevaluated(first, workload(), board, Constraints(), "error", "error: none"),
            *(evaluate_family(family, workload(), board) for family in others)]


@pytest.mark.parametrize("group_rows", [1, 3, 4, 1000])
def test_points_are_written_in_row_groups_whatever_the_parts(parts, tmp_path, group_rows):
    tally = write_points(iter(parts), tmp_path, tmp_path, GOALS, group_rows=group_rows)
    whole = pa.concat_tables(parts)
    with pq.ParquetFile(tmp_path / "points.parquet") as file:
        sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
        assert sum(sizes) == whole.num_rows and set(sizes[:-1]) <= {group_rows}
        assert file.read().to_pylist() == whole.to_pylist()
    assert (tally.errors, tally.summary.points) == (parts[0].num_rows, whole.num_rows)
    assert [path.name for path in tmp_path.iterdir()] == ["points.parquet"]
    written = (tmp_path / "points.parquet").read_bytes()
    write_points((whole.slice(at, 1) for at in range(whole.num_rows)), tmp_path, tmp_path, GOALS, group_rows=group_rows)
    assert (tmp_path / "points.parquet").read_bytes() == written


def test_the_front_comes_back_from_its_files(parts, tmp_path):
    tally = write_points(iter(parts), tmp_path, tmp_path, GOALS)
    stale = tmp_path / "designs" / "999999-atlys.yaml"
    stale.parent.mkdir()
    stale.touch()
    write_front(tally.front, tmp_path, tmp_path)
    assert read_front(tmp_path) == tally.front.to_pylist() != []
    assert not stale.exists()


def test_a_row_with_nothing_in_its_nullable_columns_comes_back(parts, tmp_path):
    write_points(iter(parts), tmp_path, tmp_path, GOALS)
    write_front(parts[0], tmp_path, tmp_path)
    assert read_front(tmp_path) == parts[0].to_pylist()


def test_the_design_of_a_row(parts):
    board, space = load_board("atlys"), Space.from_dict({**SPACE, "rows": [1], "cols": [3]})
    families = space.enumerate(board, workload()).families
    designs = [family.point(at) for family in families for at in range(len(family))]
    assert [design_of(row) for row in pa.concat_tables(parts).to_pylist()] == designs


def test_the_design_of_a_row_is_of_the_family_of_its_board(tmp_path):
    board, space = load_board("arty-a7-35"), Space.from_dict({**SPACE, "rows": [1], "cols": [3], "precision": ["w8a8"]})
    table = evaluate_family(space.enumerate(board, workload()).families[0], workload(), board)
    write_front(table, tmp_path, tmp_path)
    assert {str(design_of(row).family) for row in table.to_pylist()} == {"xc7"}
    assert {str(load_design(path).family) for path in (tmp_path / "designs").iterdir()} == {"xc7"}
