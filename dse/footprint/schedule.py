"""In which order steps run, what is kept for the backward pass, and what is computed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

from dse.footprint.buffers import Buffers
from dse.footprint.steps import Step, readers_of

RECOMPUTE = ("none", "cheap", "sqrt")
"""``cheap``: the backward pass computes again what an operator of one operand wrote that takes few operations an element
(:data:`~dse.footprint.steps.CHEAP`). ``sqrt``: of n steps, in about sqrt(n) segments of as many, only what crosses from one segment to a
later one is kept, and the backward pass computes each segment again before it enters it (T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training
Deep Nets with Sublinear Memory Cost", 2016); the last segment is kept, for the backward pass begins there."""


@dataclass(frozen=True)
class Event:
    """``phase``: ``forward``, ``recompute`` or ``backward`` of the step with index ``step``."""

    phase: str
    step: int


def events(steps: Sequence[Step], buffers: Buffers, *, is_training: bool = False, recompute: str = "none") -> list[Event]:
    """What happens, in order: forward steps as the network lists them, for training their backward steps in the opposite order, each
    after the steps that compute again what it reads. Inputs and views are no events."""
    forward = [Event("forward", index) for index, step in enumerate(steps) if step.kind != "input" and not step.is_view]
    if not is_training:
        return forward
    segments = segments_of(steps)
    lost = dropped(steps, buffers, recompute, segments)
    result = list(forward)
    for event in reversed(forward):
        wanted = {buffers.of[index] for index in (event.step, *steps[event.step].inputs)} & lost
        if wanted and recompute == "sqrt":
            which = {segments[root] for root in wanted}
            wanted = {root for root in lost if segments[root] in which}
        elif wanted:
            wanted = _with_ancestors(steps, buffers, wanted, lost)
        again = sorted(member for root in wanted for member in buffers.members[root] if not steps[member].is_view)
        result += [Event("recompute", index) for index in again]
        result.append(Event("backward", event.step))
        lost -= wanted
    return result


def dropped(steps: Sequence[Step], buffers: Buffers, recompute: str, segments: Sequence[int]) -> set[int]:
    """Buffers that are given up after the forward pass."""
    if recompute == "none":
        return set()
    readers = readers_of(steps)
    last = max(segments)

    def is_dropped(index: int) -> bool:
        step = steps[index]
        if step.kind == "input" or not readers[index]:  # what nobody reads is an output
            return False
        if recompute == "cheap":
            return step.is_view or step.is_cheap
        return segments[index] < last and all(segments[reader] == segments[index] for reader in readers[index])

    return {root for root, members in buffers.members.items() if all(map(is_dropped, members))}


def segments_of(steps: Sequence[Step]) -> list[int]:
    """Of each step, its segment: isqrt(n) of them (Chen et al. take about sqrt(n)), of equally many steps that compute; views and inputs
    belong to the step before them."""
    computing = sum(step.kind != "input" and not step.is_view for step in steps)
    count = max(1, isqrt(computing))
    result, done = [], 0
    for step in steps:
        if step.kind != "input" and not step.is_view:
            done += 1
        result.append(max(0, done - 1) * count // computing)
    return result


def _with_ancestors(steps: Sequence[Step], buffers: Buffers, wanted: set[int], lost: set[int]) -> set[int]:
    """``wanted`` and all of ``lost`` that computing it again needs."""
    found: set[int] = set()
    pending = list(wanted)
    while pending:
        root = pending.pop()
        if root not in found:
            found.add(root)
            pending += [buffers.of[source] for member in buffers.members[root] for source in steps[member].inputs
                        if buffers.of[source] in lost]
    return found
