"""What ``nearmac emit`` does, once its arguments are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boards.errors import InputError
from boards.loader import load_board
from boards.schema import Board
from dse.choose import board_timing
from dse.cli.console import Reporter, print_json, print_tables
from dse.cli.design_options import DesignOptions, check_seed
from dse.cli.simulation_table import design_table, rows_table
from dse.cli.workload import check_size, read_workload
from dse.emit import EmitReport, check_directory, emit, emit_chain
from dse.estimate.resources import check_fits, estimate_resources
from dse.schedule.chain_search import plan_chain
from dse.workload.line import JOINT
from dse.workload.network import Network
from hdl.design import Design
from hdl.pins import constraint_file


def run(workload: str, layer_name: str | None, board_name: str, options: DesignOptions, out: str, *, seed: int, json: bool,
        constraints: bool = False, input_shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Check everything that can be wrong, choose, write; the exit status. Raises InputError."""
    check_seed(seed)
    layer = read_workload(workload, layer_name, input_shapes)
    check_size(layer)
    board = load_board(board_name)
    parsed = options.parse()
    _check_out(out)
    pins = constraint_file(board) if constraints else None
    with Reporter() as reporter:
        reporter.stage("choosing the mapping" if parsed.design else "choosing the design")
        choice = parsed.choose(layer, board)
        design, tiling = choice.plan.design, choice.plan.tiling
        reporter.stage("writing Verilog")
        with parsed.errors_by_option():
            report = emit(design, layer, tiling, board_timing(board, design), out, seed=seed, board=board.name, pins=pins)
    _print(workload, board, design, report, {"layer": layer.to_dict(), "tiling": str(tiling)}, str(tiling), json)
    return 0


def run_chain(network: Network, board_name: str, options: DesignOptions, out: str, *, seed: int, json: bool,
              constraints: bool = False) -> int:
    """The same for a network whose layers follow each other: all of them from one start. Raises InputError where that cannot be."""
    check_seed(seed)
    for layer in network.array_layers().values():
        check_size(layer)
    board = load_board(board_name)
    parsed = options.parse()
    _check_out(out)
    pins = constraint_file(board) if constraints else None
    names = list(network.array_layers())
    with Reporter() as reporter, parsed.errors_by_option():
        reporter.stage("choosing the design")
        design = parsed.choose_for_network(network, board)
        check_fits(design, board)
        if not design.chaining:
            raise InputError("several layers run from one start on designs with chaining alone", where="--layer", value=JOINT.join(names),
                             suggestion="give --chaining, or name one layer")
        reporter.stage("choosing the mapping")
        timing = board_timing(board, design)
        plan = plan_chain(design, list(network.array_layers().values()), timing)
        if len(plan.runs) > 1:
            at = plan.links.index(False)
            raise InputError(f"the tensor from {names[at]} to {names[at + 1]} does not stay on chip", where="--layer",
                             value=JOINT.join(names), suggestion="use larger input banks, or emit the layers one by one")
        reporter.stage("writing Verilog")
        report = emit_chain(plan.runs[0], network, timing, out, seed=seed, board=board.name, pins=pins)
    tilings = [str(tiled.tiling) for tiled in plan.runs[0].plans]
    _print(network.name, board, design, report, {
        "layers": [layer.to_dict() for layer in plan.layers], "tilings": tilings, "saved_bytes": plan.saved_bytes,
        "saved_cycles": plan.cycles_alone - plan.cycles}, "each layer its own", json)
    return 0


def _check_out(out: str) -> None:
    if not out:
        raise InputError("empty", where="--out", value=out, allowed="the name of a directory")
    check_directory(Path(out))


def _print(workload: str, board: Board, design: Design, report: EmitReport, what: dict[str, Any], tiling: str, json: bool) -> None:
    """``what``: the JSON object's own part about the layers."""
    beat_bytes = design.bus_bits // 8
    files = [path.name for path in report.files]
    if json:
        print_json({
            "workload": workload, **what, "board": board.name, "design": {**design.to_dict(), "precision": design.precision},
            "directory": str(report.directory), "files": files, "verilog_lines": report.verilog_lines,
            "verilog_bytes": report.verilog_bytes, "predicted_cycles": report.expected_cycles,
            "predicted_bytes_read": report.beats_read * beat_bytes, "predicted_bytes_written": report.beats_written * beat_bytes,
            "memory_bytes": report.memory_bytes,
        })
        return
    print_tables(design_table(workload, design, estimate_resources(design), tiling, board), rows_table("Emission", [
        ("directory", str(report.directory)),
        ("files", ", ".join(files)),
        ("Verilog", f"{report.verilog_lines:,} lines, {report.verilog_bytes:,} bytes"),
        ("the test bench wants", f"{report.expected_cycles:,} cycles, {report.beats_read * beat_bytes:,} bytes read, "
                                 f"{report.beats_written * beat_bytes:,} written"),
        ("external memory", f"{report.memory_bytes:,} bytes"),
        ("to simulate", f"{Path(report.directory) / 'run.sh'} icarus"),
    ]))
