"""Enumerations against the plain product of the axes, point by point."""

from __future__ import annotations

from itertools import product

import pytest

from boards.errors import InputError
from boards.loader import load_board
from dse.schedule.banks import BANKS
from dse.sweep.space import Space
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.layer import Layer

BOARD = load_board("papilio-pro")
WORKLOAD = Workload("w", (("a", Layer.linear(K=4, C=8), 1),))


def enumerate_space(**data):
    return Space.from_dict(data, where="s").enumerate(BOARD, WORKLOAD)


def points(found) -> list[Design]:
    return [family.point(at) for family in found.families for at in range(len(family))]


def test_every_combination_once_and_what_no_design_can_have_counted():
    axes = {"rows": [1, 2], "cols": [2, 3], "lanes": [1, 2], "precision": ["w8a8", "w1a1"], "multiplier": ["dsp", "lut"],
            "drains": [1, 2, 4], "accumulate": ["tree", "per_column"], "accumulator_bits": [8, 32],
            "input_bytes": [1, 2048, 4096], "output_bytes": [1, 2048]}
    found = enumerate_space(**axes)
    legal, refused = [], 0
    for values in product(*axes.values()):
        options = dict(zip(axes, values, strict=True))
        bits = {"weight_bits": int(options["precision"][1]), "activation_bits": int(options.pop("precision")[3])}
        try:
            legal.append(Design(**options, **bits, bus_bits=16, clock_mhz=100.0))
        except InputError:
            refused += 1
    assert found.points == len(legal) and sum(found.dropped.values()) == refused
    assert len(set(points(found))) == len(legal) and set(points(found)) == set(legal)
    assert set(found.dropped) == {"multiplier", "drains", "accumulate", "accumulator_bits", "input_bytes", "output_bytes"}
    assert found.examples["multiplier"] == "w1a1 uses XNOR-popcount and no multiplier ('dsp')"
    assert found.examples["input_bytes"] == "1 bytes in 1 bank of 16 bits"


def test_positions_follow_each_other_and_the_clock_varies_fastest():
    space = Space.from_dict({"rows": [1, 2], "cols": 1, "clock_mhz": [50, 100], "input_bytes": [1024, 2048], "bus_bits": 16})
    found = space.enumerate(BOARD, WORKLOAD, first_index=100)
    assert [family.first_index for family in found.families] == [100, 102, 104, 106]
    assert [(f.design.rows, f.design.clock_mhz, f.board) for f in found.families] == [
        (1, 50, "papilio-pro"), (1, 100, "papilio-pro"), (2, 50, "papilio-pro"), (2, 100, "papilio-pro")]


def test_expressions_and_conditions_are_those_of_each_point():
    found = enumerate_space(
        rows=[1, 2, 4], cols="rows * 2", lanes=["3 - min(rows, 2)", 1], drains="lanes", input_bytes=["rows * 1024", 2048],
        weight_bytes="input_bytes // 2 if rows > 1 else input_bytes", psum_bytes=[0, 1024],
        where=["rows * cols <= 8", "weight_bytes < 4096 or psum_bytes == 0", "block_rams < usable_block_rams", "dsps > 2"])
    expected = set()
    for rows, lanes_at, input_at, psum in product([1, 2, 4], range(2), range(2), [0, 1024]):
        cols, lanes = rows * 2, (3 - min(rows, 2), 1)[lanes_at]
        inputs = (rows * 1024, 2048)[input_at]
        weights = inputs // 2 if rows > 1 else inputs
        if rows * cols <= 8 and (weights < 4096 or psum == 0) and rows * cols * lanes > 2:
            expected.add((rows, cols, lanes, lanes, inputs, weights, psum))
    got = [(d.rows, d.cols, d.lanes, d.drains, d.input_bytes, d.weight_bytes, d.psum_bytes) for d in points(found)]
    assert len(got) == len(set(got)) and set(got) == expected


def test_conditions_on_resources_see_the_point():
    found = enumerate_space(rows=[1, 4, 8], cols=[1, 2], weight_depth=[512, 4096], where="block_rams * dsps <= 64 and luts < 2500")
    every = enumerate_space(rows=[1, 4, 8], cols=[1, 2], weight_depth=[512, 4096])
    from dse.estimate.resources import estimate_resources
    kept = [d for d in points(every) if d.block_rams * d.dsps <= 64 and estimate_resources(d).luts < 2500]
    assert points(found) == kept and 0 < len(kept) < every.points


def test_depths_are_entries():
    found = enumerate_space(rows=[1, 3], cols=[1, 5], precision=["w8a8", "w4a16"], input_depth=[512, 2048], weight_depth=1024,
                            output_depth=512, psum_depth=[0, 512])
    for family in found.families:
        wanted = set(product([512, 2048], [1024], [512], [0, 512]))
        for at in range(len(family)):
            design = family.point(at)
            depths = tuple(design.bank_shape(kind).depth if getattr(design, f"{kind}_bytes") else 0 for kind in BANKS)
            width = {kind: design.bank_width_bits(kind) * design.bank_count(kind) for kind in BANKS}
            asked = tuple(getattr(design, f"{kind}_bytes") * 8 // width[kind] for kind in BANKS)
            assert asked in wanted and all(depth >= entries for depth, entries in zip(depths, asked, strict=True))


@pytest.mark.parametrize(("data", "message"), [
    ({"rows": [1, 2], "cols": "8 // (rows - 2)"}, "s: cols: divides by zero, got '8 // (rows - 2)'"),
    ({"rows": 1, "cols": 1, "where": "rows < multiplier"},
     "s: where: cannot be computed: text where a number must be, got 'rows < multiplier'"),
    ({"rows": 1, "cols": 1, **{f"{kind}_bytes": {"range": [1024, 3023]} for kind in ("input", "weight", "output")}},
     "s: output_bytes: over 20000000 points; use fewer values"),
])
def test_messages(data, message):
    with pytest.raises(InputError) as caught:
        enumerate_space(**data)
    assert str(caught.value) == message


def test_values_that_are_no_numbers_are_dropped():
    found = enumerate_space(rows=[2, "clock_mhz // 100", "0 - 1", "lanes - 1", "multiplier"], cols=1)
    assert found.points == 1 and found.dropped == {"rows": 4}
