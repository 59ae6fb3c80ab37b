"""Layers of a network that follow each other, as a network."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.workload.line import line_of, lines, network_of
from dse.workload.operators import InputOperator
from dse.workload.zoo import load_network
from hdl.layer import Layer

DIGITS = load_network("digits-cnn")


def test_lines_of_real_networks() -> None:
    assert lines(load_network("lfc")) == [("fc0", "fc1", "fc2", "fc3")]
    assert lines(load_network("digits-cnn")) == [("conv1", "conv2", "conv3")]
    assert lines(load_network("deepspeech-gru")) == []  # each step reads a state beside the input
    blocks = lines(load_network("resnet50"))
    assert len(blocks) == 16 and all([name[-5:] for name in block] == ["conv1", "conv2", "conv3"] for block in blocks)


def test_the_layers_and_an_input() -> None:
    line = line_of(DIGITS, ["conv2", "conv3"])
    source, first, second = line.nodes
    assert line.name == "digits-cnn:conv2+conv3" and isinstance(source, InputOperator)
    assert source.output.shape == (1, 8, 8, 8) and source.output.bits == 8
    assert list(line.array_layers().values()) == [DIGITS.array_layers()[name] for name in ("conv2", "conv3")]
    assert first.inputs == ("input",) and second.inputs == ("conv2",) and line.precision == DIGITS.precision


@pytest.mark.parametrize("names, message", [
    (["conv1", "conv3"], "--layer: conv3 reads conv2, not conv1, got 'conv1+conv3'; name layers that follow each other, with nothing "
                         "between them"),
    (["conv3", "fc"], "--layer: fc reads flatten1, not conv3, got 'conv3+fc'; name layers that follow each other, with nothing "
                      "between them"),
    (["conv1", "conv9"], "--layer: no such layer in the workload, got 'conv9'; allowed: conv1, conv2, conv3, fc; nearest: conv3"),
    (["conv1", ""], "--layer: no such layer in the workload, got ''; allowed: conv1, conv2, conv3, fc"),
])
def test_what_is_no_line(names: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        line_of(DIGITS, names)
    assert str(caught.value) == message


def test_a_layer_as_a_network() -> None:
    layer = Layer.conv(name="input", K=4, C=3, IY=8, IX=6, FY=3, FX=3, B=2)
    network = network_of(layer, 4, 16)
    assert network.array_layers() == {"input": layer} and network.precision == "w4a16"
    assert (network.inputs[0].name, network.inputs[0].output.shape, network.parameters) == ("source", (2, 3, 8, 6), 4 * 3 * 9)
    assert network_of(Layer.linear(K=4, C=3)).inputs[0].name == "input"
