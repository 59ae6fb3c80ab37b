"""What ``nearmac synth`` does, once its arguments are there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from boards.errors import InputError
from boards.loader import load_board
from boards.schema import Board
from dse.cli.console import Reporter, print_json, print_tables
from dse.cli.design_options import DesignOptions, ParsedOptions, moved, option_of
from dse.cli.simulation_table import rows_table
from dse.cli.workload import read_target, read_workload
from dse.synth import EXACT, RESOURCES, SynthReport, Usage, synth, write_reports
from hdl.design import Design
from hdl.place_and_route import CELLS, Placement

FAILED = 1


def run(workload: str | None, layer_name: str | None, board_name: str, options: DesignOptions, *, place: bool, seeds: int,
        target_mhz: float | None, out: str | None, json: bool, input_shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Check everything that can be wrong, choose, synthesise, print; the exit status. Raises InputError and ToolError."""
    board = load_board(board_name)
    if out is not None:
        _check_out(out)
    with Reporter() as reporter:
        parsed, design = _design(workload, layer_name, board, options, reporter, input_shapes)
        try:
            report = synth(design, board, place_it=place, seeds=seeds, target_mhz=target_mhz, stage=reporter.stage, notify=reporter.notify)
        except InputError as error:
            own = error.where in ("seeds", "target_mhz")
            raise moved(error, option_of(error.where or "") if own else parsed.place(error.where or "")) from None
    paths = write_reports(report, Path(out)) if out is not None else []
    if json:
        print_json({"workload": workload, **report.to_dict(), "files": [str(path) for path in paths]})
    else:
        print_tables(*_tables(workload, report, out))
    for failure in report.failures:
        print(f"error: {failure}", file=sys.stderr)
    return FAILED if report.failures else 0


def _design(workload: str | None, layer_name: str | None, board: Board, options: DesignOptions, reporter: Reporter,
            input_shapes: Mapping[str, Sequence[int]] | None) -> tuple[ParsedOptions, Design]:
    """The design that is given, or that is best for the workload."""
    if workload is None:
        parsed = options.parse()
        if parsed.design is None:
            raise InputError("missing", where="WORKLOAD", suggestion="name a workload, from which a design is chosen, or give --design")
        if layer_name is not None:
            raise InputError("given without a workload", where="--layer", value=layer_name)
        return parsed, parsed.design
    target = read_target(workload, layer_name, options, input_shapes)
    parsed = target.options.parse()
    reporter.stage("choosing the design")
    if target.network is not None:
        with parsed.errors_by_option():
            return parsed, parsed.choose_for_network(target.network, board)
    return parsed, parsed.choose(read_workload(workload, layer_name, input_shapes), board).plan.design


def _check_out(out: str) -> None:
    if not out:
        raise InputError("empty", where="--out", value=out, allowed="the name of a directory")
    if Path(out).exists() and not Path(out).is_dir():
        raise InputError("not a directory", where="--out", value=out)


def _tables(workload: str | None, report: SynthReport, out: str | None) -> list[Table]:
    design, board = report.design, report.board
    products = "XNOR-popcount" if design.is_xnor else f"{design.multiplier} multipliers"
    rows: list[tuple[str, str | Text]] = [
            ("board", f"{board.name}, {board.device.name}"),
            ("array", f"{design.array} (rows x cols x lanes), {design.precision}, {products}"),
            ("tools", ", ".join(f"{package} {version}" for package, version in report.tools.items())
             + (f"; {report.cached} of {report.runs} runs from the cache" if report.cached else ""))]
    if workload is not None:
        rows.insert(0, ("workload", workload))
    return [rows_table("Design", rows), _usage_table(report), rows_table("Clock", _clock_rows(report)),
            *([rows_table("Reports", [("directory", out), ("files", ", ".join(["synthesis.json", *report.files]))])] if out else [])]


def _usage_table(report: SynthReport) -> Table:
    stage = report.label if not report.placements else "after synthesis"
    table = Table(title=f"Resources, {stage}", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("", style="bold", no_wrap=True)
    for heading in ("used", "estimated", "difference", "usable", "available"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, usage in report.usage.items():
        if name != "distributed_rams" or usage.used or usage.estimated:
            table.add_row(RESOURCES[name], f"{usage.used:,}", f"{usage.estimated:,}", _difference(name, usage), f"{usage.usable:,}",
                          f"{usage.available:,}")
    return table


def _difference(name: str, usage: Usage) -> str:
    if usage.used == usage.estimated:
        return "equal"
    if name in EXACT:
        return "MISMATCH"
    return f"{usage.error:+.1%}" if usage.error is not None else ""


def _clock_rows(report: SynthReport) -> list[tuple[str, str | Text]]:
    clock, design = report.board.clock_mhz, report.design
    source = clock.source if design.clock_mhz == clock.value else "the design's"
    rows: list[tuple[str, str | Text]] = [("assumed", f"{design.clock_mhz:g} MHz: {source}")]
    part, best = report.part, report.best
    if part is None or best is None:
        return [*rows, ("not placed", report.unplaced)]
    rows += [("placed for", f"{part.title}, {report.target_mhz:g} MHz asked for"), ("Fmax", _fmax(report, best)),
             ("placed", f"{_cells(best)}, those of the shift registers that stand for the pins among them"),
             ("slowest path", _path(best))]
    if part.untimed:
        rows.append(("beware", f"nextpnr has no delays of this family's {part.untimed}: the clock is an upper bound"))
    return rows


def _fmax(report: SynthReport, best: Placement) -> str:
    at_most = "at most " if report.part and report.part.untimed else ""
    clocks = ", ".join(f"{placement.clock_mhz:.1f}" for placement in report.placements)
    seeds = f" (seed {best.seed}; {clocks} MHz for seeds 1 to {len(report.placements)})" if len(report.placements) > 1 else ""
    return f"{at_most}{best.clock_mhz:.1f} MHz{seeds}: {best.clock_mhz / report.design.clock_mhz:.0%} of the assumed clock"


def _cells(placement: Placement) -> str:
    return ", ".join(f"{placement.used[cell]:,} of {placement.available[cell]:,} {name}s" for cell, name in CELLS.items()
                     if placement.used.get(cell))


def _path(placement: Placement) -> str:
    steps = placement.critical_path
    if not steps:
        return "none"
    wires, total = sum(step.delay_ns for step in steps if step.kind == "routing"), sum(step.delay_ns for step in steps)
    return f"{steps[0].source} to {steps[-1].target}, {total:.1f} ns, {wires / total:.0%} of it wires"
