"""``nearmac emit``: Verilog of one design with a test bench that runs one layer, or several from one start."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import options as opt


def emit(
    workload: opt.Workload,
    board: opt.BoardName,
    out: Annotated[str, typer.Option(metavar="DIR", show_default=False, help=(
        "A new or empty directory, or one that was emitted before, which is replaced."))],
    layer: opt.LayerName = None,
    array: opt.Array = None,
    precision: opt.Precision = None,
    buffers: opt.Buffers = None,
    multiplier: opt.MultiplierName = None,
    accumulate: opt.AccumulateName = None,
    drains: opt.Drains = None,
    output_multiplier: opt.OutputMultiplierName = None,
    accumulator_bits: opt.AccumulatorBits = None,
    clock_mhz: opt.ClockMHz = None,
    bus_bits: opt.BusBits = None,
    chaining: opt.Chaining = False,
    design: opt.DesignFile = None,
    scalesim_config: opt.ScaleSimConfig = None,
    input_shape: opt.InputShapes = None,
    constraints: Annotated[bool, typer.Option("--constraints", help=(
        "Write the board's constraint file too: pins of clock, reset and UART (needs the extra boards)."))] = False,
    seed: opt.Seed = 0,
    json: opt.Json = False,
) -> int:
    """Write the accelerator's Verilog, a self-checking test bench and a README to a directory."""
    from dse.cli.design_options import DesignOptions
    from dse.cli.emission import run, run_chain
    from dse.cli.workload import read_target

    chosen = DesignOptions(array=array, precision=precision, buffers=buffers, multiplier=multiplier, accumulate=accumulate,
                           drains=drains, output_multiplier=output_multiplier, accumulator_bits=accumulator_bits,
                           clock_mhz=clock_mhz, bus_bits=bus_bits, chaining=chaining or None, design=design,
                           scalesim_config=scalesim_config)
    shapes = opt.parse_input_shapes(input_shape)
    target = read_target(workload, layer, chosen, shapes)
    if target.network is not None and layer is not None:
        return run_chain(target.network, board, chosen, out, seed=seed, json=json, constraints=constraints)
    # A layer of a network has a precision of its own.
    return run(workload, layer, board, target.options, out, seed=seed, json=json, constraints=constraints, input_shapes=shapes)
