"""Which tensors share memory: views with what they are views of, and results that are written over an operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dse.footprint.steps import ELEMENTWISE, Step, readers_of


@dataclass(frozen=True)
class Buffers:
    """``of``: each step's buffer, called after the step that writes it first; ``members``: steps of each buffer in order, views included;
    ``gradient_of``: the same for gradients, which only views share."""

    of: tuple[int, ...]
    members: dict[int, tuple[int, ...]]
    gradient_of: tuple[int, ...]


def share(steps: Sequence[Step], *, in_place: bool = False, is_training: bool = False) -> Buffers:
    """Buffers of all steps.

    With ``in_place``, an element-wise operator writes over an operand of the same size that nobody reads afterwards, never over an input
    of the network. For training, moreover, nobody else may have read that operand, and neither the backward step of what produced it nor
    that of the operator may need its value: a ReLU needs its output, an addition nothing, a normalisation and a layer their input.
    """
    readers = readers_of(steps)
    of: list[int] = []
    gradient_of: list[int] = []
    members: dict[int, list[int]] = {}
    for index, step in enumerate(steps):
        target = index
        if step.is_view:
            target = of[step.inputs[0]]
        elif in_place and step.ops[0] in ELEMENTWISE:
            target = next((of[source] for source in step.inputs
                           if _can_overwrite(steps, readers, members[of[source]], index, is_training)), index)
        of.append(target)
        gradient_of.append(gradient_of[step.inputs[0]] if step.is_view else index)
        members.setdefault(target, []).append(index)
    return Buffers(tuple(of), {root: tuple(found) for root, found in members.items()}, tuple(gradient_of))


def _can_overwrite(steps: Sequence[Step], readers: Sequence[Sequence[int]], members: Sequence[int], index: int, is_training: bool) -> bool:
    step, first = steps[index], steps[members[0]]
    if first.kind == "input" or (first.elements, first.bits) != (step.elements, step.bits):
        return False
    writers = [member for member in members if not steps[member].is_view]
    views = {member for member in members if steps[member].is_view}
    # Those who read the value that is there now: what was written over before them is gone already.
    reading = {reader for member in members if member >= writers[-1] for reader in readers[member]} - views
    if max(reading) != index:
        return False
    return not is_training or (reading == {index} and not steps[writers[-1]].needs_output and not step.needs_input)
