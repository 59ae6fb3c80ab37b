"""Requests of the memory channel: which bursts a phase needs, in order."""

from __future__ import annotations

from enum import IntEnum

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


class Transfer(IntEnum):
    """What a burst belongs to, in the order of a phase."""

    NONE = 0
    PROGRAM = 1
    STORE = 2
    PARAMETERS = 3
    WEIGHTS = 4
    INPUT = 5


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
        transfer = Signal(Transfer)
        ready_to_load = Signal(Transfer)  # the transfer to set up in this cycle
        begun = Signal()  # the bursts of `transfer` are being issued
        row_address = Signal(EXTERNAL_ADDRESS_BITS)
        bursts, rows = Signal(12), Signal(12)  # left in the row, left in the transfer

        wants_store = self.has_store & store.store_output
        wants = {Transfer.STORE: wants_store, Transfer.PARAMETERS: self.has_load & load.load_parameters,
                 Transfer.WEIGHTS: self.has_load & load.load_weights, Transfer.INPUT: self.has_load & load.load_input}

        def set_up_next(after: Transfer) -> None:
            """The next transfer that this phase has."""
            m.d.comb += ready_to_load.eq(Transfer.NONE)
            for kind in (Transfer.INPUT, Transfer.WEIGHTS, Transfer.PARAMETERS, Transfer.STORE):
                if kind.value > after.value:
                    with m.If(wants[kind]):
                        m.d.comb += ready_to_load.eq(kind)

        last_burst, last_row = bursts == 0, rows == 0
        finished = Signal()
        m.d.comb += [request.valid.eq(begun), finished.eq(begun & request.ready & last_burst & last_row)]
        m.d.comb += self.busy.eq(begun)

        with m.If(self.fetch):
            m.d.comb += ready_to_load.eq(Transfer.PROGRAM)
        with m.Elif(self.start):
            set_up_next(Transfer.NONE)
        with m.Elif(finished):
            with m.Switch(transfer):
                for kind in (Transfer.STORE, Transfer.PARAMETERS, Transfer.WEIGHTS):
                    with m.Case(kind):
                        set_up_next(kind)

        # One address register takes what it is set up with, or the sum that also begins the next row.
        is_store = transfer == Transfer.STORE
        stride = choose(Cat(last_burst, is_store), [config.input_pixel_beats, config.input_row_beats,
                                                    config.output_pixel_beats, config.output_row_beats])
        address, length = Signal(EXTERNAL_ADDRESS_BITS), Signal(LENGTH_BITS)
        m.d.comb += address.eq(stride + Mux(last_burst, row_address, request.payload.address))
        setup = ready_to_load != Transfer.NONE
        following_bursts, following_rows = Signal.like(bursts), Signal.like(rows)
        m.d.comb += following_rows.eq(rows - 1)
        with m.If(last_burst):
            m.d.comb += following_bursts.eq(Mux(is_store, store.output_bursts_last, load.input_bursts_last))
        with m.Else():
            m.d.comb += following_bursts.eq(bursts - 1)
        with m.If(setup):
            m.d.comb += [following_bursts.eq(0), following_rows.eq(0)]
        with m.Switch(ready_to_load):
            with m.Case(Transfer.PROGRAM):
                m.d.comb += [address.eq(self.program_address), length.eq(self.program_beats)]
            with m.Case(Transfer.STORE):
                m.d.comb += [address.eq(store.output_address), length.eq(store.output_beats),
                             following_rows.eq(store.output_rows_last), following_bursts.eq(store.output_bursts_last)]
            with m.Case(Transfer.PARAMETERS):
                m.d.comb += [address.eq(load.parameter_address), length.eq(load.parameter_beats)]
            with m.Case(Transfer.WEIGHTS):
                m.d.comb += [address.eq(load.weight_address), length.eq(load.weight_beats)]
            with m.Case(Transfer.INPUT):
                m.d.comb += [address.eq(load.input_address), length.eq(load.input_beats),
                             following_rows.eq(load.input_rows_last), following_bursts.eq(load.input_bursts_last)]
        taken = begun & request.ready
        with m.If(setup | taken):
            m.d.sync += [request.payload.address.eq(address), bursts.eq(following_bursts)]
        with m.If(setup | taken & last_burst):
            m.d.sync += [row_address.eq(address), rows.eq(following_rows)]
        with m.If(setup):
            m.d.sync += [begun.eq(1), transfer.eq(ready_to_load), request.payload.length.eq(length),
                         request.payload.write.eq(ready_to_load == Transfer.STORE)]
        with m.Elif(finished):
            m.d.sync += begun.eq(0)
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
