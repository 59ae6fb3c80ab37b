"""The golden model against loops in plain Python, hand-computed requantisation and Python's integers."""

import itertools
import random
import time
from dataclasses import replace
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.workload.grammar import parse_layer
from hdl.compatibility import accumulator_bits_needed, bias_limit, element_range
from hdl.design import ELEMENT_BITS, Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.golden import LayerTensors, accumulate, binarize, check_tensors, golden, random_tensors, requantize


def make_design(layer, weight_bits=8, activation_bits=8, **changes):
    bits = accumulator_bits_needed(layer, weight_bits, activation_bits)
    return Design(**{"rows": 4, "cols": 4, "weight_bits": weight_bits, "activation_bits": activation_bits,
                     "accumulator_bits": bits, "multiplier": "lut", "bus_bits": 64, **changes})


def naive(layer, tensors):
    """Seven loops in Python's integers, straight from the definition."""
    inputs, weights = tensors.input.tolist(), tensors.weight.tolist()
    width_in, width_out = layer.C // layer.G, layer.K // layer.G
    result = np.zeros((layer.B, layer.K, layer.OY, layer.OX), np.int64)
    for b, k, oy, ox in itertools.product(*map(range, result.shape)):
        total = 0
        for c, fy, fx in itertools.product(range(width_in), range(layer.FY), range(layer.FX)):
            y, x = oy * layer.SY + fy * layer.DY - layer.PT, ox * layer.SX + fx * layer.DX - layer.PL
            if 0 <= y < layer.IY and 0 <= x < layer.IX:
                activation = inputs[b][k // width_out * width_in + c][y][x]
                total += weights[k][c][fy][fx] * (activation - layer.input_zero_point)
        result[b, k, oy, ox] = total
    return result


GEOMETRIES = [
    "linear K=5 C=7 B=3",
    "conv K=2 C=3 IY=17 IX=35 FY=1 FX=7 SY=1 SX=2 PL=3 PR=3",
    "conv K=2 C=3 IY=17 IX=35 FY=7 FX=1 SY=1 SX=2 PT=3 PB=3",
    "conv K=2 C=2 IY=15 IX=19 FY=3 FX=3 SY=2 SX=1 DY=1 DX=3",
    "conv K=3 C=3 IY=16 IX=16 FY=3 FX=3 S=2 PB=1 PR=1",
    "conv K=32 C=32 G=32 OY=4 OX=3 FY=3 FX=3 P=1",
    "conv K=6 C=4 G=2 B=2 OY=3 OX=4 FY=2 FX=3 PT=1 PR=2 zp=-3",
    "conv K=4 C=8 G=4 OY=6 OX=7 FY=3 FX=3 D=2 P=4 zp=100 signed=0",
    "conv K=1 C=1 OY=3 OX=3 FY=3 FX=3 S=4",
]


@pytest.mark.parametrize("text", GEOMETRIES)
def test_accumulate_geometry(text):
    layer = parse_layer(text)
    tensors = random_tensors(make_design(layer), layer, 1)
    assert np.array_equal(accumulate(layer, tensors), naive(layer, tensors))


@pytest.mark.parametrize("weight_bits, activation_bits", list(itertools.product(ELEMENT_BITS, ELEMENT_BITS)))
def test_accumulate_precisions(weight_bits, activation_bits):
    for signed in (True, False):
        low, high = element_range(activation_bits, signed)
        zero_point = 0 if activation_bits == 1 else (low + high) // 3
        layer = Layer.conv(K=2, C=2, IY=4, IX=5, FY=3, FX=2, PT=1, PL=1, activations_signed=signed, input_zero_point=zero_point)
        tensors = random_tensors(make_design(layer, weight_bits, activation_bits), layer, 2)
        assert np.array_equal(accumulate(layer, tensors), naive(layer, tensors))


def random_layer(rng):
    groups = rng.choice([1, 1, 2, 3])
    dims = {"K": groups * rng.randint(1, 3), "C": groups * rng.randint(1, 3), "G": groups, "B": rng.randint(1, 2)}
    for axis, pads in (("Y", ("PT", "PB")), ("X", ("PL", "PR"))):
        size, dilation = rng.randint(1, 4), rng.randint(1, 3)
        covered = (size - 1) * dilation + 1
        dims |= {f"F{axis}": size, f"D{axis}": dilation, f"S{axis}": rng.randint(1, 3)}
        dims |= {pad: rng.randint(0, covered - 1) for pad in pads}
        dims[f"I{axis}"] = rng.randint(max(1, covered - sum(dims[pad] for pad in pads)), 9)
    return Layer.conv(**dims, input_zero_point=rng.randint(-128, 127))


def test_accumulate_random_layers():
    rng = random.Random(3)
    for seed in range(60):
        layer = random_layer(rng)
        tensors = random_tensors(make_design(layer), layer, seed)
        assert np.array_equal(accumulate(layer, tensors), naive(layer, tensors)), layer


def test_sums_beyond_float64_stay_exact():
    layer = Layer.linear(K=1, C=3)
    big = np.array([2**40 + 1, -(2**40), 1], np.int64)
    tensors = LayerTensors(input=big.reshape(1, 3, 1, 1), weight=np.array([2**20 + 1, 2**20, 1]).reshape(1, 3, 1, 1),
                           bias=np.zeros(1, np.int64), multiplier=np.zeros(1, np.int64), shift=np.zeros(1, np.int64))
    assert accumulate(layer, tensors).item() == (2**40 + 1) * (2**20 + 1) - 2**60 + 1
    with pytest.raises(InputError, match="values too large for an exact sum"):
        accumulate(layer, replace(tensors, input=tensors.input << 5))


def test_extremes_fill_the_accumulator():
    layer = Layer.conv(K=1, C=64, FY=3, FX=3, OY=1, OX=1, activations_signed=False)
    design = make_design(layer)
    limit = bias_limit(design, layer)
    shape = (1, 64, 3, 3)
    tensors = LayerTensors(input=np.full(shape, 255), weight=np.full(shape, -128), bias=np.array([-limit]),
                           multiplier=np.array([1]), shift=np.array([0]))
    check_tensors(design, layer, tensors)
    assert accumulate(layer, tensors).item() - limit == -(576 * 255 * 128) - limit == -(2 ** (design.accumulator_bits - 1) - 1)
    with pytest.raises(InputError, match=r"tensors\.bias\[0\]: out of range"):
        check_tensors(design, layer, replace(tensors, bias=np.array([-limit - 1])))


# -- output stage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acc, multiplier, shift, zero_point, expected", [
    (5, 1, 1, 0, 3),  # 2.5 rounds up
    (-5, 1, 1, 0, -2),  # -2.5 rounds up
    (-3, 1, 1, 0, -1),  # -1.5 rounds up
    (3, 1, 2, 0, 1),  # 0.75
    (1, 1, 2, 0, 0),  # 0.25
    (2, 1, 2, 0, 1),  # 0.5
    (-2, 1, 2, 0, 0),  # -0.5
    (7, 3, 0, 0, 21),  # no rounding at shift 0
    (-7, 3, 0, 5, -16),
    (100, 1, 0, 100, 127),  # clamps after the zero point is added
    (-100, 1, 0, -100, -128),
    (1000, 0, 7, -9, -9),
    (1 << 40, 1, 40, 0, 1),
    ((1 << 46) - 1, 1, 47, 0, 0),
    (1 << 46, 1, 47, 0, 1),
    (-(1 << 46), 1, 47, 0, 0),
    (-(1 << 46) - 1, 1, 47, 0, -1),
    ((1 << 47) - 1, (1 << 17) - 1, 47, 0, 127),  # 64-bit product and more
    (-(1 << 47), (1 << 17) - 1, 47, 0, -128),
    (-(1 << 47), 100, 47, 0, -100),
])
def test_requantize_by_hand(acc, multiplier, shift, zero_point, expected):
    result = requantize(np.array([[[[acc]]]]), np.array([multiplier]), np.array([shift]), zero_point, -128, 127)
    assert result.dtype == np.int64 and result.tolist() == [[[[expected]]]]


@given(st.lists(st.tuples(st.integers(-(1 << 47), (1 << 47) - 1), st.integers(0, (1 << 17) - 1), st.integers(0, 47)), min_size=1,
                max_size=8), st.integers(-32768, 32767))
@settings(max_examples=300, deadline=None)
def test_requantize_is_round_half_up(cases, zero_point):
    acc, multiplier, shift = (np.array(column) for column in zip(*cases, strict=True))
    result = requantize(acc.reshape(1, -1, 1, 1), multiplier, shift, zero_point, -32768, 32767)
    exact = [floor(Fraction(a * m, 2**s) + Fraction(1, 2)) + zero_point for a, m, s in cases]
    assert result.ravel().tolist() == [min(max(value, -32768), 32767) for value in exact]


def test_relu_is_the_lower_clamp():
    layer = Layer.linear(K=2, C=1, lo=0, hi=6)
    one = np.ones(2, np.int64)
    tensors = LayerTensors(input=np.array([10]).reshape(1, 1, 1, 1), weight=np.array([-3, 3]).reshape(2, 1, 1, 1), bias=0 * one,
                           multiplier=one, shift=0 * one)
    assert golden(make_design(layer), layer, tensors).ravel().tolist() == [0, 6]


def test_bias_is_added_before_scaling():
    layer = Layer.linear(K=1, C=1, output_zero_point=1)
    tensors = LayerTensors(input=np.full((1, 1, 1, 1), 10), weight=np.full((1, 1, 1, 1), 3), bias=np.array([-9]),
                           multiplier=np.array([3]), shift=np.array([2]))
    assert golden(make_design(layer), layer, tensors).item() == (21 * 3 + 2) // 4 + 1


def test_binarize():
    acc = np.array([[-2, 3], [4, 4], [5, -5]]).reshape(3, 2, 1, 1)
    result = binarize(acc, np.array([4, 4]), np.array([0, 1]))
    assert result.reshape(3, 2).tolist() == [[-1, 1], [1, -1], [1, 1]]


@pytest.mark.parametrize("weight_bits", ELEMENT_BITS)
def test_golden_with_thresholds(weight_bits):
    layer = parse_layer("conv K=9 C=5 IY=5 IX=6 FY=3 FX=3 P=1")
    design = make_design(layer, weight_bits, 1)
    tensors = random_tensors(design, layer, 4)
    acc, result = naive(layer, tensors), golden(design, layer, tensors)
    for k in range(9):
        above = acc[:, k] >= tensors.threshold[k]
        assert np.array_equal(result[:, k] == 1, ~above if tensors.flip[k] else above)
    assert set(np.unique(result)) == {-1, 1}


def test_golden_needs_thresholds():
    layer = Layer.linear(K=2, C=2)
    design = make_design(layer, 1, 1)
    tensors = replace(random_tensors(design, layer, 0), flip=None)
    with pytest.raises(InputError, match="^tensors: 1-bit outputs need threshold and flip$"):
        golden(design, layer, tensors)


# -- random tensors and checks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight_bits, activation_bits, signed",
                         list(itertools.product(ELEMENT_BITS, ELEMENT_BITS, (True, False))))
def test_random_tensors_are_legal_varied_and_repeatable(weight_bits, activation_bits, signed):
    layer = Layer.conv(K=16, C=8, OY=6, OX=7, FY=3, FX=3, P=1, activations_signed=signed, outputs_signed=signed)
    design = make_design(layer, weight_bits, activation_bits)
    tensors = random_tensors(design, layer, 5)
    check_tensors(design, layer, tensors)
    again = random_tensors(design, layer, 5).arrays()
    assert all(np.array_equal(array, again[name]) for name, array in tensors.arrays().items())
    assert not np.array_equal(tensors.input, random_tensors(design, layer, 6).input)
    for array, limits in ((tensors.input, element_range(activation_bits, signed)), (tensors.weight, element_range(weight_bits))):
        assert (array.min(), array.max()) == limits
    result = golden(design, layer, tensors)
    low, high = element_range(activation_bits, signed)
    assert low <= result.min() and result.max() <= high
    counts = np.unique(result, return_counts=True)[1]
    assert counts.max() / result.size < (0.75 if activation_bits <= 2 else 0.35)
    assert len(counts) >= min(high - low + 1, 40) * 0.9 or activation_bits == 1
    assert len(set(tensors.shift.tolist())) > 3 or activation_bits == 1


def test_random_outputs_of_a_linear_layer_spread_too():
    layer = Layer.linear(K=256, C=100)
    design = make_design(layer)
    result = golden(design, layer, random_tensors(design, layer, 3))
    assert np.histogram(result, bins=8, range=(-128, 127))[0].min() > 10


def test_random_tensors_with_a_tight_accumulator_and_a_point_clamp():
    layer = Layer.linear(K=8, C=2, lo=7, hi=7, output_zero_point=7)
    design = make_design(layer, accumulator_bits=18)
    tensors = random_tensors(design, layer, 1)
    check_tensors(design, layer, tensors)
    assert np.abs(tensors.bias).max() == bias_limit(design, layer)
    assert np.unique(golden(design, layer, tensors)).tolist() == [7]


def test_too_large_to_simulate():
    layer = Layer.linear(K=65536, C=65536)
    with pytest.raises(InputError) as caught:
        random_tensors(make_design(layer), layer, 0)
    assert str(caught.value) == ("layer: weight tensor too large to simulate, got '4294967296 elements'; "
                                 "allowed: at most 134217728")


SMALL = Layer.conv(K=2, C=2, OY=2, OX=2, FY=1, FX=1, output_zero_point=1)


@pytest.mark.parametrize("name, value, text", [
    ("input", np.zeros((1, 2, 2, 3), np.int64), "tensors.input: wrong shape, got (1, 2, 2, 3); allowed: (1, 2, 2, 2)"),
    ("weight", np.zeros((2, 2, 1, 1)), "tensors.weight: must be an int64 array, got 'float64'"),
    ("bias", [0, 0], "tensors.bias: must be an int64 array, got 'list'"),
    ("weight", np.array([1, 2, 128, 129]).reshape(2, 2, 1, 1),
     "tensors.weight[1, 0, 0, 0]: out of range, got 128; allowed: -128 to 127"),
    ("multiplier", np.array([0, 1 << 17]), "tensors.multiplier[1]: out of range, got 131072; allowed: 0 to 131071"),
    ("shift", np.array([48, 0]), "tensors.shift[0]: out of range, got 48; allowed: 0 to 47"),
    ("shift", np.array([-1, 0]), "tensors.shift[0]: out of range, got -1; allowed: 0 to 47"),
    ("flip", np.array([0, 0]), "tensors.flip: only 1-bit outputs have one, and these are 8-bit; leave it out"),
])
def test_check_tensors(name, value, text):
    design = make_design(SMALL)
    tensors = random_tensors(design, SMALL, 0)
    with pytest.raises(InputError) as caught:
        check_tensors(design, SMALL, replace(tensors, **{name: value}))
    assert str(caught.value) == text


@pytest.mark.parametrize("name, value, text", [
    ("input", np.array([1, -1, 0, 1] * 2).reshape(1, 2, 2, 2), "tensors.input[0, 0, 1, 0]: out of range, got 0; allowed: -1, 1"),
    ("bias", np.array([0, 1]), "tensors.bias[1]: out of range, got 1; allowed: 0 to 0"),
    ("threshold", None, "tensors.threshold: must be an int64 array, got 'NoneType'"),
    ("threshold", np.array([0, 128]), "tensors.threshold[1]: out of range, got 128; allowed: -128 to 127"),
    ("flip", np.array([0, 2]), "tensors.flip[1]: out of range, got 2; allowed: 0 to 1"),
])
def test_check_one_bit_tensors(name, value, text):
    layer = replace(SMALL, output_zero_point=0)
    design = make_design(layer, 1, 1)
    assert design.accumulator_bits == 8
    tensors = random_tensors(design, layer, 0)
    with pytest.raises(InputError) as caught:
        check_tensors(design, layer, replace(tensors, **{name: value}))
    assert str(caught.value) == text


def test_a_layer_of_56_million_macs_is_quick():
    layer = parse_layer("conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1")
    design = make_design(layer)
    tensors = random_tensors(design, layer, 0)
    start = time.perf_counter()
    golden(design, layer, tensors)
    assert time.perf_counter() - start < 5
