"""The tables that ``nearmac sweep`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from boards.schema import Board
from dse.cli.simulation_table import BUFFERS, rows_table
from dse.sweep.chunks import at_bits
from dse.sweep.layers import layer_table
from dse.sweep.results import design_name, design_of
from dse.sweep.run import SweepReport
from dse.sweep.verify import spread

MAX_ROWS, MIN_ROWS = 20, 4
"""Points that are shown in all, and of each front at least."""
Row = Mapping[str, Any]


def sweep_tables(report: SweepReport, boards: Sequence[Board]) -> list[RenderableType]:
    """Counts, front, the layers of its fastest point, and what was verified."""
    tables: list[RenderableType] = [counts_table(report)]
    if report.explanation:
        return [*tables, Text(report.explanation)]
    groups = fronts(report.front, [board.name for board in boards])
    tables += [front_table(rows, max(MIN_ROWS, MAX_ROWS // len(groups))) for rows in groups]
    fastest = min(report.front, key=lambda row: (row["seconds"], row["index"]))
    title = f"\nLayers of the fastest point, designs/{design_name(fastest)}: {fastest['fps']:,.6g} runs a second"
    tables.append(Text(title, style="italic"))
    tables.append(layers_table(report, fastest, {board.name: board for board in boards}[fastest["board"]]))
    if fastest["chaining"]:
        tables.append(Text(f"Tensors that stay on chip: {fastest['kept_tensors']}. Against the layers one by one that saves "
                           f"{fastest['saved_bytes']:,} bytes and {fastest['saved_cycles']:,} cycles."))
    tables += [Text(f"verified: {entry}", style="" if entry.matches else "bold red") for entry in report.verifications]
    return tables


def counts_table(report: SweepReport) -> Table:
    host = ", ".join(f"{count} {op}" for op, count in report.host_operators.items())
    limits = ", ".join(f"{name} {count:,}" for name, count in sorted(report.infeasible.items(), key=lambda item: (-item[1], item[0])))
    dropped = ", ".join(f"{name} {count:,}" for name, count in report.dropped.items())
    layers = report.workload.layers
    rows: list[tuple[str, str | Text]] = [
        ("workload", f"{report.workload.name}: {len(layers)} array layer{'s' if len(layers) != 1 else ''}, {report.workload.macs:,} MACs"),
        ("points", f"{report.points:,}, {report.feasible:,} feasible"),
        ("infeasible by", limits or "none"),
        ("not designs", f"{dropped} (combinations left out, by the option that no design can have so)" if dropped else "none"),
        ("objectives", ", ".join(report.objectives) + " (a front for each board and precision)"),
        ("results", f"{report.out}: points.parquet, pareto.csv, designs/, sweep.json")]
    if host:
        rows.insert(1, ("not included", f"latency excludes the operators that stay on the host: {host}"))
    return rows_table("Sweep", rows)


def fronts(front: Sequence[Row], boards: Sequence[str]) -> list[list[Row]]:
    """The front of each board, as they were given, and precision; from the fastest point to the slowest."""
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in sorted(front, key=lambda row: (row["seconds"], row["index"])):
        groups.setdefault((boards.index(row["board"]), row["precision"]), []).append(row)
    return [groups[key] for key in sorted(groups)]


def front_table(front: Sequence[Row], most: int) -> Table:
    """At most ``most`` points, evenly from the fastest to the slowest. MB are 1e6 bytes, KiB 1024. 80 columns hold it."""
    rows = spread(front, most)
    left = f", {len(rows)} of them here, all in pareto.csv" if len(rows) < len(front) else ""
    one_clock = len({row["clock_mhz"] for row in front}) == 1
    clock = f" at {front[0]['clock_mhz']:g} MHz" if one_clock else ""
    title = f"Pareto front of {front[0]['board']}, {front[0]['precision']}{clock}: {len(front):,} points{left}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    columns = {
        "point": [str(row["index"]) for row in rows],
        "array": [f"{row['rows']}x{row['cols']}x{row['lanes']}" for row in rows],
        "in+wt+out+ps\nKiB": ["+".join(f"{row[f'{kind}_bytes'] / 1024:.3g}" for kind in BUFFERS) for row in rows],
        "clock\nMHz": [f"{row['clock_mhz']:g}" for row in rows],
        "time\nms": [f"{row['seconds'] * 1e3:,.4g}" for row in rows],
        "external\nMB": [f"{row['external_bytes'] / 1e6:,.4g}" for row in rows],
        "rate\nMB/s": [f"{row['external_mb_s']:,.4g}" for row in rows],
        "DSP\n": [str(row["dsps"]) for row in rows],
        "BRAM\n18Kb": [str(row["block_rams"]) for row in rows],
        "LUT\n(est.)": [f"{row['luts']:,}" for row in rows],
        "kept on\nchip": [str(row["kept_tensors"]) if row["chaining"] else "" for row in rows],
        "bound\nby": [row["bound"] for row in rows]}
    if not any(row["chaining"] for row in front):
        del columns["kept on\nchip"]
    if one_clock:
        del columns["clock\nMHz"]
    for name in columns:
        table.add_column(name, justify="left" if name in ("array", "bound\nby") else "right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def layers_table(report: SweepReport, row: Row, board: Board) -> Table:
    """What bounds each layer of a point, and what the board's memory would have to offer for the array never to wait."""
    design = design_of(row)
    table = Table(title=f"at {design.clock_mhz:g} MHz; {board.name} offers {board.offered_mb_s:,.4g} MB/s", title_justify="left", box=None,
                  padding=(0, 2, 0, 0))
    table.add_column("layer", no_wrap=True)
    for name in ("times", "cycles", "share of\ntime", "waits for\nmemory", "external\nMB"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("bound")
    if design.chaining:
        table.add_column("output\nstays", no_wrap=True)
    table.add_column("MB/s for the\narray never to wait", justify="right", no_wrap=True)
    for entry in layer_table(design, at_bits(report.workload, design.activation_bits), board, report.mapping):
        stays = ["on chip" if entry["output_stays"] else ""] if design.chaining else []
        table.add_row(entry["name"], str(entry["repeat"]), f"{entry['cycles']:,}", f"{entry['time_share']:.1%}",
                      f"{entry['memory_stall_cycles'] / entry['cycles']:.1%}", f"{entry['external_bytes'] / 1e6:,.4g}", entry["bound"],
                      *stays, f"{entry['compute_bound_mb_s']:,.4g}")
    return table
