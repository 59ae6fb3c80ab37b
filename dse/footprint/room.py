"""What fits in a device's memory, and how much room is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from boards.errors import InputError, nearest
from boards.loader import is_path, list_boards, list_machines, load_board, load_machine
from dse.footprint.footprint import MAX_BATCH, WIDTH_PERCENT, Footprint

MAX_WIDTH_PERCENT = 100 * (1 << 20)


@dataclass(frozen=True)
class Capacity:
    """Memory of one device, or the external memory of a board. ``devices``: how many of them the machine has."""

    name: str
    memory_bytes: int
    devices: int = 1


@dataclass(frozen=True)
class Room:
    """``free_bytes``: negative where it does not fit. ``largest_batch``: 0 where not even one fits. ``width_percent``: the most channels,
    in per cent of those that are there, that all layers but the last may have at this batch; channels are not rounded to whole numbers.
    ``None`` where there is no layer but the last."""

    capacity: Capacity
    free_bytes: int
    largest_batch: int
    width_percent: int | None

    @property
    def fits(self) -> bool:
        return self.free_bytes >= 0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self.capacity), "fits": self.fits, "free_bytes": self.free_bytes, "largest_batch": self.largest_batch,
                "width_percent": self.width_percent}


def load_capacity(name: str) -> Capacity:
    """Of a reference machine, a board, or a board's file. Raises InputError for another name, or where the size is not known."""
    if name in list_machines():
        machine = load_machine(name)
        found = int(machine.memory_mib.exact * (1 << 20)) if machine.memory_mib else None
        devices = machine.devices.value
    elif name in list_boards() or is_path(name):
        board = load_board(name)
        if board.memory is None:
            raise InputError("has no external memory", where="--device", value=name)
        found, devices = board.memory.size_bytes, 1
    else:
        known = (*list_machines(), *list_boards())
        near = nearest(name.lower(), known)
        raise InputError("unknown device", where="--device", value=name, allowed="a reference machine or a board of `nearmac boards`",
                         suggestion=f"nearest: {near}" if near else None)
    if not found:
        raise InputError("the size of its memory is not known", where="--device", value=name)
    return Capacity(name, found, devices)


def room(footprint: Footprint, capacity: Capacity) -> Room:
    """How ``footprint`` fits. The batch and the width are the largest whose exact footprint still does."""
    model, size = footprint.model, capacity.memory_bytes
    batch = _largest(lambda number: model.total_bytes(number) <= size, MAX_BATCH)
    width = None
    if any(step.widens for step in model.steps):
        width = _largest(lambda number: model.total_bytes(footprint.options.batch, number) <= size, MAX_WIDTH_PERCENT, WIDTH_PERCENT)
    return Room(capacity, size - footprint.total_bytes, batch, width)


def _largest(fits: Callable[[int], bool], most: int, start: int = 1) -> int:
    """The largest number, up to ``most``, that fits; 0 where not even 1 does. Smaller ones than one that fits, fit."""
    low, high = 0, start
    while high <= most and fits(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
