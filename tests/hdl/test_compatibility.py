"""What a design can compute exactly: ranges, accumulator width against the worst operands themselves, drains."""

import itertools

import pytest

from hdl.compatibility import (
    accumulation_bound,
    accumulator_bits_needed,
    bias_limit,
    check_layer,
    element_range,
    output_range,
)
from hdl.design import ELEMENT_BITS, Design
from hdl.errors import InputError
from hdl.layer import Layer


def design(**changes):
    values = {"rows": 4, "cols": 4, "multiplier": "lut", "bus_bits": 64, **changes}
    return Design(**values)


def message(design, layer):
    with pytest.raises(InputError) as caught:
        check_layer(design, layer)
    return str(caught.value)


def linear(**changes):
    return Layer.linear(**{"K": 4, "C": 16, **changes})


def test_element_ranges():
    assert [element_range(bits) for bits in ELEMENT_BITS] == [(-1, 1), (-2, 1), (-8, 7), (-128, 127), (-32768, 32767)]
    assert [element_range(bits, False) for bits in ELEMENT_BITS] == [(-1, 1), (0, 3), (0, 15), (0, 255), (0, 65535)]


PRODUCTS = list(itertools.product((1, 2, 4, 8), (1, 2, 4, 8), (True, False)))


def values_of(bits, signed):
    if bits == 1:
        return [-1, 1]
    return range(-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else range(2**bits)


@pytest.mark.parametrize("weight_bits, activation_bits, signed", PRODUCTS)
def test_bound_is_the_largest_product_of_all(weight_bits, activation_bits, signed):
    activations = values_of(activation_bits, signed)
    for zero_point in {0} if activation_bits == 1 else {0, activations[0], activations[-1], activations[1]}:
        if zero_point == 0 and 0 not in activations and activation_bits > 1:
            continue
        layer = linear(C=7, activations_signed=signed, input_zero_point=zero_point)
        largest = max(abs(w * (a - zero_point)) for w in values_of(weight_bits, True) for a in activations)
        assert accumulation_bound(layer, weight_bits, activation_bits) == 7 * largest


def test_accumulator_too_narrow():
    layer = Layer.conv(K=4, C=16, FY=3, FX=3, OY=2, OX=2)
    # 144 * 128 * 128 = 2,359,296 > 2**21 - 1
    assert message(design(accumulator_bits=22), layer) == (
        "design.accumulator_bits: accumulator needs at least 23 bits for 144 products of 8 x 8 bits, not 22; allowed: 23 to 48")
    check_layer(design(accumulator_bits=23), layer)
    assert bias_limit(design(accumulator_bits=23), layer) == 2**22 - 1 - 2359296
    assert accumulator_bits_needed(layer, 8, 8) == 24


def test_zero_point_widens_the_accumulator():
    layer = linear(C=256, input_zero_point=-128)  # 256 * 128 * 255 < 2**23 - 1 < 256 * 128 * 256
    check_layer(design(accumulator_bits=24), layer)
    narrow = message(design(accumulator_bits=23), layer)
    assert "at least 24 bits for 256 products of 8 x 8 bits with zero point -128, not 23" in narrow


def test_no_accumulator_is_wide_enough():
    layer = Layer.conv(K=1, C=65536, FY=64, FX=64, OY=1, OX=1)
    wide = design(weight_bits=16, activation_bits=16, accumulator_bits=48)
    assert message(wide, layer) == (
        "design.accumulator_bits: accumulator needs at least 60 bits for 268435456 products of 16 x 16 bits, not 48; "
        "allowed: at most 48; use a narrower precision or a layer with a shorter reduction")


@pytest.mark.parametrize("weight_bits, activation_bits", list(itertools.product(ELEMENT_BITS, ELEMENT_BITS)))
def test_needed_bits_make_a_legal_design_with_room_for_a_bias(weight_bits, activation_bits):
    for channels in (1, 3, 64):
        layer = linear(C=channels)
        bits = accumulator_bits_needed(layer, weight_bits, activation_bits)
        wide = design(weight_bits=weight_bits, activation_bits=activation_bits, accumulator_bits=bits)
        check_layer(wide, layer)
        assert bias_limit(wide, layer) >= accumulation_bound(layer, weight_bits, activation_bits)


@pytest.mark.parametrize("changes, text", [
    ({"input_zero_point": 128}, "layer.input_zero_point: outside signed 8-bit elements, got 128; allowed: -128 to 127"),
    ({"input_zero_point": -1, "activations_signed": False},
     "layer.input_zero_point: outside unsigned 8-bit elements, got -1; allowed: 0 to 255"),
    ({"output_zero_point": 200}, "layer.output_zero_point: outside signed 8-bit elements, got 200; allowed: -128 to 127"),
    ({"lo": -129}, "layer.lo: outside signed 8-bit outputs, got -129; allowed: -128 to 127"),
    ({"hi": 256, "outputs_signed": False}, "layer.hi: outside unsigned 8-bit outputs, got 256; allowed: 0 to 255"),
])
def test_quantisation_outside_the_type(changes, text):
    assert message(design(), linear(**changes)) == text


@pytest.mark.parametrize("changes, text", [
    ({"input_zero_point": 1}, "layer.input_zero_point: 1-bit elements have no zero point, got 1; allowed: 0"),
    ({"output_zero_point": -1}, "layer.output_zero_point: 1-bit elements have no zero point, got -1; allowed: 0"),
    ({"lo": 0}, "layer.lo: 1-bit outputs are not clamped, got 0; leave it out"),
    ({"hi": -1}, "layer.hi: 1-bit outputs are not clamped, got -1; leave it out"),
])
def test_one_bit_has_no_quantisation(changes, text):
    xnor = design(weight_bits=1, activation_bits=1)
    assert message(xnor, linear(**changes)) == text
    check_layer(xnor, linear(activations_signed=False, lo=-1, hi=1))


def test_output_range():
    assert output_range(design(), linear()) == (-128, 127)
    assert output_range(design(), linear(outputs_signed=False, lo=3)) == (3, 255)
    assert output_range(design(activation_bits=4), linear(hi=6, lo=0)) == (0, 6)


def test_groups_against_drains():
    several = design(drains=4)
    assert several.drains_per_lane == 4
    layer = Layer.conv(K=12, C=4, G=2, FY=1, FX=1, OY=2, OX=2)
    assert message(several, layer) == (
        "layer.K: 6 output channels of a group are not a multiple of the 4 drains of a lane, got 12; "
        "allowed: multiples of 8, with G=2; or make drains at most lanes=1")
    check_layer(several, Layer.conv(K=16, C=4, G=2, FY=1, FX=1, OY=2, OX=2))
    check_layer(several, Layer.conv(K=6, C=4, FY=1, FX=1, OY=2, OX=2))
    check_layer(design(lanes=2, drains=2, output_bytes=4096), layer)
