"""Network files: round trips, and one message for whatever else the file holds."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.workload.network_file import dump_network, load_network_file
from dse.workload.operators import ArrayOperator
from dse.workload.zoo import NAMES, load_network

SMALL = """
name: small
weight_bits: 4
nodes:
  - {op: input, name: image, shape: [1, 3, 16, 16]}
  - {op: conv, name: conv1, K: 8, F: 3, S: 2, P: 1, bias: false}
  - {op: batch_norm}
  - {op: relu}
  - {op: max_pool, name: pool, F: 2, S: 2}
  - {op: conv, name: conv2, K: 8, F: 1}
  - {op: add, name: sum, inputs: [pool, conv2]}
  - {op: tanh}
  - {op: flatten}
  - {op: linear, name: fc, K: 10, weight_bits: 8}
  - {op: host, operator: argmax, shape: [1, 1, 1, 1], ops: 9}
"""


def write(tmp_path, text):
    path = tmp_path / "net.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name, bits", [*((name, ()) for name in NAMES), ("cnv", (2, 4)), ("lfc", (8, 8)), ("lenet5", (16, 1)),
                                        ("deepspeech-gru", (4, 16))])
def test_zoo_round_trips(name, bits, tmp_path):
    network = load_network(name, *bits)
    assert load_network_file(write(tmp_path, dump_network(network))) == network


def test_a_written_network(tmp_path):
    network = load_network_file(write(tmp_path, SMALL))
    assert [node.name for node in network.nodes] == ["image", "conv1", "pool", "conv2", "sum", "tanh1", "flatten1", "fc", "argmax1"]
    conv1, conv2, fc = network.array_operators
    assert conv1.folded == ("batch_norm", "relu") and not conv1.bias and conv1.layer.pads == (1, 1, 1, 1)
    assert [node.precision for node in (conv1, conv2, fc)] == ["w4a8", "w4a8", "w8a8"]
    assert network.operator("sum").inputs == ("pool", "conv2")
    assert load_network_file(write(tmp_path, dump_network(network))) == network


def test_bits_replace_those_of_the_head(tmp_path):
    network = load_network_file(write(tmp_path, SMALL), 2, 1)
    assert network.precision == "w2a1" and [node.precision for node in network.array_operators] == ["w2a1", "w2a1", "w8a1"]


def test_kept_tensors_stay_kept(tmp_path):
    text = "nodes: [{op: input, shape: [1, 1, 2, 2]}, {op: conv, K: 1, F: 1}, {op: host, operator: relu}]"
    network = load_network_file(write(tmp_path, text))
    again = load_network_file(write(tmp_path, dump_network(network)))
    assert again == network and isinstance(again.nodes[1], ArrayOperator) and again.nodes[1].folded == ()


HEAD = "nodes:\n  - {op: input, shape: [1, 2, 4, 4]}\n"
WRONG = {
    "no nodes": ("name: a", "nodes: must be a list of operators, got None; allowed: 1 to 20000"),
    "nodes": ("nodes: {a: 1}", "nodes: must be a list of operators, got {'a': 1}"),
    "key": ("nodes: []\nweightbits: 3", "unknown key, got 'weightbits'; allowed: name, title, weight_bits, activation_bits, nodes; "
                                        "nearest: weight_bits"),
    "bits": ("nodes: [{op: input}]\nweight_bits: 3", "network.weight_bits: not a width that the array has, got 3"),
    "name": ("nodes: [{op: input}]\nname: 3", "network.name: must be a string, got 3"),
    "title": ("nodes: [{op: input}]\ntitle: 3", "title: must be a string, got 3"),
    "node": ("nodes: [conv]", "nodes[0]: must be a mapping with op, got 'conv'; for example {op: conv, K: 16, F: 3}"),
    "no op": ("nodes: [{K: 1}]", "nodes[0].op: missing, got None; allowed: input, conv, "),
    "op": (HEAD + "  - {op: convv}", "nodes[1].op: unknown operator, got 'convv'; "),
    "method": (HEAD + "  - {op: build}", "nodes[1].op: unknown operator, got 'build'; "),
    "shape": ("nodes: [{op: input, shape: 3}]", "nodes[0].shape: must be a list of whole numbers, got 3"),
    "shape item": ("nodes: [{op: input, shape: [1, true]}]", "nodes[0].shape: must be a list of whole numbers, got [1, True]"),
    "no input": ("nodes: [{op: relu}]", "nodes[0].inputs: must be a list of names, got None"),
    "two inputs": (HEAD + "  - {op: relu, inputs: [input, input]}", "nodes[1].inputs: relu reads one operator, got ['input', 'input']"),
    "unknown input": (HEAD + "  - {op: relu, inputs: [imput]}", "relu1.inputs: no such operator before this one, got 'imput'; "),
    "argument": (HEAD + "  - {op: flatten, axis: 1}", "nodes[1]: unknown key, got 'axis'; allowed: op, inputs, name"),
    "dimension": (HEAD + "  - {op: conv, name: c, K: 1, F: 1, stride: 2}", "c: unknown key, got 'stride'; "),
    "value": (HEAD + "  - {op: conv, name: c, K: big, F: 1}", "c.K: must be a whole number, got 'big'; allowed: 1 to 65536"),
    "own key": (HEAD + "  - {op: conv, name: c, self: 1}", "nodes[1]: unknown key, got 'self'"),
    "name number": (HEAD + "  - {op: relu, name: 3}", "nodes[1].name: must be a string, got 3"),
    "host": (HEAD + "  - {op: host}", "nodes[1].operator: must be the operator's name, got None; for example sigmoid"),
    "host ops": (HEAD + "  - {op: host, operator: x, ops: -1}", "x1.ops: out of range, got -1"),
    "window": (HEAD + "  - {op: host, operator: x, window: {F: 0}}", "nodes[1].window: F: out of range, got 0; allowed: 1 to 4095"),
    "window text": (HEAD + "  - {op: host, operator: x, window: 3}", "nodes[1].window: must be a mapping of FY, FX, .., got 3"),
    "bias": (HEAD + "  - {op: conv, name: c, K: 1, F: 1, bias: 0}", "c.bias: must be true or false, got 0"),
    "folded": (HEAD + "  - {op: conv, name: c, K: 1, F: 1, folded: relu}", "nodes[1].folded: must be a list of names, got 'relu'"),
    "repeat": (HEAD + "  - {op: conv, name: c, K: 1, F: 1, repeat: 1.5}", "c.repeat: must be a whole number, got 1.5"),
    "ceil": (HEAD + "  - {op: max_pool, name: p, F: 2, ceil: 1}", "p.ceil: must be true or false, got 1"),
    "size": (HEAD + "  - {op: local_response_norm, name: n, size: many}", "n.size: must be a whole number, got 'many'"),
    "source twice": (HEAD + "  - {op: relu, source: input}", "nodes[1]: unknown key, got 'source'"),
    "source of conv": (HEAD + "  - {op: conv, source: input, K: 1, F: 1}", "nodes[1]: unknown key, got 'source'"),
    "unhashable": (HEAD + "  - {op: [conv]}", "nodes[1].op: unknown operator, got ['conv']"),
    "no layer": (HEAD, "no convolution or linear layer"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_file_and_node(name, tmp_path):
    text, expected = WRONG[name]
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_network_file(path)
    assert str(caught.value).startswith(f"{path}: {expected}")
