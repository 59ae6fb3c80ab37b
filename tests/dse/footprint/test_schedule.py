"""What is given up, when it is computed again, and Chen et al.'s bound."""

from __future__ import annotations

from math import isqrt

from dse.footprint.buffers import share
from dse.footprint.schedule import RECOMPUTE, dropped, events, segments_of
from dse.footprint.steps import steps_of
from dse.footprint.timeline import intervals, usage
from dse.workload.builder import NetworkBuilder


def chain(length: int):
    b = NetworkBuilder("chain")
    x = b.input((1, 8, 1, 1))
    for index in range(length):
        x = b.linear(x, f"layer{index}", K=8)
    return b.build()


def most_in_use(network, recompute: str) -> int:
    """Tensors of a chain in use at a time, the input included."""
    steps = steps_of(network)
    buffers = share(steps, is_training=True)
    order = events(steps, buffers, is_training=True, recompute=recompute)
    return max(used.total for used in usage(steps, order, intervals(steps, buffers, order), lambda _: 1, lambda _: 0))


def test_sixteen_equal_layers_by_hand():
    network = chain(16)
    # Input, 16 outputs, and the gradients of two of them.
    assert most_in_use(network, "none") == most_in_use(network, "cheap") == 19
    # Input, 3 outputs that cross, the last segment's 4, two gradients.
    assert most_in_use(network, "sqrt") == 10
    steps = steps_of(network)
    assert segments_of(steps)[1:] == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    order = events(steps, share(steps), is_training=True, recompute="sqrt")
    assert [(event.phase[0], event.step - 1) for event in order[16:30]] == [
        *(("b", index) for index in (15, 14, 13, 12)), *(("r", index) for index in (8, 9, 10)),
        *(("b", index) for index in (11, 10, 9, 8)), *(("r", index) for index in (4, 5, 6))]


def test_memory_of_a_chain_grows_with_the_root_of_its_length():
    for length in (1, 2, 7, 25, 100, 101, 400):
        root = isqrt(length)
        assert most_in_use(chain(length), "sqrt") <= 2 * root + 6  # the segments' ends and one segment; input, gradients, remainder
        assert most_in_use(chain(length), "none") == length + 3 - (length == 1)


def test_nothing_is_computed_more_than_once_again(network):
    """So recomputing costs at most a forward pass, as Chen et al. say."""
    for recompute in RECOMPUTE:
        steps = steps_of(network, is_unfused=True)
        order = events(steps, share(steps, is_training=True), is_training=True, recompute=recompute)
        again = [event.step for event in order if event.phase == "recompute"]
        assert len(again) == len(set(again))
        assert recompute != "none" or again == []


def test_cheap_gives_up_what_needs_one_operand_and_little_work():
    b = NetworkBuilder("cheap")
    x = b.relu(b.batch_norm(b.conv(b.input((1, 2, 8, 8)), "conv", K=4, F=3, P=1)))
    x = b.max_pool(x, "pool", F=2, S=2)
    x = b.relu(b.add(x, b.conv(x, "side", K=4, F=1), name="sum"))
    b.softmax(b.linear(b.flatten(x), "fc", K=3), "softmax")
    network = b.build()
    for is_unfused, expected in ((False, {"pool"}), (True, {"conv.batch_norm", "conv.relu", "pool", "sum.relu"})):
        steps = steps_of(network, is_unfused=is_unfused)
        lost = dropped(steps, share(steps, is_training=True), "cheap", segments_of(steps))
        assert {steps[root].name for root in lost} == expected  # softmax is the network's answer
    order = events(steps, share(steps, is_training=True), is_training=True, recompute="cheap")
    named = [f"{event.phase} {steps[event.step].name}" for event in order if event.phase != "forward"]
    assert named == ["backward softmax", "recompute sum.relu", "backward fc", "backward sum.relu",
                     "recompute conv.batch_norm", "recompute conv.relu", "recompute pool", "backward sum", "backward side",
                     "backward pool", "backward conv.relu", "backward conv.batch_norm", "backward conv"]
