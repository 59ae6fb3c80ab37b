"""Requests of the memory channel: which bursts a phase needs, in order."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

from hdl.design import Design
from hdl.loop import choose, count_loop
from hdl.program import EXTERNAL_ADDRESS_BITS, LENGTH_BITS, Stage
from hdl.sequencer import stage_layout

REQUEST = StructLayout({"address": unsigned(EXTERNAL_ADDRESS_BITS), "length": unsigned(LENGTH_BITS), "write": unsigned(1)})
"""A burst: first beat's address and number of beats (at least 1), both in beats; 1 to write, 0 to read."""


class RequestUnit(wiring.Component):
    """Issues the bursts of a phase: the store of one tile, then parameters, weights and input of another.

    Program, parameters and weights are one burst each; store and input are a burst a row, or one a pixel where a tile has only
    some of a pixel's channels. A request a cycle, without gaps inside a transfer and at most one cycle between two.

    Members
    -------
    start: strobe: the fields are valid from this cycle on and a phase begins. fetch: strobe: read the program instead.
    program_address, program_beats: of the program.
    has_store, has_load: the phase stores a tile, loads one.
    busy: requests are left. request: to the memory.
    """

    def __init__(self, *, design: Design) -> None:
        super().__init__({
            "config": In(stage_layout(design, Stage.CONFIG)),
            "load": In(stage_layout(design, Stage.LOAD)),
            "store": In(stage_layout(design, Stage.STORE)),
            "start": In(1), "fetch": In(1), "has_store": In(1), "has_load": In(1),
            "program_address": In(EXTERNAL_ADDRESS_BITS), "program_beats": In(LENGTH_BITS),
            "busy": Out(1),
            "request": Out(stream.Signature(REQUEST)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, load, store, request = self.config, self.load, self.store, self.request
        begun = Signal()  # bursts of a transfer are being issued: of the store, parameters or weights, or else of input or program
        is_store, is_parameters, is_weights = is_kind = [Signal(name=f"is_{what}") for what in ("store", "parameters", "weights")]
        m.d.comb += [request.valid.eq(begun), self.busy.eq(begun)]

        # What the phase has after the transfer at work, or at all; nothing before a fetch. Known early, unlike whether it is its turn.
        wants = (self.has_store & store.store_output,
                 *(self.has_load & wanted for wanted in (load.load_parameters, load.load_weights, load.load_input)))
        to = []
        reached: Value = ~begun
        for wanted, done in zip(wants, (*is_kind, Const(0)), strict=True):
            to.append(reached & wanted)
            reached = reached & ~wanted | done
        to_store, to_parameters, to_weights, to_input = to

        last_burst, last_row = Signal(), Signal()
        taken, finished = begun & request.ready, Signal()
        m.d.comb += finished.eq(taken & last_burst & last_row)
        moves = self.fetch | self.start | finished
        with m.If(moves):
            m.d.sync += [begun.eq(self.fetch | Cat(to).any()), *(signal.eq(value) for signal, value in zip(is_kind, to, strict=False))]

        # Store and input: bursts of a row, rows of the transfer. The others are one burst.
        bursts_last = Mux(is_store, store.output_bursts_last, load.input_bursts_last)
        rows_last = Mux(is_store, store.output_rows_last, load.input_rows_last)
        next_burst, next_row = (Signal(12, name=f"next_{what}", init=1) for what in ("burst", "row"))
        one_burst = Signal()  # in every row
        single_burst = ~(to_store & (store.output_bursts_last != 0) | to_input & (load.input_bursts_last != 0))
        single_row = ~(to_store & (store.output_rows_last != 0) | to_input & (load.input_rows_last != 0))
        row_end = taken & last_burst
        with m.If(moves):
            m.d.sync += [next_burst.eq(1), last_burst.eq(single_burst), one_burst.eq(single_burst)]
        with m.Elif(row_end):
            m.d.sync += [next_burst.eq(1), last_burst.eq(one_burst)]
        with m.Elif(taken):
            m.d.sync += [next_burst.eq(next_burst + 1), last_burst.eq(next_burst == bursts_last)]
        with m.If(moves):
            m.d.sync += [next_row.eq(1), last_row.eq(single_row)]
        with m.Elif(row_end):
            m.d.sync += [next_row.eq(next_row + 1), last_row.eq(next_row == rows_last)]

        # One address register takes where a transfer begins, or the sum that also begins the next row.
        row_address = Signal(EXTERNAL_ADDRESS_BITS)
        stride = choose(Cat(last_burst, is_store), [config.input_pixel_beats, config.input_row_beats,
                                                    config.output_pixel_beats, config.output_row_beats])
        following = (stride + Mux(last_burst, row_address, request.payload.address))[:EXTERNAL_ADDRESS_BITS]
        kind = Cat(to_parameters | to_input, to_weights | to_input)
        first = choose(kind, [store.output_address, load.parameter_address, load.weight_address, load.input_address])
        address = Mux(moves, Mux(self.fetch, self.program_address, first), following)
        with m.If(moves | taken):
            m.d.sync += request.payload.address.eq(address)
        with m.If(moves | row_end):
            m.d.sync += row_address.eq(address)
        with m.If(moves):
            length = choose(kind, [store.output_beats, load.parameter_beats, load.weight_beats, load.input_beats])
            m.d.sync += [request.payload.length.eq(Mux(self.fetch, self.program_beats, length)), request.payload.write.eq(to_store)]
        return m


class StoreUnit(wiring.Component):
    """Reads a tile's beats from the output banks, lane after lane, and offers them as write data: a beat a cycle.

    Members
    -------
    start: strobe: the fields are valid from this cycle on and a store begins. busy: beats are left.
    read_enable (a bit a lane), read_entry, read_data: the output banks. write_data: to the memory.
    last: (with chaining) the beat shown is the tile's last.
    """

    def __init__(self, *, design: Design) -> None:
        self._design = design
        entry = len(Signal(stage_layout(design, Stage.STORE)).store_entry)
        super().__init__({
            "store": In(stage_layout(design, Stage.STORE)),
            "start": In(1), "busy": Out(1),
            "read_enable": Out(design.lanes), "read_entry": Out(entry), "read_data": In(design.bus_bits * design.lanes),
            "write_data": Out(stream.Signature(unsigned(design.bus_bits))),
            **({"last": Out(1)} if design.chaining else {}),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes, store, write = self._design.lanes, self.store, self.write_data
        reading = Signal()  # beats are left to read
        lane, shown = Signal(range(max(2, lanes))), Signal(range(max(2, lanes)))
        last_beat, last_row = Signal(), Signal()  # of the row, of the tile
        step = Signal()
        advance = Signal()  # the bank's output register is free
        m.d.comb += [advance.eq(~write.valid | write.ready), self.busy.eq(reading | write.valid), step.eq(reading & advance)]
        if self._design.chaining:
            m.d.comb += self.last.eq(write.valid & ~reading)
        m.d.comb += write.payload.eq(self.read_data.word_select(shown, self._design.bus_bits))
        count_loop(m, last_beat, store.output_row_length, clear=self.start | step & last_beat, step=step, name="beat")
        count_loop(m, last_row, store.output_rows_last, clear=self.start, step=step & last_beat, name="row")
        band_end: Value = Const(0)
        if lanes > 1:
            last_in_band = Signal()
            band_end = last_beat & last_in_band
            count_loop(m, last_in_band, store.store_band_last, clear=self.start | step & band_end, step=step & last_beat,
                       name="band_row")
        with m.If(advance):
            m.d.sync += write.valid.eq(reading)
        with m.If(step):
            m.d.comb += self.read_enable.eq(1 << lane)
            m.d.sync += shown.eq(lane)
        with m.If(self.start):
            m.d.sync += lane.eq(0)
        with m.Elif(step & band_end):
            m.d.sync += lane.eq(lane + 1)
        with m.If(self.start | step & band_end):
            m.d.sync += self.read_entry.eq(store.store_entry)
        with m.Elif(step):
            m.d.sync += self.read_entry.eq(self.read_entry + 1)
        with m.If(self.start):
            m.d.sync += reading.eq(1)
        with m.Elif(step & last_beat):
            m.d.sync += reading.eq(~last_row)
        return m
