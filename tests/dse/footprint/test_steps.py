"""Steps of networks: what is taken apart, what backward steps read, what grows with the width."""

from __future__ import annotations

import pytest

from dse.footprint.steps import Step, readers_of, steps_of
from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network


def example() -> Network:
    b = NetworkBuilder("example", activation_bits=8)
    x = b.relu(b.batch_norm(b.conv(b.input((1, 3, 8, 8)), "conv", K=4, F=3, P=1)))
    y = b.activation("sign", b.conv(x, "side", K=4, F=1), "sign")
    b.linear(b.flatten(b.relu(b.add(x, b.host("cast", y, name="cast", shape=(1, 4, 8, 8), bits=8), name="sum")), "flat"), "fc", K=5)
    return b.build()


def test_fused_steps_are_the_operators():
    steps = steps_of(example())
    assert [(step.name, step.ops, step.inputs) for step in steps] == [
        ("input", ("input",), ()), ("conv", ("conv", "batch_norm", "relu"), (0,)), ("side", ("conv", "sign"), (1,)),
        ("cast", ("cast",), (2,)), ("sum", ("add", "relu"), (1, 3)), ("flat", ("flatten",), (4,)), ("fc", ("linear",), (5,))]
    assert [step.bits for step in steps] == [8, 8, 1, 8, 8, 8, 8]
    # weights, biases, scale and offset: 3*4*9 + 4 + 8; 16 + 4; 256*5 + 5
    assert [(step.weights, step.parameters) for step in steps] == [(0, 0), (108, 120), (16, 20), (0, 0), (0, 0), (0, 0), (1280, 1285)]
    assert readers_of(steps) == [[1], [2, 4], [3], [4], [5], [6], []]


def test_unfused_steps_follow_each_other():
    steps = steps_of(example(), is_unfused=True)
    assert [(step.name, step.inputs, step.parameters) for step in steps] == [
        ("input", (), 0), ("conv", (0,), 112), ("conv.batch_norm", (1,), 8), ("conv.relu", (2,), 0), ("side", (3,), 20),
        ("side.sign", (4,), 0), ("cast", (5,), 0), ("sum", (3, 6), 0), ("sum.relu", (7,), 0), ("flat", (8,), 0), ("fc", (9,), 1285)]
    # 256 elements: an addition each, then a comparison each.
    assert [step.operations for step in steps[7:9]] == [256, 256]
    assert [step.operations for step in steps[1:4]] == [2 * 108 * 64, 2 * 256, 256]


def test_given_bits_are_those_of_all():
    steps = steps_of(example(), weight_bits=3, activation_bits=32)
    assert {step.bits for step in steps} == {32} and {step.weight_bits for step in steps if step.parameters} == {3}


def step(*ops: str) -> Step:
    return Step(name="step", ops=ops, kind="host", inputs=(0,), shape=(1,), elements=1, bits=8)


@pytest.mark.parametrize("ops, needs_input, needs_output", [
    (("conv",), True, False), (("conv", "relu"), True, True), (("conv", "batch_norm"), True, True), (("linear", "offset"), True, False),
    (("batch_norm",), True, False), (("relu",), False, True), (("sigmoid",), False, True), (("add",), False, False),
    (("add", "relu"), False, True), (("multiply",), True, False), (("max_pool",), True, True), (("sign",), True, True),
    (("something",), True, True)])
def test_what_gradients_are_computed_from(ops, needs_input, needs_output):
    """d relu(x) is told by relu(x), d sigmoid by sigmoid, d(x + y) by nothing, d(x * y) by x and y; what is not known may need all."""
    assert (step(*ops).needs_input, step(*ops).needs_output) == (needs_input, needs_output)


def test_what_grows_with_the_width():
    """Input and answer stay; a layer's weights grow with its input and output channels, a depthwise layer's once."""
    b = NetworkBuilder("grows")
    x = b.conv(b.input((1, 3, 8, 8)), "stem", K=4, F=1)
    x = b.max_pool(b.conv(x, "depthwise", K=4, F=3, G=4), "pool", F=2)
    x = b.conv(x, "grouped", K=4, F=1, G=2)
    b.softmax(b.linear(b.flatten(x, "flat"), "answer", K=5), "softmax")
    assert [(step.name, step.input_widens, step.widens, step.weight_power) for step in steps_of(b.build())[1:]] == [
        ("stem", False, True, 1), ("depthwise", True, True, 1), ("pool", True, True, 0), ("grouped", True, True, 2),
        ("flat", True, True, 0), ("answer", True, False, 1), ("softmax", False, False, 0)]
