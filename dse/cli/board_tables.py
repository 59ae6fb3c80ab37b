"""Boards as tables and as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from boards.schema import Board, Figure

SUMMARY_HEADS = ("name", "device", "LUTs", "DSPs", "block RAMs", "clock MHz", "memory", "bits", "MT/s", "offered MB/s")


def summary(board: Board) -> dict[str, Any]:
    """A board's main figures; memory ones are ``None`` where it has none. ``offered_mb_s`` is width x rate x efficiency."""
    device, memory = board.device, board.memory
    return {
        "name": board.name, "title": board.title, "device": device.name, "luts": device.luts.value, "ffs": device.ffs.value,
        "dsps": device.dsps.value, "block_rams": device.block_rams.value, "block_ram_bits": device.block_ram_bits,
        "clock_mhz": board.clock_mhz.value,
        "memory": None if memory is None else str(memory.kind),
        "memory_width_bits": None if memory is None else memory.width_bits.value,
        "memory_mt_s": None if memory is None else memory.mt_s.value,
        "peak_mb_s": board.peak_mb_s, "offered_mb_s": board.offered_mb_s,
    }


def details(board: Board) -> dict[str, Any]:
    """Everything of a board: figures as ``{value, source, trust}``, and what follows from them."""
    return {**board.model_dump(mode="json"), "usable": board.usable, "peak_mb_s": board.peak_mb_s,
            "offered_mb_s": board.offered_mb_s}


def overview(boards: list[Board]) -> Table:
    """One row a board."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in SUMMARY_HEADS:
        table.add_column(head, justify="left" if head in ("name", "device", "memory") else "right", overflow="fold")
    for board in boards:
        row = summary(board)
        cells = [row[key] for key in ("name", "device", "luts", "dsps", "block_rams", "clock_mhz", "memory", "memory_width_bits",
                                      "memory_mt_s", "offered_mb_s")]
        table.add_row(*(Text(_cell(cell)) for cell in cells))
    return table


def detail_tables(board: Board) -> list[Table]:
    """The board's names and notes, then every figure with its trust and source."""
    facts = [("board", _titled(board.name, board.title)), ("device", _titled(board.device.name, board.device.title)),
             ("package", _cell(board.package)), ("speed grade", _cell(board.speed_grade)),
             ("known from", f"{board.source} ({board.trust})")]
    if board.memory is None:
        facts.append(("memory", "none"))
    else:
        facts += [("memory", " ".join(filter(None, (str(board.memory.kind), board.memory.part)))),
                  ("memory known from", f"{board.memory.source} ({board.memory.trust})"),
                  ("peak", f"{board.peak_mb_s:,.6g} MB/s"), ("offered", f"{board.offered_mb_s:,.6g} MB/s (peak x efficiency)")]
    facts += [(f"usable {name.replace('_', ' ')}", f"{count:,}") for name, count in board.usable.items()]
    facts += [("note", note) for note in (*board.notes, *board.device.notes)]
    first = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    first.add_column(no_wrap=True, style="bold")
    first.add_column(overflow="fold")
    for name, value in facts:
        first.add_row(name, Text(value))
    second = Table(box=None, padding=(0, 2, 0, 0))
    for head, justify in (("figure", "left"), ("value", "right"), ("trust", "left"), ("source", "left")):
        second.add_column(head, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for path, figure in figures(board):
        second.add_row(Text(path), Text(_cell(figure.value)), Text(str(figure.trust)), Text(figure.source))
    return [first, second]


def figures(model: Any, path: str = "") -> Iterator[tuple[str, Figure[Any]]]:
    """Dotted path and figure, for every figure of a board."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, Figure):
            yield f"{path}{name}", value
        elif hasattr(type(value), "model_fields"):
            yield from figures(value, f"{path}{name}.")


def _titled(name: str, title: str | None) -> str:
    return f"{name} ({title})" if title else name


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
