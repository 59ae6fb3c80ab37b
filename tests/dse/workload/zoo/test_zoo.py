"""Every network against published counts. 1 MAC is one multiply-accumulate, padded taps included."""

from __future__ import annotations

import subprocess
import sys

import networkx
import pytest

from boards.errors import InputError
from dse.workload.operators import ArrayOperator
from dse.workload.zoo import NAMES, load_network
from hdl.layer import Layer

ISSUE = {"alexnet", "alexnet-owt", "vgg16", "resnet18", "resnet50", "mobilenetv2", "squeezenet", "googlenet", "lenet5", "cnv", "lfc",
         "deepspeech-gru", "digits-cnn"}

# torchvision's `num_params` and `_ops` (in 1e9 MACs) of each model; alexnet: netscope and Caffe's model zoo; lenet5: Dive into Deep
# Learning 7.6; deepspeech-gru: torch.nn.GRU(400, 400, 4) by its documented weight shapes.
PARAMETERS = {
    "alexnet": 60_965_224, "alexnet-owt": 61_100_840, "vgg16": 138_357_544, "resnet18": 11_689_512, "resnet50": 25_557_032,
    "mobilenetv2": 3_504_872, "squeezenet": 1_248_424, "squeezenet1.1": 1_235_496, "googlenet": 6_624_904, "lenet5": 61_706,
    "deepspeech-gru": 4 * (3 * 400 * 400 + 3 * 400 * 400 + 3 * 400 + 3 * 400)}
GMACS = {"alexnet-owt": 0.714, "vgg16": 15.47, "resnet18": 1.814, "resnet50": 4.089, "mobilenetv2": 0.301, "squeezenet": 0.819,
         "squeezenet1.1": 0.349, "googlenet": 1.498}


@pytest.fixture(scope="module", params=NAMES)
def network(request):
    return load_network(request.param)


def convolutions(name):
    return [node for node in load_network(name).array_operators if node.kind == "conv"]


def test_all_of_the_issue_are_there():
    assert ISSUE <= set(NAMES) and list(NAMES) == sorted(NAMES)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_as_published(name):
    assert load_network(name).parameters == PARAMETERS[name]


@pytest.mark.parametrize("name", GMACS)
def test_macs_as_published(name):
    digits = len(str(GMACS[name]).partition(".")[2])
    assert round(load_network(name).macs / 1e9, digits) == GMACS[name]


def test_alexnet():
    assert load_network("alexnet").macs == 724_406_816  # netscope
    convs = convolutions("alexnet")
    assert [node.layer.G for node in convs] == [1, 2, 1, 2, 2]
    assert round(sum(node.macs for node in convs) / 1e6) == 666  # Eyeriss, ISSCC 2016
    assert round(sum(node.weights for node in convs) / 1e6, 1) == 2.3
    # Zhang et al., FPGA 2015, table: (M, N, R=C, K) of one of the two groups.
    table = [(48, 3, 55, 11), (128, 48, 27, 5), (192, 256, 13, 3), (192, 192, 13, 3), (128, 192, 13, 3)]
    assert [(node.layer.K // 2, node.layer.C // node.layer.G, node.layer.OY, node.layer.FY) for node in convs] == table
    # Sizes of the layers in figure 2 of the paper, conv2 on.
    assert [node.activations for node in convs[1:]] == [186_624, 64_896, 64_896, 43_264]


def test_vgg16_convolutions():
    convs = convolutions("vgg16")  # Eyeriss, ISSCC 2016
    assert len(convs) == 13
    assert round(sum(node.macs for node in convs) / 1e9, 1) == 15.3
    assert round(sum(node.weights for node in convs) / 1e6, 1) == 14.7


@pytest.mark.parametrize("name, count, mmacs", [("resnet18", 20, 1813.6), ("mobilenetv2", 52, 299.5), ("squeezenet1.1", 26, 349.2),
                                                ("resnet50", 53, 4087.1)])
def test_convolutions_of_onnx_models(name, count, mmacs):
    """ZigZag's resnet18 and mobilenetv2, the ONNX project's light_squeezenet and light_resnet50 (which has its strides in the 3x3)."""
    convs = convolutions(name)
    assert len(convs) == count
    assert round(sum(node.macs for node in convs) / 1e6, 1) == mmacs


def test_resnet50_produces_about_16_million_activations():
    network = load_network("resnet50")  # Graphcore 2017: about 26 M weights, about 16 M activations
    assert round(network.weights / 1e6) == 26
    assert 16e6 < network.activations < 17e6


def test_lenet5_layers_as_in_the_paper():
    nodes = {node.name: node for node in load_network("lenet5").array_operators}
    assert [nodes[name].parameters for name in ("c1", "c5", "f6")] == [156, 48_120, 10_164]
    assert nodes["c1"].macs + nodes["c1"].activations == 122_304  # connections, the bias is one
    assert nodes["c3"].layer.C * 25 * 16 + 16 - nodes["c3"].parameters == 0 and nodes["c3"].parameters - 1_516 == 900


def test_cnv():
    network = load_network("cnv")
    # "#Ops" of L0 to L8 in BNN-PYNQ's cnvW1A1/hw/config.h: 2 ops a MAC.
    ops = [3_110_400, 57_802_752, 21_233_664, 29_491_200, 5_308_416, 1_179_648, 262_144, 524_288, 65_536]
    assert [2 * node.macs for node in network.array_operators] == ops
    assert network.macs == 59_489_024
    assert [node.precision for node in network.array_operators] == ["w1a8"] + ["w1a1"] * 8
    assert [node.output_bits for node in network.array_operators] == [1] * 8 + [16]
    assert all(node.folded == ("batch_norm", "sign") for node in network.array_operators[:-1])
    assert network.precision == "w1a1"


def test_lfc():
    network = load_network("lfc")
    assert network.macs == 2_910_208  # FINN, FPGA 2017
    # lfcW1A1/hw/config.h: MatW x MatH, padded from 784 inputs and 10 outputs.
    padded = [(832, 1024), (1024, 1024), (1024, 1024), (1024, 64)]
    sizes = [(node.layer.C, node.layer.K) for node in network.array_operators]
    assert [(min(w, w if i else 784), min(h, h if i < 3 else 10)) for i, (w, h) in enumerate(padded)] == sizes
    assert network.inputs[0].output.bits == 8 and network.array_operators[0].precision == "w1a1"


def test_gru():
    network = load_network("deepspeech-gru")
    assert network.weights == 4 * 6 * 400 * 400  # once, though each is used in 50 steps
    assert network.macs == 50 * network.weights
    recurrent, inputs = network.operator("gru2.recurrent"), network.operator("gru2.input")
    assert isinstance(recurrent, ArrayOperator) and isinstance(inputs, ArrayOperator)
    assert (recurrent.repeat, recurrent.layer.B) == (50, 1) and (inputs.repeat, inputs.layer.B) == (1, 50)
    assert recurrent.output.shape == inputs.output.shape == (50, 1200, 1, 1)
    # One vector on weights of a byte: 2 ops for each byte of weights, and nearly all bytes are weights (Culurciello et al. 2017).
    assert 1.95 < recurrent.ops_per_byte < 2
    assert inputs.ops_per_byte > 50
    assert set(network.graph.predecessors("gru3.input")) == {"gru2.gates"}


def test_digits_cnn_counts_by_hand():
    network = load_network("digits-cnn")
    assert network.parameters == (9 + 1) * 8 + (8 * 9 + 1) * 16 + (16 * 9 + 1) * 32 + (32 * 4 + 1) * 10
    assert network.macs == 64 * 8 * 9 + 16 * 16 * 8 * 9 + 4 * 32 * 16 * 9 + 10 * 128


def test_googlenet_has_the_papers_maps():
    network = load_network("googlenet")  # table 1 of the paper, "output size"
    expected = {"inception3a": (256, 28), "inception3b": (480, 28), "inception4a": (512, 14), "inception4d": (528, 14),
                "inception4e": (832, 14), "inception5b": (1024, 7)}
    for name, (channels, size) in expected.items():
        assert network.operator(f"{name}.concat").output.shape == (1, channels, size, size)
    assert len(convolutions("googlenet")) == 57


def test_every_layer_is_a_valid_layer(network):
    for name, layer in network.array_layers().items():
        assert layer.name == name and Layer.from_dict(layer.to_dict()) == layer


def test_the_graph_is_one_acyclic_whole(network):
    graph = network.graph
    assert networkx.is_directed_acyclic_graph(graph) and networkx.is_weakly_connected(graph)
    assert list(graph) == [node.name for node in network.nodes]
    position = {name: index for index, name in enumerate(graph)}
    for source, target, data in graph.edges(data=True):
        assert position[source] < position[target]
        assert data["tensor"].shape == data["shape"] and data["bits"] == data["tensor"].bits
        assert data["elements"] == data["tensor"].elements


def test_nothing_that_the_output_stage_can_do_is_left_on_the_host(network):
    readers = {node.name: list(network.graph.successors(node.name)) for node in network.array_operators}
    for name, after in readers.items():
        if len(after) == 1:
            assert getattr(network.operator(after[0]), "op", "") not in ("relu", "relu6", "batch_norm"), name


def test_precision(network):
    other = load_network(network.name, 4, 2)
    assert other.precision == "w4a2" and other.macs == network.macs and other.weights == network.weights
    assert all(node.weight_bits == 4 for node in other.array_operators)
    assert {node.activation_bits for node in other.array_operators[1:]} == {2}


def test_own_precision_is_w8a8_but_for_binary_networks():
    assert {name: load_network(name).precision for name in NAMES} == {
        name: "w1a1" if name in ("cnv", "lfc") else "w8a8" for name in NAMES}


def test_unknown_name():
    with pytest.raises(InputError) as caught:
        load_network("resnet-18")
    assert str(caught.value).startswith("network: not in the zoo, got 'resnet-18'; allowed: alexnet, ")
    assert str(caught.value).endswith("; nearest: resnet18")


def test_names_are_known_without_building():
    code = ("import sys; from dse.workload.zoo import NAMES; "
            "print([m for m in sys.modules if m.startswith('dse.workload.zoo.') or m in ('networkx', 'numpy', 'amaranth')])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
