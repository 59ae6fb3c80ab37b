"""Networks for inputs of other sizes."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.footprint.resize import load_sized, resized
from dse.workload.builder import NetworkBuilder
from dse.workload.line import network_of
from dse.workload.zoo import NAMES, load_network
from hdl.layer import Layer


@pytest.mark.parametrize("name", NAMES)
def test_the_same_size_gives_the_same_network(name):
    network = load_network(name)
    assert resized(network, {node.name: node.output.shape for node in network.inputs}) == network


def small(height: int, width: int, channels: int = 3):
    b = NetworkBuilder("small")
    x = b.relu(b.conv(b.input((1, channels, height, width)), "conv", K=8, F=3, P=1))
    y = b.conv(x, "depthwise", K=8, F=3, P=1, G=8)
    x = b.max_pool(b.add(x, y, name="sum"), "floor", F=2, S=2)
    x = b.concat(x, b.average_pool(x, "same", F=3, P=1), name="both")
    b.softmax(b.linear(b.flatten(b.max_pool(x, "ceil", F=3, S=2, ceil=True), "flat"), "fc", K=4), "softmax")
    return b.build()


@pytest.mark.parametrize("shape", [(1, 3, 10, 20), (1, 1, 33, 12), (1, 3, 224, 224)])
def test_another_size_is_that_of_a_network_built_for_it(shape):
    """Where pooling had to round up at the first size: it is known then that it does."""
    _, channels, height, width = shape
    assert resized(small(12, 12), {"input": shape}) == small(height, width, channels)


def test_depthwise_layers_follow_their_input():
    b = NetworkBuilder("deep")
    b.conv(b.input((1, 4, 8, 8)), "depthwise", K=8, F=3, G=4)
    (layer,) = resized(b.build(), {"input": (1, 6, 8, 8)}).array_layers().values()
    assert (layer.C, layer.G, layer.K) == (6, 6, 12)


def test_loading():
    layer = Layer.conv(K=8, C=3, IY=12, IX=12, FY=3, FX=3)
    text = "conv K=8 C=3 IY=12 IX=12 FY=3 FX=3"
    assert load_sized(text) == network_of(layer)
    assert next(iter(load_sized(text, {"input": (2, 5, 9, 9)}).array_layers().values())).inputs == 2 * 5 * 81
    assert load_sized("resnet18") == load_network("resnet18")


@pytest.mark.parametrize("name, shapes, message", [
    ("resnet18", {"image": (1, 3, 8, 8)}, "--input-shape: no such input, got 'image'; allowed: input"),
    ("resnet18", {"input": (3, 8, 8)}, "--input-shape: input has 4 sizes, got '3x8x8'; allowed: such as 1x3x224x224"),
    ("lenet5", {"input": (1, 1, 4, 4)}, "lenet5: c1.FY: filter covers 5, more than the padded input of 4, got 5"),
    ("deepspeech-gru", {"input": (20, 400, 1, 1)},
     "deepspeech-gru: gru1.gates: it is not known what gru_gates makes of another input size, got [20, 1200, 1, 1]")])
def test_sizes_that_cannot_be(name, shapes, message):
    with pytest.raises(InputError) as caught:
        resized(load_network(name), shapes)
    assert message in str(caught.value)
