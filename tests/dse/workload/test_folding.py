"""What folds into the output stage, and what stays on the host."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.workload.builder import NetworkBuilder
from dse.workload.operators import ArrayOperator, can_fold


def built(chain, *, activation_bits: int = 8, **options):
    """conv1, then what ``chain`` makes of it."""
    b = NetworkBuilder("net", activation_bits=activation_bits)
    x = b.conv(b.input((1, 4, 6, 6)), "conv1", K=8, F=3, **options)
    chain(b, x)
    network = b.build()
    conv = network.operator("conv1")
    assert isinstance(conv, ArrayOperator)
    return network, conv


def ops_on_host(network):
    return [node.op for node in network.host_operators()]


def test_normalisation_and_activation_fold():
    network, conv = built(lambda b, x: b.relu(b.batch_norm(x)), bias=False)
    assert conv.folded == ("batch_norm", "relu") and ops_on_host(network) == []
    assert conv.layer.lo == 0 and conv.parameters == 8 * 4 * 9 + 2 * 8
    assert network.activations == 8 * 4 * 4 and network.totals()["host_ops"] == 0


def test_relu_clamps_at_the_zero_point():
    _, conv = built(lambda b, x: b.relu(x), output_zero_point=-128)
    assert conv.layer.lo == -128
    _, conv = built(lambda b, x: b.relu(x), lo=5)
    assert conv.layer.lo == 5


def test_sign_makes_bits_and_no_clamp():
    _, conv = built(lambda b, x: b.activation("sign", b.batch_norm(x)))
    assert conv.folded == ("batch_norm", "sign") and conv.output_bits == 1 and conv.layer.lo is None
    _, conv = built(lambda b, x: b.relu(x), activation_bits=1)
    assert conv.folded == ("relu",) and conv.layer.lo is None


def test_nothing_comes_after_an_activation():
    network, conv = built(lambda b, x: b.batch_norm(b.relu(x)))
    assert conv.folded == ("relu",) and ops_on_host(network) == ["batch_norm"]
    network, conv = built(lambda b, x: b.relu(b.relu(x)))
    assert conv.folded == ("relu",) and ops_on_host(network) == ["relu"]


def test_other_functions_stay_on_the_host():
    network, conv = built(lambda b, x: b.relu(b.activation("tanh", x)))
    assert conv.folded == () and ops_on_host(network) == ["tanh", "relu"]


def test_a_tensor_that_others_read_stays():
    network, conv = built(lambda b, x: b.add(x, b.relu(x)))
    assert conv.folded == () and ops_on_host(network) == ["relu", "add"]
    network, conv = built(lambda b, x: b.relu(b.keep(x)))
    assert conv.folded == () and ops_on_host(network) == ["relu"]


def test_activation_of_a_sum_is_done_in_its_pass():
    network, _ = built(lambda b, x: b.relu(b.add(x, b.conv(x, "conv2", K=8, F=1))))
    (add,) = network.host_operators()
    elements = 8 * 4 * 4
    assert (add.op, add.folded, add.ops, add.bytes_read, add.bytes_written) == ("add", ("relu",), 2 * elements, 2 * elements, elements)


def test_readers_of_what_was_folded_read_the_layer():
    network, _ = built(lambda b, x: b.max_pool(b.relu(b.batch_norm(x, "norm"), "act"), "pool", F=2))
    assert network.operator("pool").inputs == ("conv1",)
    with pytest.raises(InputError) as caught:
        network.operator("act")
    assert str(caught.value) == "net: no such operator in the network, got 'act'; allowed: input, conv1, pool"


def test_what_is_written_as_a_host_operator_stays_one():
    network, conv = built(lambda b, x: b.host("relu", x))
    assert conv.folded == () and ops_on_host(network) == ["relu"]


def test_rule():
    assert can_fold((), "batch_norm") and can_fold(("batch_norm",), "batch_norm") and can_fold(("batch_norm",), "clip")
    assert not can_fold(("relu",), "batch_norm") and not can_fold((), "softmax")
