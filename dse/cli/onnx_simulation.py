"""What ``nearmac simulate MODEL.onnx --layer NAME --input FILE.npz`` does: the layer with the model's own numbers, beside ONNX Runtime."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from boards.errors import InputError
from boards.loader import load_board
from dse.cli.console import Reporter, print_json, print_tables
from dse.cli.design_options import DesignOptions, check_seed, one_of
from dse.cli.network_tables import number_table
from dse.cli.simulation import Outputs, file_outputs, parse_window
from dse.cli.simulation_table import rows_table, simulation_tables
from dse.cli.tensors import read_arrays, save_tensors
from dse.cli.workload import check_size
from dse.onnx_layer.prepare import Prepared, find_layer, prepare
from dse.onnx_layer.run import TOLERANCE_LSB, OnnxComparison, compare
from dse.onnx_layer.runtime import OPTION, Runtime, split_samples
from dse.simulate import simulate
from dse.workload.onnx_import.importer import import_onnx
from hdl.design import parse_precision
from sim.engine import ENGINES


def run(workload: str, layer_name: str, board_name: str, options: DesignOptions, outputs: Outputs, *, engine: str, input_path: str,
        stall_seed: int | None, input_shapes: Mapping[str, Sequence[int]]) -> int:
    """Check, quantise where the model does not, simulate, compare; the exit status. Raises InputError and what engines raise."""
    one_of(engine, ENGINES, where="--engine")
    check_seed(stall_seed, where="--stall-seed")
    window = parse_window(outputs.vcd_cycles, outputs.vcd)
    weight_bits, activation_bits = parse_precision(options.precision) if options.precision else (None, None)
    board = load_board(board_name)
    with file_outputs(outputs) as (vcd, saved), Reporter() as reporter:
        reporter.stage("reading the model")
        imported = import_onnx(workload, weight_bits, activation_bits, input_shapes)
        samples = split_samples(imported, read_arrays(input_path), f"{OPTION} {input_path}")
        reporter.stage("running the model up to the layer")
        values = find_layer(imported, layer_name, Runtime(imported, samples))
        check_size(values.operator.layer)
        prepared = prepare(values, weight_bits, activation_bits)
        reporter.stage("choosing the design")
        parsed = _options(options, prepared).parse()
        choice = parsed.choose(prepared.layer, board)
        _check_widths(prepared, choice.plan.design.weight_bits, choice.plan.design.activation_bits, options)
        total = choice.prediction.cycles if stall_seed is None else None
        with parsed.errors_by_option():
            report, results = simulate(
                prepared.layer, board, choice, workload=workload, engine=engine, tensors=prepared.tensors, stall_seed=stall_seed,
                vcd=vcd.temporary if vcd else None, vcd_cycles=window, progress=reporter.counter("simulating", total),
                notify=reporter.notify)
        reporter.stage("comparing")
        comparison = compare(values, prepared, results["output"])
        for file in (vcd, saved):
            if file is saved and saved:
                save_tensors(results, saved)
            elif file:
                file.commit()
    if outputs.json:
        print_json({**report.to_dict(), "onnx": comparison.to_dict()})
    else:
        print_tables(*simulation_tables(report, board), *comparison_tables(comparison))
    if report.matches and comparison.matches:
        return 0
    wrong = "the prediction or the golden model" if not report.matches else "ONNX Runtime"
    print(f"error: the simulation does not match {wrong}", file=sys.stderr)
    return 1


def _options(options: DesignOptions, prepared: Prepared) -> DesignOptions:
    """The design options with the layer's own widths, where nothing else is asked for."""
    if options.design is not None:
        return options
    given = options.precision or f"w{prepared.weight_bits}a{prepared.activation_bits}"
    _check_widths(prepared, *parse_precision(given), options)
    return replace(options, precision=given, accumulator_bits=options.accumulator_bits or prepared.accumulator_bits)


def _check_widths(prepared: Prepared, weight_bits: int, activation_bits: int, options: DesignOptions) -> None:
    if prepared.weight_bits > weight_bits or prepared.activation_bits > activation_bits:
        raise InputError("the layer's integers are wider", where="--precision" if options.design is None else options.design,
                         value=f"w{weight_bits}a{activation_bits}", allowed=f"at least w{prepared.weight_bits}a{prepared.activation_bits}")


def comparison_tables(comparison: OnnxComparison) -> list[RenderableType]:
    """The outputs beside ONNX Runtime's, and the noise at each precision."""
    allowed = f" (allowed: {TOLERANCE_LSB})" if comparison.is_quantised else ""
    text = f"all {comparison.outputs:,} are equal" if not comparison.differing else (
        f"{comparison.differing:,} of {comparison.outputs:,} differ, by at most {comparison.largest_lsb} LSB{allowed}")
    if comparison.is_quantised:
        verdict = Text(text if comparison.matches else f"MISMATCH: {text}", style="" if comparison.matches else "bold red")
        kind = "the model's own"
    else:
        verdict, kind = Text(text), f"ours, calibrated on {comparison.samples} sample{'s' if comparison.samples != 1 else ''}"
    tables: list[RenderableType] = [rows_table(comparison.reference, [
        ("tensor", comparison.tensor), ("quantisation", kind), ("outputs", verdict),
        ("signal to noise", _decibels(comparison.output_db))])]
    if comparison.noise:
        table: Table = number_table("bits", "operands only", "with outputs", "remark left",
                                    title="Signal to quantisation noise, weights and activations of as many bits")
        for row in comparison.noise:
            cells = ("-", "-", row.refused) if row.refused else (_decibels(row.operands_db), _decibels(row.output_db), "")
            table.add_row(str(row.bits), *cells)
        tables.append(table)
    return tables


def _decibels(value: Any) -> str:
    return "no noise" if value is None else f"{value:.1f} dB"
