"""The output stage's integers for real scales."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.onnx_layer.stage import Affine, clamp, multipliers
from hdl.design import MULTIPLIER_BITS, SHIFT_MAX
from tests.dse.workload.onnx_import.models import message


@given(st.lists(st.floats(1e-9, 2.0**16), min_size=1, max_size=8))
def test_multiplier_and_shift_are_as_close_as_17_bits_allow(ratios):
    ratio = np.array(ratios)
    multiplier, shift = multipliers(ratio, "here")
    assert (multiplier < 1 << MULTIPLIER_BITS).all() and (shift >= 0).all() and (shift <= SHIFT_MAX).all()
    found = np.ldexp(multiplier.astype(float), -shift)
    smallest = np.maximum(ratio * 2.0**-MULTIPLIER_BITS, 2.0 ** -(SHIFT_MAX + 1))  # half a step
    assert (np.abs(found - ratio) <= smallest * 1.0001).all()


def test_ends():
    top = float((1 << MULTIPLIER_BITS) - 1)
    multiplier, shift = multipliers(np.array([0.0, 1.0, top, 0.5 - 1e-12, 2.0**-60]), "here")
    assert np.ldexp(multiplier.astype(float), -shift).tolist() == [0.0, 1.0, top, 0.5, 0.0]


@pytest.mark.parametrize("ratio", [-1.0, math.inf, math.nan, 2.0**17])
def test_scales_that_no_output_stage_has(ratio):
    assert message(multipliers, np.array([1.0, ratio]), "m: c").startswith(
        f"m: c: a scale that no output stage has, got {ratio!r}; allowed: "
    )


def test_affine():
    stage = Affine(np.array([1.0, 2.0]), np.array([0.5, 0.0]), -math.inf, math.inf, "y").plus(1).times(np.array([2.0, -1.0]))
    assert (stage.scale.tolist(), stage.offset.tolist()) == ([2.0, -2.0], [3.0, -1.0])


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [
        (-math.inf, math.inf, (0, 255)),
        (0.0, math.inf, (10, 255)),
        (0.0, 6.0, (10, 70)),
        (-5.0, 1000.0, (0, 255)),
        (100.0, 200.0, (255, 255)),
    ],
)
def test_clamp(lo, hi, expected):
    assert clamp(Affine(np.ones(1), np.zeros(1), lo, hi, "y"), 0.1, 10, (0, 255)) == expected
