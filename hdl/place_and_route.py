"""Place and route with nextpnr, for ECP5, iCE40 and Gowin: the clock that a component reaches, what it takes, the path that limits it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from boards.primitives import Family
from hdl.accelerator import Accelerator
from hdl.design import Design
from hdl.errors import InputError, ToolError, nearest
from hdl.synthesis import DISSOLVE, LAST_LINES, run_flow
from hdl.verilog import component_verilog

TOP = "top"
_TIMED_OUT = 124  # the status that coreutils' timeout gives


TOOLS = {Family.ECP5: "nextpnr-ecp5", Family.ICE40: "nextpnr-ice40", Family.GOWIN: "nextpnr-himbaechel-gowin"}
"""Families that nextpnr places for, among its Python packages, which are called alike, with ``yowasp-`` before it."""


@dataclass(frozen=True)
class Part:
    """A device that nextpnr knows.

    Parameters
    ----------
    title: device, speed grade and package in words.
    family: a key of :data:`TOOLS`.
    flow: the Yosys command.
    options: what tells nextpnr the device.
    constraints: of the pins, where nextpnr places none by itself (Gowin): the text of ``top.cst``.
    untimed: what nextpnr has no delays for. Paths from and to it count in no clock, which is then an upper bound.
    """

    title: str
    family: Family
    flow: str
    options: tuple[str, ...]
    constraints: str = ""
    untimed: str = ""

    @property
    def tool(self) -> str:
        """nextpnr's name."""
        return TOOLS[self.family]

    @property
    def package(self) -> str:
        """The Python package that has it."""
        return f"yowasp-{self.tool}"


ECP5_PACKAGES = {"bg256": "CABGA256", "bg381": "CABGA381", "bg554": "CABGA554", "bg756": "CABGA756", "mg285": "CSFBGA285",
                 "tg144": "TQFP144"}
"""Lattice's ordering code -> nextpnr's name."""
PACKAGES = {
    "lfe5u-12f": ("bg381", "bg256", "mg285", "tg144"), "lfe5u-25f": ("bg381", "bg256", "mg285", "tg144"),
    "lfe5u-45f": ("bg381", "bg256", "bg554", "mg285", "tg144"), "lfe5u-85f": ("bg381", "bg554", "bg756", "mg285"),
    "ice40up5k": ("sg48", "uwg30"), "ice40hx4k": ("tq144", "cb132", "bg121"), "ice40hx8k": ("ct256", "cm225", "cb132", "bg121"),
    "gw2a-18": ("pg256",),
}
"""Device -> packages that nextpnr 0.11 has of it; the first is taken where nobody says. They hardly matter: :class:`Scan` needs five
pins."""
SPEED_GRADES = {Family.ECP5: ("6", "7", "8"), Family.GOWIN: ("C8/I7",)}
"""The first, the slowest, is taken where nobody says; an iCE40's is in the name of the device."""
_ICE40_FLOWS = {"ice40up5k": "-device u -dsp", "ice40hx4k": "-device hx", "ice40hx8k": "-device hx"}
_GOWIN_PINS = {"clk": "H11", "rst": "T10", "i": "T7", "load": "T8", "o": "T9"}  # any of PG256 would do


def _one_of(what: str, where: str, value: str, allowed: Collection[str]) -> None:
    if value not in allowed:
        near = nearest(value, allowed)
        raise InputError(what, where=where, value=value, allowed=", ".join(allowed), suggestion=f"nearest: {near}" if near else None)


def _ecp5(device: str, package: str, speed: str) -> Part:
    size, package = device.removeprefix("lfe5u-").removesuffix("f"), ECP5_PACKAGES[package]
    return Part(f"Lattice {device.upper()}, speed grade {speed}, {package}", Family.ECP5, "synth_ecp5",
                (f"--{size}k", "--speed", speed, "--package", package, "--lpf-allow-unconstrained"))


def _ice40(device: str, package: str) -> Part:
    name = device.removeprefix("ice40")
    # Clock enables of few flip-flops are left to their look-up tables: a tile of eight has one enable, and the fields have a hundred.
    return Part(f"Lattice iCE40{name.upper()}, {package.upper()}", Family.ICE40, f"synth_ice40 {_ICE40_FLOWS[device]} -dffe_min_ce_use 20",
                (f"--{name}", "--package", package, "--pcf-allow-unconstrained"))


def _gowin(device: str, package: str, speed: str) -> Part:
    return Part(f"Gowin {device.upper()}, speed grade {speed}, {package.upper()}", Family.GOWIN, "synth_gowin -family gw2a",
                ("--device", f"GW2A-LV18{package.upper()}{speed}", "--vopt", "family=GW2A-18C", "--vopt", "cst=top.cst"),
                constraints="".join(f'IO_LOC "{port}" {pin};\n' for port, pin in _GOWIN_PINS.items()),
                untimed="DSP blocks and block RAMs")


def device_part(device: str, package: str | None = None, speed_grade: str | None = None) -> Part:
    """The part of a device (``lfe5u-25f``), a package (``bg381``) and a speed grade (``6``), as board profiles name them.

    Raises InputError when nextpnr has no such device, package or grade.
    """
    _one_of("no device that nextpnr can place for", "device", device, PACKAGES)
    package = package or PACKAGES[device][0]
    _one_of(f"nextpnr has no such package of {device}", "package", package, PACKAGES[device])
    if device.startswith("ice40"):
        return _ice40(device, package)
    make, grades = (_gowin, SPEED_GRADES[Family.GOWIN]) if device == "gw2a-18" else (_ecp5, SPEED_GRADES[Family.ECP5])
    speed_grade = speed_grade or grades[0]
    _one_of(f"nextpnr has no such speed grade of {device}", "speed_grade", speed_grade, grades)
    return make(device, package, speed_grade)


PARTS: Mapping[str, Part] = {
    **{f"{device}-{speed}": device_part(device, speed_grade=speed) for device in PACKAGES if device.startswith("lfe5u")
       for speed in SPEED_GRADES[Family.ECP5]},
    **{f"{device}-{PACKAGES[device][0]}": device_part(device) for device in ("ice40up5k", "ice40hx4k", "ice40hx8k", "gw2a-18")},
}
"""Name -> part, each in one package."""
CELLS = {"TRELLIS_COMB": "LUT", "TRELLIS_FF": "flip-flop", "ICESTORM_LC": "logic cell", "LUT4": "LUT", "ALU": "carry", "DFF": "flip-flop",
         "MULT18X18D": "multiplier", "ICESTORM_DSP": "DSP block", "MULT9X9": "9-bit multiplier", "MULT18X18": "18-bit multiplier",
         "DP16KD": "block RAM", "ICESTORM_RAM": "block RAM", "BSRAM": "block RAM"}
"""nextpnr's cells -> what they are."""


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
    _one_of("no part that nextpnr can place for", "part", name, PARTS)
    return PARTS[name]


def behind_pins(design: Design) -> Scan:
    """The accelerator of a design, as it is placed."""
    return Scan(Accelerator(design))


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
    """Writes ``top.v``, ``top.json``, Yosys' ``cells.json`` (``stat -json``) and ``yosys.log`` into ``folder``."""
    run_flow(component_verilog(component, TOP), netlist_flow(part, TOP), folder)


def netlist_flow(part: Part, top: str) -> list[str]:
    """The Yosys commands that make ``top.json`` of the module ``top``, once it is read."""
    return [f"{part.flow} -top {top}", DISSOLVE, "flatten", "clean", "write_json top.json"]


def place_command(part: Part, *, seed: int, target_mhz: float) -> list[str]:
    """The command that :func:`place` runs."""
    return [part.tool, *part.options, "--json", "top.json", "--seed", str(seed), "--freq", f"{target_mhz:g}", "--timing-allow-fail",
            "--report", f"report-{seed}.json", "--quiet", "--log", f"nextpnr-{seed}.log"]


def place(part: Part, folder: Path, *, seed: int, target_mhz: float, timeout_s: float | None = None) -> Placement:
    """Places and routes ``top.json`` in ``folder``; leaves ``report-SEED.json`` and ``nextpnr-SEED.log`` beside it."""
    command = place_command(part, seed=seed, target_mhz=target_mhz)
    if part.constraints:
        (folder / "top.cst").write_text(part.constraints)
    package = part.package.replace("-", "_")
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
    if importlib.util.find_spec(part.package.replace("-", "_")) is None:
        raise InputError(f"placement needs {part.tool}, which is not installed", suggestion="pip install 'nearmac[synth]'")
