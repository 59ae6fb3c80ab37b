"""``nearmac simulate``: a layer or a network on the hardware of one design, compared with prediction and golden model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

from dse.cli import options as opt

VCD_CYCLES = "0:10000"


def simulate(
    workload: opt.Workload,
    board: opt.BoardName,
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
    engine: Annotated[str, typer.Option(metavar="auto|verilator|amaranth", help=(
        "Simulator. auto takes Verilator where it can run."))] = "auto",
    vcd: Annotated[str | None, typer.Option(metavar="FILE", help="Write waveforms.", show_default=False)] = None,
    vcd_cycles: Annotated[str | None, typer.Option(metavar="START:STOP", show_default=False, help=(
        f"Cycles that the waveforms hold. Default: {VCD_CYCLES}."))] = None,
    save_tensors: Annotated[str | None, typer.Option(metavar="FILE.npz", show_default=False, help=(
        "Write the tensors that the hardware read and produced."))] = None,
    input: Annotated[str | None, typer.Option(metavar="FILE.npz", show_default=False, help=(
        "Read tensors, as --save-tensors writes them; those that are missing are random. For a layer of an ONNX model: the model's inputs "
        "by name; the layer then has the model's own numbers, and is compared with ONNX Runtime."))] = None,
    input_shape: opt.InputShapes = None,
    stall_seed: Annotated[int | None, typer.Option(metavar="N", show_default=False, help=(
        "Inject random memory stalls: other cycles, the same bits."))] = None,
    seed: opt.Seed = 0,
    json: opt.Json = False,
) -> int:
    """Simulate one layer, or every layer of a network, on the hardware; compare bits, bytes and cycles with golden model and prediction."""
    from dse.cli.console import Reporter

    run: Callable[[], int]
    with Reporter() as opening:
        opening.stage("reading the workload")  # before the imports, so that something is there at once
        from dse.cli.design_options import DesignOptions
        from dse.cli.simulation import Outputs
        from dse.cli.workload import read_target
        from dse.workload.load import is_onnx

        chosen = DesignOptions(array=array, precision=precision, buffers=buffers, multiplier=multiplier, accumulate=accumulate,
                               drains=drains, output_multiplier=output_multiplier, accumulator_bits=accumulator_bits,
                               clock_mhz=clock_mhz, bus_bits=bus_bits, chaining=chaining or None, design=design,
                               scalesim_config=scalesim_config)
        shapes = opt.parse_input_shapes(input_shape)
        outputs = Outputs(vcd=vcd, vcd_cycles=vcd_cycles, save_tensors=save_tensors, json=json)
        if layer is not None and input is not None and is_onnx(workload):
            from dse.cli import onnx_simulation

            run = partial(onnx_simulation.run, workload, layer, board, chosen, outputs, engine=engine, input_path=input,
                          stall_seed=stall_seed, input_shapes=shapes)
        elif (target := read_target(workload, layer, chosen, shapes)).network is not None:
            from dse.cli import network_simulation

            of_one_layer = {"--vcd": vcd, "--vcd-cycles": vcd_cycles, "--save-tensors": save_tensors, "--input": input}
            run = partial(network_simulation.run, target.network, board, chosen, engine=engine, stall_seed=stall_seed, seed=seed,
                          json=json, of_one_layer=of_one_layer)
        else:
            from dse.cli import simulation

            run = partial(simulation.run, workload, layer, board, target.options, outputs, engine=engine, input_path=input,
                          stall_seed=stall_seed, seed=seed, input_shapes=shapes)
    return run()
