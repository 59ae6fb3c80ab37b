"""Layers as integers, through the golden model, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.onnx_layer.prepare import find_layer, prepare
from dse.onnx_layer.runtime import Runtime, split_samples
from dse.workload.onnx_import.importer import import_onnx
from tests.dse.onnx_layer.quantised import F, computed, open_layer, run_onnx
from tests.dse.workload.onnx_import.models import I8, I32, QONNX, U8, message, model, node, packaged, value


def close(written: np.ndarray, expected: np.ndarray, most_differing: float = 0.05) -> bool:
    """Within one step everywhere, and equal but for roundings of halves."""
    difference = np.abs(written - expected)
    return bool(difference.max(initial=0) <= 1 and (difference > 0).mean() <= most_differing)


# -- QLinearConv --------------------------------------------------------------------------------------------------------


def qlinear(rng, kind=np.uint8, weight_kind=np.int8, *, per_channel=True, bias=True, weight_zero=0, **attributes):
    low, high = np.iinfo(weight_kind).min, np.iinfo(weight_kind).max
    x = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (1, 6, 9, 7)).astype(kind)
    w = rng.integers(low, high + 1, (4, 6 // attributes.get("group", 1), 3, 2)).astype(weight_kind)
    channels = (4,) if per_channel else ()
    constants = {
        "xs": F(0.02),
        "xz": np.array(3, kind),
        "w": w,
        "ws": rng.uniform(0.001, 0.02, channels).astype(F),
        "wz": np.full(channels, weight_zero, weight_kind),
        "ys": F(0.7),
        "yz": np.array(5, kind),
    }
    names = "x xs xz w ws wz ys yz"
    if bias:
        constants["b"] = rng.integers(-5000, 5000, 4).astype(np.int32)
        names += " b"
    onnx_kind = U8 if kind == np.uint8 else I8
    return model(
        [node("QLinearConv", names, "y", "c", **attributes)],
        [value("x", x.shape, onnx_kind)],
        [value("y", None, onnx_kind)],
        {name: np.asarray(array) for name, array in constants.items()},
        opset=10,
    ), x


@given(
    st.integers(0, 10_000),
    st.sampled_from(((np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8))),
    st.booleans(),
    st.booleans(),
    st.sampled_from(({}, {"pads": [1, 0, 2, 1]}, {"strides": [2, 1], "dilations": [1, 3]}, {"group": 2}, {"auto_pad": "SAME_LOWER"})),
)
@settings(max_examples=40)
def test_qlinearconv(tmp_path_factory, seed, kinds, per_channel, bias, attributes):
    """Signed and unsigned, zero points, scales for each channel: ONNX Runtime's integers within one step."""
    kind, weight_kind = kinds
    if weight_kind == np.uint8:
        per_channel = False
    proto, x = qlinear(
        np.random.default_rng(seed),
        kind,
        weight_kind,
        per_channel=per_channel,
        bias=bias,
        weight_zero=121 if weight_kind == np.uint8 else 0,
        **attributes,
    )
    made, written, _ = computed(tmp_path_factory.mktemp("q"), proto, {"x": x})
    (expected,) = run_onnx(proto, {"x": x})
    np.testing.assert_array_equal(made.expected, expected)
    assert close(written, expected.astype(int)) and made.is_quantised
    assert made.weight_bits == (16 if weight_kind == np.uint8 else 8)


def test_what_the_layer_of_a_qlinearconv_has(tmp_path):
    proto, x = qlinear(np.random.default_rng(0))
    made, _, values = computed(tmp_path, proto, {"x": x})
    layer = made.layer
    assert (layer.activations_signed, layer.input_zero_point, layer.outputs_signed, layer.output_zero_point) == (False, 3, False, 5)
    assert (layer.lo, layer.hi, made.tensor, made.output.scale) == (0, 255, "y", pytest.approx(0.7))
    constants = values.building.constants
    np.testing.assert_array_equal(made.tensors.weight, constants.value("w"))
    np.testing.assert_array_equal(made.tensors.bias, constants.value("b"))
    np.testing.assert_array_equal(made.tensors.input, x)
    np.testing.assert_allclose(made.tensors.multiplier / 2.0**made.tensors.shift, 0.02 * constants.value("ws") / 0.7, rtol=2e-5)


def test_large_biases_widen_the_accumulator(tmp_path):
    proto, x = qlinear(np.random.default_rng(0))
    bias = next(tensor for tensor in proto.graph.initializer if tensor.name == "b")
    bias.raw_data = np.array([2**29, -(2**29), 0, 5], np.int32).tobytes()
    made, written, _ = computed(tmp_path, proto, {"x": x})
    assert close(written, run_onnx(proto, {"x": x})[0].astype(int)) and made.accumulator_bits > 22


@pytest.mark.parametrize(
    ("name", "array", "wrong"),
    [
        ("ys", F(0), "c: a scale must be positive, got 0.0"),
        ("xs", F(np.inf), "c: a scale must be positive, got inf"),
        ("ws", np.ones(3, F), "c: not one scale for each output channel, got (3,); allowed: (4,)"),
        ("ws", np.full(4, 1e12, F), "c: a scale that no output stage has, got "),
    ],
)
def test_wrong_scales(name, array, wrong, tmp_path):
    from onnx import numpy_helper

    proto, x = qlinear(np.random.default_rng(0), bias=False)
    tensor = next(tensor for tensor in proto.graph.initializer if tensor.name == name)
    tensor.CopyFrom(numpy_helper.from_array(np.asarray(array), name))
    _, values = open_layer(tmp_path, proto, {"x": x, "y": np.zeros((1, 4, 7, 6), np.uint8)})
    assert message(prepare, values).partition(": ")[2].startswith(wrong)


# -- pairs of quantisers ------------------------------------------------------------------------------------------------


def qdq(rng, *, between=(), last="c", constants=None, kind=np.uint8):
    """x -> Q -> DQ -> Conv with weights behind DQ, a float bias -> .. -> Q."""
    given = {
        "s": F(0.05),
        "z": np.array(100 if kind == np.uint8 else -3, kind),
        "w": rng.integers(-127, 128, (5, 4, 3, 3)).astype(np.int8),
        "ws": rng.uniform(0.001, 0.01, 5).astype(F),
        "wz": np.zeros(5, np.int8),
        "b": rng.normal(size=5).astype(F),
        "os": F(0.03),
        "oz": np.array(90 if kind == np.uint8 else 0, kind),
        **(constants or {}),
    }
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w ws wz", "v", axis=0),
        node("Conv", "d v b", "c", "c", pads=[1, 1, 1, 1]),
        *between,
        node("QuantizeLinear", f"{last} os oz", "y"),
    ]
    onnx_kind = U8 if kind == np.uint8 else I8
    return model(
        nodes, [value("x", (1, 4, 8, 8))], [value("y", None, onnx_kind)], {name: np.asarray(array) for name, array in given.items()}
    )


NORM = {
    "g": np.array([1.5, -0.7, 0.1, 2.0, -1.0], F),
    "t": np.array([0.1, 0.2, -0.3, 0.0, 1.0], F),
    "m": np.array([0.0, 0.5, -0.5, 0.1, 0.2], F),
    "n": np.array([1.0, 0.5, 2.0, 1.0, 0.3], F),
}


@pytest.mark.parametrize(
    ("between", "last", "constants"),
    [
        ([], "c", {}),
        ([node("Relu", "c", "r")], "r", {}),
        ([node("Clip", "c lo hi", "r")], "r", {"lo": F(-0.5), "hi": F(1.25)}),
        ([node("BatchNormalization", "c g t m n", "k"), node("Relu", "k", "r")], "r", NORM),
        (
            [node("Mul", "c f", "k"), node("Add", "k o", "j"), node("Sub", "j o2", "i"), node("Div", "i f2", "r")],
            "r",
            {"f": np.array([1, 2, -3, 0.5, 0.1], F).reshape(5, 1, 1), "o": F(0.2), "o2": np.full((1, 5, 1, 1), 0.1, F), "f2": F(1.7)},
        ),
    ],
)
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_layers_between_quantisers(between, last, constants, kind, tmp_path):
    """Whatever is folded, with negative scales too."""
    proto = qdq(np.random.default_rng(3), between=between, last=last, constants=constants, kind=kind)
    x = np.random.default_rng(4).normal(size=(1, 4, 8, 8)).astype(F) * 2
    made, written, _ = computed(tmp_path, proto, {"x": x})
    (expected,) = run_onnx(proto, {"x": x})
    assert made.tensor == "y" and len(np.unique(expected)) > 20
    assert close(written, expected.astype(int))


def test_constant_and_pruned_channels(tmp_path):
    """A scale of 0, and one of 1e-30 whose bias would need 100 bits."""
    constants = {**NORM, "g": np.array([1, 0, 1e-30, 1, 1], F)}
    proto = qdq(np.random.default_rng(3), between=[node("BatchNormalization", "c g t m n", "k")], last="k", constants=constants)
    x = np.random.default_rng(4).normal(size=(1, 4, 8, 8)).astype(F)
    made, written, _ = computed(tmp_path, proto, {"x": x})
    (expected,) = run_onnx(proto, {"x": x})
    assert close(written, expected.astype(int)) and made.accumulator_bits < 40
    assert len(np.unique(written[:, 1])) == len(np.unique(written[:, 2])) == 1


def test_the_most_negative_weight_cannot_be_turned_round(tmp_path):
    proto = qdq(
        np.random.default_rng(3),
        between=[node("Mul", "c f", "r")],
        last="r",
        constants={"f": F(-1), "w": np.full((5, 4, 3, 3), -128, np.int8)},
    )
    _, values = open_layer(tmp_path, proto, {"x": np.ones((1, 4, 8, 8), F)})
    assert message(prepare, values).endswith(
        "c: a channel with a negative scale holds the most negative weight, which cannot be turned round, got -128"
    )


def test_a_quantised_layer_with_float_outputs_is_calibrated(tmp_path):
    proto = qdq(np.random.default_rng(3))
    proto.graph.node.pop()
    del proto.graph.output[:]
    proto.graph.output.append(value("c", None))
    x = np.random.default_rng(4).normal(size=(1, 4, 8, 8)).astype(F)
    made, written, _ = computed(tmp_path, proto, {"x": x})
    (expected,) = run_onnx(proto, {"x": x})
    assert made.is_quantised and made.tensor == "c" and close(written, made.output.encode(expected))
    np.testing.assert_allclose(made.decode(written), expected, atol=1.01 * made.output.scale)


# -- QONNX --------------------------------------------------------------------------------------------------------------


def qonnx(rng, *, bits=4, weights="Quant", activations="Quant", rounding="ROUND"):
    one = lambda op, name, out, scale, signed: (  # noqa: E731
        node("Quant", f"{name} {scale} z b", out, domain=QONNX, signed=signed, narrow=0, rounding_mode=rounding)
        if op == "Quant"
        else node("BipolarQuant", f"{name} {scale}", out, domain=QONNX)
    )
    nodes = [
        one(activations, "x", "qx", "xs", 1),
        one(weights, "w", "qw", "ws", 1),
        node("Conv", "qx qw", "k", "c"),
        node("Add", "k o", "r"),
        one(activations, "r", "y", "ys", 0 if activations == "Quant" else 1),
    ]
    return model(
        nodes,
        [value("x", (1, 4, 6, 6))],
        ["y"],
        {
            "w": rng.normal(size=(3, 4, 3, 3)).astype(F),
            "xs": np.array(0.3, F),
            "ws": rng.uniform(0.1, 0.3, (3, 1, 1, 1)).astype(F),
            "ys": np.array(0.4, F),
            "z": np.array(0, F),
            "b": np.array(bits, F),
            "o": rng.normal(size=(3, 1, 1)).astype(F),
        },
    )


@pytest.mark.parametrize(
    ("options", "precision"),
    [
        ({}, (4, 4)),
        ({"bits": 8}, (8, 8)),
        ({"bits": 3}, (4, 4)),
        ({"bits": 2}, (2, 2)),
        ({"weights": "BipolarQuant"}, (1, 4)),
        ({"weights": "BipolarQuant", "activations": "BipolarQuant"}, (1, 1)),
        ({"rounding": "FLOOR"}, None),
    ],
)
def test_qonnx_layers(options, precision, tmp_path):
    """ONNX Runtime runs the quantisers as sums and products; XNOR layers become thresholds."""
    x = np.random.default_rng(6).normal(size=(1, 4, 6, 6)).astype(F)
    made, written, _ = computed(tmp_path, qonnx(np.random.default_rng(5), **options), {"x": x})
    if precision is None:  # the output stage rounds: never below the floor, at most one above
        assert set(np.unique(written - made.expected)) <= {0, 1}
        return
    assert (made.weight_bits, made.activation_bits) == precision
    assert close(written, made.expected) and len(np.unique(made.expected)) > 1
    assert (made.tensors.threshold is not None) == (precision == (1, 1))


@pytest.mark.parametrize(("name", "layer"), [("subpixel", "Conv_29"), ("nn_resize", "Conv_22")])
def test_trained_layers_of_qonnx(name, layer):
    found = import_onnx(packaged("qonnx", f"qonnx/data/onnx/bsd300x3-espcn/{name}/quant_model.onnx"))
    image = np.random.default_rng(0).random((1, 3, 128, 128)).astype(F)
    feeds = {next(iter(found.graph.inputs)): image}
    values = find_layer(found, layer, Runtime(found, split_samples(found, feeds, "x")))
    made = prepare(values)
    from dse.onnx_layer.run import golden_design
    from sim.golden import golden

    written = golden(golden_design(made), made.layer, made.tensors)
    assert (made.weight_bits, made.activation_bits, made.is_quantised) == (4, 4, True)
    assert close(written, made.expected)


# -- integers without scales, and floats ----------------------------------------------------------------------------------


def test_integer_sums_are_calibrated(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (5, 12), np.uint8), rng.integers(-128, 128, (12, 7), np.int8)
    proto = model(
        [node("MatMulInteger", "a b az", "y", "c")],
        [value("a", a.shape, U8)],
        [value("y", None, I32)],
        {"b": b, "az": np.array(9, np.uint8)},
        opset=10,
    )
    made, written, _ = computed(tmp_path, proto, {"a": a})
    expected = ((a.astype(int) - 9) @ b).reshape(5, 7, 1, 1)
    assert made.is_quantised
    np.testing.assert_allclose(made.decode(written), expected, atol=1.01 * made.output.scale)


@pytest.mark.parametrize(("bits", "least_db"), [(16, 75), (8, 35), (4, 8)])
def test_floats_are_quantised(bits, least_db, tmp_path):
    from dse.onnx_layer.run import ratio_db

    rng = np.random.default_rng(0)
    proto = model(
        [node("Conv", "x w b", "k", "c"), node("Relu", "k", "y")],
        [value("x", (1, 4, 8, 8))],
        ["y"],
        {"w": rng.normal(size=(5, 4, 3, 3)).astype(F), "b": rng.normal(size=5).astype(F)},
    )
    x = rng.normal(size=(3, 4, 8, 8)).astype(F)
    made, written, values = computed(tmp_path, proto, {"x": x}, bits=(bits, bits))
    (expected,) = run_onnx(proto, {"x": x[:1]})
    assert not made.is_quantised and (made.weight_bits, made.activation_bits) == (bits, bits) and len(values.runtime.samples) == 3
    assert ratio_db(expected.astype(float), made.decode(written)) > least_db
    assert (written >= made.output.zero_point).all()  # ReLU


def test_computed_weights(tmp_path):
    """Queries by keys: both factors are computed, and quantised."""
    from dse.onnx_layer.run import ratio_db

    rng = np.random.default_rng(0)
    feeds = {"q": rng.normal(size=(2, 6, 8)).astype(F), "k": rng.normal(size=(2, 5, 8)).astype(F)}
    proto = model(
        [node("Transpose", "k", "t", perm=[0, 2, 1]), node("MatMul", "q t", "p", "c"), node("Mul", "p f", "y")],
        [value("q", (2, 6, 8)), value("k", (2, 5, 8))],
        ["y"],
        {"f": np.array(8**-0.5, F)},
    )
    made, written, values = computed(tmp_path, proto, feeds, bits=(16, 16))
    (expected,) = run_onnx(proto, feeds)
    assert ratio_db(values.place.output(expected).astype(float), made.decode(written)) > 70


def test_products_that_are_no_tensors_of_the_model(tmp_path):
    rng = np.random.default_rng(0)
    proto = model(
        [node("RNN", "x w r", "y", "cell", hidden_size=2)],
        [value("x", (3, 1, 4))],
        ["y"],
        {"w": rng.normal(size=(1, 2, 4)).astype(F), "r": rng.normal(size=(1, 2, 2)).astype(F)},
    )
    assert message(open_layer, tmp_path, proto, {"x": np.ones((3, 1, 4), F)}, "cell.input").endswith(
        "cell: a product of RNN cannot be compared with ONNX Runtime: it is no tensor of the model; "
        "leave --input out, and it runs on random tensors"
    )
    assert message(open_layer, tmp_path, proto, {"x": np.ones((3, 1, 4), F)}, "cell.inptu") == (
        "--layer: no such layer in the workload, got 'cell.inptu'; allowed: cell.input, cell.recurrent; nearest: cell.input"
    )


def test_refused_by_name(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 4, 6, 6)).astype(F)
    mixed = model(
        [node("Conv", "x w", "k", "c"), node("BipolarQuant", "k s", "y", domain=QONNX)],
        [value("x", x.shape)],
        ["y"],
        {"w": rng.normal(size=(3, 4, 3, 3)).astype(F), "s": np.array(1, F)},
    )
    _, values = open_layer(tmp_path, mixed, {"x": x})
    assert message(prepare, values).endswith(
        "c: 1-bit outputs of a layer with 8-bit inputs; the array writes thresholds only where both have 1 bit"
    )
    blocks = model(
        [node("DequantizeLinear", "q s", "w", axis=1, block_size=2), node("Conv", "x w", "y", "c")],
        [value("x", x.shape)],
        ["y"],
        {"q": np.ones((3, 4, 3, 3), np.int8), "s": np.ones((3, 2, 3, 3), F)},
        opset=21,
        ir_version=10,
    )
    _, values = open_layer(tmp_path, blocks, {"x": x})
    assert "c: weights with a scale for each block, got (3, 2, 3, 3); allowed: one, or one for each output channel" in message(
        prepare, values
    )
