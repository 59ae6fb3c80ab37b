from __future__ import annotations

import pytest
from pydantic import ValidationError

from boards.loader import load_board
from dse.sweep.constraints import Constraints, Summary, explain_none, summarise
from dse.sweep.evaluate import evaluate_family
from dse.sweep.space import Space
from dse.sweep.workload import Workload
from hdl.layer import Layer

BOARD = load_board("papilio-pro")
WORKLOAD = Workload("w", (("fc", Layer.linear(K=16, C=1024), 1),))
SPACE = {"rows": [2, 4, 8], "cols": [4, 8], "psum_bytes": [0, 2048], "weight_bytes": [512, 16384]}


def tables(**constraints):
    space = Space.from_dict({**SPACE, "constraints": constraints})
    return [evaluate_family(family, WORKLOAD, BOARD, space.constraints) for family in space.enumerate(BOARD, WORKLOAD).families]


def test_ceilings_take_the_place_of_the_boards():
    board = Constraints(luts=0.29, dsps=1.0).applied_to(BOARD)
    assert board.usable["luts"] == 5720 * 29 // 100 and board.usable["dsps"] == 16
    assert board.usable["ffs"] == BOARD.usable["ffs"] and Constraints(min_fps=3).applied_to(BOARD) is BOARD


@pytest.mark.parametrize("wrong", [{"luts": 0}, {"luts": 1.1}, {"min_fps": 0.0}, {"max_mb_s": float("inf")}, {"fps": 1.0}])
def test_what_is_no_constraint(wrong):
    with pytest.raises(ValidationError):
        Constraints(**wrong)


def test_counts_and_the_nearest_point():
    parts = tables(min_fps=1e6)
    rows = [row for part in parts for row in part.to_pylist()]
    summary = summarise(parts)
    assert (summary.points, summary.feasible) == (24, 0)
    assert summary.removed == {key: sum(row["limiting"] == key for row in rows) for key in {row["limiting"] for row in rows}}
    misses = [(row["miss"], row["index"]) for row in rows if row["miss"] is not None]
    assert (summary.miss, summary.nearest["index"]) == min(misses)
    # 16 * 1024 weights cross 112 MB/s: 146 microseconds at least, so nothing does a million a second; four times the DSP blocks is nearer.
    assert summary.nearest["limiting"] == "dsps" and summary.nearest["dsps"] == 32


def test_order_and_cut_do_not_matter():
    parts = tables(min_fps=1e6)
    one = summarise(parts)
    assert summarise(reversed(parts)) == one
    assert summarise([part.slice(at, 1) for part in parts for at in range(part.num_rows)]) == one
    assert one.merged(Summary()) == one == Summary().merged(one)


def test_message_when_nothing_is_feasible():
    parts = [part for part in tables(min_fps=1e6) if part["dsps"][0].as_py() <= 16]
    text = explain_none(summarise(parts)).splitlines()
    assert text[:2] == ["None of the 12 points is feasible. Removed by:", "  min_fps: 12 points"]
    fastest = max((row for part in parts for row in part.to_pylist() if row["fps"]), key=lambda row: row["fps"])
    shape = f"rows={fastest['rows']} cols={fastest['cols']} lanes=1 "
    assert text[2].startswith(f"The nearest point, {fastest['index']} on papilio-pro: {shape}")
    assert text[3] == f"  misses by {fastest['reason']}" and len(text) == 4


def test_message_when_nothing_can_be_mapped():
    # Without a psum RAM, a tile has all channels.
    small = Space.from_dict({"rows": 2, "cols": 4, "weight_bytes": 256, "input_bytes": 256})
    deep = Workload("deep", (("fc", Layer.linear(K=16, C=8192), 1),))
    parts = [evaluate_family(family, deep, BOARD) for family in small.enumerate(BOARD, deep).families]
    lines = explain_none(summarise(parts)).splitlines()
    assert lines[:2] == ["The one point is not feasible. Removed by:", "  tiling: 1 point"]
    design = next(iter(small.enumerate(BOARD, deep).families)).point(0)
    grown = design.with_(weight_bytes=2 * 4096 * 4, input_bytes=2048 * 4)  # 4096 and 2048 entries of 4 bytes
    more = grown.block_rams - design.block_rams
    assert lines[3] == ("  cannot be mapped: layer fc: no tile fits the weight and input banks: the closest needs 4096 weight entries of "
                        f"512, 2048 input entries of 512 ({more} block RAMs more, beside {design.block_rams})")
    (row,) = parts[0].to_pylist()
    assert row["miss"] == more / design.block_rams


def test_message_without_points():
    assert explain_none(Summary()) == "The space has no points."
