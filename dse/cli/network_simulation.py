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
from dse.simulate_network import EXCLUDES, LayerRun, NetworkReport, simulate_network
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
    with Reporter() as reporter, parsed.errors_by_option():
        reporter.stage("choosing the design")
        design = parsed.choose_for_network(network, board)
        report = simulate_network(network, board, design, engine=engine, seed=seed, stall_seed=stall_seed, started=reporter.stage,
                                  counter=reporter.counter, finished=reporter.notify, notify=reporter.notify)
    data, tables = report.to_dict(), network_simulation_tables(report, board)
    if parsed.scalesim:
        counts = parsed.scalesim.counts(network)
        data["scale_sim"] = scalesim.counts_json(parsed.scalesim, counts)
        ours = {run_.operator.name: run_.cycles for run_ in report.single if run_.report}
        tables.append(scalesim.counts_table(parsed.scalesim, counts, ours))
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
    some = [*([chains_table(report)] if report.chains else []), *([host_table(host)] if host else [])]
    return [design, layers_table(report), *some, totals_table(report), Text(f"Remark: {EXCLUDES}.")]


def layers_table(report: NetworkReport) -> Table:
    table = _table("Layers", ("layer", "MACs", "cycles", "predicted", "bits", "bound", "utilization", "note"))
    number = 0
    for run_ in report.runs:
        if isinstance(run_, LayerRun):
            _row(table, _cells(run_))
            continue
        number += 1
        for node, part in zip(run_.operators, run_.report.prediction.layers, strict=True):
            note = f"chain {number}" + (f", {run_.note}" if run_.note and node is run_.operators[-1] else "")
            share = node.macs / (part.cycles * report.design.macs_per_cycle)
            _row(table, [node.name, f"{node.macs:,}", f"({part.cycles:,})", "of the chain", "", part.bound[0], f"{share:.1%}", note])
    return table


def chains_table(report: NetworkReport) -> Table:
    """Layers that ran from one start; savings are against the same layers one by one."""
    table = _table("Chains: tensors that stayed on chip",
                   ("chain", "layers", "cycles", "predicted", "bits", "bytes", "bytes\nsaved", "cycles\nsaved"))
    for number, chain in enumerate(report.chains, start=1):
        result, prediction = chain.result, chain.prediction
        predicted = _predicted(result.cycles, prediction.cycles, chain.stalled, (result.beats_read, result.beats_written),
                               (prediction.beats_read, prediction.beats_written))
        layers = chain.chain.layers
        members = f"{layers[0].name}{' to ' if len(layers) > 2 else ', '}{layers[-1].name}"
        _row(table, [str(number), members, f"{chain.cycles:,}", predicted, _bits(chain.differing_outputs), f"{chain.bytes:,}",
                     f"{chain.saved_bytes:,}", f"{chain.saved_cycles:,}"])
    return table


def _table(title: str, heads: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    left = ("layer", "layers", "predicted", "bits", "bound", "note", "chain")
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", overflow="fold")
    return table


def _row(table: Table, cells: list[str]) -> None:
    table.add_row(*(Text(cell, style="bold red" if cell.startswith("MISMATCH") else "") for cell in cells))


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
        *([("on chip", f"{_counted(totals['kept_tensors'], 'tensor')} in {_counted(totals['chains'], 'chain')}: "
                       f"{totals['saved_bytes']:,} bytes and {totals['saved_cycles']:,} cycles saved against layers one by one")]
          if totals["chains"] else []),
        ("time on device", f"{seconds * 1e3:,.4g} ms at {report.design.clock_mhz:g} MHz{rate}"),
        ("throughput", f"{totals['throughput_gops']:.4g} Gop/s (1 MAC = 2 ops)"),
        ("utilization", f"{totals['utilization']:.1%} of {report.design.macs_per_cycle} MACs a cycle")])


def _cells(run_: LayerRun) -> list[str]:
    report, node = run_.report, run_.operator
    if report is None:
        return [node.name, f"{node.macs:,}", "-", "-", "-", "-", "-", f"cannot run: {run_.refused}"]
    result, prediction = report.result, report.choice.prediction
    kind, _ = prediction.bound
    predicted = _predicted(result.cycles, prediction.cycles, report.stalled, (result.beats_read, result.beats_written),
                           (prediction.beats_read, prediction.beats_written))
    bits = _bits(report.differing_outputs)
    share = report.layer.macs / (result.cycles * report.design.macs_per_cycle)
    return [node.name, f"{node.macs:,}", f"{run_.cycles:,}", predicted, bits, kind, f"{share:.1%}", run_.note]


def _predicted(cycles: int, predicted: int, stalled: bool, beats: tuple[int, int], predicted_beats: tuple[int, int]) -> str:
    if beats != predicted_beats:
        return "MISMATCH: bytes"
    if stalled:
        return f"{predicted:,} without stalls"
    return "equal" if cycles == predicted else f"MISMATCH: {predicted:,}"


def _bits(differing_outputs: int) -> str:
    return f"MISMATCH: {differing_outputs:,} differ" if differing_outputs else "exact"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
