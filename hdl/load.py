"""The load unit: takes read data off the memory channel and puts it where it belongs."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.data import ArrayLayout, View
from amaranth.lib.wiring import In, Out

from hdl.design import PROGRAM_DEPTH, PROGRAM_WORD_BITS, Design
from hdl.loop import choose, count_loop, walk_address
from hdl.program import COORDINATE_BITS, LENGTH_BITS, Stage, entry_bits
from hdl.sequencer import stage_layout


class LoadUnit(wiring.Component):
    """Takes a beat in every cycle that has one; beats of an entry are gathered and written with the entry's last beat.

    Parameters, weights and input of a tile follow each other in that order; which of them a phase has, its fields say.

    Members
    -------
    start, fetch, has_load, program_beats: as in :class:`hdl.request.RequestUnit`. busy: beats are outstanding.
    read_data: from the memory; always ready.
    program_enable, program_word, program_data: to the program RAM.
    parameter_enable (a bit a part), parameter_entry; weight_enable (a bit a row), weight_entry; input_enable (a bit a lane),
    input_entry (a lane's own): to the banks. entry: the data for all three, beats in order from bit 0.
    """

    def __init__(self, *, design: Design) -> None:
        self._design = design
        self._most_beats = max(design.beats_per_entry("input"), design.beats_per_entry("weight"), design.parameter_beats)
        entry_in = entry_bits(design, "input")
        bus = design.bus_bits
        super().__init__({
            "config": In(stage_layout(design, Stage.CONFIG)),
            "load": In(stage_layout(design, Stage.LOAD)),
            "start": In(1), "fetch": In(1), "has_load": In(1), "program_beats": In(LENGTH_BITS), "busy": Out(1),
            "read_data": In(stream.Signature(bus)),
            "program_enable": Out(1), "program_word": Out(range(PROGRAM_DEPTH)), "program_data": Out(PROGRAM_WORD_BITS),
            "parameter_enable": Out(design.drains_per_lane), "parameter_entry": Out(entry_bits(design, "parameter")),
            "weight_enable": Out(design.rows), "weight_entry": Out(entry_bits(design, "weight")),
            "input_enable": Out(design.lanes), "input_entry": Out(ArrayLayout(entry_in, design.lanes)),
            "parameter_data": Out(design.parameter_beats * bus),
            "weight_data": Out(design.beats_per_entry("weight") * bus),
            "input_data": Out(design.beats_per_entry("input") * bus),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design, load, data = self._design, self.load, self.read_data
        bus = design.bus_bits
        is_program, is_parameters, is_weights, is_input = kinds = [
            Signal(name=f"is_{what}") for what in ("program", "parameters", "weights", "input")]
        beats, last_beat = Signal(LENGTH_BITS), Signal()  # left of the program, parameters or weights; none after this one
        part = Signal(range(max(2, self._most_beats, PROGRAM_WORD_BITS // bus)))  # beat within its entry
        m.d.comb += [data.ready.eq(1), self.busy.eq(Cat(kinds).any())]

        entry = data.payload
        if self._most_beats > 1 or bus < PROGRAM_WORD_BITS:
            kept = max(self._most_beats - 1, 1)
            earlier = Signal(kept * bus)
            entry = Cat(earlier, data.payload)
            with m.If(data.valid):
                m.d.sync += earlier.eq(entry[bus:])
        for name in ("parameter", "weight", "input"):
            port = getattr(self, f"{name}_data")
            m.d.comb += port.eq(entry[len(entry) - len(port):])

        # At the start the first transfer that the phase has; when one is done, the next.
        start, done = self.start & self.has_load, Signal()
        after_parameters = start & ~load.load_parameters | done & is_parameters
        after_weights = after_parameters & ~load.load_weights | done & is_weights
        with m.If(data.valid):
            m.d.sync += part.eq(part + 1)
        with m.If(self.fetch):
            m.d.sync += [is_program.eq(1), self.program_word.eq(0), part.eq(0)]
        with m.Elif(start | done):
            m.d.sync += [
                is_program.eq(0), is_parameters.eq(start & load.load_parameters), is_weights.eq(after_parameters & load.load_weights),
                is_input.eq(after_weights & load.load_input), part.eq(0),
            ]
        to_weights = is_parameters & last_beat
        load_beats = start | to_weights
        with m.If(data.valid | self.fetch | start):
            m.d.sync += beats.eq(choose(Cat(self.fetch | load_beats & ~(start & load.load_parameters), load_beats), [
                beats - 1, self.program_beats, load.parameter_beats, load.weight_beats]))
        # Known a cycle ahead. At the start there is time to look at what was taken over: memory has a latency.
        m.d.sync += last_beat.eq(Mux(data.valid, Mux(to_weights, load.weight_beats == 1, beats == 2), beats == 1))

        self._take_program(m, data.valid & is_program, entry, part)
        self._take_parameters(m, data.valid & is_parameters, part)
        self._take_weights(m, data.valid & is_weights, part)
        input_done = self._take_input(m, data.valid & is_input, part)
        m.d.comb += done.eq(input_done | data.valid & ~is_input & last_beat)
        return m

    def _take_program(self, m: Module, taken: Value, entry: Value, part: Signal) -> None:
        """Words of 32 bits: several beats each, or one in each beat's low bits."""
        beats_per_word = max(1, PROGRAM_WORD_BITS // self._design.bus_bits)
        end = part == beats_per_word - 1
        m.d.comb += [self.program_enable.eq(taken & end), self.program_data.eq(
            entry[len(entry) - beats_per_word * self._design.bus_bits:])]
        with m.If(taken & end):
            m.d.sync += [self.program_word.eq(self.program_word + 1), part.eq(0)]

    def _take_parameters(self, m: Module, taken: Value, part: Signal) -> None:
        """One channel after another, dealt to the parts in turn."""
        parts = self._design.drains_per_lane
        end = taken & (part == self._design.parameter_beats - 1)
        turn: Value = Const(1, 1)
        if parts > 1:
            turn = Signal(parts, init=1)
            with m.If(self.start):
                m.d.sync += turn.eq(1)
            with m.Elif(end):
                m.d.sync += turn.eq(turn.rotate_left(1))
        m.d.comb += self.parameter_enable.eq(Mux(end, turn, 0))
        with m.If(self.start):
            m.d.sync += self.parameter_entry.eq(self.load.parameter_entry)
        with m.Elif(end):
            m.d.sync += part.eq(0)
            with m.If(turn[-1]):
                m.d.sync += self.parameter_entry.eq(self.parameter_entry + 1)

    def _take_weights(self, m: Module, taken: Value, part: Signal) -> None:
        """Runs of entries, each to one row (or, for packed groups, to every row of the pattern); blocks of rows follow on."""
        load, pattern = self.load, self.config.row_pattern
        end = taken & (part == self._design.beats_per_entry("weight") - 1)
        rows = Signal(self._design.rows)
        block = Signal.like(self.weight_entry)  # first entry of the block
        run_end, record_end = Signal(), Signal()
        block_end = run_end & (rows[-1] | record_end)
        m.d.comb += self.weight_enable.eq(Mux(end, rows, 0))
        count_loop(m, run_end, load.run_entries_last, clear=self.start | end & run_end, step=end, name="run")
        count_loop(m, record_end, load.records_last, clear=self.start | end & run_end & record_end, step=end & run_end,
                   name="record")
        following = Signal.like(block)
        with m.If(self.start):
            m.d.comb += following.eq(load.weight_entry)
        with m.Elif(run_end & ~block_end):
            m.d.comb += following.eq(block)
        with m.Else():
            m.d.comb += following.eq(self.weight_entry + 1)
        with m.If(self.start | end):
            m.d.sync += self.weight_entry.eq(following)
        with m.If(self.start | end & block_end):
            m.d.sync += [block.eq(following), rows.eq(pattern)]
        with m.Elif(end & run_end):
            m.d.sync += rows.eq(rows << 1)
        with m.If(end):
            m.d.sync += part.eq(0)

    def _take_input(self, m: Module, taken: Value, part: Signal) -> Value:
        """Pixels of rows; returns when the last beat is taken. A row goes to every lane whose window it lies in."""
        design, config, load = self._design, self.config, self.load
        end = taken & (part == design.beats_per_entry("input") - 1)
        address = Signal.like(load.input_entry)
        last_entry, last_pixel, last_row = (Signal(name=f"last_{what}") for what in ("entry", "pixel", "row"))
        row_end = last_entry & last_pixel
        tile_end = row_end & last_row
        start = self.start
        count_loop(m, last_entry, load.input_entries_last, clear=start | end & last_entry, step=end, name="entry")
        count_loop(m, last_pixel, load.input_pixels_last, clear=start | end & row_end, step=end & last_entry, name="pixel")
        count_loop(m, last_row, load.input_rows_last, clear=start, step=end & row_end, name="row")
        walk_address(m, address, start=start, first=load.input_entry, step=end, stride=1, ends=(last_entry, row_end),
                     strides=(config.pixel_entries, config.row_entries), name="input")
        with m.If(end):
            m.d.sync += part.eq(0)
        if design.lanes == 1:
            m.d.comb += [self.input_enable.eq(end), self.input_entry[0].eq(address)]
        else:
            deal_rows(m, start=start, first=load.input_row_first, row_end=end & row_end, write=end, address=address,
                      span_last=load.input_span_last, band_rows=load.load_band_rows, band_entries=load.load_band_entries,
                      enables=self.input_enable, entries=self.input_entry)
        return end & tile_end


def deal_rows(m: Module, *, start: Value, first: Value, row_end: Value, write: Value, address: Signal, span_last: Value,
              band_rows: Value, band_entries: Value, enables: Signal, entries: View) -> None:
    """Lane l holds grid rows from l bands on; its bank has them at the addresses that lane 0 uses for its own.

    ``start`` begins with row ``first``, ``row_end`` moves on by one; ``write`` goes to each lane whose ``span_last + 1`` rows have it.
    """
    coordinate = Signal(signed(COORDINATE_BITS))
    with m.If(start):
        m.d.sync += coordinate.eq(first)
    with m.Elif(row_end):
        m.d.sync += coordinate.eq(coordinate + 1)
    row, offset, previous = coordinate, Const(0, len(address)), Const(0)
    for lane in range(len(enables)):
        m.d.comb += [
            entries[lane].eq(address - offset),
            enables[lane].eq(write & (row >= 0) & (row <= span_last.as_signed())),
        ]
        if lane + 1 < len(enables):
            # Registered like the issue unit's chain; memory's latency gives it time to settle before the first beat ...
            later_offset = Signal(len(address), name=f"band_entries_{lane + 1}")
            first_row = Signal(signed(COORDINATE_BITS), name=f"band_row_{lane + 1}")
            m.d.sync += later_offset.eq(offset + band_entries)
            m.d.sync += first_row.eq(previous + band_rows)
            row, offset, previous = coordinate - first_row, later_offset, first_row
