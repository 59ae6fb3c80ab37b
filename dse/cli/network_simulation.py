"""What ``nearmac simulate NETWORK`` does without ``--layer``."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from boards.errors import InputError
from boards.loader import load_board
from boards.schema import Board
from dse.cli import scalesim
from dse.cli.console import Reporter, print_json, print_tables
from dse.cli.design_options import DesignOptions, check_seed, one_of
from dse.cli.network_tables import host_table
from dse.cli.simulation_table import design_table, rows_table
from dse.estimate.resources import estimate_resources
from dse.simulate_network import EXCLUDES, LayerRun, NetworkReport, choose_network_design, simulate_network
from dse.workload.network import Network
from sim.engine import ENGINES


def run(network: Network, board_name: str, options: DesignOptions, *, engine: str, stall_seed: int | None, seed: int, json: bool,
        of_one_layer: Mapping[str, object]) -> int:
    """Check everything that can be wrong, choose, simulate, print; the exit status. Raises InputError and what engines raise.

    ``of_one_layer``: options that want a single layer, and their values.
    """
    for option, value in of_one_layer.items():
        if value is not None:
            raise InputError("is of one layer", where=option, value=value, suggestion="name one with --layer")
    one_of(engine, ENGINES, where="--engine")
    check_seed(seed)
    check_seed(stall_seed, where="--stall-seed")
    board = load_board(board_name)
    parsed = options.parse()
    given = options.precision is not None
    with Reporter() as reporter, parsed.errors_by_option():
        reporter.stage("choosing the design")
        design = parsed.design or choose_network_design(network, board, options=parsed.fixed,
                                                        weight_bits=parsed.weight_bits if given else None,
                                                        activation_bits=parsed.activation_bits if given else None)
        report = simulate_network(network, board, design, engine=engine, seed=seed, stall_seed=stall_seed, started=reporter.stage,
                                  counter=reporter.counter, finished=reporter.notify, notify=reporter.notify)
    data, tables = report.to_dict(), network_simulation_tables(report, board)
    if parsed.scalesim:
        counts = parsed.scalesim.counts(network)
        data["scale_sim"] = scalesim.counts_json(parsed.scalesim, counts)
        tables.append(scalesim.counts_table(parsed.scalesim, counts, {run_.operator.name: run_.cycles for run_ in report.done}))
        scalesim.remark_on(parsed.scalesim)
    if json:
        print_json(data)
    else:
        print_tables(*tables)
    if report.matches:
        return 0
    print("error: the simulation does not match the prediction or the golden model", file=sys.stderr)
    return 1


def network_simulation_tables(report: NetworkReport, board: Board) -> list[RenderableType]:
    """The design, a row a layer, the host operators, totals. 1 MAC is 2 ops."""
    design = design_table(report.network.name, report.design, estimate_resources(report.design), "each layer its own", board)
    host = report.network.host_operators()
    return [design, layers_table(report), *([host_table(host)] if host else []), totals_table(report), Text(f"Remark: {EXCLUDES}.")]


def layers_table(report: NetworkReport) -> Table:
    table = Table(title="Layers", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for head, justify in (("layer", "left"), ("MACs", "right"), ("cycles", "right"), ("predicted", "left"), ("bits", "left"),
                          ("bound", "left"), ("utilization", "right"), ("note", "left")):
        table.add_column(head, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for run_ in report.runs:
        table.add_row(*(Text(cell, style="bold red" if cell.startswith("MISMATCH") else "") for cell in _cells(run_)))
    return table


def totals_table(report: NetworkReport) -> Table:
    totals = report.totals()
    seconds = totals["seconds_on_device"]
    rate = "" if totals["refused"] else f", {1 / seconds:,.4g} a second"
    refused = f", {totals['refused']} that the design cannot run" if totals["refused"] else ""
    return rows_table("Totals", [
        ("layers", f"{totals['simulated']} simulated{refused}"),
        ("MACs", f"{totals['macs']:,} of {totals['network_macs']:,}"),
        ("cycles", f"{totals['cycles']:,} simulated, {totals['predicted_cycles']:,} predicted"),
        ("bytes", f"{totals['bytes_read']:,} read, {totals['bytes_written']:,} written"),
        ("time on device", f"{seconds * 1e3:,.4g} ms at {report.design.clock_mhz:g} MHz{rate}"),
        ("throughput", f"{totals['throughput_gops']:.4g} Gop/s (1 MAC = 2 ops)"),
        ("utilization", f"{totals['utilization']:.1%} of {report.design.macs_per_cycle} MACs a cycle")])


def _cells(run_: LayerRun) -> list[str]:
    report, node = run_.report, run_.operator
    if report is None:
        return [node.name, f"{node.macs:,}", "-", "-", "-", "-", "-", f"cannot run: {run_.refused}"]
    result, prediction = report.result, report.choice.prediction
    kind, _ = prediction.bound
    if report.stalled:
        predicted = f"{prediction.cycles:,} without stalls"
    else:
        predicted = "equal" if result.cycles == prediction.cycles else f"MISMATCH: {prediction.cycles:,}"
    if (result.beats_read, result.beats_written) != (prediction.beats_read, prediction.beats_written):
        predicted = "MISMATCH: bytes"
    bits = "exact" if report.bit_exact else f"MISMATCH: {report.differing_outputs:,} differ"
    share = report.layer.macs / (result.cycles * report.design.macs_per_cycle)
    return [node.name, f"{node.macs:,}", f"{run_.cycles:,}", predicted, bits, kind, f"{share:.1%}", run_.note]
