"""The builder: shapes, names, bits and errors."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.workload.builder import NetworkBuilder
from dse.workload.operators import ArrayOperator, HostOperator, Tensor


def builder(**options) -> NetworkBuilder:
    b = NetworkBuilder("net", **options)
    b.input((2, 3, 9, 12))
    return b


def message(call) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value)


def test_the_docstrings_example():
    b = NetworkBuilder("tiny")
    x = b.input((1, 3, 32, 32))
    x = b.relu(b.batch_norm(b.conv(x, "conv1", K=16, F=3, P=1, bias=False)))
    x = b.linear(b.flatten(x), "fc", K=10)
    network = b.build()
    assert [node.name for node in network.nodes] == ["input", "conv1", "flatten1", "fc"]
    assert network.macs == 16 * 3 * 9 * 32 * 32 + 10 * 16 * 32 * 32
    assert network.parameters == 16 * 27 + 2 * 16 + 10 * 16 * 1024 + 10
    assert network.outputs == ("fc",)


def test_shapes():
    b = builder()
    shapes = {
        (2, 8, 4, 6): b.conv("input", K=8, FY=3, FX=2, S=2),
        (2, 6, 9, 12): b.conv("input", K=6, F=5, P=2, G=3),
        (2, 3, 4, 6): b.max_pool("input", F=2, S=2),
        (2, 3, 5, 6): b.average_pool("input", F=2, S=2, ceil=True),
        (2, 3, 1, 1): b.global_average_pool("input"),
        (2, 324, 1, 1): b.flatten("input"),
        (2, 9, 9, 12): b.concat("input", "conv2"),
    }
    for shape, name in shapes.items():
        assert b.tensor(name).shape == shape
    assert b.tensor(b.linear("flatten1", K=7)).shape == (2, 7, 1, 1)
    assert b.tensor(b.multiply("input", "global_average_pool1")).shape == (2, 3, 9, 12)
    assert b.tensor(b.add("input", "input", "input")).shape == (2, 3, 9, 12)
    assert b.tensor(b.host("resize", "input", shape=[2, 3, 18, 24])).shape == (2, 3, 18, 24)


def test_host_counts():
    b = builder()
    elements = 2 * 3 * 9 * 12
    made = [b.add("input", "input", "input"), b.softmax("input"), b.max_pool("input", F=3, S=3), b.concat("input", "input"),
            b.global_average_pool("input"), b.flatten("input"), b.batch_norm("input"), b.local_response_norm("input", size=5)]
    b.linear("flatten1", K=1)
    network = b.build()
    nodes = [network.operator(name) for name in made]
    assert all(isinstance(node, HostOperator) for node in nodes)
    assert [node.ops for node in nodes] == [2 * elements, 5 * elements, 2 * 3 * 3 * 4 * 9, 0, elements, 0, 2 * elements, 11 * elements]
    assert [node.bytes_read for node in nodes] == [3 * elements, elements, elements, 2 * elements, elements, 0, elements, elements]
    assert [node.bytes_written for node in nodes] == [elements, elements, 2 * 3 * 3 * 4, 2 * elements, 6, 0, elements, elements]
    assert nodes[6].parameters == 6


def test_bits_follow_the_tensors():
    b = NetworkBuilder("net", weight_bits=2, activation_bits=4)
    x = b.input((1, 8, 4, 4), bits=8)
    y = b.conv(x, "first", K=8, F=1)
    z = b.conv(b.max_pool(y, F=2, S=2), "second", K=8, F=1, weight_bits=1, output_bits=16)
    b.conv(b.host("quantise", z, bits=4), "third", K=1, F=1)
    nodes = {node.name: node for node in b.build().array_operators}
    assert [(node.precision, node.output_bits) for node in nodes.values()] == [("w2a8", 4), ("w1a4", 16), ("w2a4", 4)]


def test_repeated_layers():
    b = NetworkBuilder("net")
    x = b.input((12, 5, 1, 1))
    state = b.input((2, 5, 1, 1), "state", is_state=True)
    b.linear(x, "steps", K=3, repeat=6)
    b.linear(state, "recurrent", K=3, repeat=6)
    for node in b.build().array_operators:
        assert (node.layer.B, node.repeat, node.macs, node.weights, node.output.shape) == (2, 6, 12 * 15, 15, (12, 3, 1, 1))
        assert node.operand_bytes == 6 * (15 + 10 + 6)
        assert node.ops_per_byte == pytest.approx(2 * 12 * 15 / node.operand_bytes)


def test_names_are_unique():
    b = builder()
    assert [b.relu("input"), b.relu("input"), b.relu("input", "relu4"), b.relu("input"), b.relu("input")] == [
        "relu1", "relu2", "relu4", "relu3", "relu5"]


WRONG = {
    "no such source": (lambda b: b.relu("imput"), "net: relu1.inputs: no such operator before this one, got 'imput'; allowed: input; "
                                                  "nearest: input"),
    "name twice": (lambda b: b.relu("input", "input"), "net: input.name: an earlier operator has this name, got 'input'"),
    "name with space": (lambda b: b.relu("input", "a b"), "net: a b.name: not a name, got 'a b'; allowed: 1 to 200 printable "
                                                          "characters without spaces"),
    "missing K": (lambda b: b.conv("input", "c", F=1), "net: c.K: missing; conv needs K, C, FY, FX, and OY OX or IY IX"),
    "K": (lambda b: b.conv("input", "c", K=0, F=1), "net: c.K: out of range, got 0; allowed: 1 to 65536"),
    "key": (lambda b: b.conv("input", "c", K=1, F=1, stride=2), "net: c: unknown key, got 'stride'"),
    "given C": (lambda b: b.conv("input", "c", K=1, F=1, C=3), "net: c.C: follows from the input, got 3; leave it out"),
    "large filter": (lambda b: b.conv("input", "c", K=1, F=10), "net: c.FY: filter covers 10, more than the padded input of 9, got 10"),
    "groups": (lambda b: b.conv("input", "c", K=4, F=1, G=2), "net: c.G: "),
    "unflattened": (lambda b: b.linear("input", "fc", K=1),
                    "net: fc.inputs: a linear layer reads (B, C, 1, 1), got (2, 3, 9, 12); flatten it first"),
    "width": (lambda b: b.conv("input", "c", K=1, F=1, weight_bits=3),
              "net: c.weight_bits: not a width that the array has, got 3; allowed: 1, 2, 4, 8, 16"),
    "narrow": (lambda b: b.conv("input", "c", K=1, F=1, activation_bits=4),
               "net: c.activation_bits: reads elements of 8 bits, got 4; allowed: at least 8"),
    "bias": (lambda b: b.conv("input", "c", K=1, F=1, bias=1), "net: c.bias: must be true or false, got 1"),
    "folded": (lambda b: b.conv("input", "c", K=1, F=1, folded=["relu", "batch_norm"]),
               "net: c.folded: the output stage computes a normalisation, then an activation, got ('relu', 'batch_norm')"),
    "steps": (lambda b: b.linear(b.flatten("input"), "fc", K=1, repeat=3), "net: fc.repeat: 2 inputs are not so many equal steps, got 3"),
    "repeat": (lambda b: b.linear(b.flatten("input"), "fc", K=1, repeat=0), "net: fc.repeat: out of range, got 0; allowed: 1 to 1048576"),
    "add one": (lambda b: b.add("input"), "net: add1.inputs: add takes two tensors or more, got ['input']"),
    "add shapes": (lambda b: b.add("input", b.conv("input", K=2, F=1)), "net: add1: shapes do not agree, got "),
    "concat shapes": (lambda b: b.concat("input", b.max_pool("input", F=2)), "net: concat1: shapes differ in more than channels"),
    "activation": (lambda b: b.activation("sigmoyd", "input"), "net: activation: unknown activation, got 'sigmoyd'; "),
    "reads nothing": (lambda b: b.host("noise"), "net: noise1: reads nothing; name its inputs"),
    "shape": (lambda b: b.input((1, 0), "x"), "net: x.shape: out of range, got 0; allowed: 1 to 281474976710656"),
    "no shape": (lambda b: b.input((), "x"), "net: x.shape: not a shape, got (); allowed: 1 to 8 sizes"),
    "bits": (lambda b: b.input((1,), "x", bits=65), "net: x.bits: out of range, got 65; allowed: 1 to 64"),
    "rank": (lambda b: b.conv(b.input((1, 2, 3), "x"), "c", K=1, F=1), "net: c.inputs: reads a tensor (B, C, H, W), got (1, 2, 3)"),
    "view": (lambda b: b.host("reshape", "input", shape=(1, 5), is_view=True),
             "net: reshape1.shape: a view has as many elements as its input, got (1, 5); allowed: 648 elements"),
    "pool": (lambda b: b.max_pool("input", "p", S=2), "net: p.FY: missing; pooling needs F, or FY and FX"),
    "nothing for the array": (lambda b: b.build(), "net: no convolution or linear layer"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_network_and_operator(name):
    call, text = WRONG[name]
    assert message(lambda: call(builder())).startswith(text)


def test_errors_of_a_file_name_the_file():
    b = NetworkBuilder("net", where="a.yaml")
    b.input((1, 1, 1, 1))
    assert message(lambda: b.conv("input", "c", K=0, F=1)).startswith("a.yaml: c.K: ")
    assert message(b.build) == "a.yaml: no convolution or linear layer"


def test_wrong_networks():
    assert message(lambda: NetworkBuilder("a b")).startswith("a b: network.name: not a name, got 'a b'")
    assert message(lambda: NetworkBuilder("n", weight_bits=7)).startswith("n: network.weight_bits: not a width that the array has, got 7")


def test_tensor_bytes_round_up():
    assert [Tensor((3, 3), bits).size_bytes for bits in (1, 4, 8, 16)] == [2, 5, 9, 18]


def test_array_operators_say_their_bytes():
    b = NetworkBuilder("net", weight_bits=1, activation_bits=4)
    b.conv(b.input((1, 3, 5, 5)), "c", K=7, F=3)
    (node,) = b.build().array_operators
    assert isinstance(node, ArrayOperator)
    assert (node.weight_bytes, node.input_bytes, node.output_bytes) == ((7 * 27 + 7) // 8, 38, 32)
