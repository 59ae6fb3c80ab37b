"""A small component with the accelerator's ports: copies beats through a buffer, so that engines can be tested alone."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.design import Design

BUFFER_BEATS = 256
BURST_BEATS = 5
COUNTERS = ("total", "issue", "memory", "drain_stall", "beats_read", "beats_written")
REQUEST = data.StructLayout({"address": 28, "length": 16, "write": 1})


class Copier(wiring.Component):
    """Reads ``program_beats`` (0..256) beats at ``program_address`` in bursts of at most 5, adds one to each, writes them
    behind the source. Start accepted in cycle 0, first request in cycle 1, the first write request in the cycle after the
    last read beat, ``done`` in the cycle after the last write beat; so it takes 2 * transfer_cycles(n) + 3 cycles.
    ``program_beats`` = 0xffff raises ``error``; 0xfffe asks for an empty burst; 0xfffd stays busy for ever."""

    def __init__(self, design: Design) -> None:
        self.bus_bits, self.has_counters = design.bus_bits, design.counters
        members = {"start": In(1), "program_address": In(28), "program_beats": In(16), "busy": Out(1), "done": Out(1),
                   "error": Out(1), "issuing": Out(1), "request": Out(stream.Signature(REQUEST)),
                   "write_data": Out(stream.Signature(design.bus_bits)), "read_data": In(stream.Signature(design.bus_bits))}
        if design.counters:
            members["counters"] = Out(wiring.Signature({name: Out(48) for name in COUNTERS}))
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = buffer = Memory(shape=self.bus_bits, depth=BUFFER_BEATS, init=[])
        write_port, read_port = buffer.write_port(), buffer.read_port(domain="comb")
        base, total, asked = Signal(28), Signal(16), Signal(16)
        got, put, writing, toggle = Signal(16), Signal(16), Signal(), Signal()
        length = Signal(16)
        read, wrote = Signal(), Signal()
        m.d.comb += [
            length.eq(Mux(total == 0xFFFE, 0, Mux(total - asked > BURST_BEATS, BURST_BEATS, total - asked))),
            self.request.payload.length.eq(length),
            self.request.payload.address.eq(base + asked + Mux(writing, total, 0)),
            self.request.payload.write.eq(writing),
            self.request.valid.eq(self.busy & (asked != total) & (total < 0xFFFD) | self.busy & (total == 0xFFFE)),
            read.eq(self.read_data.valid & self.read_data.ready), wrote.eq(self.write_data.valid & self.write_data.ready),
            self.read_data.ready.eq(self.busy & ~writing),
            write_port.addr.eq(got), write_port.data.eq(self.read_data.payload), write_port.en.eq(read),
            read_port.addr.eq(put), self.write_data.payload.eq(read_port.data + 1), self.write_data.valid.eq(writing),
            self.error.eq(self.busy & (total == 0xFFFF)),
            self.issuing.eq(self.busy & toggle),
        ]
        m.d.sync += [toggle.eq(~toggle & self.busy), got.eq(got + read), put.eq(put + wrote), self.done.eq(0)]
        with m.If(self.request.valid & self.request.ready):
            m.d.sync += asked.eq(asked + length)
        with m.If(~self.busy & self.start):
            m.d.sync += [self.busy.eq(1), base.eq(self.program_address), total.eq(self.program_beats), asked.eq(0),
                         got.eq(0), put.eq(0), writing.eq(0)]
        with m.If(self.busy & ~writing & read & (got + 1 == total)):
            m.d.sync += [writing.eq(1), asked.eq(0)]
        with m.If(self.busy & ((wrote & (put + 1 == total)) | (total == 0))):
            m.d.sync += [self.busy.eq(0), self.done.eq(1), writing.eq(0)]
        if self.has_counters:
            c = self.counters
            m.d.sync += [c.total.eq(c.total + self.busy), c.issue.eq(c.issue + self.issuing),
                         c.beats_read.eq(c.beats_read + read), c.beats_written.eq(c.beats_written + wrote),
                         c.memory.eq(c.memory + (self.busy & ~read & ~wrote))]
        return m
