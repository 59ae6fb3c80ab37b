from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.errors import InputError
from dse.estimate.resources import estimate_logic, estimate_resources
from dse.schedule.banks import BANKS
from dse.sweep.enumeration import smallest_banks
from dse.sweep.family import Family, bank_shapes, bank_sizes
from hdl.design import Design


@st.composite
def designs(draw) -> Design:
    """Arrays, precisions and buses; banks that fit any."""
    weight_bits, activation_bits = draw(st.sampled_from([(8, 8), (4, 8), (2, 1), (1, 1), (16, 16), (1, 4)]))
    lanes = draw(st.sampled_from([1, 2, 3, 8]))
    return smallest_banks({
        "rows": draw(st.integers(1, 64)), "cols": draw(st.integers(1, 512 if weight_bits + activation_bits == 2 else 128)),
        "lanes": lanes, "weight_bits": weight_bits, "activation_bits": activation_bits, "multiplier": "lut",
        "accumulator_bits": draw(st.integers(40, 48)), "drains": draw(st.sampled_from([1, lanes])),
        "bus_bits": draw(st.sampled_from([16, 32, 64, 128, 256]))})


def refused(design: Design, **sizes: int) -> bool:
    try:
        design.with_(**sizes)
    except InputError:
        return True
    return False


@settings(max_examples=60)
@given(designs(), st.lists(st.one_of(st.integers(0, 1 << 27), st.integers(0, 20_000)), min_size=1, max_size=6), st.sampled_from(BANKS))
def test_shapes_are_those_of_the_design(design, sizes, kind):
    depths, rams = bank_shapes(design, kind, np.array(sizes))
    for size, depth, blocks in zip(sizes, depths.tolist(), rams.tolist(), strict=True):
        if refused(design, **{f"{kind}_bytes": size}):
            assert depth == -1
        elif kind == "psum" and not size:
            assert (depth, blocks) == (0, 0)
        else:
            sized = design.with_(**{f"{kind}_bytes": size})
            assert (depth, blocks) == (sized.bank_depth(kind), sized.bank_rams(kind))


@settings(max_examples=40)
@given(designs(), st.lists(st.tuples(*[st.sampled_from([512, 600, 1024, 5000])] * 3, st.sampled_from([0, 512, 3000])),
                           min_size=1, max_size=4))
def test_a_family_is_its_points(design, depths):
    width = {kind: design.bank_width_bits(kind) * design.bank_count(kind) for kind in BANKS}
    banks = [[-(-depth * width[kind] // 8) for kind, depth in zip(BANKS, row, strict=True)] for row in depths]
    family = Family("b", design.with_(**bank_sizes(banks[0])), np.array(banks), 7)
    assert len(family) == len(banks) and family.point(0) == family.design
    luts, ffs = estimate_logic(family.design, family.entry_bits())
    for at, (real, rams) in enumerate(zip(family.depths().tolist(), family.block_rams().tolist(), strict=True)):
        point = family.point(at)
        assert [point.input_bytes, point.weight_bytes, point.output_bytes, point.psum_bytes] == banks[at]
        assert real == [point.bank_depth(kind) if kind != "psum" or point.psum_bytes else 0 for kind in BANKS]
        used = estimate_resources(point)
        assert rams == point.block_rams == used.block_rams
        assert (luts[at], ffs[at], family.design.dsps) == (used.luts, used.ffs, used.dsps)


def test_families_travel_between_processes():
    family = Family("b", Design(rows=1, cols=2), np.array([[1024, 1024, 1024, 0]]), 3)
    copy = pickle.loads(pickle.dumps(family))
    assert (copy.board, copy.design, copy.first_index) == ("b", family.design, 3) and (copy.banks == family.banks).all()


@pytest.mark.parametrize("size", [0, (1 << 26) + 1])
def test_sizes_out_of_range(size):
    assert bank_shapes(Design(rows=1, cols=1), "weight", np.array([size]))[0].tolist() == [-1]
