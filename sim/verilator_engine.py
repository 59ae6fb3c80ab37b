"""The compiled simulator: millions of cycles a second, one call a run."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from enum import IntEnum

from hdl.errors import InputError
from sim.artifacts import open_cache
from sim.engine import COUNTERS, RESET_CYCLES, RunRequest, SimulationResult
from sim.errors import bad_burst, error_port, not_done
from sim.memory import stall_state
from sim.verilator_build import build

PROGRESS_INTERVAL_S = 0.1
QUICK_CYCLES = 200_000
"""Runs that end by then are over sooner without an optimised model: it takes three times as long to compile."""


class _Stop(IntEnum):
    DONE, MAX_CYCLES, ERROR_PORT, CANCELLED, BAD_BURST, VCD_NOT_WRITTEN = range(6)


class _Setup(ctypes.Structure):
    _fields_ = [("image", ctypes.c_void_p),
                *((name, ctypes.c_uint64) for name in ("image_beats", "program_address", "program_beats", "latency_cycles", "num",
                                                       "den", "stall_state", "max_cycles")),
                ("vcd_path", ctypes.c_char_p),
                *((name, ctypes.c_uint64) for name in ("vcd_start", "vcd_stop", "reset_cycles"))]


class _Outcome(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_int32) for name in ("stop", "started", "busy", "queued", "vcd_error")),
                *((name, ctypes.c_uint64) for name in ("cycle", "done_cycle", "write_end", "beats_read", "beats_written",
                                                       "issue_cycles", "burst_address", "burst_length")),
                ("counters", ctypes.c_uint64 * len(COUNTERS))]


class _Control(ctypes.Structure):
    _fields_ = [("cycle", ctypes.c_uint64), ("cancel", ctypes.c_int32)]


def simulate(request: RunRequest) -> SimulationResult:
    """Run ``request`` to its end; see :func:`sim.engine.run`."""
    began = time.perf_counter()
    path = build(request.factory, request.design, trace=request.vcd is not None, quick=request.max_cycles <= QUICK_CYCLES,
                 artifacts=open_cache(request.notify))
    library = ctypes.CDLL(str(path))
    built = time.perf_counter()
    outcome = _call(library, request)
    wall_s = time.perf_counter() - built
    _check(outcome, request)
    request.notify_vcd(outcome.cycle)
    counters = dict(zip(COUNTERS, outcome.counters, strict=True)) if request.design.counters else None
    return SimulationResult(
        cycles=outcome.write_end or outcome.done_cycle + 1, beats_read=outcome.beats_read, beats_written=outcome.beats_written,
        issue_cycles=outcome.issue_cycles, done_cycle=outcome.done_cycle, memory=request.image, wall_s=wall_s,
        build_s=built - began, engine="verilator", counters=counters)


def _call(library: ctypes.CDLL, request: RunRequest) -> _Outcome:
    """The run, in a thread of its own: this one reports progress and can be interrupted."""
    timing = request.timing
    setup = _Setup(
        image=request.image.ctypes.data, image_beats=request.image_beats, program_address=request.program_address,
        program_beats=request.program_beats, latency_cycles=timing.latency_cycles, num=timing.num, den=timing.den,
        stall_state=0 if request.stall_seed is None else stall_state(request.stall_seed), max_cycles=request.max_cycles,
        vcd_path=None if request.vcd is None else str(request.vcd).encode(), vcd_start=request.vcd_cycles[0],
        vcd_stop=request.vcd_cycles[1], reset_cycles=RESET_CYCLES)
    outcome, control = _Outcome(), _Control()
    arguments = (ctypes.byref(setup), ctypes.byref(outcome), ctypes.byref(control))
    library.nearmac_run.restype = None
    thread = threading.Thread(target=library.nearmac_run, args=arguments, name="nearmac-simulation")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(PROGRESS_INTERVAL_S)
            if request.progress:
                request.progress(control.cycle)
    except BaseException:  # Ctrl-C, or `progress` gave up: the thread uses our memory and must end first
        control.cancel = 1
        thread.join()
        raise
    return outcome


def _check(outcome: _Outcome, request: RunRequest) -> None:
    stop = _Stop(outcome.stop)
    if stop is _Stop.MAX_CYCLES:
        raise not_done(max_cycles=request.max_cycles, started=bool(outcome.started), busy=bool(outcome.busy),
                       beats_read=outcome.beats_read, beats_written=outcome.beats_written, queued=outcome.queued)
    if stop is _Stop.ERROR_PORT:
        raise error_port(cycle=outcome.cycle)
    if stop is _Stop.BAD_BURST:
        raise bad_burst(address=outcome.burst_address, length=outcome.burst_length, image_beats=request.image_beats)
    if stop is _Stop.VCD_NOT_WRITTEN:
        raise InputError(f"cannot be written: {os.strerror(outcome.vcd_error)}", where="--vcd", value=str(request.vcd))
