"""``nearmac roofline``: what boards and machines attain on a workload, and where designs land."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import options as opt


def roofline(
    workload: opt.Workload,
    boards: Annotated[str | None, typer.Option("--board", metavar="NAME,..", show_default=False, help=(
        "Boards and reference machines of `nearmac boards`, or paths of your own .yaml. Default: every reference machine."))] = None,
    layer: Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help="One layer of the workload. Default: all.")] = None,
    precision: Annotated[str | None, typer.Option(metavar="wNaM,..", show_default=False, help=(
        "Weight and activation bits, one or several. Default: the network's own, else w8a8."))] = None,
    points: Annotated[str | None, typer.Option(metavar="DIR", show_default=False, help=(
        "A sweep's directory: show its front, and the layers of its fastest design for each board, in place of a design that is "
        "chosen."))] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Simulate the layers on the designs, beside the prediction.")] = False,
    roofs_only: Annotated[bool, typer.Option("--roofs-only", help="Choose no designs: roofs and layers alone.")] = False,
    engine: Annotated[str, typer.Option(metavar="auto|verilator|amaranth", help=(
        "Simulator of --simulate. auto takes Verilator where it can run."))] = "auto",
    plot: opt.Plot = None,
    input_shape: opt.InputShapes = None,
    json: opt.Json = False,
) -> int:
    """Show the roofs of boards and machines, what each layer attains under them, and where designs land."""
    from dse.cli.rooflining import Request, run

    return run(Request(workload=workload, boards=boards, layer=layer, precisions=precision, points=points, simulate=simulate,
                       roofs_only=roofs_only, engine=engine, plot=plot, json=json, input_shapes=opt.parse_input_shapes(input_shape)))
