"""What chains save in a sweep: at each point what the chain search says of the point's design alone."""

from __future__ import annotations

import numpy as np
import pytest

from boards.errors import InputError
from boards.loader import load_board
from dse.choose import board_timing
from dse.schedule.chain_search import even_spaces, plan_chain
from dse.schedule.explore import Objective
from dse.sweep.axis import parse_axis
from dse.sweep.chaining import lines_of
from dse.sweep.evaluate import evaluate_family
from dse.sweep.family import Family
from dse.sweep.layers import layer_table, map_layers
from dse.sweep.space import Space
from dse.sweep.verify import candidates, pick, verify_front
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.layer import Layer

BOARD = load_board("papilio-pro")


def conv(name: str, K: int, C: int, size: int) -> Layer:
    return Layer.conv(name=name, K=K, C=C, OY=size, OX=size, FY=1, FX=1)


LAYERS = (conv("a", 8, 4, 12), conv("b", 12, 8, 12), conv("c", 4, 12, 12), conv("other", 8, 4, 4), conv("a2", 8, 4, 12),
          conv("b2", 12, 8, 12), conv("c2", 4, 12, 12))
WORKLOAD = Workload("two lines", tuple((layer.name, layer, 3 if layer.name == "other" else 1) for layer in LAYERS),
                    (("a", "b", "c"), ("a2", "b2", "c2")))
SPACE = Space.from_dict({"rows": 4, "cols": 4, "chaining": [False, True], "psum_bytes": "4KiB",
                         "input_bytes": ["2KiB", "4KiB", "8KiB"], "weight_bytes": "8KiB"})


@pytest.fixture(scope="module")
def points() -> list[tuple[Family, list[dict]]]:
    return [(family, evaluate_family(family, WORKLOAD, BOARD).to_pylist()) for family in SPACE.enumerate(BOARD, WORKLOAD).families]


def one_by_one(design: Design) -> list[tuple[int, int]]:
    return [(entry.figures.cycles, entry.figures.beats) for entry in map_layers(design.with_(chaining=False), WORKLOAD, BOARD)]


def test_a_point_saves_what_the_chain_search_says_of_it(points) -> None:
    seen = set()
    for family, rows in points:
        for at, row in enumerate(rows):
            assert row["feasible"] and row["chaining"] == family.design.chaining
            if not row["chaining"]:
                assert (row["kept_tensors"], row["saved_cycles"], row["saved_bytes"]) == (0, 0, 0)
                continue
            design = family.point(at)
            plan = plan_chain(design, LAYERS[:3], board_timing(BOARD, design), spaces=even_spaces)
            entries = {entry.name: entry for entry in map_layers(design, WORKLOAD, BOARD)}
            line = [entries[name] for name in "abc"]
            assert sum(entry.figures.cycles for entry in line) == plan.cycles
            assert row["cycles"] == 2 * plan.cycles + 3 * entries["other"].figures.cycles
            assert row["external_bytes"] == 2 * plan.bytes + 3 * entries["other"].figures.beats * 2
            assert row["kept_tensors"] == 2 * sum(plan.links)
            seen.add(sum(plan.links))
    assert seen == {1, 2}


def test_savings_are_against_the_layers_one_by_one(points) -> None:
    saved = 0
    for _, rows in points:
        for row in rows:
            assert row["kept_tensors"] or not row["saved_bytes"] | row["saved_cycles"]
            # Within 1 % of the fewest cycles, and then fewest bytes: never more of both.
            alone = row["cycles"] + row["saved_cycles"]
            assert row["saved_cycles"] >= -0.01 * alone
            saved += row["saved_bytes"]
            bounds = [row[f"{kind}_bound_cycles"] for kind in ("compute", "memory", "drain")]
            assert max(bounds) <= row["cycles"] and min(bounds) > 0
    assert saved > 0


def test_the_layers_of_a_point_add_up_to_it(points) -> None:
    family, rows = points[-1]
    at = int(np.argmax([row["kept_tensors"] for row in rows]))
    table = layer_table(family.point(at), WORKLOAD, BOARD)
    assert [entry["name"] for entry in table] == [layer.name for layer in LAYERS]
    assert sum(entry["cycles"] for entry in table) == rows[at]["cycles"]
    assert sum(entry["external_bytes"] for entry in table) == rows[at]["external_bytes"]
    assert [entry["output_stays"] for entry in table] == [True, True, False, False, True, True, False]
    for kind in ("compute", "memory", "drain"):
        assert sum(entry[f"{kind}_bound_cycles"] for entry in table) == rows[at][f"{kind}_bound_cycles"]


def test_lines_end_where_a_tensor_cannot_stay() -> None:
    layers = (conv("a", 8, 4, 12), Layer.conv(name="b", K=12, C=8, OY=12, OX=12, FY=1, FX=1, input_zero_point=3), conv("c", 4, 12, 12))
    workload = Workload("line", tuple((layer.name, layer, 1) for layer in layers), (("a", "b", "c"),))
    (line,) = lines_of(Design(rows=4, cols=4, chaining=True), workload)
    assert line.names == (("b", "c"),) and [layer.K for layer in line.layers] == [12, 4]


# -- verification -----------------------------------------------------------------------------------------------------


def test_a_chain_is_verified_as_one() -> None:
    layers = (conv("first", 4, 2, 3), conv("second", 3, 4, 3))
    workload = Workload("pair", tuple((layer.name, layer, 1) for layer in layers), (("first", "second"),))
    space = Space.from_dict({"rows": 2, "cols": 2, "chaining": True, "input_bytes": 2048, "weight_bytes": 2048})
    (family,) = space.enumerate(BOARD, workload).families
    (row,) = evaluate_family(family, workload, BOARD).to_pylist()
    (found,) = verify_front([row], workload, [BOARD], Objective.BOTH, 1, engine="amaranth")
    assert found.layer == "first+second" and found.matches
    assert (found.cycles, found.bytes) == (row["cycles"], row["external_bytes"])


def test_a_chain_is_what_is_picked_first(points) -> None:
    family, rows = points[-1]
    design = family.point(int(np.argmax([row["kept_tensors"] for row in rows])))
    possible = candidates(design, WORKLOAD, BOARD, Objective.BOTH)
    assert [one.name for one in possible] == ["a+b+c", "other", "a2+b2+c2"]
    assert pick(possible, set()).name == "a+b+c" and pick(possible, {"a+b+c"}).name == "a2+b2+c2"


# -- the axis ---------------------------------------------------------------------------------------------------------


def test_the_axis_is_true_or_false() -> None:
    assert parse_axis("chaining", [False, True], where="s").values({}) == [False, True]
    assert parse_axis("chaining", "rows > 2", where="s").values({"rows": 4}) == [True]
    for written, message in ((1, "s: must be true or false, got 1"), ([True, 2.5], r"s\[1\]: must be true or false, got 2.5"),
                             ({"range": [0, 1]}, "s: has no order, got {'range': .0, 1.}; allowed: a choice, or a list of some")):
        with pytest.raises(InputError, match=f"^{message}$"):
            parse_axis("chaining", written, where="s")
    wide = Space.from_dict({"rows": 1, "cols": [127, 128], "chaining": True}).enumerate(BOARD, WORKLOAD)
    assert [family.design.cols for family in wide.families] == [127] and dict(wide.dropped) == {"cols": 1}
