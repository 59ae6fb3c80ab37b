"""The in-place layer text: what it means, what it refuses, and that it round-trips."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.workload.grammar import parse_layer
from hdl.errors import InputError
from hdl.layer import LIMITS, SHORTHANDS, TEXT_KEYS, Layer


def message(text):
    with pytest.raises(InputError) as caught:
        parse_layer(text)
    return str(caught.value)


def test_alexnet_layer_four():
    layer = parse_layer("conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1")
    assert layer == Layer(K=192, C=192, OY=13, OX=13, IY=13, IX=13, FY=3, FX=3, PT=1, PL=1, PB=1, PR=1)
    assert layer.macs == 56070144


def test_every_key():
    layer = parse_layer(" conv\tK=8 C=4  IY=20 IX=30 FY=3 FX=5 SY=2 SX=3 DY=2 DX=1 PT=1 PL=2 PB=3 PR=4 G=2 B=3\n"
                        "name=a/b=c signed=0 out_signed=1 zp=+5 out_zp=-6 lo=-7 hi=8 ")
    assert layer == Layer(name="a/b=c", K=8, C=4, G=2, B=3, IY=20, IX=30, OY=10, OX=11, FY=3, FX=5, SY=2, SX=3, DY=2, PT=1, PL=2,
                          PB=3, PR=4, activations_signed=False, input_zero_point=5, output_zero_point=-6, lo=-7, hi=8)


def test_shorthands():
    layer = parse_layer("conv K=1 C=1 IY=20 IX=30 FY=3 FX=5 S=2 D=2 P=1")
    assert (layer.SY, layer.SX, layer.DY, layer.DX, layer.pads) == (2, 2, 2, 2, (1, 1, 1, 1))


def test_linear():
    assert parse_layer("linear C=4096 K=1000 B=2") == Layer(kind="linear", K=1000, C=4096, B=2)


KEYS = "B, K, C, OY, OX, FY, FX, IY, IX, SY, SX, DY, DX, PT, PL, PB, PR, G, S, D, P, name, signed, out_signed, zp, out_zp, lo, hi"
EXAMPLE = "for example: conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1"


@pytest.mark.parametrize("text, expected", [
    ("", f"layer: empty text, got ''; {EXAMPLE}"),
    (" \n", f"layer: empty text, got ' \\n'; {EXAMPLE}"),
    ("cnov K=1", "layer: unknown operator, got 'cnov'; allowed: conv, linear; nearest: conv"),
    ("CONV K=1", "layer: unknown operator, got 'CONV'; allowed: conv, linear; nearest: conv"),
    ("42", f"layer: unknown operator, got '42'; allowed: conv, linear; {EXAMPLE}"),
    ("conv 42", f"layer: not a KEY=VALUE word, got '42'; {EXAMPLE}"),
    ("conv k=1", f"layer: unknown key, got 'k'; allowed: {KEYS}; nearest: K"),
    ("conv out_sign=1", f"layer: unknown key, got 'out_sign'; allowed: {KEYS}; nearest: out_signed"),
    ("conv =1", f"layer: unknown key, got ''; allowed: {KEYS}"),
    ("conv K=1 K=2", "layer.K: given twice, got 'K=2'"),
    ("conv zp=1 zp=1", "layer.zp: given twice, got 'zp=1'"),
    ("conv C=1 FY=1 FX=1 OY=1 OX=1", "layer.K: missing; conv needs K, C, FY, FX, and OY OX or IY IX"),
    ("conv K=1 C=1 OY=1 OX=1", "layer.FY: missing; conv needs K, C, FY, FX, and OY OX or IY IX"),
    ("conv K=1 C=1 FY=1 FX=1 OY=1", "layer.OX: missing, and so is IX; give OX or IX"),
    ("linear K=1", "layer.C: missing; linear needs K and C"),
    ("linear K=1 C=1 OX=2", "layer.OX: a linear layer has no extent, stride, dilation or padding, got 2; allowed: 1; use conv"),
    ("conv K=x", "layer.K: not a whole number, got 'x'; allowed: 1 to 65536"),
    ("conv K=", "layer.K: not a whole number, got ''; allowed: 1 to 65536"),
    ("conv P=1.5", "layer.P: not a whole number, got '1.5'; allowed: 0 to 63"),
    ("conv K=٣", "layer.K: not a whole number, got '٣'; allowed: 1 to 65536"),
    ("conv zp=x", "layer.zp: not a whole number, got 'x'"),
    ("conv signed=yes", "layer.signed: not a choice, got 'yes'; allowed: 0, 1"),
    ("conv K=-3", "layer.K: out of range, got -3; allowed: 1 to 65536"),
    ("conv OY=0", "layer.OY: out of range, got 0; allowed: 1 to 4095"),
    ("conv K=" + "9" * 18, f"layer.K: out of range, got {'9' * 18}; allowed: 1 to 65536"),
    ("conv K=" + "9" * 30, f"layer.K: out of range, got '{'9' * 30}'; allowed: 1 to 65536"),
    ("conv K=1 C=1 FY=1 FX=1 OY=1 OX=1 S=2 SY=2", "layer.S: given together with SY, got 2; give S or SY SX"),
    ("conv K=1 C=1 FY=3 FX=3 OY=1 OX=1 PB=1 P=1", "layer.P: given together with PB, got 1; give P or PT PL PB PR"),
    ("conv K=1 C=1 FY=3 FX=3 OY=9 IY=9 OX=1",
     "layer.OY: does not agree with (IY=9 + pads 0 - filter 3) // stride 1 + 1 = 7, got 9; allowed: 7; give one of OY and IY"),
    ("conv " + " " * 5000, f"layer: text of 5005 characters; allowed: at most 4096; {EXAMPLE}"),
])
def test_errors(text, expected):
    assert message(text) == expected


def test_not_text():
    assert message(None) == f"layer: must be text, got None; {EXAMPLE}"


@st.composite
def layers(draw):
    def integer(low, high):
        return draw(st.integers(low, high))

    quantisation = {"name": draw(st.from_regex(r"[!-~]{1,20}", fullmatch=True)), "activations_signed": draw(st.booleans()),
                    "outputs_signed": draw(st.booleans()), "input_zero_point": integer(-32768, 65535),
                    "output_zero_point": integer(-32768, 65535), "lo": draw(st.none() | st.integers(-32768, 0)),
                    "hi": draw(st.none() | st.integers(0, 65535))}
    groups = integer(1, 5)
    channels = {"K": groups * integer(1, 9), "C": groups * integer(1, 9), "G": groups, "B": integer(1, 3)}
    if draw(st.booleans()):
        return Layer.linear(**channels, **quantisation)
    dims = {f"{letter}{axis}": integer(1, 4) for letter in "FSD" for axis in "YX"}
    for axis, pads in (("Y", ("PT", "PB")), ("X", ("PL", "PR"))):
        covered = (dims[f"F{axis}"] - 1) * dims[f"D{axis}"] + 1
        dims |= {pad: integer(0, covered - 1) for pad in pads}
        dims[f"I{axis}"] = integer(max(1, covered - sum(dims[pad] for pad in pads)), 40)
    return Layer.conv(**channels, **dims, **quantisation)


@given(layers())
@settings(max_examples=120, deadline=None)
def test_text_round_trips(layer):
    assert parse_layer(str(layer)) == layer


words = st.builds("{}={}".format, st.sampled_from([*LIMITS, *SHORTHANDS, *TEXT_KEYS, "X"]),
                  st.integers(-3, 70000).map(str) | st.integers(1, 6).map(str) | st.text(max_size=3))
almost = st.builds(lambda kind, parts: " ".join([kind, *parts]), st.sampled_from(["conv", "linear"]),
                   st.lists(words, max_size=10))
complete = st.builds("conv K=4 C=4 FY=3 FX=2 {}".format, st.lists(words, max_size=6).map(" ".join))


@given(st.text() | almost | complete)
@settings(max_examples=250, deadline=None)
def test_any_text_is_a_layer_or_one_message(text):
    try:
        layer = parse_layer(text)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert parse_layer(str(layer)) == layer
