"""Values of constants, wherever the model has them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.dse.workload.onnx_import.models import F32, QONNX, imported, message, node, value

F = np.float32
WEIGHT = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(F)


def constants_of(tmp_path, nodes, constants=None, *, weights="w", opset=17):
    found = imported(
        tmp_path, [*nodes, node("Conv", f"x {weights}", "y", "c")], [value("x", (1, 3, 8, 8))], ["y"], constants or {}, opset=opset
    )
    assert found.network.array_operators[0].parameters == 108 and not found.network.array_operators[0].has_computed_weights
    assert [host for host in found.network.host_operators() if not host.is_view] == []  # what makes constants is no operator of the network
    return found.building.constants


def from_array(array) -> object:
    return numpy_helper.from_array(np.asarray(array))


@pytest.mark.parametrize(
    ("nodes", "constants", "expected"),
    [
        ([], {"w": WEIGHT}, WEIGHT),
        ([node("Constant", "", "w", value=from_array(WEIGHT))], {}, WEIGHT),
        ([node("Identity", "v", "w")], {"v": WEIGHT}, WEIGHT),
        (
            [node("ConstantOfShape", "s", "w", value=from_array(np.array([2.5], F)))],
            {"s": np.array([4, 3, 3, 3])},
            np.full((4, 3, 3, 3), 2.5, F),
        ),
        ([node("ConstantOfShape", "s", "w")], {"s": np.array([4, 3, 3, 3])}, np.zeros((4, 3, 3, 3), F)),
        ([node("Transpose", "v", "w", perm=[3, 2, 0, 1])], {"v": WEIGHT.transpose(2, 3, 1, 0)}, WEIGHT),
        ([node("Reshape", "v s", "w")], {"v": WEIGHT.ravel(), "s": np.array([4, 3, 3, 3])}, WEIGHT),
        ([node("Mul", "v k", "w")], {"v": WEIGHT, "k": np.array(2, F)}, WEIGHT * F(2)),
        ([node("Unsqueeze", "v a", "u"), node("Squeeze", "u a", "w")], {"v": WEIGHT, "a": np.array([0])}, WEIGHT),
        (
            [node("DequantizeLinear", "q s z", "w", axis=0)],
            {"q": np.arange(108, dtype=np.int8).reshape(4, 3, 3, 3), "s": np.array([1, 2, 3, 4], F), "z": np.zeros(4, np.int8)},
            np.arange(108, dtype=F).reshape(4, 3, 3, 3) * np.array([1, 2, 3, 4], F)[:, None, None, None],
        ),
        (
            [node("Quant", "v s z b", "w", domain=QONNX, signed=1, narrow=1, rounding_mode="ROUND")],
            {"v": WEIGHT, "s": np.array(0.5, F), "z": np.array(0, F), "b": np.array(3, F)},
            np.clip(np.rint(WEIGHT * 2), -3, 3) / F(2),
        ),
    ],
)
def test_values(nodes, constants, expected, tmp_path):
    np.testing.assert_allclose(constants_of(tmp_path, nodes, constants).value("w"), expected, rtol=1e-6)


@pytest.mark.parametrize("opset", [10, 13])
def test_older_quantisers(opset, tmp_path):
    """ONNX's reference implementation knows only the newest of them."""
    given = {"q": np.full((4, 3, 3, 3), 7, np.int8), "s": np.array(0.5, F), "z": np.array(-1, np.int8)}
    assert (constants_of(tmp_path, [node("DequantizeLinear", "q s z", "w")], given, opset=opset).value("w") == 4).all()


def test_scalars_in_attributes(tmp_path):
    nodes = [
        node("Constant", "", "i", value_int=3),
        node("Constant", "", "f", value_float=0.5),
        node("Constant", "", "l", value_ints=[4, 3, 3, 3]),
        node("Constant", "", "m", value_floats=[1.0, 2.0]),
        node("ConstantOfShape", "l", "w"),
    ]
    constants = constants_of(tmp_path, nodes)
    assert (constants.scalar("i", "it"), constants.scalar("f", "it")) == (3, 0.5)
    assert constants.value("l").tolist() == [4, 3, 3, 3] and constants.value("m").tolist() == [1.0, 2.0]


def test_filled_tensors_take_no_memory(tmp_path):
    found = imported(
        tmp_path,
        [node("ConstantOfShape", "s", "w"), node("Conv", "x w", "y")],
        [value("x", (1, 1 << 16, 4, 4))],
        ["y"],
        {"s": np.array([1 << 16, 1 << 16, 1, 1])},
    )
    weight = found.building.constants.value("w")
    assert weight.shape == (1 << 16, 1 << 16, 1, 1) and weight.base.nbytes <= 8


def test_computed_constants_have_a_limit(tmp_path):
    nodes = [node("Add", "a b", "w"), node("MatMul", "x w", "y")]
    found = imported(
        tmp_path, nodes, [value("x", (1, 8, 1 << 15))], ["y"], {"a": np.zeros((1 << 15, 1), F), "b": np.zeros((1, 1 << 15), F)}
    )
    assert found.network.weights == 1 << 30
    assert message(found.building.constants.value, "w").endswith(
        "w: a computed constant too large, got (32768, 32768); allowed: 134217728 elements"
    )


def test_shapes_are_constants(tmp_path):
    nodes = [node("Shape", "x", "s"), node("Shape", "x", "e", start=1, end=3), node("Size", "x", "n"), node("ConstantOfShape", "l", "w")]
    constants = constants_of(tmp_path, nodes, {"l": np.array([4, 3, 3, 3])})
    assert [constants.value(name).tolist() for name in "sen"] == [[1, 3, 8, 8], [3, 8], 192]


def test_what_is_no_constant(tmp_path):
    nodes = [node("RandomNormal", "", "r", shape=[4, 3, 3, 3]), node("Conv", "x r", "y", "c")]
    found = imported(tmp_path, nodes, [value("x", (1, 3, 8, 8))], ["y"])
    assert "r" not in found.building.constants and found.network.array_operators[0].has_computed_weights
    assert found.building.constants.optional("r") is None
    assert message(found.building.constants.scalar, "r", "the scale").endswith(
        "r: the scale that is computed while the model runs; allowed: a constant"
    )


@pytest.mark.parametrize(
    ("nodes", "constants", "wrong"),
    [
        ([node("Hardmax", "v", "w")], {"v": WEIGHT}, "w: a constant computed by Hardmax; fold the model's constants first"),
        (
            [node("ConstantOfShape", "s", "w", value=helper.make_tensor("", F32, [2], [1.0, 2.0]))],
            {"s": np.array([4, 3, 3, 3])},
            "ConstantOfShape_0.value: must be one value, got (2,)",
        ),
    ],
)
def test_what_cannot_be_computed(nodes, constants, wrong, tmp_path):
    assert message(constants_of(tmp_path, nodes, constants).value, "w").endswith(wrong)


def test_long_chains(tmp_path):
    nodes = [node("Identity", f"w{at}", f"w{at + 1}") for at in range(150)]
    constants = constants_of(tmp_path, nodes, {"w0": WEIGHT}, weights="w150")
    assert message(constants.value, "w150").endswith("a constant computed by more than 100 operators")
