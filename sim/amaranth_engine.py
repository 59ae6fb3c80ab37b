"""Amaranth's own simulator: needs no compiler; thousands of cycles a second."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TextIO

from amaranth.hdl import ClockDomain, Module, Value
from amaranth.sim import Simulator, SimulatorContext

from sim.engine import COUNTERS, CYCLE_PICOSECONDS, RESET_CYCLES, RunRequest, SimulationResult
from sim.errors import error_port, not_done
from sim.memory import MemoryModel

PROGRESS_INTERVAL_S = 0.1


def simulate(request: RunRequest) -> SimulationResult:
    """Run ``request`` to its end; see :func:`sim.engine.run`."""
    began = time.perf_counter()
    component = request.factory(request.design)
    domain = ClockDomain("sync")
    top = Module()
    top.domains.sync = domain
    top.submodules.accelerator = component
    simulator = Simulator(top)
    simulator.add_clock(CYCLE_PICOSECONDS * 1e-12)
    state = _State(MemoryModel(request.image, request.beat_bytes, request.timing, request.stall_seed))

    async def harness(context: SimulatorContext) -> None:
        await _harness(context, component, domain, request, state)

    simulator.add_process(harness)
    built = time.perf_counter()
    with ExitStack() as stack:
        if request.vcd is not None:
            state.vcd = _WindowedVcd(stack.enter_context(request.vcd.open("w")))
            state.vcd.window(request.vcd_cycles[0] == 0)
            stack.enter_context(simulator.write_vcd(state.vcd))
        while not state.over:
            simulator.advance()
            if state.past_window:  # nothing more to write: stop paying for waveforms
                stack.close()
                state.past_window = False
    request.notify_vcd(state.cycle)
    if request.progress:
        request.progress(state.cycle)
    return SimulationResult(
        cycles=state.write_end or state.done_cycle + 1, beats_read=state.memory.beats_read,
        beats_written=state.memory.beats_written, issue_cycles=state.issue_cycles, done_cycle=state.done_cycle,
        memory=request.image, wall_s=time.perf_counter() - built, build_s=built - began, engine="amaranth",
        counters=state.counters)


class _WindowedVcd:
    """A VCD file that keeps the header and what happens while the window is open; values from before are restated when it
    opens. pyvcd writes whole lines, in the order of time."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._open, self._in_header = file, False, True
        self._time, self._time_written = "#0\n", ""
        self._values: dict[str, str] = {}
        self._rest = ""
        self.name = file.name

    def window(self, is_open: bool) -> None:
        if is_open and not self._open and not self._in_header:
            self._put("".join(self._values.values()))
        self._open = is_open

    def write(self, text: str) -> int:
        lines = (self._rest + text).splitlines(keepends=True)
        self._rest = "" if not lines or lines[-1].endswith("\n") else lines.pop()
        for line in lines:
            if self._in_header:
                self._file.write(line)
                self._in_header = "$enddefinitions" not in line
            elif line.startswith("#"):
                self._time = line
            elif not line.startswith("$"):  # values only: "$dumpvars" and "$end" are not restated
                identifier = line.split()[-1] if line[0] in "bBrRsS" else line[1:].rstrip()
                self._values[identifier] = line
                if self._open:
                    self._put(line)
        return len(text)

    def _put(self, text: str) -> None:
        if self._time != self._time_written:
            self._file.write(self._time)
            self._time_written = self._time
        self._file.write(text)

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> int:
        return self._file.tell()


@dataclass
class _State:
    """What the harness knows so far."""

    memory: MemoryModel
    vcd: _WindowedVcd | None = None
    cycle: int = 0
    write_end: int = 0
    done_cycle: int = 0
    issue_cycles: int = 0
    counters: dict[str, int] | None = field(default=None)
    past_window: bool = False
    over: bool = False


async def _harness(context: SimulatorContext, component: Any, domain: ClockDomain, request: RunRequest, state: _State) -> None:
    """Drives the accelerator's inputs. As a process it behaves like registers: inputs change after the edge, and outputs are
    sampled just before the next one."""
    memory, set_value = state.memory, context.set
    outputs = [component.busy, component.done, component.error, component.issuing, component.request.valid,
               Value.cast(component.request.payload), component.read_data.ready, component.write_data.valid,
               Value.cast(component.write_data.payload)]
    read_payload = Value.cast(component.read_data.payload)

    def drive() -> None:
        set_value(component.request.ready, memory.request_ready)
        set_value(component.write_data.ready, memory.write_ready)
        set_value(component.read_data.valid, memory.read_valid)
        if memory.read_valid:
            set_value(read_payload, memory.read_payload)

    set_value(domain.rst, 1)
    set_value(component.program_address, request.program_address)
    set_value(component.program_beats, request.program_beats)
    for _ in range(RESET_CYCLES):
        await context.tick()
    set_value(domain.rst, 0)
    set_value(component.start, 1)
    drive()
    counters = [getattr(component.counters, name) for name in COUNTERS] if request.design.counters else []
    ticks: AsyncIterator[Any] = aiter(context.tick().sample(*outputs, *counters))
    started = finished = False
    waited, shown = 0, time.monotonic()
    while True:
        _, _, busy, done, error, issuing, valid, payload, read_ready, write_valid, write_payload, *_ = await anext(ticks)
        started = started or not busy
        burst = (payload & 0xFFFFFFF, payload >> 28 & 0xFFFF, bool(payload >> 44)) if valid else None
        if memory.step(request=burst, read_ready=read_ready, write_valid=write_valid, write_payload=write_payload):
            state.write_end = state.cycle + 1
        if started:
            state.issue_cycles += issuing
            if error:
                raise error_port(cycle=state.cycle)
            if done and state.cycle and not finished:
                finished, state.done_cycle = True, state.cycle
            set_value(component.start, 0)
            state.cycle += 1
        if finished and not memory.queued:
            break
        waited += not started
        if (state.cycle if started else waited) >= request.max_cycles:
            raise not_done(max_cycles=request.max_cycles, started=started, busy=bool(busy), beats_read=memory.beats_read,
                           beats_written=memory.beats_written, queued=memory.queued)
        drive()
        if state.vcd is not None and started:
            state.vcd.window(request.vcd_cycles[0] <= state.cycle < request.vcd_cycles[1])
            state.past_window = state.cycle == request.vcd_cycles[1]
        if request.progress and state.cycle % 64 == 0 and time.monotonic() - shown > PROGRESS_INTERVAL_S:
            request.progress(state.cycle)
            shown = time.monotonic()
    drive()
    values = list(await anext(ticks))[2 + len(outputs):]  # after the last edge
    state.counters = dict(zip(COUNTERS, values, strict=True)) if counters else None
    state.over = True
