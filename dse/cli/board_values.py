"""Boards and reference machines as plain values: what `nearmac boards --json` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from boards.figures import Figure
from boards.machine import Machine
from boards.plain import to_mapping
from boards.schema import RESOURCES, Board


def summary(board: Board) -> dict[str, Any]:
    """A board's main figures; memory ones are ``None`` where it has none. ``offered_mb_s`` is width x rate x efficiency."""
    device, memory = board.device, board.memory
    return {
        "name": board.name, "title": board.title, "family": str(device.family), "device": device.name, "luts": device.luts.value,
        "lut_inputs": device.lut_inputs, "ffs": device.ffs.value, "dsp_kind": str(device.dsp_kind), "dsps": device.dsps.value,
        "block_ram_kind": str(device.block_ram_kind), "block_rams": device.block_rams.value, "block_ram_bits": device.block_ram_bits,
        "large_ram_kind": str(device.large_ram_kind) if device.large_ram_kind else None, "large_rams": device.capacity["large_rams"],
        "clock_mhz": board.clock_mhz.value,
        "memory": None if memory is None else str(memory.kind),
        "memory_width_bits": None if memory is None else memory.width_bits.value,
        "memory_mt_s": None if memory is None else memory.mt_s.value,
        "peak_mb_s": board.peak_mb_s, "offered_mb_s": board.offered_mb_s,
    }


def details(board: Board) -> dict[str, Any]:
    """Everything of a board: figures as ``{value, source, trust}``, and what follows from them."""
    device = board.device
    primitives = {"dsp": device.dsp, "block_ram": device.block_ram, "large_ram": device.large_ram,
                  "distributed_ram": device.distributed_ram}
    return {**to_mapping(board), "ceilings_percent": {name: board.ceiling(name).value for name in RESOURCES}, "usable": board.usable,
            "peak_mb_s": board.peak_mb_s, "offered_mb_s": board.offered_mb_s, "lut_inputs": device.lut_inputs,
            "primitives": {name: to_mapping(found) if found else None for name, found in primitives.items()}}


def machine_details(machine: Machine) -> dict[str, Any]:
    """Everything of a machine, and what follows from it: totals of all devices, and the ridge of its roofline for each precision."""
    return {**to_mapping(machine), "total_gops": {name: machine.total_gops(name) for name in machine.peak_gops},
            "total_memory_mb_s": machine.total_memory_mb_s, "total_memory_bytes": machine.total_memory_bytes,
            "ridge_ops_per_byte": {name: machine.ridge_ops_per_byte(name) for name in machine.peak_gops}}


def figures(model: Any, path: str = "", skip: Sequence[str] = ()) -> Iterator[tuple[str, Figure[Any]]]:
    """Dotted path and figure, for every figure of a board, a device or a machine."""
    held = model if isinstance(model, dict) else {field.name: getattr(model, field.name) for field in fields(model)}
    for name, value in held.items():
        if name in skip:
            continue
        if isinstance(value, Figure):
            yield f"{path}{name}", value
        elif is_dataclass(value) or isinstance(value, dict):
            yield from figures(value, f"{path}{name}.", skip)


def cell(value: Any) -> str:
    """A value in a table."""
    return "-" if value is None else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
