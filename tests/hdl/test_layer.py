"""Layer: geometry against brute force, construction errors, round trips."""

import random
from dataclasses import FrozenInstanceError

import pytest

from hdl.errors import InputError
from hdl.layer import LIMITS, Layer


def message(**values):
    with pytest.raises(InputError) as caught:
        Layer.conv(**values)
    return str(caught.value)


POINT = {"K": 4, "C": 4, "FY": 1, "FX": 1, "OY": 3, "OX": 3}


def test_defaults_are_one_mac():
    layer = Layer()
    assert (layer.macs, layer.weights, layer.inputs, layer.outputs, layer.pads) == (1, 1, 1, 1, (0, 0, 0, 0))


@pytest.mark.parametrize("values, sizes", [
    # 17x35 input, wide and tall filters, strides and pads that differ an axis: height never gets width's.
    ({"FY": 1, "FX": 7, "SY": 1, "SX": 2, "PL": 3, "PR": 3}, (17, 18)),
    ({"FY": 7, "FX": 1, "SY": 1, "SX": 2, "PT": 3, "PB": 3}, (17, 18)),
    ({"FY": 3, "FX": 3, "SY": 2, "SX": 1, "DY": 1, "DX": 3}, (8, 29)),
])
def test_height_and_width_are_not_swapped(values, sizes):
    layer = Layer.conv(K=5, C=6, IY=17, IX=35, **values)
    assert (layer.OY, layer.OX) == sizes
    assert layer.macs == 5 * 6 * layer.FY * layer.FX * sizes[0] * sizes[1]
    assert layer.weights == 5 * 6 * layer.FY * layer.FX
    assert layer.inputs == 6 * 17 * 35
    assert (layer.effective_fy, layer.effective_fx) == (values["FY"], (values["FX"] - 1) * values.get("DX", 1) + 1)


def test_mobilenet_stem_with_same_padding_of_one_side():
    layer = Layer.conv(K=32, C=3, IY=224, IX=224, FY=3, FX=3, S=2, PB=1, PR=1)
    assert (layer.OY, layer.OX, layer.macs) == (112, 112, 32 * 27 * 112 * 112)


def test_depthwise():
    layer = Layer.conv(K=32, C=32, G=32, OY=28, OX=14, FY=3, FX=3, P=1)
    assert (layer.macs, layer.weights, layer.reduction_length) == (9 * 28 * 14 * 32, 288, 9)


def test_alexnet_first_layer_rounds_down():
    assert Layer.conv(K=96, C=3, IY=224, IX=224, FY=11, FX=11, S=4).OY == 54


def test_linear():
    layer = Layer.linear(K=1000, C=4096, B=8)
    assert (layer.kind, layer.macs, layer.inputs, layer.outputs) == ("linear", 8 * 4096000, 8 * 4096, 8000)


def naive_outputs(size, effective, stride):
    return sum(1 for start in range(0, size, stride) if start + effective <= size)


def test_sizes_against_counting_positions():
    rng = random.Random(7)
    for _ in range(300):
        fy, dy, sy = rng.randint(1, 7), rng.randint(1, 4), rng.randint(1, 5)
        effective = (fy - 1) * dy + 1
        top, bottom = rng.randint(0, effective - 1), rng.randint(0, effective - 1)
        size = rng.randint(max(1, effective - top - bottom), 60)
        layer = Layer.conv(K=1, C=1, FX=1, IX=1, FY=fy, DY=dy, SY=sy, PT=top, PB=bottom, IY=size)
        assert layer.OY == naive_outputs(size + top + bottom, effective, sy)
        # The input that the outputs imply is the smallest that gives them.
        try:
            smallest = Layer.conv(K=1, C=1, FX=1, OX=1, FY=fy, DY=dy, SY=sy, PT=top, PB=bottom, OY=layer.OY)
        except InputError:
            assert (layer.OY - 1) * sy + effective - top - bottom < 1
        else:
            assert smallest.IY <= size and smallest.OY == layer.OY
            assert naive_outputs(smallest.IY - 1 + top + bottom, effective, sy) == layer.OY - 1


def test_round_trips():
    layer = Layer.conv(name="stem/conv1", K=8, C=4, G=2, IY=17, IX=35, FY=3, FX=5, SY=2, SX=1, DX=3, PT=1, PR=2, B=2,
                       activations_signed=False, input_zero_point=3, output_zero_point=-4, lo=-4, hi=100)
    assert eval(repr(layer)) == layer
    assert Layer.from_dict(layer.to_dict()) == layer
    assert str(layer) == ("conv K=8 C=4 IY=17 IX=35 FY=3 FX=5 SY=2 DX=3 PT=1 PR=2 G=2 B=2 "
                          "name=stem/conv1 signed=0 zp=3 out_zp=-4 lo=-4 hi=100")
    assert str(Layer.linear(K=3, C=2)) == "linear K=3 C=2"
    assert str(Layer.conv(K=1, C=1, OY=2, OX=2, FY=3, FX=3, S=2, P=1)) == "conv K=1 C=1 OY=2 OX=2 FY=3 FX=3 S=2 P=1"


def test_frozen_and_hashable():
    layer = Layer.linear(K=3, C=2)
    assert len({layer, Layer.linear(K=3, C=2)}) == 1
    with pytest.raises(FrozenInstanceError):
        layer.K = 4


@pytest.mark.parametrize("dimension", LIMITS)
def test_every_dimension_names_itself_its_value_and_its_range(dimension):
    low, high = LIMITS[dimension]
    for value in (low - 1, high + 1, 10**30):
        assert message(**{**POINT, dimension: value}) == f"layer.{dimension}: out of range, got {value}; allowed: {low} to {high}"
        with pytest.raises(InputError, match=rf"^layer\.{dimension}: out of range"):
            Layer(**{dimension: value})
    for value in ("3", 2.0, True, None, [1]):
        wrong = f"layer.{dimension}: must be a whole number, got {value!r}; allowed: {low} to {high}"
        assert message(**{**POINT, dimension: value}) == wrong


@pytest.mark.parametrize("values, text", [
    ({"OY": 13, "IY": 14, "P": 1, "FY": 3, "FX": 3},
     "layer.OY: does not agree with (IY=14 + pads 2 - filter 3) // stride 1 + 1 = 14, got 13; allowed: 14; "
     "give one of OY and IY"),
    ({"FY": 5, "IY": 4},
     "layer.FY: filter covers 5, more than the padded input of 4, got 5; use a larger IY, more padding or less dilation"),
    ({"OY": 4000, "S": 2}, "layer.OY: implies an input size IY=7999 out of range, got 4000; allowed: IY of 1 to 4095"),
    ({"OX": 1, "FX": 3, "P": 0, "PL": 1}, "layer.P: given together with PL, got 0; give P or PT PL PB PR"),
    ({"S": 0}, "layer.S: out of range, got 0; allowed: 1 to 64"),
    ({"G": 3}, "layer.G: must divide K=4 and C=4, got 3; K leaves 1"),
    ({"G": 4, "C": 6}, "layer.G: must divide K=4 and C=6, got 4; C leaves 2"),
    ({"kind": "Conv"}, "layer.kind: not a kind of layer, got 'Conv'; allowed: conv, linear; nearest: conv"),
    ({"kind": "linear"}, "layer.OY: a linear layer has no extent, stride, dilation or padding, got 3; allowed: 1; use conv"),
    ({"K": 65536, "C": 65536, "OY": 512, "OX": 512},
     "layer: layer too large, got '1125899906842624 MACs'; allowed: under 2**50 MACs"),
    ({"name": "a b"}, "layer.name: not a layer name, got 'a b'; allowed: 1 to 200 printable characters without spaces"),
    ({"name": 3}, "layer.name: must be a string, got 3"),
    ({"lo": 3, "hi": 2}, "layer.lo: above hi=2, got 3; allowed: at most 2"),
    ({"hi": 1 << 16}, "layer.hi: out of range, got 65536; allowed: -32768 to 65535"),
    ({"input_zero_point": None}, "layer.input_zero_point: must be a whole number, got None; allowed: -32768 to 65535"),
    ({"outputs_signed": 1}, "layer.outputs_signed: must be true or false, got 1"),
])
def test_construction_errors(values, text):
    assert message(**{**POINT, **values}) == text


def test_missing_keys():
    needs = "conv needs K, C, FY, FX, and OY OX or IY IX"
    for key in ("K", "C", "FY", "FX"):
        assert message(**{k: v for k, v in POINT.items() if k != key}) == f"layer.{key}: missing; {needs}"
    assert message(K=1, C=1, FY=1, FX=1, OY=1) == "layer.OX: missing, and so is IX; give OX or IX"
    with pytest.raises(InputError, match=r"^layer\.C: missing; linear needs K and C$"):
        Layer.linear(K=1)


def test_from_dict_names_the_source():
    for data, start in [({"k": 3}, "a.yaml: layer: unknown key, got 'k'; allowed: name, kind, B, K,"),
                        ({7: 3}, "a.yaml: layer: unknown key, got 7;"),
                        ({**POINT, "K": 0}, "a.yaml: layer.K: out of range, got 0; allowed: 1 to 65536"),
                        ([1], "a.yaml: layer: must be a mapping of layer dimensions, got [1]")]:
        with pytest.raises(InputError) as caught:
            Layer.from_dict(data, where="a.yaml: layer")
        assert str(caught.value).startswith(start)
    with pytest.raises(InputError, match="nearest: K$"):
        Layer.from_dict({"k": 3})


def test_macs_limit_is_exact():
    values = {"K": 65536, "C": 65536, "FY": 1, "FX": 1, "OY": 512}
    assert Layer.conv(**values, OX=511).macs < 1 << 50
    assert "2**50" in message(**values, OX=512)
