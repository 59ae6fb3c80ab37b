"""Place and route with nextpnr, for Lattice ECP5 and iCE40: the clock that a component reaches, what it takes, the path that limits it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.errors import InputError, ToolError, nearest
from hdl.synthesis import LAST_LINES, run_yosys
from hdl.verilog import component_verilog

TOP = "top"
_TIMED_OUT = 124  # the status that coreutils' timeout gives


@dataclass(frozen=True)
class Part:
    """A device that nextpnr knows.

    Parameters
    ----------
    title: device, speed grade and package in words.
    family: ``ecp5`` or ``ice40``.
    flow: the Yosys command.
    options: what tells nextpnr the device.
    """

    title: str
    family: str
    flow: str
    options: tuple[str, ...]

    @property
    def tool(self) -> str:
        """nextpnr's name; the Python package is called alike, with ``yowasp-`` before it."""
        return f"nextpnr-{self.family}"


def _ecp5(size: int, speed: int) -> Part:
    return Part(f"Lattice LFE5U-{size}F, speed grade {speed}, CABGA381", "ecp5", "synth_ecp5",
                (f"--{size}k", "--speed", str(speed), "--package", "CABGA381", "--lpf-allow-unconstrained"))


def _ice40(device: str, package: str, flow: str) -> Part:
    # Clock enables of few flip-flops are left to their look-up tables: a tile of eight has one enable, and the fields have a hundred.
    return Part(f"Lattice iCE40{device.upper()}, {package.upper()}", "ice40", f"synth_ice40 {flow} -dffe_min_ce_use 20",
                (f"--{device}", "--package", package, "--pcf-allow-unconstrained"))


PARTS: Mapping[str, Part] = {
    **{f"lfe5u-{size}f-{speed}": _ecp5(size, speed) for size in (12, 25, 45, 85) for speed in (6, 7, 8)},
    "ice40up5k-sg48": _ice40("up5k", "sg48", "-device u -dsp"),
    "ice40hx4k-tq144": _ice40("hx4k", "tq144", "-device hx"),
    "ice40hx8k-ct256": _ice40("hx8k", "ct256", "-device hx"),
}
"""Name -> part. The packages hardly matter: :class:`Scan` needs five pins."""


@dataclass(frozen=True)
class Step:
    """A piece of a path. ``kind``: ``clk-to-q``, ``routing``, ``logic`` or ``setup``; source and target are ``cell.port``."""

    kind: str
    delay_ns: float
    source: str
    target: str


@dataclass(frozen=True)
class Placement:
    """What one run of nextpnr gave.

    Parameters
    ----------
    seed: nextpnr's.
    clock_mhz: the highest clock, by the slowest path between two flip-flops or RAMs.
    used, available: cells by nextpnr's names (``TRELLIS_COMB``, ``DP16KD``, ``ICESTORM_LC``, ...); those of :class:`Scan` among them.
    critical_path: the slowest path, from its clock edge on.
    """

    seed: int
    clock_mhz: float
    used: Mapping[str, int]
    available: Mapping[str, int]
    critical_path: tuple[Step, ...]

    @classmethod
    def from_report(cls, seed: int, report: Mapping[str, object]) -> Placement:
        """From nextpnr's ``--report``. Raises ValueError when it has no clock."""
        loaded: dict[str, dict[str, dict[str, float]]] = {key: report[key] for key in ("fmax", "utilization")}  # type: ignore[misc]
        clock = min(loaded["fmax"].values(), key=lambda values: values["achieved"])
        cells = loaded["utilization"]
        path: tuple[Step, ...] = ()
        for candidate in report["critical_paths"]:  # type: ignore[attr-defined]
            if candidate["from"] == candidate["to"] and "edge" in candidate["from"]:  # not from or to a pin
                path = tuple(Step(step["type"], step["delay"], *(f"{step[end]['cell']}.{step[end]['port']}" for end in ("from", "to")))
                             for step in candidate["path"])
        return cls(seed, clock["achieved"], {name: int(cell["used"]) for name, cell in cells.items()},
                   {name: int(cell["available"]) for name, cell in cells.items()}, path)


class Scan(wiring.Component):
    """Five pins for a component that has hundreds: its inputs come from a shift register, its outputs go to one.

    So every path from and to a port is one between two flip-flops, and counts. It takes a flip-flop an input, and two flip-flops and
    a look-up table an output.
    """

    def __init__(self, inner: wiring.Component) -> None:
        self._inner = inner
        super().__init__({"i": In(1), "load": In(1), "o": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = self._inner
        members = [(member.flow, Value.cast(value)) for _, member, value in self._inner.signature.flatten(self._inner)]
        inputs, outputs = (Cat(value for flow, value in members if flow is wanted) for wanted in (In, Out))
        driven, captured, shifted = Signal(len(inputs)), Signal(len(outputs)), Signal(len(outputs))
        m.d.comb += [inputs.eq(driven), self.o.eq(shifted[-1:])]
        m.d.sync += [driven.eq(Cat(self.i, driven)), captured.eq(outputs),
                     shifted.eq(Mux(self.load, captured, Cat(C(0, 1), shifted)))]
        return m


def find_part(name: str) -> Part:
    """Raises InputError when there is no such part."""
    if name not in PARTS:
        near = nearest(name, PARTS)
        raise InputError("no part that nextpnr can place for", where="part", value=name, allowed=", ".join(PARTS),
                         suggestion=f"nearest: {near}" if near else None)
    return PARTS[name]


def place_and_route(component: wiring.Component, part: Part, *, target_mhz: float, seeds: Sequence[int] = (1,),
                    folder: Path | None = None, timeout_s: float | None = None) -> tuple[Placement, ...]:
    """Synthesises a component behind :class:`Scan` once, and places and routes it once a seed.

    Minutes for a whole accelerator. nextpnr works harder the further its clock is from ``target_mhz``; more than the device can do
    makes results worse.

    Parameters
    ----------
    component: what to build.
    folder: where the Verilog, netlist, logs and reports stay; by default they are deleted.
    timeout_s: for each run of nextpnr; none by default. A design that fills the device may take hours.

    Raises
    ------
    InputError: Yosys or nextpnr is not installed. SynthesisError: Yosys failed. ToolError: nextpnr failed (the design does not fit,
    for example) or took longer than ``timeout_s``.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="nearmac-place-") as name:
            return place_and_route(component, part, target_mhz=target_mhz, seeds=seeds, folder=Path(name), timeout_s=timeout_s)
    require_nextpnr(part)
    write_netlist(Scan(component), part, folder)
    return tuple(place(part, folder, seed=seed, target_mhz=target_mhz, timeout_s=timeout_s) for seed in seeds)


def write_netlist(component: wiring.Component, part: Part, folder: Path) -> None:
    """Writes ``top.v``, ``top.json`` and Yosys' ``cells.json`` (``stat -json``) into ``folder``."""
    (folder / "top.v").write_text(component_verilog(component, TOP))
    run_yosys(["read_verilog top.v", f"{part.flow} -top {TOP} -json top.json", "tee -q -o cells.json stat -json"], folder=folder)


def place(part: Part, folder: Path, *, seed: int, target_mhz: float, timeout_s: float | None = None) -> Placement:
    """Places and routes ``top.json`` in ``folder``; leaves ``report-SEED.json`` and ``nextpnr-SEED.log`` beside it."""
    command = [part.tool, *part.options, "--json", "top.json", "--seed", str(seed), "--freq", f"{target_mhz:g}", "--timing-allow-fail",
               "--report", f"report-{seed}.json", "--quiet", "--log", f"nextpnr-{seed}.log"]
    package = f"yowasp-{part.tool}".replace("-", "_")
    script = f"import sys, {package}; sys.exit({package}.run_{part.tool.replace('-', '_')}(sys.argv[1:]))"
    try:
        run = subprocess.run([sys.executable, "-c", script, *command[1:]], cwd=folder, text=True, errors="replace", check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise ToolError(command, _TIMED_OUT, f"it was ended after {timeout_s:g} s") from None
    if run.returncode:
        raise ToolError(command, run.returncode, "\n".join(run.stdout.rstrip().splitlines()[-LAST_LINES:]))
    return Placement.from_report(seed, json.loads((folder / f"report-{seed}.json").read_text()))


def require_nextpnr(part: Part) -> None:
    """Raises InputError when the extra that has nextpnr is not installed."""
    if importlib.util.find_spec(f"yowasp-{part.tool}".replace("-", "_")) is None:
        raise InputError(f"placement needs {part.tool}, which is not installed", suggestion="pip install 'nearmac[synth]'")
