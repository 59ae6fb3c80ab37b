"""What ``nearmac roofline`` does, once its arguments are there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from boards.errors import InputError
from boards.loader import list_machines
from boards.machine import Machine
from boards.schema import Board
from dse.cli.console import Reporter, print_json, print_remarks, print_tables
from dse.cli.design_options import one_of
from dse.cli.pictures import picture_file, save_picture
from dse.cli.roofline_tables import roofline_tables
from dse.cli.workload import layer_operator
from dse.roofline.points import FrontPoint, front_points
from dse.roofline.roof import load_target
from dse.roofline.roofline import Attainable, Landed, Rooflines, Work, attainable, land, works_of
from dse.simulate import choose
from dse.simulate_network import choose_network_design
from dse.workload.load import load_workload
from dse.workload.network import Network
from dse.workload.operators import unknown
from hdl.design import Design, parse_precision
from hdl.layer import Layer
from sim.engine import ENGINES


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments as they were typed."""

    workload: str
    boards: str | None = None
    layer: str | None = None
    precisions: str | None = None
    points: str | None = None
    simulate: bool = False
    roofs_only: bool = False
    engine: str = "auto"
    plot: str | None = None
    json: bool = False
    input_shapes: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Asked:
    """The workload at one precision: ``bits`` are None where it is the network's own. ``precision``: as tables name it."""

    found: Network | Layer
    bits: tuple[int, int] | tuple[None, None]
    works: list[Work]

    @property
    def precision(self) -> str:
        return f"w{max(work.weight_bits for work in self.works)}a{max(work.activation_bits for work in self.works)}"

    @property
    def macs(self) -> int:
        return sum(work.ops for work in self.works) // 2


def run(request: Request) -> int:
    """Check everything that can be wrong, compute, print; the exit status. Raises InputError and what engines raise."""
    one_of(request.engine, ENGINES, where="--engine")
    for option, value in (("--points", request.points), ("--simulate", request.simulate or None)):
        if request.roofs_only and value is not None:
            raise InputError("given together with --roofs-only", where=option, value=value)
    if request.points and request.layer:
        raise InputError("of a whole workload", where="--points", value=request.points, suggestion="leave --layer out")
    targets = _targets(request.boards)
    asked = _asked(request)
    with picture_file(request.plot) as picture, Reporter() as reporter:
        points = _points(request, asked, targets)
        report = _report(request, targets, asked, points, reporter)
        if picture:
            from dse.plot.roofline import plot_rooflines

            save_picture(plot_rooflines(report), picture)
    if request.json:
        print_json(report.to_dict())
    else:
        print_tables(*roofline_tables(report))
    if report.matches:
        return 0
    print("error: the simulation does not match the prediction or the golden model", file=sys.stderr)
    return 1


def _names(text: str, where: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for at, name in enumerate(names):
        if not name:
            raise InputError("an empty name", where=where, value=text, allowed="names with commas between them")
        if name in names[:at]:
            raise InputError("given twice", where=where, value=name)
    return names


def _targets(text: str | None) -> list[Board | Machine]:
    return [load_target(name) for name in (list_machines() if text is None else _names(text, "--board"))]


def _asked(request: Request) -> list[Asked]:
    names = [] if request.precisions is None else _names(request.precisions, "--precision")
    bits: list[tuple[int, int] | tuple[None, None]] = [parse_precision(name) for name in names]
    result = []
    for at, (weight_bits, activation_bits) in enumerate(bits or [(None, None)]):
        found = load_workload(request.workload, weight_bits, activation_bits, request.input_shapes)
        if isinstance(found, Network) and at == 0:
            print_remarks(found.remarks)
        works = works_of(found, weight_bits or 8, activation_bits or 8)
        if request.layer is not None:
            if isinstance(found, Network):
                layer_operator(found, request.layer)  # or the error that names the nearest
            elif found.name != request.layer:
                raise unknown("no such layer in the workload", request.layer, [found.name], where="--layer")
            works = [work for work in works if work.name == request.layer]
        result.append(Asked(found, (weight_bits, activation_bits) if weight_bits and activation_bits else (None, None), works))
    return result


def _points(request: Request, asked: Sequence[Asked], targets: Sequence[Board | Machine]) -> list[FrontPoint]:
    """Of the boards and precisions that are asked for."""
    if request.points is None:
        return []
    found = front_points(request.points, asked[0].found.name, asked[0].macs)
    boards, precisions = {target.name for target in targets}, {entry.precision for entry in asked}
    kept = [point for point in found if point.board in boards and point.precision in precisions]
    if not kept:
        there = ", ".join(dict.fromkeys(f"{point.board} {point.precision}" for point in found)) or "none"
        raise InputError("the sweep has no point of these boards and precisions", where="--points", value=request.points, allowed=there)
    return kept


def _report(request: Request, targets: Sequence[Board | Machine], asked: Sequence[Asked], points: Sequence[FrontPoint],
            reporter: Reporter) -> Rooflines:
    clocks: dict[str, float] = {}
    for point in points:  # a roof at the highest clock of the points under it
        clocks[point.board] = max(clocks.get(point.board, 0.0), point.design.clock_mhz)
    # Precisions may share layers: a network's first layer is often wider than asked for.
    works = list(dict.fromkeys(work for entry in asked for work in entry.works))
    roofs, layers = attainable(works, targets, clocks_mhz=clocks, remark=reporter.notify)
    name = request.workload if request.layer is None else f"{request.workload} --layer {request.layer}"
    report = Rooflines(name, roofs, layers, tuple((entry.precision, tuple(entry.works)) for entry in asked), points=tuple(points))
    if request.roofs_only:
        return report
    designs: list[Landed] = []
    for board in targets:
        if not isinstance(board, Board):
            continue
        for entry in asked:
            under = [at for at in layers if at.roof.machine == board.name and at.work in entry.works]
            if under:
                designs += _landed(request, board, entry, under, points, reporter)
    return replace(report, designs=tuple(designs))


def _landed(request: Request, board: Board, asked: Asked, under: list[Attainable], points: Sequence[FrontPoint],
            reporter: Reporter) -> list[Landed]:
    """The design on a board at a precision, with its layers; none where none fits, which is said."""
    what = f"{board.name} {asked.precision}"
    if request.points is not None:
        best = next((p for p in points if p.is_best and (p.board, p.precision) == (board.name, asked.precision)), None)
        if best is None:
            reporter.notify(f"{what}: the sweep has no such point")
            return []
        design, source = best.design, f"point {best.index} of {request.points}"
    else:
        reporter.stage(f"choosing a design for {what}")
        try:
            design, source = _chosen(board, asked), "chosen"
        except InputError as error:
            reporter.notify(f"{what}: no design: {error}")
            return []
    return [land(under, board, design, source, precision=asked.precision, measure=request.simulate, engine=request.engine,
                 started=reporter.stage, counter=reporter.counter, notify=reporter.notify)]


def _chosen(board: Board, asked: Asked) -> Design:
    if isinstance(asked.found, Network) and len(asked.works) > 1:
        return choose_network_design(asked.found, board, weight_bits=asked.bits[0], activation_bits=asked.bits[1])
    work = asked.works[0]
    return choose(work.layer, board, weight_bits=work.weight_bits, activation_bits=work.activation_bits).plan.design
