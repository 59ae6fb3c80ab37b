"""Points of a front on the simulated hardware."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import dse.sweep.layers
from boards.errors import InputError
from boards.loader import load_board
from dse.schedule.explore import LayerSpace, Objective
from dse.sweep.evaluate import evaluate_family
from dse.sweep.space import Space
from dse.sweep.verify import MAX_CYCLES, MIN_CYCLES, pick, spread, verify_front
from dse.sweep.workload import Workload
from dse.workload.grammar import parse_layer

LAYERS = ("conv K=3 C=4 OY=4 OX=3 FY=2 FX=2 name=first", "linear K=5 C=7 name=last lo=0")
WORKLOAD = Workload("two", tuple((layer.name, layer, 1) for layer in map(parse_layer, LAYERS)))
SPACE = Space.from_dict({"rows": [1, 2], "cols": [2], "precision": ["w8a8", "w1a1"], "input_depth": [512], "weight_depth": [512],
                         "output_depth": [512], "psum_depth": [0]})
BOARD = load_board("papilio-pro")


@pytest.fixture(scope="module")
def rows():
    return [row for family in SPACE.enumerate(BOARD, WORKLOAD).families
            for row in evaluate_family(family, WORKLOAD, BOARD).to_pylist() if row["precision"] == "w8a8"]


def test_points_are_as_predicted_each_on_another_layer(rows):
    found = list(verify_front(rows, WORKLOAD, [BOARD], Objective.BOTH, 2, engine="amaranth"))
    assert [entry.index for entry in found] == [row["index"] for row in sorted(rows, key=lambda row: row["seconds"])]
    assert {entry.layer for entry in found} == {"first", "last"}
    assert all(entry.matches and entry.cycles == entry.predicted_cycles > 0 and entry.bytes > 0 for entry in found)


def test_a_clamp_that_one_bit_does_not_have_is_left_out():
    family = next(family for family in SPACE.enumerate(BOARD, WORKLOAD).families if family.design.is_xnor)
    row = {**family.design.to_dict(), "index": 7, "board": BOARD.name, "seconds": 1.0}
    (found,) = verify_front([row], Workload("one", WORKLOAD.layers[1:]), [BOARD], Objective.BOTH, 1, engine="amaranth")
    assert found.matches and (found.index, found.layer) == (7, "last")


@pytest.mark.parametrize("field, text", [("cycles", "cycles"), ("beats_read", "bytes")])
def test_a_prediction_that_is_off_is_a_mismatch(rows, monkeypatch, field, text):
    class Off(LayerSpace):
        def best(self, *args):
            right = super().best(*args)
            return replace(right, **{field: getattr(right, field) + 1})

    monkeypatch.setattr(dse.sweep.layers, "LayerSpace", Off)
    (found,) = verify_front(rows, WORKLOAD, [BOARD], Objective.BOTH, 1, engine="amaranth")
    assert not found.matches
    assert f"{getattr(found, text):,} {text}, {getattr(found, f'predicted_{text}'):,} predicted" in str(found)
    assert ": MISMATCH: " in str(found)


def test_the_line_of_a_match(rows):
    (found,) = verify_front(rows[:1], WORKLOAD, [BOARD], Objective.BOTH, 1, engine="amaranth")
    assert str(found) == (f"point {rows[0]['index']} on papilio-pro, {found.layer}: {found.cycles:,} cycles and "
                          f"{found.bytes:,} bytes as predicted, bits exact (amaranth)")
    assert "3 outputs DIFFER" in str(replace(found, differing_outputs=3)) and not replace(found, differing_outputs=3).matches


def test_points_are_spread_evenly():
    rows = [{"index": at} for at in range(11)]
    assert [row["index"] for row in spread(rows, 3)] == [0, 5, 10]
    assert [row["index"] for row in spread(rows, 1)] == [0]
    assert spread(rows, 11) == spread(rows, 99) == rows
    assert spread([], 3) == []


def test_the_layer_is_short_but_not_too_short_and_new():
    def entry(name: str, cycles: int) -> SimpleNamespace:
        return SimpleNamespace(name=name, cycles=cycles, layers=(name,))

    tiny, short, long, huge = entry("tiny", 5), entry("short", MIN_CYCLES), entry("long", MAX_CYCLES), entry("huge", MAX_CYCLES + 1)
    every = [huge, tiny, long, short]
    order, used = [], set()
    for _ in range(4):
        order.append(pick(every, used).name)
        used.add(order[-1])
    assert order == ["short", "long", "tiny", "short"]  # used once more, before the one that takes too long
    assert pick([huge], set()) is huge


def test_layers_too_large_to_simulate(rows):
    big = parse_layer("conv K=1 C=64 OY=2048 OX=2048 FY=1 FX=1 name=big")
    with pytest.raises(InputError) as caught:
        wide = [{**row, "accumulator_bits": 32} for row in rows]
        list(verify_front(wide, Workload("big", (("big", big, 1),)), [BOARD], Objective.BOTH, 1))
    assert str(caught.value).startswith("--verify: every layer's tensors are too large to simulate; allowed: at most ")
