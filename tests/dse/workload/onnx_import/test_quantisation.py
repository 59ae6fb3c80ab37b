"""What quantisers do to values, and which tensors are quantised."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.quantisation import Quantiser, array_width, linear_reference, quant_reference, signed_width
from tests.dse.workload.onnx_import.models import F32, QONNX, imported, message, model, node, value, zeros

F = np.float32


def quant(values, scale=1.0, zero=0.0, bits=4.0, **attributes):
    given = Node(node("Quant", "x s z b", "y", domain=QONNX, **attributes), "q", "m: q")
    return quant_reference(given, np.asarray(values, F), np.asarray(scale, F), np.asarray(zero, F), np.asarray(bits, F)).tolist()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("ROUND", [-2, -2, 0, 0, 2, 2]),
        ("HALF_EVEN", [-2, -2, 0, 0, 2, 2]),
        ("FLOOR", [-3, -2, -1, 0, 1, 2]),
        ("CEIL", [-2, -1, 0, 1, 2, 3]),
        ("ROUND_TO_ZERO", [-2, -1, 0, 0, 1, 2]),
        ("DOWN", [-2, -1, 0, 0, 1, 2]),
        ("UP", [-3, -2, -1, 1, 2, 3]),
        ("HALF_UP", [-3, -2, -1, 1, 2, 3]),
        ("HALF_DOWN", [-2, -1, 0, 0, 1, 2]),
    ],
)
def test_rounding_of_halves(mode, expected):
    assert quant([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], signed=1, narrow=0, rounding_mode=mode) == expected


@pytest.mark.parametrize(
    ("bits", "signed", "narrow", "ends"),
    [
        (8, 1, 0, [-128, 127]),
        (8, 1, 1, [-127, 127]),
        (8, 0, 0, [0, 255]),
        (8, 0, 1, [0, 254]),
        (2, 1, 1, [-1, 1]),
        (1, 1, 1, [-1, 1]),
        (1, 0, 0, [0, 1]),
    ],
)
def test_ends_of_the_range(bits, signed, narrow, ends):
    assert quant([-1000, 1000], bits=bits, signed=signed, narrow=narrow) == ends
    is_bipolar = bits == signed == 1
    assert list(Quantiser(bits, bool(signed), "", "", narrow=bool(narrow), is_bipolar=is_bipolar).range()) == ends


def test_scales_and_zero_points():
    assert quant([1.0, -1.0, 0.3], 0.25, 2.0, 4, signed=0, narrow=0) == [1.0, -0.5, 0.25]
    bipolar = Node(node("BipolarQuant", "x s", "y", domain=QONNX), "q", "q")
    assert quant_reference(bipolar, np.array([-0.1, 0.0, 3.0], F), np.array(0.5, F)).tolist() == [-0.5, 0.5, 0.5]
    assert message(quant, [1], rounding_mode="AWAY", signed=1, narrow=0).startswith("m: q.rounding_mode: not a rounding mode, got 'AWAY'")


@pytest.mark.parametrize(("axis", "shape", "block"), [(1, (), 0), (0, (3,), 0), (1, (4,), 0), (-1, (5,), 0), (2, (3, 4, 2), 3)])
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_linear_quantisers_are_those_of_onnx_runtime(axis, shape, block, kind):
    rng = np.random.default_rng(1)
    x, scale = (rng.normal(size=(3, 4, 5)) * 10).astype(F), rng.uniform(0.05, 0.2, shape).astype(F)
    zero = rng.integers(0, 9, shape).astype(kind)
    attributes = {"axis": axis} | ({"block_size": block} if block else {})
    nodes = [node("QuantizeLinear", "x s z", "q", **attributes), node("DequantizeLinear", "q s z", "y", **attributes)]
    proto = model(
        nodes,
        [value("x", x.shape)],
        [value("y", None), value("q", None, helper.np_dtype_to_tensor_dtype(np.dtype(kind)))],
        {"s": scale, "z": zero},
        opset=21,
        ir_version=10,
    )
    expected, integers = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    quantize, dequantize = (Node(entry, "q", "q") for entry in nodes)
    found = linear_reference(quantize, np.dtype(kind), x, scale, zero)
    np.testing.assert_array_equal(found, integers)
    np.testing.assert_array_equal(linear_reference(dequantize, np.dtype(F), found, scale, zero), expected)


def test_scales_that_fit_nothing():
    dequantize = Node(node("DequantizeLinear", "q s", "y", axis=5), "d", "m: d")
    assert (
        message(linear_reference, dequantize, np.dtype(F), zeros(2, 3), zeros(3))
        == "m: d.axis: no axis of the tensor, got 5; allowed: 2 axes"
    )
    dequantize = Node(node("DequantizeLinear", "q s", "y"), "d", "m: d")
    assert "a scale for neither the tensor, its channels nor its blocks, got (2,)" in message(
        linear_reference, dequantize, np.dtype(F), zeros(2, 3), zeros(2)
    )


def test_widths():
    assert [array_width(bits) for bits in (1, 2, 3, 4, 5, 8, 9, 16, 17)] == [1, 2, 4, 4, 8, 8, 16, 16, 17]
    assert [signed_width(*ends) for ends in ((0, 0), (-1, 0), (0, 1), (-2, 1), (-128, 127), (-129, 0), (0, 128))] == [1, 1, 2, 2, 8, 9, 9]


# -- which tensors ------------------------------------------------------------------------------------------------------


def qdq(tmp_path, *, between=(), kind=np.uint8, last="r"):
    """x -> Q -> DQ -> Conv -> .. -> Q -> DQ -> Conv."""
    constants = {"s": np.array(0.1, F), "z": np.array(3, kind), "w": zeros(4, 3, 1, 1), "v": zeros(2, 4, 1, 1)}
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Conv", "d w", "c", "one"),
        *between,
        node("QuantizeLinear", f"{last} s z", "rq"),
        node("DequantizeLinear", "rq s z", "rd"),
        node("Conv", "rd v", "y", "two"),
    ]
    return imported(tmp_path, nodes, [value("x", (1, 3, 4, 4))], ["y"], constants, opset=21)


@pytest.mark.parametrize(("kind", "bits", "signed"), [(np.uint8, 8, False), (np.int8, 8, True), (np.int16, 16, True)])
def test_pairs_of_quantisers_are_part_of_the_layers(kind, bits, signed, tmp_path):
    network = qdq(tmp_path, between=[node("Relu", "c", "r")], kind=kind).network
    one, two = network.array_operators
    assert network.host_operators() == ()
    assert (one.folded, one.output_bits, one.activation_bits, two.activation_bits) == (("relu",), bits, bits, bits)
    assert (one.layer.activations_signed, one.layer.input_zero_point) == (signed, 3)
    assert (one.layer.outputs_signed, one.layer.output_zero_point, one.layer.lo) == (signed, 3, 3)
    assert network.inputs[0].output.bits == bits


def test_nothing_is_folded_across_a_quantiser(tmp_path):
    constants = {"s": np.array(0.1, F), "z": np.array(3, np.uint8), "w": zeros(4, 3, 1, 1), "b": zeros(4, 1, 1)}
    nodes = [
        node("Conv", "x w", "c", "one"),
        node("QuantizeLinear", "c s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Add", "d b", "a", "bias"),
        node("Relu", "a", "y"),
    ]
    network = imported(tmp_path, nodes, [value("x", (1, 3, 4, 4))], ["y"], constants).network
    assert network.array_operators[0].folded == ()
    assert [host.op for host in network.host_operators()] == ["add"] and network.operator("bias").folded == ("relu",)


def test_a_tensor_with_two_readers_of_which_one_quantises(tmp_path):
    nodes = [
        node("Conv", "x w", "c", "one"),
        node("QuantizeLinear", "c s z", "q", "quantise"),
        node("DequantizeLinear", "q s z", "d"),
        node("Conv", "d w", "a", "two"),
        node("Add", "a c", "y"),
    ]
    network = imported(
        tmp_path,
        nodes,
        [value("x", (1, 3, 4, 4))],
        ["y"],
        {"w": zeros(3, 3, 1, 1), "s": np.array(0.1, F), "z": np.array(0, np.int16)},
        bits=(8, 8),
        opset=21,
    ).network
    assert [host.op for host in network.host_operators()] == ["quantize", "add"]
    assert [operator.precision for operator in network.array_operators] == ["w8a8", "w8a16"]


def test_float_quantisers_are_left_alone(tmp_path):
    found = imported(
        tmp_path,
        [node("Cast", "x", "h", to=TensorProto.FLOAT16), node("Cast", "h", "f", to=F32), node("Conv", "f w", "y")],
        [value("x", (1, 3, 4, 4))],
        ["y"],
        {"w": zeros(3, 3, 1, 1)},
    )
    assert found.network.host_operators() == ()
