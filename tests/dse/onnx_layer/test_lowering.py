"""What stands in for operators, by what ONNX Runtime makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from dse.onnx_layer.lowering import lowered, unsigned_weights
from dse.onnx_layer.runtime import Runtime, split_samples
from dse.workload.onnx_import.importer import import_onnx
from dse.workload.onnx_import.quantisation import quant_reference
from tests.dse.onnx_layer.quantised import F
from tests.dse.workload.onnx_import.models import I8, I32, QONNX, U8, message, model, node, save, value

X = np.concatenate([np.arange(-40, 40) / 8, [1e6, -1e6, 0.3, -0.0]]).astype(F).reshape(1, 7, 4, 3)


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize(
    ("attributes", "bits", "zero"),
    [
        ({"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}, 4, 0),
        ({"signed": 1, "narrow": 1, "rounding_mode": "ROUND"}, 8, 0),
        ({"signed": 0, "narrow": 0, "rounding_mode": "HALF_EVEN"}, 3, 2),
        ({"signed": 0, "narrow": 1, "rounding_mode": "FLOOR"}, 8, 5),
        ({"signed": 1, "narrow": 0, "rounding_mode": "CEIL"}, 16, -1),
        ({"signed": 1, "narrow": 1}, 1, 0),
        (None, 1, 0),
    ],
)
def test_quantisers(attributes, bits, zero, opset, tmp_path):
    """ONNX Runtime's results are those of our reference, halves included."""
    entry = (
        node("BipolarQuant", "x s", "q", domain=QONNX) if attributes is None else node("Quant", "x s z b", "q", domain=QONNX, **attributes)
    )
    constants = {"s": np.array(0.25, F), "z": np.array(zero, F), "b": np.array(bits, F), "w": np.ones((1, 7, 1, 1), F)}
    found = import_onnx(save(tmp_path, model([entry, node("Conv", "q w", "y", "c")], [value("x", X.shape)], ["y"], constants, opset=opset)))
    graph = found.graph.nodes[0]
    rest = [] if attributes is None else [constants["z"], constants["b"]]
    np.testing.assert_array_equal(
        Runtime(found, split_samples(found, {"x": X}, "x")).value("q"), quant_reference(graph, X, constants["s"], *rest)
    )


def test_rounding_modes_that_onnx_runtime_has_not(tmp_path):
    constants = {"s": np.array(1, F), "z": np.array(0, F), "b": np.array(4, F), "w": np.ones((1, 7, 1, 1), F)}
    entry = node("Quant", "x s z b", "q", domain=QONNX, signed=1, narrow=0, rounding_mode="UP")
    found = import_onnx(save(tmp_path, model([entry, node("Conv", "q w", "y", "c")], [value("x", X.shape)], ["y"], constants)))
    assert message(lowered, found.graph.nodes[0], found.building.quantisation).endswith(
        "a rounding mode that ONNX Runtime has no operator for, got 'UP'; allowed: ROUND, HALF_EVEN, FLOOR, CEIL"
    )


@pytest.mark.parametrize("zero", [None, np.array(-3, np.int8)])
def test_sums_of_unsigned_by_signed_bytes_do_not_saturate(zero, tmp_path):
    a, b = np.full((2, 64), 255, np.uint8), np.full((64, 3), 127, np.int8)
    constants = {"b": b, **({} if zero is None else {"z": zero})}
    proto = model(
        [node("MatMulInteger", "a b" if zero is None else "a b _ z", "y", "c")],
        [value("a", a.shape, U8)],
        [value("y", None, I32)],
        constants,
        opset=10,
    )
    found = import_onnx(save(tmp_path, proto))
    exact = a.astype(int) @ (b.astype(int) - (0 if zero is None else int(zero)))
    np.testing.assert_array_equal(Runtime(found, split_samples(found, {"a": a}, "x")).value("y"), exact)


def test_signed_data_are_left_alone(tmp_path):
    proto = model(
        [node("MatMulInteger", "a b", "y", "c")],
        [value("a", (2, 4), I8)],
        [value("y", None, I32)],
        {"b": np.ones((4, 3), np.int8)},
        opset=10,
    )
    found = import_onnx(save(tmp_path, proto))
    assert unsigned_weights(found.graph.nodes[0], found.building) is None
