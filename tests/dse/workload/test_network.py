"""The network itself: what it refuses, its graph and its dictionary."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import networkx
import pytest

from boards.errors import InputError
from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network
from dse.workload.operators import ELEMENT_BITS, ArrayOperator, InputOperator, Tensor
from hdl import design
from hdl.layer import Layer


@pytest.fixture(scope="module")
def network() -> Network:
    b = NetworkBuilder("net", weight_bits=4, title="a test")
    x = b.input((1, 3, 8, 8), "image")
    y = b.relu(b.conv(x, "conv1", K=6, F=3, SY=2, PT=1, PL=1, G=3))
    y = b.max_pool(y, "pool", F=2, S=2)
    z = b.conv(y, "conv2", K=6, F=1, bias=False)
    b.linear(b.flatten(b.add(y, z, name="add"), "flat"), "fc", K=10)
    return b.build()


def message(**changes) -> str:
    with pytest.raises(InputError) as caught:
        Network(**changes)
    return str(caught.value)


def test_layers_in_order(network):
    assert list(network.array_layers()) == ["conv1", "conv2", "fc"]
    assert network.array_layers()["conv1"] == Layer.conv(name="conv1", K=6, C=3, G=3, IY=8, IX=8, FY=3, FX=3, SY=2, PT=1, PL=1, lo=0)
    assert [node.name for node in network.host_operators()] == ["pool", "add", "flat"]
    assert [node.name for node in network.inputs] == ["image"] and network.outputs == ("fc",)


def test_totals_by_hand(network):
    conv1, conv2, linear = 6 * 9 * 4 * 7, 6 * 6 * 2 * 3, 10 * 36
    assert network.macs == conv1 + conv2 + linear
    assert network.weights == 54 + 36 + 360 and network.parameters == network.weights + 6 + 10
    assert network.activations == 6 * 4 * 7 + 36 + 36 + 36 + 10
    totals = network.totals()
    assert totals["weight_bytes"] == 27 + 18 + 180
    assert totals["operand_bytes"] == totals["weight_bytes"] + (192 + 168) + (36 + 36) + (36 + 10)
    assert totals["host_ops"] == 36 * 4 + 36 and totals["host_bytes"] == (168 + 36) + (72 + 36)
    assert totals["array_layers"] == totals["host_operators"] == 3


def test_graph(network):
    graph = network.graph
    assert graph["pool"]["add"]["tensor"] == Tensor((1, 6, 2, 3), 8)
    assert graph.edges["image", "conv1"]["shape"] == (1, 3, 8, 8) and graph.edges["image", "conv1"]["elements"] == 192
    assert graph.nodes["conv2"]["operator"] is network.operator("conv2")
    assert list(networkx.topological_sort(graph))[0] == "image"
    with pytest.raises(networkx.NetworkXError):
        graph.add_node("another")
    with pytest.raises(FrozenInstanceError):
        network.name = "other"  # type: ignore[misc]


def test_dictionary_has_what_the_contract_says(network):
    data = json.loads(json.dumps(network.to_dict()))
    keys = "name op kind B K C OY OX FY FX IY IX SY SX DY DX pads G precision macs weights activations".split()
    assert [layer["name"] for layer in data["layers"]] == ["conv1", "pool", "conv2", "add", "flat", "fc"]
    for layer in data["layers"]:
        assert set(keys) <= layer.keys()
    first, pool, _, _, flat, last = data["layers"]
    assert {key: first[key] for key in keys} == {
        "name": "conv1", "op": "conv", "kind": "conv", "B": 1, "K": 6, "C": 3, "OY": 4, "OX": 7, "FY": 3, "FX": 3, "IY": 8, "IX": 8,
        "SY": 2, "SX": 1, "DY": 1, "DX": 1, "pads": [1, 1, 0, 0], "G": 3, "precision": "w4a8", "macs": 6 * 9 * 28, "weights": 54,
        "activations": 168}
    assert first["folded"] == ["relu"] and first["bias"] and first["inputs"] == ["image"]
    assert (pool["kind"], pool["op"], pool["K"], pool["OY"], pool["FX"], pool["SY"], pool["macs"], pool["pads"]) == (
        "host", "max_pool", 6, 2, 2, 2, 0, [0, 0, 0, 0])
    assert flat["bytes_read"] == flat["activations"] == 0
    assert last["kind"] == "linear" and last["ops_per_byte"] == pytest.approx(720 / (180 + 36 + 10))
    assert data["totals"]["macs"] == network.macs == sum(layer["macs"] for layer in data["layers"])
    assert data["totals"]["activations"] == sum(layer["activations"] for layer in data["layers"])


def test_what_it_refuses(network):
    image, conv1, *_ = network.nodes
    assert message(name="n", nodes=(image,)) == "n: no convolution or linear layer"
    assert message(name="n", nodes=(conv1, image)).startswith("n: conv1.inputs: no such operator before this one, got 'image'")
    assert message(name="n", nodes=(image, conv1, conv1)) == "n: conv1: an earlier operator has this name"
    small = InputOperator(name="image", output=Tensor((1, 3, 4, 4), 8))
    assert message(name="n", nodes=(small, conv1)) == (
        "n: conv1.inputs: reads Tensor(shape=(1, 3, 8, 8), bits=8) from image, which is Tensor(shape=(1, 3, 4, 4), bits=8)")
    assert message(name="n", nodes=(image, replace(conv1, inputs=()))) == "n: conv1.inputs: reads 1 tensors, got ()"
    assert message(name="n", nodes=(image, conv1), weight_bits=5).startswith("weight_bits: not a width")
    with pytest.raises(InputError) as caught:
        network.operator("conv3")
    assert str(caught.value) == ("net: no such operator in the network, got 'conv3'; allowed: image, conv1, pool, conv2, add, flat, fc; "
                                 "nearest: conv2")


def test_widths_are_those_of_designs():
    assert ELEMENT_BITS == design.ELEMENT_BITS


def test_repeat_multiplies_work_and_not_weights():
    node = ArrayOperator(layer=Layer.linear(K=3, C=4), inputs=("x",), repeat=5)
    assert (node.macs, node.weights, node.activations, node.parameters) == (60, 12, 15, 15)
