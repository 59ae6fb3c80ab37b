"""Widths of weights: zero points subtracted, in the next width that holds them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dse.workload.onnx_import.models import F32, I32, QONNX, U8, imported, message, node, value, zeros


def conv_integer(tmp_path, weight, zero_point=None, *, data=U8):
    constants = {"w": weight, **({"z": np.asarray(zero_point)} if zero_point is not None else {})}
    found = imported(
        tmp_path,
        [node("ConvInteger", "x w _ z" if zero_point is not None else "x w", "y", "c")],
        [value("x", (1, 3, 8, 8), data)],
        [value("y", None, I32)],
        constants,
    )
    return found.network.array_operators[0].weight_bits


def filled(low: int, high: int, kind=np.uint8) -> np.ndarray:
    """Weights (4, 3, 3, 3) whose every output channel reaches from ``low`` to ``high``."""
    weight = np.full((4, 3, 3, 3), low, kind)
    weight[:, 0, 0, 0] = high
    return weight


@pytest.mark.parametrize(
    ("weight", "zero_point", "bits"),
    [
        (filled(-128, 127, np.int8), None, 8),
        (filled(-128, 127, np.int8), np.int8(0), 8),
        (filled(-128, 127, np.int8), np.int8(1), 16),  # -129
        (filled(0, 255), np.uint8(128), 8),  # -128 .. 127
        (filled(0, 255), np.uint8(127), 16),  # 128
        (filled(0, 255), None, 16),
        (filled(0, 127), None, 8),  # what is there decides, not what could be
        (filled(0, 100), np.uint8(100), 8),
        (filled(0, 255), np.array([128, 128, 128, 128], np.uint8), 8),
        (filled(0, 255), np.array([128, 128, 127, 128], np.uint8), 16),
    ],
)  # one channel suffices
def test_integers_less_their_zero_point(weight, zero_point, bits, tmp_path):
    assert conv_integer(tmp_path, weight, zero_point) == bits


def test_each_channel_has_its_own_zero_point(tmp_path):
    weight = np.full((4, 3, 3, 3), 200, np.uint8)
    weight[0] = 0
    assert conv_integer(tmp_path, weight, np.array([0, 200, 200, 200], np.uint8)) == 8  # 0 and 0, though 200 less 0 would be wide
    assert "c: weights: not one zero point for each output channel, got (3,); allowed: (4,)" in message(
        conv_integer, tmp_path, weight, np.array([1, 2, 3], np.uint8)
    )


def test_weights_that_are_computed_take_what_their_type_needs(tmp_path):
    inputs = [value("x", (1, 3, 8, 8), U8), value("w", (4, 3, 3, 3), U8), value("z", (), U8)]
    found = imported(tmp_path, [node("ConvInteger", "x w _ z", "y", "c")], inputs, [value("y", None, I32)])
    assert found.network.array_operators[0].weight_bits == 16


@pytest.mark.parametrize(
    ("stored", "zero_point", "bits"),
    [(filled(-8, 7, np.int8), np.int8(0), 8), (filled(0, 255), np.uint8(128), 8), (filled(0, 255), np.uint8(0), 16)],
)
def test_behind_dequantisers(stored, zero_point, bits, tmp_path):
    found = imported(
        tmp_path,
        [node("DequantizeLinear", "q s z", "w"), node("Conv", "x w", "y", "c")],
        [value("x", (1, 3, 8, 8))],
        ["y"],
        {"q": stored, "s": np.array(0.1, np.float32), "z": np.array(zero_point)},
    )
    assert found.network.array_operators[0].weight_bits == bits


@pytest.mark.parametrize(
    ("given", "signed", "narrow", "bits"),
    [
        (8, 1, 1, 8),
        (4, 1, 0, 4),
        (3, 1, 1, 4),
        (2, 1, 1, 2),
        (1, 1, 1, 1),
        (4.0, 1, 1, 4),
        (7.5, 1, 1, 8),
        (16, 1, 1, 16),
        (9, 1, 1, 16),
        (8, 0, 0, 16),
        (4, 0, 0, 8),
        (1, 0, 0, 2),
    ],
)
def test_quant_of_qonnx(given, signed, narrow, bits, tmp_path):
    found = imported(
        tmp_path,
        [node("Quant", "w s z b", "q", domain=QONNX, signed=signed, narrow=narrow, rounding_mode="ROUND"), node("Conv", "x q", "y", "c")],
        [value("x", (1, 3, 8, 8))],
        ["y"],
        {"w": zeros(4, 3, 3, 3), "s": np.array(1, np.float32), "z": np.array(0, np.float32), "b": np.array(given, np.float32)},
    )
    assert found.network.array_operators[0].weight_bits == bits


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (17, "c: weights: no width of the array, got '17 bits'; allowed: up to 16 bits"),
        (0, ".bit_width: out of range, got 0.0; allowed: up to 32"),
        (64, ".bit_width: out of range, got 64.0"),
    ],
)
def test_widths_that_nothing_has(given, wrong, tmp_path):
    parts = (
        [node("Quant", "w s z b", "q", domain=QONNX, signed=1, narrow=1), node("Conv", "x q", "y", "c")],
        [value("x", (1, 3, 8, 8))],
        ["y"],
        {"w": zeros(4, 3, 3, 3), "s": np.array(1, np.float32), "z": np.array(0, np.float32), "b": np.array(given, np.float32)},
    )
    assert wrong in message(imported, tmp_path, *parts)


def test_bipolar_weights(tmp_path):
    found = imported(
        tmp_path,
        [node("BipolarQuant", "w s", "q", domain=QONNX), node("Conv", "x q", "y", "c")],
        [value("x", (1, 3, 8, 8))],
        ["y"],
        {"w": zeros(4, 3, 3, 3), "s": np.array(1, np.float32)},
    )
    assert found.network.array_operators[0].precision == "w1a8"


def test_wide_integers_less_zero_points_are_refused(tmp_path):
    parts = (
        [node("DequantizeLinear", "q s z", "w"), node("Conv", "x w", "y", "c")],
        [value("x", (1, 3, 8, 8))],
        ["y"],
        {"q": filled(0, 65535, np.uint16), "s": np.array(0.1, np.float32), "z": np.array(0, np.uint16)},
    )
    assert message(imported, tmp_path, *parts, opset=21).endswith(
        "c: weights: weights less their zero point take more bits than the array has, got 17; allowed: up to 16"
    )


def test_bits_that_the_file_states(tmp_path):
    """ZigZag's attributes of nodes."""
    found = imported(
        tmp_path,
        [node("Conv", "x w", "y", "c", weight_size=4, act_size=16, output_size=2)],
        [value("x", (1, 3, 8, 8))],
        ["y"],
        {"w": zeros(4, 3, 3, 3)},
    )
    operator = found.network.array_operators[0]
    assert (operator.precision, operator.output_bits) == ("w4a16", 2)


@pytest.mark.parametrize("bits", [(None, None), (4, 2), (16, 8)])
def test_floats_have_the_bits_that_are_asked_for(bits, tmp_path):
    found = imported(tmp_path, [node("Conv", "x w", "y", "c")], [value("x", (1, 3, 8, 8), F32)], ["y"], {"w": zeros(4, 3, 3, 3)}, bits=bits)
    assert found.network.array_operators[0].precision == f"w{bits[0] or 8}a{bits[1] or 8}"
