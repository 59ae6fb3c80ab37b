"""Liveness against an enumeration of every future, and against a machine that really writes and reads the buffers."""

from __future__ import annotations

import itertools

from dse.footprint.buffers import share
from dse.footprint.schedule import RECOMPUTE, events
from dse.footprint.steps import Step, steps_of
from dse.footprint.timeline import Interval, Usage, intervals, usage
from dse.workload.builder import NetworkBuilder

WAYS = [(training, recompute, in_place, unfused)
        for training, recompute, in_place, unfused in itertools.product((False, True), RECOMPUTE, (False, True), (False, True))
        if training or recompute == "none"]


def prepared(network, training, recompute, in_place, unfused):
    steps = steps_of(network, is_unfused=unfused)
    buffers = share(steps, in_place=in_place, is_training=training)
    return steps, buffers, events(steps, buffers, is_training=training, recompute=recompute)


def value_of(steps: list[Step], index: int) -> int:
    """The step that computed what ``index`` shows."""
    while steps[index].is_view:
        index = steps[index].inputs[0]
    return index


def test_every_read_finds_the_value_it_wants(network):
    """A machine whose buffers hold the number of the step that wrote them."""
    for way in WAYS:
        run(network, way)


def run(network, way):
    steps, buffers, order = prepared(network, *way)
    held = {index: index for index, step in enumerate(steps) if step.kind == "input"}
    backward = []
    for event in order:
        step = steps[event.step]
        if event.phase == "backward":
            backward.append(event.step)
            wanted = ([event.step] if step.needs_output else []) + (list(step.inputs) if step.needs_input else [])
        else:
            wanted = list(step.inputs)
        for source in wanted:
            assert held[buffers.of[source]] == value_of(steps, source)
        if event.phase != "backward":
            held[buffers.of[event.step]] = event.step
    computing = [index for index, step in enumerate(steps) if step.kind != "input" and not step.is_view]
    assert [event.step for event in order if event.phase == "forward"] == computing
    assert backward == (computing[::-1] if way[0] else [])


def accesses(steps, buffers, event):
    """(reads, writes) of an event, each (is gradient, buffer): the rules of the documentation, written once more."""
    step, own = steps[event.step], (False, buffers.of[event.step])
    reads = {(False, buffers.of[source]) for source in step.inputs}
    if event.phase != "backward":
        return reads, {own}
    gradients = {(True, buffers.gradient_of[source]) for source in step.inputs if steps[value_of(steps, source)].kind != "input"}
    return reads | {own, (True, buffers.gradient_of[event.step])}, gradients


def test_usage_is_that_of_looking_at_every_future(network):
    """In use at an event: written or read in it; or written before, and read after it before it is written anew."""
    for way in WAYS:
        enumerate_futures(network, way)


def enumerate_futures(network, way):
    steps, buffers, order = prepared(network, *way)
    done = [accesses(steps, buffers, event) for event in order]
    outputs = {(False, buffers.of[index]) for index in range(len(steps)) if not any(index in step.inputs for step in steps)}
    inputs = {(False, index) for index, step in enumerate(steps) if step.kind == "input"}
    keys = {key for reads, writes in done for key in reads | writes} | inputs
    got = usage(steps, order, intervals(steps, buffers, order), lambda index: 10 + index, lambda _: 0)

    def is_read_later(key, now):
        for reads, writes in done[now + 1:]:
            if key in reads or (key[0] and key in writes):  # a gradient is added to
                return True
            if key in writes:
                return False
        return key in outputs and not way[0]

    for now, (reads, writes) in enumerate(done):
        there = {key for key in keys if key in reads | writes or (now == 0 and key in inputs) or (
            (key in inputs or any(key in reads | writes for reads, writes in done[:now])) and is_read_later(key, now))}
        expected = [sum(10 + root for is_gradient, root in there if is_gradient is wanted) for wanted in (False, True)]
        assert [got[now].activations, got[now].gradients] == expected


def test_a_chain_by_hand():
    """8 -> 4 -> 2 elements: input and first output, then first and second."""
    b = NetworkBuilder("chain")
    x = b.linear(b.input((1, 8, 1, 1)), "one", K=4)
    b.linear(x, "two", K=2)
    network = b.build()
    steps, buffers, order = prepared(network, False, "none", False, False)
    assert intervals(steps, buffers, order) == [Interval(0, 0, 0), Interval(1, 0, 1), Interval(2, 1, 1)]
    assert [used.total for used in usage(steps, order, intervals(steps, buffers, order), lambda index: steps[index].elements,
                                         lambda _: 0)] == [12, 6]
    steps, buffers, order = prepared(network, True, "none", False, False)
    # forward one: 8 + 4; two: + 2; backward two: all 14, gradients of both outputs; backward one: input and output, its gradient.
    assert usage(steps, order, intervals(steps, buffers, order), lambda index: steps[index].elements, lambda index: 100 * index) == [
        Usage(12, 0, 100), Usage(14, 0, 200), Usage(14, 6, 200), Usage(12, 4, 100)]


def test_a_residual_branch_stays_in_use_by_hand():
    """The block's input (10) is in use until the addition: input, both layers' outputs, sum."""
    b = NetworkBuilder("residual")
    x = b.linear(b.input((1, 3, 1, 1)), "stem", K=10)
    y = b.linear(x, "one", K=100)
    y = b.linear(y, "two", K=10)
    b.add(x, y, name="sum")
    steps, buffers, order = prepared(b.build(), False, "none", False, False)
    used = usage(steps, order, intervals(steps, buffers, order), lambda index: steps[index].elements, lambda _: 0)
    assert [use.total for use in used] == [13, 110, 120, 30]
    steps, buffers, order = prepared(b.build(), False, "none", True, False)
    used = usage(steps, order, intervals(steps, buffers, order), lambda index: steps[index].elements, lambda _: 0)
    assert [use.total for use in used] == [13, 110, 120, 20]
