"""Matrix products as layers: operands arranged for the array give NumPy's products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.onnx_layer.arrange import arrangement
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.importer import import_onnx
from dse.workload.onnx_import.matmul import pixels, product
from sim.golden import LayerTensors, accumulate
from tests.dse.workload.onnx_import.models import I32, U8, imported, message, model, node, save, value, zeros


def layers(tmp_path, op, first, second, *, constant="b", bias=None, **attributes):
    shapes = {"a": first, "b": second, **({"c": bias} if bias is not None else {})}
    constants = {name: zeros(*shapes[name]) for name in (constant, "c") if name in shapes}
    inputs = [value(name, shape) for name, shape in shapes.items() if name not in constants]
    return imported(tmp_path, [node(op, " ".join(shapes), "y", "m", **attributes)], inputs, ["y"], constants).network


@st.composite
def factors(draw):
    """Shapes that NumPy multiplies: leading sizes equal, 1 or absent."""
    inner, rows, columns = (draw(st.integers(1, 4)) for _ in range(3))
    lead = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 3)))]
    outer = []
    for _ in range(2):
        shape = [size if draw(st.booleans()) else 1 for size in lead]
        outer.append(shape[draw(st.integers(0, len(shape))):])
    first = (inner,) if not outer[0] and draw(st.booleans()) else (*outer[0], rows, inner)
    second = (inner,) if not outer[1] and draw(st.booleans()) else (*outer[1], inner, columns)
    return first, second


@given(factors(), st.sampled_from(("none", "a", "b")), st.integers(0, 99))
@settings(max_examples=120)
def test_arranged_products_are_numpys(tmp_path_factory, shapes, constant, seed):
    rng = np.random.default_rng(seed)
    arrays = {name: rng.integers(-9, 9, shape) for name, shape in zip("ab", shapes, strict=True)}
    expected = np.matmul(arrays["a"], arrays["b"])
    path = tmp_path_factory.mktemp("m")
    network = layers(path, "MatMul", *shapes, constant=constant)
    operator = network.array_operators[0]
    assert operator.macs == expected.size * shapes[0][-1]
    found = import_onnx(str(path / "model.onnx"))
    place = arrangement(found.building, found.graph.nodes[0], operator.layer)
    zero = np.zeros(operator.layer.K, np.int64)
    data = place.data(arrays[place.operands.data])
    sums = accumulate(operator.layer, LayerTensors(input=np.ascontiguousarray(data), weight=place.weight(arrays[place.operands.weight]),
                                                   bias=zero, multiplier=zero, shift=zero))
    np.testing.assert_array_equal(sums, place.output(expected))


@pytest.mark.parametrize(("trans_a", "trans_b", "constant"), [(a, b, c) for a in (0, 1) for b in (0, 1) for c in "ab"])
def test_transposed_factors(trans_a, trans_b, constant, tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"a": rng.integers(-9, 9, (4, 3) if trans_a else (3, 4)), "b": rng.integers(-9, 9, (5, 4) if trans_b else (4, 5))}
    expected = (arrays["a"].T if trans_a else arrays["a"]) @ (arrays["b"].T if trans_b else arrays["b"])
    network = layers(tmp_path, "Gemm", arrays["a"].shape, arrays["b"].shape, constant=constant, transA=trans_a, transB=trans_b)
    layer = network.array_operators[0].layer
    found = import_onnx(str(tmp_path / "model.onnx"))
    place = arrangement(found.building, found.graph.nodes[0], layer)
    assert place.operands.weight == constant
    zero = np.zeros(layer.K, np.int64)
    sums = accumulate(layer, LayerTensors(input=place.data(arrays[place.operands.data]), weight=place.weight(arrays[constant]), bias=zero,
                                          multiplier=zero, shift=zero))
    np.testing.assert_array_equal(sums, place.output(expected))


# -- what becomes of them -----------------------------------------------------------------------------------------------


def test_plain_matrices_are_linear_layers(tmp_path):
    layer = layers(tmp_path, "Gemm", (3, 64), (64, 10)).array_operators[0].layer
    assert (layer.kind, layer.B, layer.C, layer.K) == ("linear", 3, 64, 10)


@pytest.mark.parametrize(("lead", "pixels"), [((2, 197), (394, 1)), ((1, 4095), (4095, 1)), ((1, 4096), (2048, 2)), ((64, 196), (3136, 4))])
def test_leading_dimensions_are_pixels(lead, pixels, tmp_path):
    """A dense layer on a tensor of three dimensions (hls4ml #782)."""
    layer = layers(tmp_path, "MatMul", (*lead, 64), (64, 10)).array_operators[0].layer
    assert (layer.kind, layer.B, layer.OY, layer.OX, layer.G) == ("conv", 1, *pixels, 1)
    assert layer.macs == lead[0] * lead[1] * 640


def test_rows_that_make_no_image_stay_on_the_host(tmp_path):
    assert (pixels(4099), pixels(4098), pixels(1)) == ((4099, 1), (2049, 2), (1, 1))
    nodes = [node("MatMul", "a b", "y", "prime"), node("MatMul", "c b", "z", "other")]
    found = imported(tmp_path, nodes, [value("a", (1, 4099, 8)), value("c", (1, 4098, 8))], ["y", "z"], {"b": zeros(8, 4)})
    assert list(found.network.array_layers()) == ["other"]
    assert found.network.operator("prime").ops == 2 * 4099 * 32
    assert found.notes == ("prime: prime.IY out of range: 4099, the array has 1 to 4095",)


def test_attention(tmp_path):
    """Heads are groups: each has its own keys, which another operator computes."""
    network = layers(tmp_path, "MatMul", (1, 8, 64, 32), (1, 8, 32, 50), constant="none")
    operator = network.array_operators[0]
    assert (operator.layer.G, operator.layer.C, operator.layer.K, operator.macs) == (8, 256, 400, 8 * 64 * 32 * 50)
    assert operator.parameters == 0 and len(operator.inputs) == 2


@pytest.mark.parametrize(("bias", "on_host"), [((10,), False), ((1, 10), False), ((1,), False), ((3, 10), True), ((3, 1), True)])
def test_bias_of_gemm(bias, on_host, tmp_path):
    network = layers(tmp_path, "Gemm", (3, 64), (64, 10), bias=bias)
    operator = network.array_operators[0]
    assert operator.bias is not on_host
    assert [host.op for host in network.host_operators() if not host.is_view] == ["add"] * on_host
    assert network.parameters == 640 + (int(np.prod(bias)) if on_host else 10)


def test_bias_behind_a_product_is_folded(tmp_path):
    for shape, folded in (((10,), ("offset",)), ((1, 10), ("offset",)), ((), ("offset",)), ((3, 10), ()), ((3, 1), ())):
        nodes = [node("MatMul", "a b", "p", "m"), node("Add", "c p", "y")]
        found = imported(tmp_path, nodes, [value("a", (3, 64))], ["y"], {"b": zeros(64, 10), "c": zeros(*shape)})
        assert found.network.array_operators[0].folded == folded


@pytest.mark.parametrize(("op", "first", "second", "wrong"), [
    ("MatMul", (3, 4), (5, 6), "m: rows of 4 elements meet columns of 5, got ((3, 4), (5, 6))"),
    ("MatMul", (2, 3, 4), (3, 4, 5), "m: leading dimensions do not agree, got ((2, 3, 4), (3, 4, 5)); allowed: equal sizes, or 1"),
    ("Gemm", (2, 3, 4), (4, 5), "m: Gemm multiplies two matrices, got ((2, 3, 4), (4, 5))"),
    ("MatMul", (3, 0), (0, 5), "m: no factors of a matrix product, got ((3, 0), (0, 5))")])
def test_what_is_wrong_is_named(op, first, second, wrong):
    assert message(product, Node(node(op, "a b", "y"), "m", "m"), first, second) == wrong


def test_zero_points_and_types(tmp_path):
    proto = model([node("MatMulInteger", "a b az bz", "y", "m")], [value("a", (4, 3), U8)], [value("y", None, I32)],
                  {"b": np.full((3, 2), 100, np.int8), "az": np.array(12, np.uint8), "bz": np.array([5, -60], np.int8)}, opset=10)
    operator = import_onnx(save(tmp_path, proto)).network.array_operators[0]
    # 100 less -60 is 160: nine bits, so sixteen.
    assert (operator.precision, operator.layer.activations_signed, operator.layer.input_zero_point) == ("w16a8", False, 12)
