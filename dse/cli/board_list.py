"""Boards and reference machines as lists: plain text, for the library of the other tables takes as long to load as all of this."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from boards.machine import Machine
from boards.primitives import FAMILIES, RAMS, Family, RamKind
from boards.schema import Board
from dse.cli.board_values import cell, summary

COLUMNS = {"name": "name", "device": "device", "luts": "LUTs", "dsps": "DSPs", "block_rams": "block RAMs", "large_rams": "large RAMs",
           "clock_mhz": "clock MHz", "memory": "memory", "memory_width_bits": "bits", "memory_mt_s": "MT/s", "offered_mb_s": "offered MB/s"}
MACHINE_COLUMNS = {"name": "name", "devices": "devices", "precision": "precision", "gops": "Gop/s", "gb_s": "GB/s", "gb": "memory GB",
                   "ridge": "op/byte at the ridge", "trust": "trust"}
TEXTS = ("name", "device", "memory", "precision", "trust")


def overview(boards: Iterable[Board]) -> str:
    """A table a family, one row a board. The columns of all tables are below each other."""
    order = list(FAMILIES)
    listed = sorted((summary(board) for board in boards), key=lambda row: order.index(Family(row["family"])))
    widths = _widths(COLUMNS, listed)
    return "\n".join(_table(COLUMNS, rows, widths, title=family_title(Family(family)))
                     for family, rows in groupby(listed, key=lambda row: row["family"]))


def machine_overview(machines: Iterable[Machine]) -> str:
    """One row a machine and precision; figures are of all devices together."""
    rows = [{"name": machine.name, "devices": machine.devices.value, "precision": precision, "gops": machine.total_gops(precision),
             "gb_s": machine.total_memory_mb_s / 1000, "gb": machine.total_memory_bytes and f"{machine.total_memory_bytes / 1e9:.4g}",
             "ridge": f"{machine.ridge_ops_per_byte(precision):.3g}", "trust": str(machine.trust)}
            for machine in machines for precision in machine.peak_gops]
    return _table(MACHINE_COLUMNS, rows, _widths(MACHINE_COLUMNS, rows), title="Reference machines, without an FPGA")


def family_title(family: Family) -> str:
    """The family's name and what it is made of."""
    facts = FAMILIES[family]
    rams = ", ".join(f"{kind} of {_kb(kind)}" for kind in (facts.block_ram, facts.large_ram) if kind)
    return f"{facts.title} ({family}): LUT{facts.lut_inputs}, {facts.dsp}, {rams}"


def _kb(kind: RamKind) -> str:
    return f"{RAMS[kind].bits // 1024} Kb"


def _widths(columns: dict[str, str], rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    return {key: max([len(head), *(len(cell(row[key])) for row in rows)]) for key, head in columns.items()}


def _table(columns: dict[str, str], rows: Iterable[dict[str, Any]], widths: dict[str, int], *, title: str) -> str:
    """The title, a line of heads and a line a row; numbers flush right."""
    lines = [columns, *({key: cell(row[key]) for key in columns} for row in rows)]
    aligned = ("  ".join(f"{line[key]:{'<' if key in TEXTS else '>'}{widths[key]}}" for key in columns).rstrip() for line in lines)
    return "\n".join([title, *aligned, ""])
