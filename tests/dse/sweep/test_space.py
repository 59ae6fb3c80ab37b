from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import InputError
from boards.loader import load_board
from dse.schedule.explore import Objective
from dse.sweep.constraints import Constraints
from dse.sweep.pareto import DEFAULT_GOALS, Goal
from dse.sweep.space import Space, default_space, load_space
from dse.sweep.workload import Workload
from hdl.layer import Layer

ROOT = Path(__file__).parents[3]
WORKLOAD = Workload("w", (("first", Layer.conv(K=16, C=64, OY=8, OX=8, FY=3, FX=3, P=1), 2),))


@pytest.mark.parametrize(("data", "message"), [
    ({"row": 1, "cols": 1}, "f.yaml: row: unknown key, got 1; allowed: board, rows, cols, lanes, precision, accumulator_bits, multiplier, "
                            "accumulate, drains, output_multiplier, distributed_depth, chaining, input_bytes, input_depth, weight_bytes, "
                            "weight_depth, output_bytes, output_depth, psum_bytes, psum_depth, bus_bits, clock_mhz, where, constraints, "
                            "objectives, mapping; nearest valid key: `rows`"),
    ({"cols": 1}, "f.yaml: missing key 'rows'; for example `rows: [1, 2, 4]`"),
    ({"rows": [1, 99], "cols": 1}, "f.yaml: rows[1]: out of range, got 99; allowed: 1 to 64"),
    ({"rows": 1, "cols": 1, "input_bytes": 512, "input_depth": 512}, "f.yaml: input_depth: given together with input_bytes, got 512; "
                                                                    "give one of them"),
    ({"rows": "row * 2", "cols": 1},
     "f.yaml: rows: unknown name 'row', got 'row * 2'; allowed: accumulate, accumulator_bits, activation_bits, bus_bits, chaining, "
     "clock_mhz, cols, distributed_depth, drains, lanes, multiplier, output_multiplier, precision, rows, usable_block_rams, usable_dsps, "
     "usable_ffs, usable_luts, weight_bits; nearest: rows"),
    ({"rows": "cols", "cols": ["lanes", 2], "lanes": "rows"},
     "f.yaml: rows: axes that need each other, got 'rows -> cols -> lanes -> rows'"),
    ({"rows": "rows + 1", "cols": 1}, "f.yaml: rows: axes that need each other, got 'rows -> rows'"),
    ({"rows": 1, "cols": 1, "input_bytes": "weight_bytes", "weight_bytes": "input_bytes"},
     "f.yaml: input_bytes: axes that need each other, got 'input_bytes -> weight_bytes -> input_bytes'"),
    ({"rows": "weight_bytes // 512", "cols": 1}, "f.yaml: rows: rows cannot be computed from a bank's size, got 'weight_bytes // 512'; "
                                                 "compute the bank's size from it, or use a condition (where)"),
    ({"rows": 1, "cols": 1, "where": ["rows < 2", "rows ** 2"]},
     "f.yaml: where[1]: not allowed in an expression, got 'rows ** 2'; allowed: "
     "numbers, names, + - * // %, comparisons, and or not, min(..) max(..), A if C else B"),
    ({"rows": 1, "cols": 1, "objectives": ["cycle"]},
     "f.yaml: objectives[0]: not a valid choice, got 'cycle'; allowed: cycles, seconds, fps, "
     "external_bytes, mb_s, luts, ffs, dsps, block_rams; nearest: cycles"),
    ({"rows": 1, "cols": 1, "objectives": ["luts", "luts"]}, "f.yaml: objectives: must be one objective or several different ones, got "
     "['luts', 'luts']; allowed: cycles, seconds, fps, external_bytes, mb_s, luts, ffs, dsps, block_rams"),
    ({"rows": 1, "cols": 1, "mapping": "byte"},
     "f.yaml: mapping: not a valid choice, got 'byte'; allowed: both, cycles, bytes; nearest: bytes"),
    ({"rows": 1, "cols": 1, "constraints": {"min_fp": 1}},
     "f.yaml: constraints.min_fp: unknown key, got 1; allowed: dsps, block_rams, luts, "
     "ffs, min_fps, max_mb_s; nearest valid key: `min_fps`"),
])
def test_messages(data, message):
    with pytest.raises(InputError) as caught:
        Space.from_dict(data, where="f.yaml")
    assert str(caught.value) == message


@pytest.mark.parametrize("luts", [0, 1.5, -1])
def test_ceilings_are_shares(luts):
    with pytest.raises(InputError, match=rf"^f.yaml: constraints.luts: out of range, got {float(luts)}; allowed: above 0 to 1$"):
        Space.from_dict({"rows": 1, "cols": 1, "constraints": {"luts": float(luts)}}, where="f.yaml")


def test_what_is_left_out():
    space = Space.from_dict({"rows": 2, "cols": 3})
    board = load_board("papilio-pro")
    (family,) = space.enumerate(board, WORKLOAD).families
    design = family.design
    # 64 * 9 products of 128 * 128: 25 bits and a sign, and one for the bias.
    assert (design.array, design.precision, design.drains, design.accumulator_bits, design.bus_bits, design.clock_mhz) == (
        "2x3x1", "w8a8", 1, 26, board.default_bus_bits(), 100)
    assert family.banks.tolist() == [[16384, 16384, 2048, 0]]
    assert (space.where, space.objectives, space.mapping, space.constraints, space.boards) == (
        (), DEFAULT_GOALS, Objective.BOTH, Constraints(), ())


def test_the_example_file_is_what_it_says():
    space = load_space(ROOT / "examples" / "space.yaml")
    found = space.enumerate(load_board("papilio-pro"), WORKLOAD)
    assert found.points > 100 and space.objectives == (Goal.FPS, Goal.EXTERNAL_BYTES, Goal.LUTS)
    assert all(family.design.macs_per_cycle <= 16 and family.design.drains == family.design.lanes for family in found.families)


def test_plain_values_make_the_same_space():
    space = load_space(ROOT / "examples" / "space.yaml")
    again = Space.from_dict(space.to_dict())
    board = load_board("papilio-pro")
    assert again.to_dict() == space.to_dict()
    ours, theirs = (each.enumerate(board, WORKLOAD).families for each in (space, again))
    assert [(a.design, a.banks.tolist()) for a in ours] == [(b.design, b.banks.tolist()) for b in theirs]


# -- the default ------------------------------------------------------------------------------------------------------


def test_default_space_of_a_small_board():
    board = load_board("papilio-pro")
    found = default_space(board).enumerate(board, WORKLOAD)
    assert found.points >= 40_000 and not found.dropped
    assert any(family.design.macs_per_cycle == board.usable["dsps"] for family in found.families)


@pytest.mark.parametrize(("name", "precisions"), [("papilio-pro", ["w8a8"]), ("mimas-v2", ["w4a4", "w8a8"])])
def test_default_space_has_nothing_that_cannot_fit_and_nothing_twice(name, precisions):
    from dse.estimate.resources import overshoot
    board = load_board(name)
    found = default_space(board, precisions).enumerate(board, WORKLOAD)
    assert found.families and {family.design.precision for family in found.families} == set(precisions)
    assert len({family.design.with_(input_bytes=1 << 16, weight_bytes=1 << 16, output_bytes=1 << 16, psum_bytes=0)
                for family in found.families}) == len(found.families)
    for family in found.families:
        depths = family.depths()
        assert len({tuple(row) for row in depths.tolist()}) == len(family)
        worst = int(family.block_rams().argmax())
        assert not overshoot(family.point(worst), board)
