"""The tables that ``nearmac roofline`` prints. 1 MAC is 2 ops."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dse.cli.network_tables import number_table
from dse.roofline.roof import amount, peak_of
from dse.roofline.roofline import Landed, Landing, Rooflines

REMARK = ("Attainable = min(peak, bandwidth x ops/byte), the bytes being those that must cross the channel; c is compute-bound, m "
          "memory-bound; 1 MAC = 2 ops. Peaks in look-up tables are estimates.")
SHORT = {"compute": "c", "memory": "m"}


def roofline_tables(report: Rooflines) -> list[RenderableType]:
    """Roofs, layers under them, then each design."""
    layers = [layers_table(report, precision) for precision in dict.fromkeys(roof.precision for roof in report.roofs)]
    some = [points_table(report)] if report.points else []
    designs = [design_table(landed) for landed in report.designs]
    totals = [totals_table(report)] if len(report.attainable) > len(report.roofs) else []
    return [roofs_table(report), *layers, *totals, *some, *designs, Text(f"Remark: {REMARK}")]


def roofs_table(report: Rooflines) -> Table:
    table = number_table("machine left", "bits left", "peak\nGop/s", "memory\nMB/s", "ridge\nops/byte", "ops/\ncycle", "bytes/\ncycle",
                         "on-chip\nbytes/cycle", "peak: limit left", title=f"Roofs for {report.workload}")
    for roof in report.roofs:
        _row(table, roof.machine, roof.precision, roof.peak_gops, roof.mb_s, roof.ridge_ops_per_byte, roof.ops_per_cycle,
             roof.bytes_per_cycle, roof.on_chip_bytes_per_cycle, roof.limit)
    return table


def layers_table(report: Rooflines, precision: str) -> Table:
    """A row a layer, a column a machine: ops/byte, Gop/s, and which roof it is."""
    entries = [entry for entry in report.attainable if entry.work.precision == precision]
    machines = list(dict.fromkeys(entry.roof.machine for entry in entries))
    works = list(dict.fromkeys(entry.work for entry in entries))
    table = number_table("layer left", "Mop", *[f"{name}\nops/byte, Gop/s" for name in machines],
                         title=f"Attainable at {precision}")
    found = {(entry.work, entry.roof.machine): entry for entry in entries}
    for work in works:
        cells = [f"{amount(entry.ops_per_byte)}  {amount(entry.gops)} {SHORT[entry.bound]}"
                 for entry in (found[work, name] for name in machines)]
        table.add_row(Text(work.name), Text(amount(work.ops / 1e6)), *map(Text, cells))
    return table


def totals_table(report: Rooflines) -> Table:
    """The whole workload: layer after layer, each at its roof."""
    table = number_table("bits left", "machine left", "Mop", "Gop/s", "ms, at least", title="Whole workload, each layer at its roof")
    for total in report.totals():
        _row(table, total["precision"], total["machine"], total["ops"] / 1e6, total["attainable_gops"], total["least_seconds"] * 1e3)
    return table


def points_table(report: Rooflines) -> Table:
    """The front of the sweep, whole workload; the best of each board and precision is marked."""
    table = number_table("point", "board left", "bits left", "array left", "MHz", "Gop/s", "ops/byte", "bytes/cycle", "best left",
                         title="Front of the sweep, whole workload")
    for point in report.points:
        _row(table, str(point.index), point.board, point.precision, point.design.array, point.design.clock_mhz, point.gops,
             point.ops_per_byte, point.external_bytes / point.cycles, "best" if point.is_best else "")
    return table


def design_table(landed: Landed) -> Table:
    """Where each layer lands on a design."""
    design = landed.design
    title = (f"{landed.board}: {design.array} {design.precision} at {design.clock_mhz:g} MHz ({landed.source}), "
             f"array's peak {amount(peak_of(design))} Gop/s")
    table = number_table("layer left", "predicted\nGop/s", "simulated\nGop/s", "roof\nGop/s", "of roof", "ops/byte\nmoved",
                         "ops/byte\nat most", "bytes/\ncycle", "bound left", title=title)
    for landing in landed.landings:
        table.add_row(*map(Text, _cells(landing)))
    return table


def _cells(landing: Landing) -> list[str]:
    at, run = landing.at, landing.predicted
    if run is None:
        return [at.work.name, "-", "-", amount(at.gops), "-", "-", amount(at.ops_per_byte), "-", f"cannot run: {landing.refused}"]
    simulated = "-"
    if landing.simulated:
        simulated = amount(landing.gops(landing.simulated)) + ("" if landing.matches else " MISMATCH")
    return [at.work.name, amount(landing.gops(run)), simulated, amount(at.gops), f"{landing.gops(run) / at.gops:.1%}",
            amount(landing.ops_per_byte(run)), amount(at.ops_per_byte), amount(run.bytes / run.cycles), landing.bound]


def _row(table: Table, *cells: str | float | None) -> None:
    table.add_row(*(Text("-" if cell is None else cell if isinstance(cell, str) else amount(cell)) for cell in cells))
