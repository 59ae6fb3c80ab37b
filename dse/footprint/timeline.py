"""Liveness: from when to when each buffer holds what somebody still reads, and so how many bytes are in use at each event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from dse.footprint.buffers import Buffers
from dse.footprint.schedule import Event
from dse.footprint.steps import Step

Size = Callable[[int], int]
"""Bytes of the output of a step."""


@dataclass(frozen=True)
class Interval:
    """The buffer of step ``root`` (of its gradient, if ``is_gradient``) is in use in events ``first`` to ``last``."""

    root: int
    first: int
    last: int
    is_gradient: bool = False


@dataclass(frozen=True)
class Usage:
    """Bytes in use during one event."""

    activations: int
    gradients: int
    lowering: int

    @property
    def total(self) -> int:
        return self.activations + self.gradients + self.lowering


def intervals(steps: Sequence[Step], buffers: Buffers, order: Sequence[Event]) -> list[Interval]:
    """When each buffer is in use: from the event that writes it to the last that reads what it wrote.

    A backward step reads the gradient of its output, its operands and its output, and adds to the gradients of its operands. Inputs of the
    network are there from the beginning; what nobody reads is an output, and stays until its backward step, or else to the end.
    """
    found: list[Interval] = []
    open_: dict[tuple[bool, int], list[int]] = {(False, root): [0, 0] for root in buffers.members if steps[root].kind == "input"}

    def use(is_gradient: bool, root: int, now: int) -> None:
        open_.setdefault((is_gradient, root), [now, now])[1] = now

    for now, event in enumerate(order):
        step, own = steps[event.step], buffers.of[event.step]
        sources = {buffers.of[source] for source in step.inputs}
        for root in sources:
            use(False, root, now)
        if event.phase == "backward":
            use(False, own, now)
            use(True, buffers.gradient_of[event.step], now)
            for source in step.inputs:
                root = buffers.gradient_of[source]
                if steps[root].kind != "input":
                    use(True, root, now)
        else:
            if own not in sources and (False, own) in open_:  # a new value; what the old one was for is done
                first, last = open_.pop((False, own))
                found.append(Interval(own, first, last))
            use(False, own, now)
    if order and order[-1].phase == "forward":
        read = {source for step in steps for source in step.inputs}
        for index in range(len(steps)):
            if index not in read:
                use(False, buffers.of[index], len(order) - 1)
    found += [Interval(root, first, last, is_gradient) for (is_gradient, root), (first, last) in open_.items()]
    return found


def usage(steps: Sequence[Step], order: Sequence[Event], live: Sequence[Interval], size: Size, lowered: Size) -> list[Usage]:
    """Bytes in use during each event: buffers that are in use, and the lowered matrix of the step (``lowered``), for it alone."""
    changes = ([0] * (len(order) + 1), [0] * (len(order) + 1))
    for interval in live:
        change, size_bytes = changes[interval.is_gradient], size(interval.root)
        change[interval.first] += size_bytes
        change[interval.last + 1] -= size_bytes
    return [Usage(activations, gradients, lowered(event.step))
            for event, activations, gradients in zip(order, *(accumulate(change[:-1]) for change in changes), strict=True)]
