"""Who writes over whom."""

from __future__ import annotations

import pytest

from dse.footprint.buffers import share
from dse.footprint.steps import steps_of
from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network


def block() -> Network:
    """conv, normalisation and ReLU, a residual addition, ReLU."""
    b = NetworkBuilder("block")
    x = b.conv(b.input((1, 4, 6, 6)), "stem", K=4, F=1)
    y = b.relu(b.batch_norm(b.conv(x, "conv", K=4, F=3, P=1)))
    b.relu(b.add(x, y, name="sum"))
    return b.build()


def over(network: Network, **how: bool) -> dict[str, str]:
    """Step -> the step whose buffer it is in, where that is another."""
    steps = steps_of(network, is_unfused=how.pop("is_unfused", True))
    of = share(steps, **how).of
    return {steps[index].name: steps[root].name for index, root in enumerate(of) if root != index}


def test_without_in_place_each_has_its_own():
    assert over(block()) == over(block(), is_training=True) == {}


def test_inference_writes_over_what_nobody_reads_any_more():
    assert over(block(), in_place=True) == {"conv.batch_norm": "conv", "conv.relu": "conv", "sum": "stem", "sum.relu": "stem"}
    # Fused, only the addition is left.
    assert over(block(), in_place=True, is_unfused=False) == {"sum": "stem"}


def test_training_keeps_what_backward_steps_read():
    """A normalisation needs the convolution's output; `stem` is what `conv` needs; a ReLU needs its own output: nobody takes that."""
    assert over(block(), in_place=True, is_training=True) == {"conv.relu": "conv.batch_norm", "sum.relu": "sum"}


def test_training_adds_into_a_normalised_tensor():
    """The way of ResNets: out += identity."""
    b = NetworkBuilder("resnet")
    x = b.relu(b.conv(b.input((1, 4, 6, 6)), "stem", K=4, F=1))
    b.relu(b.add(b.batch_norm(b.conv(x, "conv", K=4, F=1)), x, name="sum"))
    expected = {"stem.relu": "stem", "sum": "conv.batch_norm", "sum.relu": "conv.batch_norm"}
    assert over(b.build(), in_place=True, is_training=True) == expected
    # Fused, the normalisation has no trace of its input but the layer's output.
    assert over(b.build(), in_place=True, is_training=True, is_unfused=False) == {}


def test_inputs_and_other_sizes_are_never_written_over():
    b = NetworkBuilder("sizes")
    x = b.relu(b.input((1, 4, 6, 6)), "first")
    x = b.conv(x, "conv", K=4, F=3)
    small = b.max_pool(x, "pool", F=4)
    b.add(small, b.host("other", small, name="wide", shape=(1, 4, 1, 1), bits=16), name="sum")
    assert over(b.build(), in_place=True) == {"sum": "pool"}


def test_views_share_and_their_readers_count():
    b = NetworkBuilder("views")
    x = b.conv(b.input((1, 4, 1, 1)), "conv", K=4, F=1)
    view = b.host("reshape", x, name="view", shape=(1, 4, 1, 1), is_view=True)
    y = b.host("relu", x, name="relu")
    b.add(y, view, name="sum")
    # The view is read later, so the ReLU has a tensor of its own; the addition may take either.
    assert over(b.build(), in_place=True) == {"view": "conv", "sum": "relu"}


@pytest.mark.parametrize("is_training", [False, True])
def test_buffers_are_called_after_their_first_step(network, is_training):
    steps = steps_of(network, is_unfused=True)
    buffers = share(steps, in_place=True, is_training=is_training)
    assert sorted(index for members in buffers.members.values() for index in members) == list(range(len(steps)))
    for root, members in buffers.members.items():
        assert members[0] == root and all(buffers.of[index] == root for index in members)
        assert len({(steps[index].elements, steps[index].bits) for index in members}) == 1
