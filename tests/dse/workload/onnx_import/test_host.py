"""Operators of the host: what is folded, what is a view, what moves how many bytes, what is listed."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.host import operator_name
from dse.workload.operators import UNKNOWN_SHAPE, Window
from tests.dse.workload.onnx_import.models import F32, I32, I64, imported, message, node, value, zeros

F = np.float32


def after_conv(tmp_path, *nodes, constants=None, outputs=("y",), opset=17, size=(1, 3, 8, 8)):
    """Operators that read ``c``, a convolution's (1, 4, 8, 8)."""
    given = {"w": zeros(4, 3, 1, 1), **{name: np.asarray(array) for name, array in (constants or {}).items()}}
    return imported(tmp_path, [node("Conv", "x w", "c", "conv"), *nodes], [value("x", size)], list(outputs), given, opset=opset)


def folded(tmp_path, *nodes, **options):
    network = after_conv(tmp_path, *nodes, **options).network
    return network.array_operators[0].folded, [host.op for host in network.host_operators()]


NORM = {name: zeros(4) + 1 for name in "gbmv"}


@pytest.mark.parametrize(
    ("nodes", "constants", "options", "expected"),
    [
        ([node("Relu", "c", "y")], {}, {}, ("relu",)),
        ([node("Clip", "c l h", "y")], {"l": F(0), "h": F(6)}, {}, ("relu6",)),
        ([node("Clip", "c l h", "y")], {"l": F(-1), "h": F(1)}, {}, ("clip",)),
        ([node("Clip", "c l", "y")], {"l": F(0)}, {}, ("relu",)),
        ([node("Clip", "c", "y", min=0.0, max=6.0)], {}, {"opset": 8}, ("relu6",)),
        ([node("BatchNormalization", "c g b m v", "y")], NORM, {}, ("batch_norm",)),
        ([node("BatchNormalization", "c g b m v", "n"), node("Relu", "n", "y")], NORM, {}, ("batch_norm", "relu")),
        (
            [node("Mul", "c k", "m"), node("Add", "m k", "a"), node("Relu", "a", "y")],
            {"k": zeros(4, 1, 1)},
            {},
            ("scale", "offset", "relu"),
        ),
        ([node("Div", "c k", "d"), node("Sub", "d k", "y")], {"k": F(3)}, {}, ("scale", "offset")),
        ([node("Add", "k c", "y")], {"k": zeros(1, 4, 1, 1)}, {}, ("offset",)),
        ([node("Identity", "c", "i"), node("Dropout", "i", "d"), node("Relu", "d", "y")], {}, {}, ("relu",)),
    ],
)
def test_folded(nodes, constants, options, expected, tmp_path):
    assert folded(tmp_path, *nodes, constants=constants, **options) == (expected, [])


@pytest.mark.parametrize(
    ("nodes", "constants", "expected"),
    [
        ([node("Relu", "c", "r"), node("Add", "r k", "y")], {"k": F(1)}, (("relu",), ["add"])),  # nothing after an activation
        ([node("Add", "c k", "y")], {"k": zeros(8, 8)}, ((), ["add"])),  # one value a pixel
        ([node("Sub", "k c", "y")], {"k": F(1)}, ((), ["subtract"])),
        ([node("Sigmoid", "c", "y")], {}, ((), ["sigmoid"])),
        ([node("LeakyRelu", "c", "y")], {}, ((), ["leaky_relu"])),
        ([node("Add", "c c", "y")], {}, ((), ["add"])),
    ],
)
def test_not_folded(nodes, constants, expected, tmp_path):
    assert folded(tmp_path, *nodes, constants=constants) == expected


def test_what_others_need_is_not_folded_into(tmp_path):
    assert folded(tmp_path, node("Relu", "c", "y"), outputs=("y", "c")) == ((), ["relu"])
    assert folded(tmp_path, node("Relu", "c", "r"), node("Add", "c r", "y")) == ((), ["relu", "add"])
    network = after_conv(tmp_path, node("Add", "c x1", "a"), node("Relu", "a", "y"), node("Conv", "x w", "x1")).network
    assert network.operator("Add_1").folded == ("relu",)


def test_a_normalisation_before_a_layer_stays(tmp_path):
    found = imported(
        tmp_path,
        [node("BatchNormalization", "x g b m v", "n"), node("Relu", "n", "r"), node("Conv", "r w", "y")],
        [value("x", (1, 4, 8, 8))],
        ["y"],
        {"w": zeros(4, 4, 1, 1), **NORM},
    )
    norm = found.network.host_operators()[0]
    assert (norm.op, norm.parameters, norm.ops) == ("batch_norm", 8, 512)


def test_wrong_normalisation(tmp_path):
    assert message(after_conv, tmp_path, node("BatchNormalization", "c g b m v", "y", "n"), constants={**NORM, "m": zeros(3)}).endswith(
        "n: not one mean for each channel, got (3,); allowed: (4,)"
    )


# -- views and parts ----------------------------------------------------------------------------------------------------


def test_views_move_nothing(tmp_path):
    network = after_conv(
        tmp_path, node("Flatten", "c", "f", "flat"), node("Gemm", "f g", "y", "fc"), constants={"g": zeros(256, 10)}
    ).network
    assert [(host.op, host.bytes_read, host.bytes_written) for host in network.host_operators()] == [("reshape", 0, 0)] * 2
    assert network.operator("fc").layer.C == 256


@pytest.mark.parametrize(
    ("perm", "size", "view"),
    [
        ([0, 2, 3, 1], (1, 3, 8, 8), False),
        ([1, 0, 2, 3], (1, 3, 8, 8), True),
        ([0, 1, 3, 2], (1, 3, 1, 8), True),
        ([0, 3, 1, 2], (1, 3, 8, 1), True),
    ],
)
def test_a_transposition_of_ones_is_a_view(perm, size, view, tmp_path):
    network = after_conv(tmp_path, node("Transpose", "c", "y", perm=perm), size=size).network
    assert [host.is_view for host in network.host_operators()] == [view]


def test_parts_read_what_they_write(tmp_path):
    network = after_conv(
        tmp_path,
        node("Split", "c s", "a b", "split", axis=1),
        node("Slice", "c f t", "y", "slice"),
        outputs=("a", "b", "y"),
        constants={"s": np.array([1, 3]), "f": np.array([0, 0, 0, 0]), "t": np.array([1, 1, 2, 8])},
    ).network
    assert {host.name: (host.op, host.bytes_read, host.bytes_written) for host in network.host_operators()} == {
        "split": ("split", 64, 64),
        "split.1": ("split", 192, 192),
        "slice": ("slice", 16, 16),
    }


def test_a_small_part_made_large(tmp_path):
    network = after_conv(tmp_path, node("Resize", "c _ r", "y"), constants={"r": np.array([1, 1, 2, 2], F)}).network
    (host,) = network.host_operators()
    assert (host.op, host.bytes_read, host.bytes_written) == ("resize", 256, 1024)


def test_pooling(tmp_path):
    network = after_conv(
        tmp_path,
        node("MaxPool", "c", "p", "max", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 0, 0]),
        node("AveragePool", "c", "a", "mean", kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
        node("GlobalAveragePool", "c", "g", "global"),
        outputs=("p", "a", "g"),
    ).network
    hosts = {host.name: host for host in network.host_operators()}
    assert hosts["max"].window == Window(3, 2, 2, 1, 1, 0, 0, 0) and hosts["max"].output.shape == (1, 4, 4, 7)
    assert hosts["mean"].window == Window(2, 2, 1, 1, 0, 0, 1, 1) and hosts["mean"].ops == 4 * 64 * 4
    assert (hosts["global"].op, hosts["global"].ops, hosts["global"].output.shape) == ("global_average_pool", 256, (1, 4, 1, 1))
    assert message(after_conv, tmp_path, node("MaxPool", "c", "y", "m")).endswith("m.kernel_shape: MaxPool needs it")


# -- what is listed -----------------------------------------------------------------------------------------------------


def test_names():
    names = {
        "LeakyRelu": "leaky_relu",
        "LRN": "local_response_norm",
        "GlobalAveragePool": "global_average_pool",
        "LpPool": "lp_pool",
        "NonMaxSuppression": "non_max_suppression",
        "DepthToSpace": "depth_to_space",
        "STFT": "stft",
        "HardSwish": "hard_swish",
    }
    assert {op: operator_name(Node(node(op, "x", "y"), "n", "n")) for op in names} == names
    assert operator_name(Node(node("QLinearAdd", "x", "y", domain="com.microsoft"), "n", "n")) == "add"
    assert operator_name(Node(node("Odd Op", "x", "y", domain="a b"), "n", "n")) == "ab.oddop"


def test_unknown_operators_and_sizes_are_listed(tmp_path):
    network = after_conv(tmp_path, node("NonZero", "c", "n", "points"), node("Mystery", "n", "y", "odd", domain="somebody")).network
    assert [(host.op, host.output.shape, host.bytes_written) for host in network.host_operators()] == [
        ("non_zero", UNKNOWN_SHAPE, 0),
        ("somebody.mystery", UNKNOWN_SHAPE, 0),
    ]
    assert [layer["output_shape"] for layer in network.to_dict()["layers"][1:]] == [None, None]


def test_control_flow_is_listed_with_what_is_inside(tmp_path):
    inner = helper.make_graph([node("Conv", "c v", "t"), node("Relu", "t", "u")], "g", [], [value("u", (1, 4, 8, 8))])
    other = helper.make_graph([node("Identity", "c", "u")], "g", [], [value("u", (1, 4, 8, 8))])
    found = after_conv(
        tmp_path,
        node("If", "flag", "y", "if", then_branch=inner, else_branch=other),
        constants={"v": zeros(4, 4, 1, 1), "flag": np.array(True)},
    )
    (host,) = found.network.host_operators()
    assert (host.op, host.inputs, host.output.shape) == ("if", ("conv",), (1, 4, 8, 8))
    assert host.note == "control flow over 3 operators, among them 1 Conv: not looked into"


def test_operators_that_hide_products(tmp_path):
    found = after_conv(tmp_path, node("Einsum", "c c", "y", "sum", equation="bchw,bchw->b"))
    assert found.notes == ("sum: a product written as Einsum is not looked into: export it as MatMul",)
    found = after_conv(tmp_path, node("FusedConv", "c v", "y", "fused", domain="com.microsoft"), constants={"v": zeros(2, 4, 1, 1)})
    assert found.notes == ("fused: ONNX Runtime's optimiser made it: import the model as it was before",)
    assert found.network.operator("fused").output.shape == (1, 2, 8, 8)


def test_bits_of_other_types(tmp_path):
    network = after_conv(
        tmp_path,
        node("Shape", "c", "unused"),
        node("ArgMax", "c", "i", "arg"),
        node("Cast", "i", "f", "cast", to=F32),
        node("Cast", "c", "b", "flag", to=TensorProto.BOOL),
        outputs=("f", value("b", None, TensorProto.BOOL)),
    ).network
    assert {host.name: (host.output.bits, host.ops) for host in network.host_operators()} == {
        "arg": (64, 256),
        "cast": (8, 0),
        "flag": (8, 0),
    }


def test_integers_that_are_no_activations(tmp_path):
    found = imported(
        tmp_path,
        [node("Gather", "table i", "e", "embed"), node("MatMul", "e w", "y", "m")],
        [value("i", (1, 7), I64)],
        ["y"],
        {"table": zeros(100, 16), "w": zeros(16, 4)},
    )
    embed = found.network.host_operators()[0]
    assert (embed.op, embed.parameters, embed.operands[0].bits, embed.output.bits) == ("gather", 1600, 64, 8)
    assert found.network.array_operators[0].precision == "w8a8"


def test_wide_integers_stay_on_the_host(tmp_path):
    nodes = [node("MatMul", "i w", "y", "m"), node("Conv", "x v", "z")]
    found = imported(
        tmp_path,
        nodes,
        [value("i", (3, 7), I32), value("x", (1, 3, 8, 8))],
        [value("y", None, I32), "z"],
        {"w": zeros(7, 2, kind=np.int32), "v": zeros(2, 3, 1, 1)},
    )
    assert found.notes == ("m: operands of 32 bits, the array has at most 16",)
    assert found.network.operator("m").ops == 2 * 42


def test_dynamic_quantisation(tmp_path):
    """As ONNX Runtime's quantize_dynamic writes it: the sums leave the array requantised, whatever they are converted to."""
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z", "quantise"),
        node("MatMulInteger", "q w z wz", "p", "product"),
        node("Cast", "p", "f", to=F32),
        node("Mul", "s ws", "k", "scales"),
        node("Mul", "f k", "m", "scale"),
        node("Add", "m b", "y", "bias"),
    ]
    network = imported(
        tmp_path,
        nodes,
        [value("x", (1, 5, 16))],
        ["y"],
        {"w": np.ones((16, 4), np.int8), "wz": np.array(0, np.int8), "ws": np.array(0.1, F), "b": zeros(4)},
    ).network
    assert network.array_operators[0].precision == "w8a8"
    assert [(host.name, host.op) for host in network.host_operators() if not host.is_view] == [
        ("quantise", "quantize"),
        ("quantise.1", "quantize"),
        ("quantise.2", "quantize"),
        ("scales", "multiply"),
        ("scale", "multiply"),
        ("bias", "add"),
    ]
