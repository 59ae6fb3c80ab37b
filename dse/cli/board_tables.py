"""One board or reference machine as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.table import Table
from rich.text import Text

from boards.figures import Figure
from boards.machine import Machine
from boards.schema import RESOURCES, Board
from dse.cli.board_list import family_title
from dse.cli.board_values import cell, figures


def detail_tables(board: Board) -> list[Table]:
    """The board's names and notes, then every figure with its trust and source."""
    device = board.device
    facts = [("board", _titled(board.name, board.title)), ("device", _titled(device.name, device.title)),
             ("family", family_title(device.family)), ("package", cell(board.package)), ("speed grade", cell(board.speed_grade)),
             ("known from", f"{board.source} ({board.trust})")]
    if board.memory is None:
        facts.append(("memory", "none"))
    else:
        facts += [("memory", " ".join(filter(None, (str(board.memory.kind), board.memory.part)))),
                  ("memory known from", f"{board.memory.source} ({board.memory.trust})"),
                  ("peak", f"{board.peak_mb_s:,.6g} MB/s"), ("offered", f"{board.offered_mb_s:,.6g} MB/s (peak x efficiency)")]
    facts += [(f"usable {name.replace('_', ' ')}", f"{count:,}") for name, count in board.usable.items() if device.capacity[name]]
    if board.amaranth:
        facts.append(("pins", f"amaranth-boards {board.amaranth}"))
    facts += [("note", note) for note in (*board.notes, *device.notes)]
    in_effect = ((f"ceiling.{name}_percent", board.ceiling(name)) for name in RESOURCES if device.capacity[name])
    return [_fact_table(facts), _figure_table([*figures(board, skip=("ceilings",)), *in_effect])]


def machine_tables(machine: Machine) -> list[Table]:
    """The machine's names, totals and notes, then every figure with its trust and source."""
    facts = [("machine", _titled(machine.name, machine.title)), ("known from", f"{machine.source} ({machine.trust})")]
    for precision in machine.peak_gops:
        facts.append((f"peak {precision}", f"{machine.total_gops(precision):,.6g} Gop/s; ridge at "
                                           f"{machine.ridge_ops_per_byte(precision):,.3g} op/byte"))
    facts.append(("memory", f"{machine.total_memory_mb_s / 1000:,.6g} GB/s"))
    if machine.total_memory_bytes:
        facts.append(("memory size", f"{machine.total_memory_bytes:,} bytes"))
    if machine.link:
        facts.append(("link", machine.link))
    facts += [("note", note) for note in machine.notes]
    return [_fact_table(facts), _figure_table(figures(machine))]


def _fact_table(facts: Iterable[tuple[str, str]]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(value))
    return table


def _figure_table(found: Iterable[tuple[str, Figure[Any]]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head, justify in (("figure", "left"), ("value", "right"), ("trust", "left"), ("source", "left")):
        table.add_column(head, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for path, figure in found:
        table.add_row(Text(path), Text(cell(figure.value)), Text(str(figure.trust)), Text(figure.source))
    return table


def _titled(name: str, title: str | None) -> str:
    return f"{name} ({title})" if title else name
