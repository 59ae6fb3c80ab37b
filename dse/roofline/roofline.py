"""Layers under the roofs of boards and machines, and where designs land: predicted, and measured on the simulated hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boards.machine import Machine
from boards.schema import Board
from dse.choose import board_timing
from dse.estimate.bounds import compulsory_bits
from dse.estimate.resources import check_fits
from dse.roofline.points import FrontPoint
from dse.roofline.roof import Roof, peak_of, roof_of
from dse.schedule.search import Choice, best_tiling
from dse.simulate import simulate
from dse.workload.network import Network
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer

REFERENCE = "S. Williams, A. Waterman, D. Patterson, Roofline, Communications of the ACM 52(4), 2009"


@dataclass(frozen=True)
class Work:
    """A layer at a precision. ``repeat``: times it runs, each reading the weights again."""

    layer: Layer
    weight_bits: int
    activation_bits: int
    repeat: int = 1

    @property
    def name(self) -> str:
        return self.layer.name

    @property
    def precision(self) -> str:
        return f"w{self.weight_bits}a{self.activation_bits}"

    @property
    def ops(self) -> int:
        """Of all repeats; 1 MAC = 2 ops."""
        return 2 * self.layer.macs * self.repeat

    def least_bytes(self, roof: Roof) -> float:
        """Compulsory bytes of all repeats, elements as wide as they travel under ``roof``."""
        return compulsory_bits(self.layer, roof.weight_bits, roof.activation_bits) * self.repeat / 8

    def ops_per_byte(self, roof: Roof) -> float:
        """The highest intensity that any schedule has."""
        return self.ops / self.least_bytes(roof)


def works_of(workload: Network | Layer, weight_bits: int = 8, activation_bits: int = 8) -> list[Work]:
    """The layers of a network at their own precision; or one layer at the one that is given."""
    if isinstance(workload, Layer):
        return [Work(workload, weight_bits, activation_bits)]
    return [Work(node.layer, node.weight_bits, node.activation_bits, node.repeat) for node in workload.array_operators]


@dataclass(frozen=True)
class Attainable:
    """A layer under a roof. ``needed_mb_s``: what the memory would have to offer for the compute roof."""

    work: Work
    roof: Roof

    @property
    def ops_per_byte(self) -> float:
        return self.work.ops_per_byte(self.roof)

    @property
    def gops(self) -> float:
        return self.roof.attainable_gops(self.ops_per_byte)

    @property
    def bound(self) -> str:
        return self.roof.bound(self.ops_per_byte)

    @property
    def needed_mb_s(self) -> float:
        return self.roof.peak_gops * 1000 / self.ops_per_byte

    @property
    def seconds(self) -> float:
        """At least."""
        return self.work.ops / self.gops / 1e9

    def to_dict(self) -> dict[str, Any]:
        clock, bytes_per_cycle = self.roof.clock_mhz, self.roof.bytes_per_cycle
        return {"layer": self.work.name, "machine": self.roof.machine, "precision": self.work.precision, "ops": self.work.ops,
                "least_bytes": self.work.least_bytes(self.roof), "ops_per_byte": self.ops_per_byte, "attainable_gops": self.gops,
                "memory_roof_gops": self.roof.memory_gops(self.ops_per_byte), "bound": self.bound, "least_seconds": self.seconds,
                "needed_mb_s": self.needed_mb_s, "needed_bytes_per_cycle": self.needed_mb_s / clock if clock else None,
                "offered_bytes_per_cycle": bytes_per_cycle}


@dataclass(frozen=True)
class Run:
    """Cycles and bytes of a layer on a design, once; predicted or simulated."""

    cycles: int
    bytes: int


@dataclass(frozen=True)
class Landing:
    """A layer on a design under the roof of its board. ``refused``: why it cannot run, and then there are no runs."""

    at: Attainable
    design: Design
    predicted: Run | None
    bound: str = ""
    simulated: Run | None = None
    matches: bool = True
    refused: str = ""

    def gops(self, run: Run) -> float:
        return 2 * self.at.work.layer.macs * self.design.clock_mhz / run.cycles / 1000

    def ops_per_byte(self, run: Run) -> float:
        """Of the bytes that the run moves."""
        return 2 * self.at.work.layer.macs / run.bytes

    def _run_dict(self, run: Run) -> dict[str, Any]:
        return {"cycles": run.cycles, "bytes": run.bytes, "gops": self.gops(run), "ops_per_byte": self.ops_per_byte(run),
                "bytes_per_cycle": run.bytes / run.cycles, "ops_per_cycle": 2 * self.at.work.layer.macs / run.cycles,
                "share_of_roof": self.gops(run) / self.at.gops}

    def to_dict(self) -> dict[str, Any]:
        return {"layer": self.at.work.name, "board": self.at.roof.machine, "precision": self.at.work.precision,
                "refused": self.refused or None, "bound": self.bound or None, "roof_gops": self.at.gops,
                "array_peak_gops": peak_of(self.design),
                "predicted": self._run_dict(self.predicted) if self.predicted else None,
                "simulated": self._run_dict(self.simulated) if self.simulated else None,
                "matches": self.matches if self.simulated else None}


@dataclass(frozen=True)
class Landed:
    """A design on a board, and where each layer lands. ``source``: ``chosen``, or the point of a sweep."""

    board: str
    precision: str
    design: Design
    source: str
    landings: tuple[Landing, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"board": self.board, "precision": self.precision, "source": self.source,
                "design": {**self.design.to_dict(), "precision": self.design.precision}, "array_peak_gops": peak_of(self.design),
                "layers": [landing.to_dict() for landing in self.landings]}


@dataclass(frozen=True)
class Rooflines:
    """What `nearmac roofline` shows. ``whole``: the workload at each precision that is asked for, by a name, and its layers."""

    workload: str
    roofs: tuple[Roof, ...]
    attainable: tuple[Attainable, ...]
    whole: tuple[tuple[str, tuple[Work, ...]], ...] = ()
    designs: tuple[Landed, ...] = ()
    points: tuple[FrontPoint, ...] = ()

    @property
    def matches(self) -> bool:
        """Every simulated layer is as predicted."""
        return all(landing.matches for landed in self.designs for landing in landed.landings)

    def totals(self) -> list[dict[str, Any]]:
        """The whole workload on each machine that can compute all of it: its layers one after another, each at its roof."""
        found = {(at.roof.machine, at.work): at for at in self.attainable}
        totals = []
        for precision, works in self.whole:
            for machine in dict.fromkeys(roof.machine for roof in self.roofs):
                entries = [found[machine, work] for work in works if (machine, work) in found]
                if len(entries) == len(works):
                    ops, seconds = sum(at.work.ops for at in entries), sum(at.seconds for at in entries)
                    totals.append({"machine": machine, "precision": precision, "ops": ops, "least_seconds": seconds,
                                   "attainable_gops": ops / seconds / 1e9})
        return totals

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `nearmac roofline --json`."""
        return {"workload": self.workload,
                "definition": f"attainable = min(peak, bandwidth * ops per compulsory byte); {REFERENCE}",
                "roofs": [roof.to_dict() for roof in self.roofs], "layers": [entry.to_dict() for entry in self.attainable],
                "totals": self.totals(), "designs": [landed.to_dict() for landed in self.designs],
                "points": [point.to_dict() for point in self.points]}


def attainable(works: Iterable[Work], targets: Sequence[Board | Machine], *, clocks_mhz: dict[str, float] | None = None,
               remark: Callable[[str], None] | None = None) -> tuple[tuple[Roof, ...], tuple[Attainable, ...]]:
    """The roofs of every target for every precision of the works, and each work under each. ``clocks_mhz``: of boards, other than theirs.

    ``remark`` hears which target has no external memory, or no format wide enough, and is left out; without it, and where nothing is left,
    InputError says so.
    """
    works = list(works)
    roofs: dict[tuple[str, str], Roof] = {}
    refused: dict[tuple[str, str], InputError] = {}
    for target in targets:
        for work in works:
            key = target.name, work.precision
            if key in roofs or key in refused:
                continue
            clock = (clocks_mhz or {}).get(target.name)
            try:
                roofs[key] = roof_of(target, work.weight_bits, work.activation_bits, clock_mhz=clock)
            except InputError as error:
                if remark is None:
                    raise
                remark(f"{target.name} {work.precision} is left out: {error.what}")
                refused[key] = error
    if not roofs:
        raise next(iter(refused.values()))
    layers = tuple(Attainable(work, roofs[key]) for target in targets for work in works if (key := (target.name, work.precision)) in roofs)
    return tuple(roofs.values()), layers


def land(works: Iterable[Attainable], board: Board, design: Design, source: str, *, precision: str, measure: bool = False,
         engine: str = "auto", started: Callable[[str], None] | None = None,
         counter: Callable[[str, int | None], Callable[[int], None] | None] | None = None,
         notify: Callable[[str], None] | None = None) -> Landed:
    """Map each layer on ``design`` exactly, and simulate it where ``measure`` is set; layers that differ in name alone are done once.

    ``started`` hears what begins, ``counter`` makes a simulation's progress function from its text and cycles.
    Raises InputError when the design does not fit the board, and what :func:`sim.engine.run` raises.
    """
    check_fits(design, board)
    timing = board_timing(board, design)
    done: dict[Layer, Landing] = {}
    landings = []
    for at in works:
        work, key = at.work, replace(at.work.layer, name="layer")
        if key not in done:
            if started:
                started(f"mapping {work.name} on {board.name}")
            done[key] = _landing(at, board, design, timing, measure, engine, counter, notify)
        landings.append(replace(done[key], at=at))
    return Landed(board.name, precision, design, source, tuple(landings))


def _landing(at: Attainable, board: Board, design: Design, timing: Any, measure: bool, engine: str, counter: Any, notify: Any) -> Landing:
    work = at.work
    if work.weight_bits > design.weight_bits or work.activation_bits > design.activation_bits:
        return Landing(at, design, None, refused=f"{work.precision} operands, the array has {design.precision}")
    try:
        choice: Choice = best_tiling(design, work.layer, timing)
    except InputError as error:
        return Landing(at, design, None, refused=error.what)
    prediction = choice.prediction
    landing = Landing(at, design, Run(prediction.cycles, choice.bytes), prediction.bound[0])
    if not measure:
        return landing
    progress = counter(f"simulating {work.name} on {board.name}", prediction.cycles) if counter else None
    report, _ = simulate(work.layer, board, choice, workload=work.name, engine=engine, progress=progress, notify=notify)
    moved = (report.result.beats_read + report.result.beats_written) * design.bus_bits // 8
    return replace(landing, simulated=Run(report.cycles, moved), matches=report.matches)
