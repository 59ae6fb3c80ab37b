"""What ``nearmac sweep`` does, once its arguments are there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boards.errors import InputError
from dse.cli.sweep_progress import SweepProgress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from boards.schema import Board
    from dse.sweep.run import SweepReport
    from dse.sweep.space import Space
    from dse.workload.interop.scalesim_config import ScaleSimConfig
    from dse.workload.network import Network
    from hdl.layer import Layer


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments as they were typed."""

    workload: str
    boards: str | None
    space: str | None
    out: str
    precisions: str | None
    workers: int
    scheduler: str | None
    verify: int
    resume: bool
    json: bool
    input_shapes: Mapping[str, Sequence[int]]
    scalesim_config: str | None = None


def run(request: Request) -> int:
    """Sweep, and print what came out; the exit status. Raises InputError and SimulationError."""
    with SweepProgress() as progress:
        progress.stage("preparing the sweep")  # before the imports, so that something is there at once
        from dse.sweep.run import sweep
        from dse.sweep.space import Space
        from dse.workload.load import load_workload
        from dse.workload.network import Network
        from sim.errors import SimulationError, ToolError

        workload = load_workload(request.workload, input_shapes=request.input_shapes)
        if isinstance(workload, Network):
            for remark in workload.remarks:
                progress.notify(remark)
        config = _scalesim_config(request)
        space = _space(request.space) if config is None else Space.from_dict(config.space(), where=config.path)
        boards = _boards(request.boards, space)
        precisions = _precisions(request.precisions)
        progress.stage("listing the points")
        try:
            report = sweep(workload, boards, space, request.out, precisions=precisions, workers=request.workers,
                           scheduler=request.scheduler, verify=request.verify, resume=request.resume, progress=progress.count,
                           notify=progress.notify, stage=progress.stage,
                           verified=lambda entry: progress.notify(f"verified {entry}"))
        except (KeyboardInterrupt, SimulationError, ToolError):
            if progress.total:
                progress.notify(f"{progress.done:,} of {progress.total:,} points are kept in {request.out}; "
                                "the same command with --resume goes on")
            raise
    if report.was_complete:
        progress.notify(f"{request.out} holds this sweep already, complete; nothing was computed")
    _print(report, boards, request, None if config is None else _counted(config, workload))
    return _status(report)


def _space(path: str | None) -> Space | None:
    if path is None:
        return None
    from dse.sweep.space import load_space

    return load_space(path)


def _boards(text: str | None, space: Space | None) -> list[Board]:
    """Those of ``--board``, else those of the space."""
    from boards.loader import load_board

    if text is None and space is not None and space.boards:
        return [load_board(name) for name in space.boards]
    names = [name.strip() for name in (text or "").split(",")]
    if not all(names):
        raise InputError("no board" if text is None else "a board without a name", where="--board",
                         suggestion="name one or several of `nearmac boards`, with commas between them")
    return [load_board(name) for name in names]


def _precisions(text: str | None) -> list[str]:
    from hdl.design import parse_precision

    names = [] if text is None else [name.strip() for name in text.split(",")]
    for at, name in enumerate(names):
        parse_precision(name)
        if name in names[:at]:
            raise InputError("given twice", where="--precision", value=name)
    return names


def _scalesim_config(request: Request) -> ScaleSimConfig | None:
    if request.scalesim_config is None:
        return None
    if request.space is not None:
        raise InputError("given together with --space", where="--scalesim-config", value=request.scalesim_config,
                         suggestion="give one of them")
    from dse.workload.interop.scalesim_config import load_config

    return load_config(request.scalesim_config)


def _counted(config: ScaleSimConfig, workload: Network | Layer) -> tuple[dict[str, Any], RenderableType]:
    """SCALE-Sim's count for the workload, as JSON and as a table."""
    from dse.cli import scalesim
    from dse.workload.network import Network

    counts = config.counts(workload) if isinstance(workload, Network) else scalesim.layer_counts(config, workload)
    scalesim.remark_on(config)
    return scalesim.counts_json(config, counts), scalesim.counts_table(config, counts)


def _print(report: SweepReport, boards: list[Board], request: Request, scale_sim: tuple[dict[str, Any], RenderableType] | None) -> None:
    from dse.cli.console import print_json, print_tables
    from dse.cli.sweep_tables import sweep_tables

    if request.json:
        print_json({**report.to_dict(), **({"scale_sim": scale_sim[0]} if scale_sim else {})})
    else:
        print_tables(*sweep_tables(report, boards), *([scale_sim[1]] if scale_sim else []))
    if request.verify and not request.json:
        found = len(report.verifications)
        if found < request.verify:
            print(f"nearmac: {found} of {request.verify} points verified: the front has no more", file=sys.stderr)


def _status(report: SweepReport) -> int:
    if report.errors:
        print(f"error: the evaluation of {report.errors:,} points failed; the column reason of {report.out / 'points.parquet'} "
              "says how", file=sys.stderr)
    wrong = [entry for entry in report.verifications if not entry.matches]
    if wrong:
        print(f"error: the simulation of {len(wrong)} points does not match the prediction or the golden model", file=sys.stderr)
    return 0 if report.succeeded else 1
