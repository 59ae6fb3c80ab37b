"""``nearmac sweep``: every point of a space of designs on a workload, and the best among them."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import options as opt


def sweep(
    workload: opt.Workload,
    out: Annotated[str, typer.Option("--out", metavar="DIR", show_default=False, help="Directory for the results: new or empty.")],
    board: Annotated[str | None, typer.Option("--board", metavar="NAME,..", show_default=False, help=(
        "One or more boards of `nearmac boards`, or paths of your own .yaml. Default: those of the space."))] = None,
    space: Annotated[str | None, typer.Option("--space", metavar="FILE", show_default=False, help=(
        "The points to look at, constraints and objectives. Default: a sensible space for each board."))] = None,
    scalesim_config: Annotated[str | None, typer.Option("--scalesim-config", metavar="FILE", show_default=False, help=(
        "A SCALE-Sim .cfg in place of a space: every shape of an array with as many multipliers, in banks of its SRAM sizes."))] = None,
    precision: Annotated[str | None, typer.Option("--precision", metavar="wNaM,..", show_default=False, help=(
        "Weight and activation bits, in place of the space's. Default without a space: w8a8."))] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", help="Processes that compute. The results do not depend on it.")] = 1,
    scheduler: Annotated[str | None, typer.Option("--scheduler", metavar="ADDRESS", show_default=False, help=(
        "Compute on the workers of a dask.distributed scheduler, such as tcp://host:8786."))] = None,
    verify: Annotated[int, typer.Option("--verify", metavar="N", help=(
        "Simulate N points of the Pareto front, each on one layer; exit status 1 when a prediction is off."))] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted sweep of the same inputs.")] = False,
    input_shape: opt.InputShapes = None,
    json: opt.Json = False,
) -> int:
    """Evaluate every design point of a space on a workload; write all of them, and the Pareto front as designs.

    A sweep in which no point is feasible is done: it says why, and ends with status 0. Interrupted, it keeps what is finished, and
    --resume goes on.
    """
    from dse.cli.sweeping import Request, run

    return run(Request(workload=workload, boards=board, space=space, out=out, precisions=precision, workers=workers,
                       scheduler=scheduler, verify=verify, resume=resume, json=json, scalesim_config=scalesim_config,
                       input_shapes=opt.parse_input_shapes(input_shape)))
