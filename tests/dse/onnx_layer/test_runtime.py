"""What ONNX Runtime is asked, and with which inputs."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from onnx import TensorProto, helper

from dse.onnx_layer.codes import Codes, calibrated, quantised_weights
from dse.onnx_layer.runtime import Runtime, split_samples
from dse.workload.onnx_import.importer import import_onnx
from tests.dse.onnx_layer.quantised import F, run_onnx
from tests.dse.workload.onnx_import.models import I64, message, model, node, save, value

RNG = np.random.default_rng(0)
W, V = RNG.normal(size=(40, 3, 3, 3)).astype(F), RNG.normal(size=(2, 40, 1, 1)).astype(F)
NODES = [
    node("Conv", "x w", "a", "first"),
    node("Relu", "a", "b"),
    node("Conv", "b v", "y", "second"),
    node("Mystery", "y", "z", domain="mine"),
]
X = RNG.normal(size=(6, 3, 5, 5)).astype(F)


def opened(tmp_path, nodes=NODES, inputs=None, outputs=("y",), constants=None):
    proto = model(nodes, inputs or [value("x", (2, 3, 5, 5))], list(outputs), constants or {"w": W, "v": V})
    return proto, import_onnx(save(tmp_path, proto))


def test_values_of_any_tensor(tmp_path):
    """Only the part that is needed runs: what follows may be anything."""
    proto, found = opened(tmp_path)
    runtime = Runtime(found, split_samples(found, {"x": X}, "here"))
    short = model(NODES[:3], [value("x", (2, 3, 5, 5))], ["a", "y"], {"w": W, "v": V})
    for at, sample in enumerate(np.split(X, 3)):
        a, y = run_onnx(short, {"x": sample})
        np.testing.assert_array_equal(runtime.every("a")[at], a)
        np.testing.assert_array_equal(runtime.every("y")[at], y)
    np.testing.assert_array_equal(runtime.value("w"), W)
    assert proto.graph.node[3].op_type == "Mystery"


def test_a_tensor_in_the_middle_may_be_given(tmp_path):
    _, found = opened(tmp_path)
    middle = RNG.normal(size=(2, 40, 3, 3)).astype(F)
    runtime = Runtime(found, split_samples(found, {"b": middle}, "here"))
    np.testing.assert_allclose(runtime.value("y"), np.einsum("bchw,kc->bkhw", middle, V[:, :, 0, 0]), rtol=1e-4, atol=1e-4)
    assert message(runtime.value, "a") == "--input: the model's input x is missing; allowed: x"


def test_large_weights_are_mapped_from_the_model_and_from_other_files(tmp_path):
    """ONNX Runtime reads them where they are."""
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=W.shape, data_location=TensorProto.EXTERNAL)
    (tmp_path / "weights.bin").write_bytes(W.tobytes())
    entry = weights.external_data.add()
    entry.key, entry.value = "location", "weights.bin"
    _, found = opened(tmp_path, constants={"w": weights, "v": V})
    (a,) = run_onnx(model(NODES[:1], [value("x", (2, 3, 5, 5))], ["a"], {"w": W}), {"x": X[:2]})
    runtime = Runtime(found, split_samples(found, {"x": X}, "here"))
    np.testing.assert_array_equal(runtime.value("a"), a)


def test_control_flow_takes_what_it_reads_along(tmp_path):
    branch = helper.make_graph([node("Conv", "a v", "t")], "g", [], [value("t", None)])
    nodes = [node("Conv", "x w", "a"), node("If", "f", "i", then_branch=branch, else_branch=branch), node("Conv", "i u", "y")]
    _, found = opened(tmp_path, nodes, constants={"w": W, "v": V, "u": np.ones((1, 2, 1, 1), F), "f": np.array(True)})
    assert Runtime(found, split_samples(found, {"x": X}, "here")).value("y").shape == (2, 1, 3, 3)


def test_what_cannot_be_run(tmp_path):
    _, found = opened(tmp_path, outputs=("y", "z"))
    runtime = Runtime(found, split_samples(found, {"x": X}, "here"))
    assert message(runtime.value, "z").startswith(f"{tmp_path / 'model.onnx'}: ONNX Runtime cannot run it: ")


def test_without_the_package(tmp_path, monkeypatch):
    _, found = opened(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert message(Runtime(found, [{"x": X[:2]}]).value, "y") == (
        '--input: needs the package onnxruntime, which is not installed; pip install "nearmac[onnx]"'
    )


@pytest.mark.parametrize(
    ("arrays", "wrong"),
    [
        ({"X": X}, "here: neither an input of the model nor another tensor of it, got 'X'"),
        ({"x": X[:, :2]}, "here: x: wrong shape, got (6, 2, 5, 5); allowed: (2, 3, 5, 5), or several along the first axis"),
        ({"x": X[:3]}, "here: x: wrong shape, got (3, 3, 5, 5)"),
        ({"x": X[:0]}, "here: x: wrong shape"),
        ({"x": X > 0}, "here: x: another type of elements, got 'bool'; allowed: float32"),
        ({"x": np.where(X > 2, np.nan, X)}, "here: x: holds values that are not finite"),
        ({"x": X, "b": np.zeros((2, 40, 3, 3), F)}, "here: different numbers of samples, got {'x': 3, 'b': 1}"),
        ({"z": X}, "here: z: a tensor of unknown shape cannot be given"),
        ({}, "here: no arrays; allowed: x"),
    ],
)
def test_wrong_arrays(arrays, wrong, tmp_path):
    _, found = opened(tmp_path, outputs=("y", "z"))
    assert message(split_samples, found, arrays, "here").startswith(wrong)


def test_types_are_converted_where_nothing_is_lost_that_matters(tmp_path):
    _, found = opened(tmp_path)
    (sample,) = split_samples(found, {"x": X[:2].astype(np.float64)}, "here")
    assert sample["x"].dtype == F
    _, found = opened(
        tmp_path,
        [node("Gather", "t i", "e"), node("MatMul", "e m", "y")],
        [value("i", (3,), I64)],
        constants={"t": np.ones((5, 4), F), "m": np.ones((4, 2), F)},
    )
    assert "another type of elements, got 'float32'; allowed: int64" in message(split_samples, found, {"i": np.ones(3, F)}, "here")


# -- codes --------------------------------------------------------------------------------------------------------------


def test_activations_by_their_range():
    codes = calibrated([np.array([-1.0, 0.5]), np.array([3.0])], 8)
    assert (codes.signed, codes.scale, codes.zero_point) == (False, 4 / 255, 64)
    assert codes.encode(np.array([-1.0, 0.0, 3.0, 9.0, -9.0])).tolist() == [0, 64, 255, 255, 0]
    assert calibrated([np.array([2.0, 5.0])], 4) == Codes(4, False, 0, 5 / 15)
    assert calibrated([np.zeros(3)], 8).scale == 1.0
    assert calibrated([np.array([-1.0, 3.0])], 1) == Codes(1, True, 0, 2.0)
    assert Codes(1, True, 0, 2.0).encode(np.array([-0.1, 0.0, 0.1])).tolist() == [-1, 1, 1]


@pytest.mark.parametrize("bits", [16, 8, 4, 2])
def test_weights_channel_by_channel(bits):
    weights = np.random.default_rng(0).normal(size=(3, 2, 2, 2)) * np.array([1, 100, 0]).reshape(3, 1, 1, 1)
    codes, scale = quantised_weights(weights, bits)
    top = (1 << bits - 1) - 1
    assert np.abs(codes[:2]).max(axis=(1, 2, 3)).tolist() == [top, top] and not codes[2].any() and scale[2] == 1
    assert (np.abs(codes * scale[:, None, None, None] - weights) <= scale[:, None, None, None] / 2 + 1e-9).all()


def test_binary_weights():
    codes, scale = quantised_weights(np.array([[[[1.0, -3.0]]], [[[0.0, 0.0]]]]), 1)
    assert codes.reshape(2, 2).tolist() == [[1, -1], [1, 1]] and scale.tolist() == [2.0, 1.0]
