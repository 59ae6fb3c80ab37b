"""Whole models: those of the onnx wheel, ZigZag's, and trained ones, counted independently."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, shape_inference

from dse.workload.load import load_whole_network, load_workload
from dse.workload.network_file import dump_network, network_from_mapping
from dse.workload.onnx_import.importer import import_onnx, load_onnx
from tests.dse.workload.onnx_import.models import imported, message, model, node, packaged, save, value, zeros

LIGHT = {  # convolutions and their MMAC, by an earlier count with ONNX's shape inference
    "bvlc_alexnet": (5, 595.9),
    "zfnet512": (5, 1401.0),
    "vgg19": (16, 19508.4),
    "squeezenet": (26, 349.2),
    "inception_v1": (57, 1430.5),
    "shufflenet": (49, 124.1),
    "resnet50": (53, 4087.1),
    "inception_v2": (69, 2017.8),
    "densenet121": (121, 2834.2),
}


def counted(path: str) -> dict[str, tuple[int, int]]:
    """MACs and weights of each Conv and Gemm by its output, from ONNX's inference alone."""
    proto = shape_inference.infer_shapes(onnx.load(path, load_external_data=False))
    sizes = {tensor.name: tuple(tensor.dims) for tensor in proto.graph.initializer}
    for found in (*proto.graph.value_info, *proto.graph.input, *proto.graph.output):
        sizes.setdefault(found.name, tuple(dim.dim_value for dim in found.type.tensor_type.shape.dim))
    counts = {}
    for entry in proto.graph.node:
        if entry.op_type == "Conv":
            weight = sizes[entry.input[1]]
            counts[entry.output[0]] = (int(np.prod(sizes[entry.output[0]]) * np.prod(weight[1:])), int(np.prod(weight)))
        elif entry.op_type == "Gemm":
            weight = int(np.prod(sizes[entry.input[1]]))
            counts[entry.output[0]] = (weight * sizes[entry.output[0]][0], weight)
    return counts


def check_counts(path: str) -> None:
    found = import_onnx(path)
    labels = {name: node.label for node in found.graph.nodes for name in node.outputs}
    expected = {labels[name]: counts for name, counts in counted(path).items()}
    assert {node.name: (node.macs, node.weights) for node in found.network.array_operators} == expected


@pytest.mark.parametrize("name", LIGHT)
def test_light_models_of_the_onnx_wheel(name):
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    check_counts(str(path))
    convolutions = [counts for output, counts in counted(str(path)).items()]
    layers = [node for node in load_onnx(str(path)).array_operators if node.kind == "conv"]
    assert (len(layers), round(sum(node.macs for node in layers) / 1e6, 1)) == LIGHT[name]
    assert len(convolutions) >= len(layers)


def test_groups_of_the_light_models():
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    groups = lambda name: {node.layer.G for node in load_onnx(str(folder / f"light_{name}.onnx")).array_operators}  # noqa: E731
    assert groups("bvlc_alexnet") == {1, 2} and groups("shufflenet") == {1, 4, 112, 136, 272, 544}


@pytest.mark.parametrize(("name", "convolutions", "mmacs"), [("alexnet", 5, 595.9), ("resnet18", 20, 1813.6), ("mobilenetv2", 52, 299.5)])
def test_zigzags_models(name, convolutions, mmacs):
    """Shape-inferred; their weights are in files that are not there."""
    path = packaged("zigzag-dse", f"zigzag/inputs/workload/{name}.onnx")
    check_counts(path)
    layers = [node for node in load_onnx(path).array_operators if node.kind == "conv"]
    assert (len(layers), round(sum(node.macs for node in layers) / 1e6, 1)) == (convolutions, mmacs)


def test_resnet18_is_that_of_the_zoo():
    ours, theirs = load_workload("resnet18"), load_onnx(packaged("zigzag-dse", "zigzag/inputs/workload/resnet18.onnx"))
    shapes = [sorted((node.macs, node.weights, node.kind) for node in network.array_operators) for network in (ours, theirs)]
    assert shapes[0] == shapes[1]


TRAINED = [  # convolutions, their MMAC at the shape
    ("nudenet", "nudenet/320n.onnx", {"images": (1, 3, 320, 320)}, 64, 1012.6),
    ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 640, 640)}, 62, 2233.1),
    ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}, 53, 16.3),
    ("rapidocr", "rapidocr/models/PP-OCRv6_det_small.onnx", {"x": (1, 3, 640, 640)}, 83, 4264.2),
    ("magika", "magika/models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}, 1, 332.9),
]


@pytest.mark.parametrize(("package", "file", "shapes", "convolutions", "mmacs"), TRAINED, ids=lambda value: str(value).split("/")[-1])
def test_trained_models_with_dynamic_inputs(package, file, shapes, convolutions, mmacs):
    path = packaged(package, file)
    (name,) = shapes
    assert f"{path}: {name}: an input without a fixed size, got [" in message(load_onnx, path)
    found = import_onnx(path, input_shapes=shapes)
    labels = {node.label for node in found.graph.nodes if node.op == "Conv"}
    layers = [node for node in found.network.array_operators if node.name in labels]
    assert (len(layers), round(sum(node.macs for node in layers) / 1e6, 1)) == (convolutions, mmacs)


@pytest.mark.parametrize(
    ("package", "file", "convolutions", "others"),
    [
        ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", 38, 13),
        ("rapidocr", "rapidocr/models/PP-OCRv6_rec_small.onnx", 57, 13),
    ],
)
def test_recognition_with_attention(package, file, convolutions, others):
    """Every product is there: those with weights, and those of queries and keys in two layers of attention."""
    found = import_onnx(packaged(package, file), input_shapes={"x": (1, 3, 48, 320)})
    kinds = {node.label: node.op for node in found.graph.nodes}
    ops = [kinds[node.name] for node in found.network.array_operators]
    assert (ops.count("Conv"), ops.count("MatMul")) == (convolutions, others)
    assert sum(node.has_computed_weights for node in found.network.array_operators) == 4


def test_counts_of_a_trained_model_by_hand():
    """LeNet-like digits: 5x5 convolutions on 28x28 and 14x14 with SAME padding, then 256 -> 10."""
    network = load_onnx(packaged("qonnx", "qonnx/data/onnx/mnist-conv/model.onnx"))
    assert [(node.macs, node.weights) for node in network.array_operators] == [
        (28 * 28 * 8 * 25, 200),
        (14 * 14 * 16 * 8 * 25, 3200),
        (2560, 2560),
    ]
    assert [node.folded for node in network.array_operators] == [("offset", "relu"), ("offset", "relu"), ("offset",)]
    assert network.parameters == 5960 + 8 + 16 + 10


@pytest.mark.parametrize(
    ("name", "precisions"), [("subpixel", ["w8a8", "w4a4", "w4a4", "w8a4"]), ("nn_resize", ["w8a8", "w4a4", "w4a4", "w8a8"])]
)
def test_bits_of_qonnx(name, precisions):
    network = load_onnx(packaged("qonnx", f"qonnx/data/onnx/bsd300x3-espcn/{name}/quant_model.onnx"), 16, 16)
    given = [node.precision for node in network.array_operators]
    # One layer of each reads what the model does not quantise, the image or a resized tensor: in the bits that are asked for.
    free = {"subpixel": 0, "nn_resize": 3}[name]
    assert given == [precision.replace("a8", "a16") if at == free else precision for at, precision in enumerate(precisions)]


def test_models_around_control_flow():
    sizes = {"input": (1, 512), "state": (2, 1, 128)}
    whole, parts = (packaged("silero-vad", f"silero_vad/data/silero_vad{file}.onnx") for file in ("", "_16k_op15"))
    text = message(load_onnx, whole, input_shapes=sizes)
    assert text.startswith(f"{whole}: no layer that the array computes, got '") and "control flow over " in text and " Conv" in text
    # Here convolutions follow, on what comes out of it.
    assert message(load_onnx, parts, input_shapes=sizes) == (
        f"{parts}: /model/decoder/decoder/2/Conv: the shape of its input /model/decoder/decoder/1/Relu_output_0 is unknown; "
        "Relu /model/decoder/decoder/1/Relu produces it"
    )


def test_versions_are_those_of_the_list():
    """Counts above are of these files."""
    lines = (Path(__file__).parents[3] / "model-packages.txt").read_text().splitlines()
    pinned = dict(line.split("  #")[0].split("==") for line in lines if not line.startswith("#"))
    assert {name: metadata.version(name) for name in pinned} == pinned


# -- small ones ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", range(7, onnx.defs.onnx_opset_version() + 1))
def test_opsets_from_7_to_today(opset, tmp_path):
    squeeze = {"axes": [2, 3]} if opset < 13 else {}
    parts = (
        [
            node("Conv", "x w b", "c", "conv"),
            node("BatchNormalization", "c b b b b", "n"),
            node("Relu", "n", "r"),
            node("GlobalAveragePool", "r", "g"),
            node("Squeeze", "g" if opset < 13 else "g axes", "s", **squeeze),
            node("Gemm", "s v b5", "y", "fc", transB=1),
        ],
        [value("x", (1, 3, 8, 8))],
        ["y"],
        {"w": zeros(4, 3, 3, 3), "b": zeros(4) + 1, "v": zeros(5, 4), "b5": zeros(5), "axes": np.array([2, 3])},
    )
    network = imported(tmp_path, *parts, opset=opset).network
    assert [(operator.name, operator.macs, operator.folded) for operator in network.array_operators] == [
        ("conv", 36 * 108, ("batch_norm", "relu")),
        ("fc", 20, ()),
    ]


def test_functions_of_the_model(tmp_path):
    block = helper.make_function(
        "mine", "Block", ["a", "w"], ["z"], [node("Conv", "a w", "c"), node("Relu", "c", "z")], [helper.make_opsetid("", 17)]
    )
    proto = model(
        [node("Block", "x w", "b", domain="mine"), node("Block", "b v", "y", domain="mine")],
        [value("x", (1, 3, 8, 8))],
        ["y"],
        {"w": zeros(4, 3, 3, 3), "v": zeros(5, 4, 3, 3)},
        functions=[block],
    )
    network = load_onnx(save(tmp_path, proto))
    assert [(operator.layer.K, operator.folded) for operator in network.array_operators] == [(4, ("relu",)), (5, ("relu",))]


def test_several_inputs_and_outputs(tmp_path):
    network = imported(
        tmp_path,
        [node("Conv", "a w", "c", "one"), node("Conv", "b w", "d", "two"), node("Add", "c d", "y", "sum")],
        [value("a", (1, 3, 8, 8)), value("b", (1, 3, 8, 8)), value("unused", (5,))],
        ["y", "c"],
        {"w": zeros(4, 3, 1, 1)},
    ).network
    assert [source.name for source in network.inputs] == ["a", "b"] and network.outputs == ("sum",)
    assert [data["shape"] for _, _, data in network.graph.edges(data=True)] == [(1, 3, 8, 8)] * 2 + [(1, 4, 8, 8)] * 2


def test_an_unknown_shape_names_who_made_it(tmp_path):
    parts = [node("NonZero", "x", "n", "points"), node("MatMul", "n w", "y", "m")], [value("x", (1, 3, 8, 8))], ["y"], {"w": zeros(4, 3)}
    assert message(imported, tmp_path, *parts).endswith("m: the shape of its input n is unknown; NonZero points produces it")


def test_a_network_without_layers(tmp_path):
    assert message(imported, tmp_path, [node("Relu", "x", "y")], [value("x", (1,))], ["y"]).endswith(
        "model.onnx: no layer that the array computes, got '1 Relu'"
    )


def test_names_do_not_clash(tmp_path):
    network = imported(
        tmp_path, [node("Conv", "x w", "c", "x"), node("Relu", "c", "y", "x.view")], [value("x", (1, 3, 9))], ["y"], {"w": zeros(4, 3, 1)}
    ).network
    assert list(network.array_layers()) == ["x"] and network.inputs[0].name == "x.2"


def test_a_network_survives_our_own_file_format(tmp_path):
    import yaml

    for file, shapes in (("nudenet/320n.onnx", {"images": (1, 3, 64, 64)}),):
        network = load_onnx(packaged("nudenet", file), input_shapes=shapes)
        assert network_from_mapping(yaml.safe_load(dump_network(network)), where="here") == network
    attention = imported(
        tmp_path,
        [node("MatMul", "a b", "y", "m"), node("Slice", "y f t", "z"), node("Einsum", "z z", "u", equation="abc,abc->a")],
        [value("a", (2, 4, 8)), value("b", (2, 8, 4))],
        ["u"],
        {"f": np.array([0]), "t": np.array([1])},
    ).network
    assert network_from_mapping(yaml.safe_load(dump_network(attention)), where="here") == attention


def test_workloads_by_path(tmp_path):
    path = save(
        tmp_path, model([node("Conv", "x w", "y", "c")], [value("x", ("n", 3, 8, 8))], ["y"], {"w": zeros(4, 3, 3, 3)}), "My net.ONNX"
    )
    assert message(load_workload, path).endswith("give it: --input-shape x=1x3x8x8")
    network = load_workload(path, 4, 4, {"x": (2, 3, 8, 8)})
    assert (network.name, network.precision, network.array_operators[0].layer.B) == ("My_net", "w4a4", 2)
    assert load_whole_network(path, 4, 4, {"x": (2, 3, 8, 8)}) == network
    assert message(load_workload, "vgg16", None, None, {"x": (1,)}) == (
        "--input-shape: only ONNX models have inputs with open sizes, got 'x'; leave it out"
    )
    assert message(load_whole_network, "vgg16", None, None, {"x": (1,)}).startswith("--input-shape: only ONNX models")
