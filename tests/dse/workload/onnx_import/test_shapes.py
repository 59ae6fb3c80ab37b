"""Shapes by inference, for sizes that the user gives."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from dse.workload.onnx_import.graph import read_graph
from dse.workload.onnx_import.reading import read_model
from dse.workload.onnx_import.shapes import infer_shapes
from tests.dse.workload.onnx_import.models import F32, I64, QONNX, U8, message, model, node, save, value, zeros

W = {"w": zeros(4, 3, 3, 3)}
DYNAMIC = [value("x", ("batch", 3, "height", None))]


def shapes_of(tmp_path, proto, given=None):
    return infer_shapes(read_graph(read_model(save(tmp_path, proto))), given)


def test_inputs_without_sizes_are_asked_for_by_name(tmp_path):
    proto = model([node("Conv", "x w", "y")], DYNAMIC, ["y"], W)
    path = tmp_path / "model.onnx"
    assert message(shapes_of, tmp_path, proto) == (
        f"{path}: x: an input without a fixed size, got ['batch', '3', 'height', '?']; "
        "give it: --input-shape x=1x3xNxN, with a number for each N"
    )
    assert shapes_of(tmp_path, proto, {"x": (2, 3, 8, 9)}).sizes["y"] == (2, 4, 6, 7)
    assert message(shapes_of, tmp_path, proto, {"X": (1,)}) == "--input-shape: the model has no such input, got 'X'; allowed: x"
    assert message(shapes_of, tmp_path, proto, {"x": (1, 3)}) == (
        "--input-shape: the model's input x has 4 sizes, got '1x3'; allowed: sizes for ['batch', '3', 'height', '?']"
    )
    assert message(shapes_of, tmp_path, proto, {"x": (1, 3, 0, 8)}).startswith(
        "--input-shape: not a shape, got '1x3x0x8'; allowed: 1 to 8 sizes"
    )


@pytest.mark.parametrize("size", [0, -1, -(1 << 62), 1 << 40])
def test_impossible_sizes_in_the_file_count_as_none(size, tmp_path):
    proto = model([node("Conv", "x w", "y")], [value("x", (1, 3, 8, size))], ["y"], W)
    assert "an input without a fixed size, got ['1', '3', '8', " in message(shapes_of, tmp_path, proto)


def test_given_sizes_replace_fixed_ones_and_claims_about_what_follows(tmp_path):
    proto = model(
        [node("Conv", "x w", "c"), node("Relu", "c", "y")],
        [value("x", (1, 3, 8, 8))],
        [value("y", (1, 4, 6, 6))],
        W,
        value_info=[value("c", (1, 4, 6, 6))],
    )
    assert shapes_of(tmp_path, proto, {"x": (1, 3, 10, 5)}).sizes["y"] == (1, 4, 8, 3)


def test_inputs_that_nobody_reads_need_no_size(tmp_path):
    proto = model([node("Conv", "x w", "y")], [value("x", (1, 3, 8, 8)), value("unused", ("n",))], ["y"], W)
    assert shapes_of(tmp_path, proto).sizes["y"] == (1, 4, 6, 6)


@pytest.mark.parametrize("opset", [11, 17])
def test_sizes_computed_from_sizes(opset, tmp_path):
    """A flattening as exporters write it: Shape, Slice and Concat around constants in nodes, which inference alone does not follow."""
    index = lambda name, at: node("Constant", "", name, value=helper.make_tensor("", I64, [1], [at]))  # noqa: E731
    last = (
        [node("Unsqueeze", "scalar", "first", axes=[0])] if opset == 11 else [index("zero", 0), node("Unsqueeze", "scalar zero", "first")]
    )
    proto = model(
        [
            node("Conv", "x w", "c"),
            node("Shape", "c", "s"),
            index("from", 0),
            index("to", 1),
            node("Slice", "s from to", "cut"),
            node("Constant", "", "none", value=helper.make_tensor("", I64, [], [0])),
            node("Gather", "cut none", "scalar"),
            *last,
            index("rest", -1),
            node("Concat", "first rest", "size", axis=0),
            node("Cast", "size", "size2", to=I64),
            node("Reshape", "c size2", "y"),
        ],
        DYNAMIC,
        ["y"],
        W,
        opset=opset,
    )
    assert shapes_of(tmp_path, proto, {"x": (2, 3, 8, 8)}).sizes["y"] == (2, 144)


def test_operators_of_other_domains(tmp_path):
    quant = dict(signed=1, narrow=0, rounding_mode="ROUND")
    microsoft = "com.microsoft"
    proto = model(
        [
            node("Quant", "w s z b", "qw", domain=QONNX, **quant),
            node("Conv", "x qw", "c"),
            node("BipolarQuant", "c s", "d", domain=QONNX),
            node("QuantizeLinear", "d s uz", "q"),
            node("QLinearAdd", "q s uz q s uz s uz", "a", domain=microsoft),
            node("QLinearConcat", "s uz a s uz q s uz", "k", domain=microsoft, axis=1),
            node("QLinearGlobalAveragePool", "k s uz s uz", "g", domain=microsoft, channels_last=0),
            node("QLinearAveragePool", "k s uz s uz", "p", domain=microsoft, kernel_shape=[2, 2], strides=[2, 2]),
        ],
        [value("x", (1, 3, 8, 8))],
        [value("g", None, U8), value("p", None, U8)],
        {**W, "s": np.array(1, np.float32), "z": np.array(0, np.float32), "b": np.array(4, np.float32), "uz": np.array(0, np.uint8)},
    )
    found = shapes_of(tmp_path, proto)
    assert [found.sizes[name] for name in ("c", "a", "k", "g", "p")] == [
        (1, 4, 6, 6),
        (1, 4, 6, 6),
        (1, 8, 6, 6),
        (1, 8, 1, 1),
        (1, 8, 3, 3),
    ]
    assert found.types["a"] == U8


def test_what_the_file_says_of_unknown_operators(tmp_path):
    nodes = [node("Mystery", "x", "m", domain="somebody"), node("Conv", "m w", "y")]
    stated = model(nodes, [value("x", (1, 5))], ["y"], W, value_info=[value("m", (1, 3, 8, 8))])
    assert shapes_of(tmp_path, stated).sizes["y"] == (1, 4, 6, 6)
    silent = model(nodes, [value("x", (1, 5))], ["y"], W)
    assert "y" not in shapes_of(tmp_path, silent).sizes


def test_shapes_that_do_not_agree_are_unknown(tmp_path):
    proto = model([node("Concat", "x w", "y", axis=0)], [value("x", (1, 7, 8, 8))], ["y"], W)
    assert "y" not in shapes_of(tmp_path, proto).sizes


def test_types(tmp_path):
    proto = model([node("Cast", "x", "i", to=TensorProto.INT8), node("Cast", "i", "y", to=F32)], [value("x", (2,))], ["y"])
    found = shapes_of(tmp_path, proto)
    assert (found.types["x"], found.types["i"]) == (F32, TensorProto.INT8)


def test_no_bombs(tmp_path):
    """Shapes that say terabytes, of which nothing is made."""
    proto = model(
        [node("ConstantOfShape", "size", "big"), node("Conv", "x big", "y", kernel_shape=[1, 1])],
        [value("x", (1, 1 << 16, 8, 8))],
        ["y"],
        {"size": np.array([1 << 16, 1 << 16, 1, 1])},
    )
    assert shapes_of(tmp_path, proto).sizes["y"] == (1, 1 << 16, 8, 8)
