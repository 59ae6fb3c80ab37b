"""Synthesis of a design for a board, and where nextpnr has the family place and route: what it takes, beside the estimate and the device.

Yosys and nextpnr run once for what they are given: their reports are cached by the content of Verilog and commands.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from boards.errors import InputError
from boards.schema import Board
from dse.estimate.resources import check_fits, estimate_resources, usable
from hdl.accelerator import Accelerator
from hdl.design import Design
from hdl.family import block_ram
from hdl.place_and_route import TOOLS, Part, Placement, behind_pins, device_part, netlist_flow, place, place_command, require_nextpnr
from hdl.synthesis import Cells, flow, read_cells, require_yosys, run_flow
from hdl.verilog import TOP
from sim.artifacts import ArtifactCache, digest, open_cache
from sim.verilator_build import emit

MAX_SEEDS = 100
RESOURCES = {"luts": "look-up tables", "ffs": "flip-flops", "dsps": "DSP blocks", "block_rams": "block RAMs",
             "distributed_rams": "distributed RAM cells"}
"""What is compared; the last three are exact."""
EXACT = ("dsps", "block_rams", "distributed_rams")
BEFORE_PLACEMENT, PLACED = "after synthesis, before placement", "after synthesis; placed and routed"


@dataclass(frozen=True)
class Usage:
    """A resource: cells ``used`` after synthesis, what was ``estimated``, what the device has (``available``) and what of it a design may
    take (``usable``). Units are those of :class:`hdl.synthesis.Cells`."""

    used: int
    estimated: int
    usable: int
    available: int

    @property
    def error(self) -> float | None:
        """Of the estimate, as a share of what is used."""
        return (self.estimated - self.used) / self.used if self.used else None


@dataclass(frozen=True)
class SynthReport:
    """What the tools made of a design.

    Parameters
    ----------
    cells: after synthesis, by type.
    usage: by the names of :data:`RESOURCES`.
    part: what nextpnr placed for; None where it did not.
    unplaced: why it did not.
    target_mhz: what nextpnr was asked for.
    placements: one a seed; the cells of the wrapper that stands for pins (:class:`hdl.place_and_route.Scan`) are among theirs.
    tools: package -> version.
    cached: runs of tools whose reports were there already, of all ``runs``.
    files: the tools' reports, by name.
    """

    board: Board
    design: Design
    cells: Cells
    usage: dict[str, Usage]
    part: Part | None
    unplaced: str
    target_mhz: float
    placements: tuple[Placement, ...]
    tools: dict[str, str]
    cached: int
    files: dict[str, bytes] = field(repr=False)

    @property
    def runs(self) -> int:
        return 1 + len(self.placements)

    @property
    def label(self) -> str:
        """What stage the figures are of."""
        return PLACED if self.placements else BEFORE_PLACEMENT

    @property
    def best(self) -> Placement | None:
        """The placement with the highest clock."""
        return max(self.placements, key=lambda placement: placement.clock_mhz, default=None)

    @property
    def failures(self) -> list[str]:
        """What is wrong with the design, or with us: resources that the device lacks, exact counts that are not."""
        lacking = [f"the design does not fit {self.board.device.name}: {RESOURCES[name]}: {usage.used:,} of {usage.available:,}"
                   for name, usage in self.usage.items() if usage.used > usage.available]
        differing = [f"{RESOURCES[name]}: {self.usage[name].used:,} synthesised, {self.usage[name].estimated:,} predicted"
                     for name in EXACT if self.usage[name].used != self.usage[name].estimated]
        return lacking + differing

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `nearmac synth --json`."""
        clock, best = self.board.clock_mhz, self.best
        is_board_clock = self.design.clock_mhz == clock.value
        return {
            "board": self.board.name, "device": self.board.device.name, "family": str(self.board.device.family),
            "design": {**self.design.to_dict(), "precision": self.design.precision}, "stage": self.label,
            "resources": {name: {"used": usage.used, "estimated": usage.estimated, "usable": usage.usable, "available": usage.available,
                                 "is_estimate_exact": name in EXACT} for name, usage in self.usage.items()},
            "cells": dict(self.cells.by_type), "failures": self.failures,
            "clock": {"assumed_mhz": self.design.clock_mhz, "source": clock.source if is_board_clock else "the design",
                      "target_mhz": self.target_mhz if self.placements else None, "fmax_mhz": best.clock_mhz if best else None,
                      "untimed": self.part.untimed if self.part else ""},
            "part": self.part.title if self.part else None, "unplaced": self.unplaced or None,
            "placements": [{"seed": placement.seed, "fmax_mhz": placement.clock_mhz, "used": dict(placement.used),
                            "available": dict(placement.available),
                            "critical_path": [vars(step) for step in placement.critical_path]} for placement in self.placements],
            "tools": self.tools, "cached_runs": self.cached, "runs": self.runs,
        }


def synth(design: Design, board: Board, *, place_it: bool = True, seeds: int = 1, target_mhz: float | None = None,
          stage: Callable[[str], None] = lambda text: None, notify: Callable[[str], None] = lambda text: None) -> SynthReport:
    """Synthesises a design for a board with Yosys, then places and routes it with nextpnr where that has the family.

    Half a minute for a small design; place and route takes minutes.

    Parameters
    ----------
    place_it: place and route, where that can be.
    seeds: runs of nextpnr, with seeds 1 to ``seeds`` (at most :data:`MAX_SEEDS`).
    target_mhz: what nextpnr is asked for, 1 to 1000; by default the design's clock.
    stage: takes what is being done.
    notify: takes remarks.

    Raises
    ------
    InputError: the design does not fit the board, or is for another family; nextpnr does not know the board's device, package or speed
    grade; a tool is not installed. ToolError: Yosys or nextpnr failed.
    """
    target_mhz = design.clock_mhz if target_mhz is None else target_mhz
    for name, value, high in (("seeds", seeds, MAX_SEEDS), ("target_mhz", target_mhz, 1000)):
        if not 1 <= value <= high:  # true for nan too
            raise InputError("out of range", where=name, value=value, allowed=f"1 to {high}")
    check_fits(design, board)
    part, unplaced = _part(board, place_it)
    require_yosys()
    if part:
        require_nextpnr(part)
    artifacts = open_cache(notify)
    with tempfile.TemporaryDirectory(prefix="nearmac-synth-") as name:
        runs = _Runs(artifacts, Path(name), stage)
        cells = runs.synthesise(design)
        usage = _usage(design, board, cells)
        placements: tuple[Placement, ...] = ()
        if part and any(used.used > used.available for used in usage.values()):
            part, unplaced = None, "the device has too little for it"
        if part:
            placements = tuple(runs.place(design, part, seed, seeds, target_mhz) for seed in range(1, seeds + 1))
        packages = ("pyosys", part.package) if part else ("pyosys",)
        return SynthReport(board, design, cells, usage, part, unplaced, target_mhz, placements,
                           {package: importlib.metadata.version(package) for package in packages}, runs.cached, runs.files)


def _part(board: Board, place_it: bool) -> tuple[Part | None, str]:
    """What nextpnr is to place for, or why it is not."""
    if board.device.family not in TOOLS:
        return None, f"nextpnr's Python packages have no {board.device.facts.title}"
    if not place_it:
        return None, "not asked for"
    try:
        return device_part(board.device.name, board.package, board.speed_grade), ""
    except InputError as error:
        raise InputError(error.what, where=f"{board.name}: {error.where}", value=error.value, allowed=error.allowed,
                         suggestion="--no-place synthesises alone") from None


def _usage(design: Design, board: Board, cells: Cells) -> dict[str, Usage]:
    device, estimate = board.device, estimate_resources(design)
    may, has = dict(usable(board)), device.capacity
    has["block_rams"] = has["block_rams"] * device.block_ram_bits // block_ram(device.family).bits
    luts_a_cell = device.distributed_ram.luts if device.distributed_ram else 1
    for figures, ram_luts in ((may, board.usable["ram_luts"]), (has, device.ram_luts)):
        figures["distributed_rams"] = ram_luts // luts_a_cell
    used = {"luts": cells.luts, "ffs": cells.flip_flops, "dsps": cells.dsps, "block_rams": cells.block_rams,
            "distributed_rams": cells.distributed_rams}
    estimated = {"luts": estimate.luts, "ffs": estimate.ffs, "dsps": estimate.dsps, "block_rams": estimate.block_rams,
                 "distributed_rams": design.distributed_rams}
    return {name: Usage(used[name], estimated[name], may[name], has[name]) for name in RESOURCES}


class _Runs:
    """Runs of the tools, each from the cache where it is there. ``files``: their reports so far; ``cached``: those from the cache."""

    def __init__(self, artifacts: ArtifactCache, folder: Path, stage: Callable[[str], None]) -> None:
        self._artifacts, self._folder, self._stage = artifacts, folder, stage
        self._has_netlist = False
        self.files: dict[str, bytes] = {}
        self.cached = 0

    def synthesise(self, design: Design) -> Cells:
        """The cells of a design."""
        self._stage("writing Verilog")
        verilog = emit(Accelerator, design, self._artifacts)
        commands = flow(design.family, TOP)
        self._stage(f"Yosys: {commands[0].partition(' -')[0]} for {design.family}")
        key = digest("synthesis", verilog, *commands, importlib.metadata.version("pyosys"))
        self._run(key, ("cells.json", "yosys.log"), partial(run_flow, verilog, commands, self._folder))
        return read_cells(self._folder, TOP)[""]

    def place(self, design: Design, part: Part, seed: int, seeds: int, target_mhz: float) -> Placement:
        """One run of nextpnr; the netlist is made before the first that is not in the cache."""
        verilog = emit(behind_pins, design, self._artifacts)
        commands = netlist_flow(part, TOP)
        tool = place_command(part, seed=seed, target_mhz=target_mhz)
        versions = (importlib.metadata.version(package) for package in ("pyosys", part.package))

        def run() -> None:
            if not self._has_netlist:
                self._stage(f"Yosys: netlist for {part.tool}")
                with tempfile.TemporaryDirectory(dir=self._folder) as name:  # the reports of the design alone stay
                    run_flow(verilog, commands, Path(name))
                    (Path(name) / "top.json").rename(self._folder / "top.json")
                self._has_netlist = True
            self._stage(f"{part.tool}: seed {seed} of {seeds}, {part.title}")
            place(part, self._folder, seed=seed, target_mhz=target_mhz)

        report = f"report-{seed}.json"
        self._run(digest("placement", verilog, *commands, *tool, part.constraints, *versions), (report, f"nextpnr-{seed}.log"), run)
        return Placement.from_report(seed, json.loads((self._folder / report).read_text()))

    def _run(self, key: str, names: Iterable[str], run: Callable[[], None]) -> None:
        """Leaves the reports called ``names`` in the folder: the cache's, or those that ``run`` leaves there."""
        path = self._artifacts.find(key, ".zip")
        if path is not None:
            with zipfile.ZipFile(path) as packed:
                packed.extractall(self._folder)
            self.cached += 1
        else:
            run()
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
                for name in names:
                    packed.write(self._folder / name, name)
            self._artifacts.add(key, stream.getvalue(), ".zip")
        self.files |= {name: (self._folder / name).read_bytes() for name in names}


def write_reports(report: SynthReport, out: Path) -> list[Path]:
    """Writes the tools' reports and ``synthesis.json`` (:meth:`SynthReport.to_dict`) into a directory; their paths.

    Raises InputError when it cannot be written.
    """
    files = {"synthesis.json": (json.dumps(report.to_dict(), indent=2) + "\n").encode(), **report.files}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (out / name).write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", where="--out", value=str(out)) from None
    return [out / name for name in files]
