"""``nearmac synth``: synthesis of one design for a board, place and route where there is a tool for it."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import options as opt


def synth(
    board: opt.BoardName,
    workload: opt.OptionalWorkload = None,
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
    no_place: Annotated[bool, typer.Option("--no-place", help=(
        "Synthesise alone. Else ECP5, iCE40 and Gowin devices are placed and routed."))] = False,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Runs of nextpnr, from seed 1 on.")] = 1,
    target_mhz: Annotated[float | None, typer.Option("--target-mhz", metavar="F", show_default=False, help=(
        "What nextpnr is asked for. Default: the core clock."))] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="DIR", show_default=False, help=(
        "Where the tools' reports and synthesis.json go."))] = None,
    json: opt.Json = False,
) -> int:
    """Build a design with Yosys and nextpnr: what it takes, beside the estimate, and its clock.

    WORKLOAD chooses what is left open of the design; with --design it may be left out. Needs the extra synth.
    """
    from dse.cli.design_options import DesignOptions
    from dse.cli.synthesis import run

    chosen = DesignOptions(array=array, precision=precision, buffers=buffers, multiplier=multiplier, accumulate=accumulate,
                           drains=drains, output_multiplier=output_multiplier, accumulator_bits=accumulator_bits,
                           clock_mhz=clock_mhz, bus_bits=bus_bits, chaining=chaining or None, design=design,
                           scalesim_config=scalesim_config)
    return run(workload, layer, board, chosen, place=not no_place, seeds=seeds, target_mhz=target_mhz, out=out, json=json,
               input_shapes=opt.parse_input_shapes(input_shape))
