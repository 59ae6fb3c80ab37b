"""Stores that stay on chip: a layer's output goes to the input banks, where the next layer finds it."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out

from hdl.design import Design
from hdl.load import deal_rows
from hdl.loop import count_loop, walk_address
from hdl.program import LENGTH_BITS, Stage, entry_bits
from hdl.sequencer import stage_layout


class KeepUnit(wiring.Component):
    """Stands between the store unit and memory. With ``store_on_chip`` set it takes every beat in the cycle that offers it, gathers the
    beats of an entry, and writes it to each lane whose rows of the *next* layer have it; else it lets the beats pass.

    A pixel's last word may have fewer beats than an entry: what is missing is zero. On chip, fields that name external beats otherwise
    (output_address, output_row_beats, output_pixel_beats) name entries of the input banks, and a burst is a pixel.

    Members
    -------
    start: strobe: the fields are valid from this cycle on and a store on chip begins. done: strobe: its last beat is taken.
    busy: from the cycle after ``start`` to that of ``done``.
    beats, last: from the store unit; the beat shown is the tile's last. write_data: to the memory.
    input_enable (a bit a lane), input_entry (a lane's own), input_data: to the input banks, like the load unit's.
    """

    def __init__(self, *, design: Design) -> None:
        self._design = design
        bus = design.bus_bits
        super().__init__({
            "config": In(stage_layout(design, Stage.CONFIG)),
            "store": In(stage_layout(design, Stage.STORE)),
            "start": In(1), "done": Out(1), "busy": Out(1),
            "beats": In(stream.Signature(unsigned(bus))), "last": In(1),
            "write_data": Out(stream.Signature(unsigned(bus))),
            "input_enable": Out(design.lanes), "input_entry": Out(ArrayLayout(entry_bits(design, "input"), design.lanes)),
            "input_data": Out(design.beats_per_entry("input") * bus),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design, config, store, beats, start = self._design, self.config, self.store, self.beats, self.start
        taken = Signal()
        m.d.comb += [
            self.write_data.payload.eq(beats.payload), self.write_data.valid.eq(beats.valid & ~config.store_on_chip),
            beats.ready.eq(config.store_on_chip | self.write_data.ready),
            taken.eq(beats.valid & config.store_on_chip), self.done.eq(taken & self.last),
        ]
        with m.If(start):
            m.d.sync += self.busy.eq(1)
        with m.Elif(self.done):
            m.d.sync += self.busy.eq(0)

        left = Signal(LENGTH_BITS)  # beats of the pixel, or the tile's part of it
        last_beat, last_pixel = Signal(), Signal()
        row_end = last_beat & last_pixel
        m.d.comb += last_beat.eq(left == 1)
        with m.If(start | taken & last_beat):
            m.d.sync += left.eq(store.output_beats)
        with m.Elif(taken):
            m.d.sync += left.eq(left - 1)
        count_loop(m, last_pixel, store.output_bursts_last, clear=start | taken & row_end, step=taken & last_beat, name="pixel")

        write = taken & self._gather(m, taken, last_beat)
        address = Signal(entry_bits(design, "input"))
        walk_address(m, address, start=start, first=store.output_address[:len(address)], step=write, stride=1,
                     ends=(last_beat, row_end), strides=(config.output_pixel_beats[:len(address)], config.output_row_beats[:len(address)]),
                     name="kept")
        if design.lanes == 1:
            m.d.comb += [self.input_enable.eq(write), self.input_entry[0].eq(address)]
        else:
            deal_rows(m, start=start, first=store.next_row_first, row_end=write & row_end, write=write, address=address,
                      span_last=config.next_span_last, band_rows=config.next_band_rows, band_entries=config.next_band_entries,
                      enables=self.input_enable, entries=self.input_entry)
        return m

    def _gather(self, m: Module, taken: Value, last_beat: Value) -> Value:
        """Drives ``input_data``; returns when the beat ends its entry."""
        parts, bus, beat = self._design.beats_per_entry("input"), self._design.bus_bits, self.beats.payload
        if parts == 1:
            m.d.comb += self.input_data.eq(beat)
            return Value.cast(1)
        part = Signal(range(parts))
        end = last_beat | (part == parts - 1)
        with m.If(taken):
            m.d.sync += part.eq(Mux(end, 0, part + 1))
        data = []
        for number in range(parts - 1):
            earlier = Signal(bus, name=f"earlier_{number}")
            with m.If(taken & (part == number)):
                m.d.sync += earlier.eq(beat)
            data.append(Mux(part == number, beat, Mux(part < number, 0, earlier)))
        data.append(Mux(part == parts - 1, beat, 0))
        m.d.comb += self.input_data.eq(Cat(data))
        return end
