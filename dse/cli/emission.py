"""What ``nearmac emit`` does, once its arguments are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from boards.errors import InputError
from boards.loader import load_board
from dse.choose import board_timing
from dse.cli.console import Reporter, print_json, print_tables
from dse.cli.design_options import DesignOptions, check_seed
from dse.cli.simulation_table import design_table, rows_table
from dse.cli.workload import check_size, read_workload
from dse.emit import check_directory, emit
from dse.estimate.resources import estimate_resources


def run(workload: str, layer_name: str | None, board_name: str, options: DesignOptions, out: str, *, seed: int, json: bool,
        input_shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Check everything that can be wrong, choose, write; the exit status. Raises InputError."""
    check_seed(seed)
    layer = read_workload(workload, layer_name, input_shapes)
    check_size(layer)
    board = load_board(board_name)
    parsed = options.parse()
    if not out:
        raise InputError("empty", where="--out", value=out, allowed="the name of a directory")
    check_directory(Path(out))
    with Reporter() as reporter:
        reporter.stage("choosing the mapping" if parsed.design else "choosing the design")
        choice = parsed.choose(layer, board)
        design, tiling = choice.plan.design, choice.plan.tiling
        reporter.stage("writing Verilog")
        with parsed.errors_by_option():
            report = emit(design, layer, tiling, board_timing(board, design), out, seed=seed, board=board.name)
    beat_bytes = design.bus_bits // 8
    files = [path.name for path in report.files]
    if json:
        print_json({
            "workload": workload, "layer": layer.to_dict(), "board": board.name,
            "design": {**design.to_dict(), "precision": design.precision}, "tiling": str(tiling),
            "directory": str(report.directory), "files": files, "verilog_lines": report.verilog_lines,
            "verilog_bytes": report.verilog_bytes, "predicted_cycles": report.expected_cycles,
            "predicted_bytes_read": report.beats_read * beat_bytes, "predicted_bytes_written": report.beats_written * beat_bytes,
            "memory_bytes": report.memory_bytes,
        })
        return 0
    print_tables(design_table(workload, design, estimate_resources(design), str(tiling), board), rows_table("Emission", [
        ("directory", str(report.directory)),
        ("files", ", ".join(files)),
        ("Verilog", f"{report.verilog_lines:,} lines, {report.verilog_bytes:,} bytes"),
        ("the test bench wants", f"{report.expected_cycles:,} cycles, {report.beats_read * beat_bytes:,} bytes read, "
                                 f"{report.beats_written * beat_bytes:,} written"),
        ("external memory", f"{report.memory_bytes:,} bytes"),
        ("to simulate", f"{Path(report.directory) / 'run.sh'} icarus"),
    ]))
    return 0
