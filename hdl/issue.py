"""The issue unit: walks a tile's pixels and taps, and issues one operand vector a cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

from hdl.design import Design
from hdl.loop import count_loop, is_below, walk_address
from hdl.program import COORDINATE_BITS, Stage, address_bits, fields, has_columns, slot_bits
from hdl.sequencer import stage_layout


def group_layout(design: Design) -> StructLayout:
    """What the drain must know of a pixel group: see :class:`IssueUnit`."""
    return StructLayout({
        "final_block": unsigned(1),  # the last, maybe partial, block of a supergroup's output channels
        "pixel_end": unsigned(1),  # the last block of its pixel
        "tile_end": unsigned(1),  # the last group of the tile
        "lanes": unsigned(design.lanes),  # lanes whose output row exists
    })


class GroupWalker(wiring.Component):
    """Walks a tile's pixel groups: for each pixel (y, x) its supergroups, passes and blocks of output channels.

    Holds the next group ready in its members; ``take`` moves on to the one after it, in the next cycle. Throughput: a group a
    cycle. ``start`` loads the tile; the first group is ready in the next cycle.

    Members
    -------
    start, take: strobes. ready: a group is on the members below.
    input_word, weight_word: bank addresses of its first operands. y, x: grid coordinate of its first tap. slot: number of the
    word's group that row 0 works on. group: for the drain.
    """

    def __init__(self, *, design: Design) -> None:
        self._design = design
        super().__init__({
            "config": In(stage_layout(design, Stage.CONFIG)),
            "tile": In(stage_layout(design, Stage.COMPUTE)),
            "start": In(1),
            "take": In(1),
            "ready": Out(1),
            "input_word": Out(address_bits(design, "input")),
            "weight_word": Out(address_bits(design, "weight")),
            "y": Out(COORDINATE_BITS),
            "x": Out(COORDINATE_BITS),
            "slot": Out(slot_bits(design)),
            "group": Out(group_layout(design)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design, config, tile = self._design, self.config, self.tile
        bits = {field.name: field.bits for field in fields(design).values()}
        last_block, last_group, last_x, last_y = (Signal(name=f"last_{what}") for what in ("block", "group", "x", "y"))
        y = Signal(bits["y_last"])
        group_weights = Signal.like(self.weight_word)  # first weight word of the supergroup

        passes_done: Value = Const(1)
        if has_columns(design):
            passes_done = Signal()
        last_in_supergroup = last_block & passes_done
        last_in_pixel = last_in_supergroup & last_group
        last_in_row = last_in_pixel & last_x
        last_in_tile = last_in_row & last_y
        m.d.comb += [
            self.group.final_block.eq(last_in_supergroup),
            self.group.pixel_end.eq(last_in_pixel),
            self.group.tile_end.eq(last_in_tile),
        ]
        self._elaborate_lanes(m, y)

        # Each loop begins again when it ends and at the start.
        start, take = self.start, self.take
        ends = [start | take & end for end in (last_block, last_in_supergroup, last_in_pixel, last_in_row)]
        count_loop(m, last_block, tile.blocks_last, clear=ends[0], step=take, name="block")
        if has_columns(design):
            count_loop(m, passes_done, config.passes_last, clear=ends[1], step=take & last_block, name="pass")
            with m.If(ends[1]):
                m.d.sync += self.slot.eq(0)
            with m.Elif(take & last_block):
                m.d.sync += self.slot.eq(self.slot + config.slots_per_pass)
        count_loop(m, last_group, tile.groups_last, clear=ends[2], step=take & last_in_supergroup, name="group")
        count_loop(m, last_x, tile.x_last, clear=ends[3], step=take & last_in_pixel, name="x")
        count_loop(m, last_y, tile.y_last, clear=start, step=take & last_in_row, name="y")
        with m.If(ends[3]):
            m.d.sync += self.x.eq(0)
        with m.Elif(take & last_in_pixel):
            m.d.sync += self.x.eq(self.x + config.stride_x)
        with m.If(start):
            m.d.sync += [y.eq(0), self.y.eq(0), self.ready.eq(1)]
        with m.Elif(take & last_in_row):
            m.d.sync += [y.eq(y + 1), self.y.eq(self.y + config.stride_y), self.ready.eq(~last_y)]

        walk_address(m, self.input_word, start=start, first=tile.input_word, step=take & last_in_supergroup,
                     stride=config.group_words, ends=(last_in_pixel, last_in_row),
                     strides=(config.pixel_x_words, config.pixel_y_words), name="input")
        weights = Signal.like(self.weight_word)
        m.d.comb += weights.eq(self.weight_word + tile.run_words)
        if has_columns(design):
            with m.If(last_block & ~passes_done):
                m.d.comb += weights.eq(group_weights)
        with m.If(start | last_in_pixel):
            m.d.comb += weights.eq(tile.weight_word)
        with m.If(start | take):
            m.d.sync += self.weight_word.eq(weights)
        with m.If(ends[1]):
            m.d.sync += group_weights.eq(weights)
        return m

    def _elaborate_lanes(self, m: Module, y: Signal) -> None:
        """Lane l exists while its output row, y + l * (rows a lane), is inside the tile."""
        if self._design.lanes == 1:
            m.d.comb += self.group.lanes.eq(1)
            return
        left = Signal(signed(len(self.tile.tile_rows) + 2), name="rows_left_0")
        m.d.comb += left.eq(self.tile.tile_rows)
        exists = []
        for lane in range(self._design.lanes):
            exists.append(y.as_unsigned() < left)
            # A chain of registers: it settles long before the first group is drained, and no path is longer than one adder.
            following = Signal.like(left, name=f"rows_left_{lane + 1}")
            m.d.sync += following.eq(left - self.tile.y_last - 1)
            left = following
        m.d.comb += self.group.lanes.eq(Cat(exists))


class IssueUnit(wiring.Component):
    """Issues a tile's operand vectors: bank addresses in one cycle, array control in the next, when the words are there.

    A pixel group (up to ``rows`` output channels of one pixel in every lane) takes one cycle a vector; the next group's first
    vector follows ``max(vectors, drain_cycles)`` cycles after this one's. The first vector is issued
    ``COMPUTE_START_CYCLES + lanes - 1`` after ``start``.

    Parameters
    ----------
    design: the design point. drain_cycles: cycles that a group's results need to leave.

    Members
    -------
    start: strobe with the tile's fields valid from this cycle on.
    issuing: a vector is issued in this cycle. stalled: a group waits for the drains.
    input_enable: per lane: its bank reads ``input_word`` (not where the tap is padding). weight_word: read by every row.
    Then, one cycle later, what the array takes with the words: valid, first, last, padding, columns or count.
    group: for the drain, with ``last``.
    """

    def __init__(self, *, design: Design, drain_cycles: int) -> None:
        self._design, self._drain_cycles = design, drain_cycles
        members = {
            "config": In(stage_layout(design, Stage.CONFIG)),
            "tile": In(stage_layout(design, Stage.COMPUTE)),
            "start": In(1),
            "issuing": Out(1),
            "stalled": Out(1),
            "input_enable": Out(design.lanes),
            "input_word": Out(address_bits(design, "input")),
            "weight_word": Out(address_bits(design, "weight")),
            "o_valid": Out(1),
            "o_first": Out(1),
            "o_last": Out(1),
            "o_padding": Out(design.lanes),
            "group": Out(group_layout(design)),
        }
        if design.is_xnor:
            members["o_count"] = Out(range(design.cols + 1))
        else:
            members["o_columns"] = Out(design.cols).array(design.rows)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design, config, tile = self._design, self.config, self.tile
        m.submodules.walker = walker = GroupWalker(design=design)
        start: Value = self.start
        for lane in range(1, design.lanes):  # the lanes' limits settle
            later = Signal(name=f"start_{lane}")
            m.d.sync += later.eq(start)
            start = later
        m.d.comb += [walker.config.eq(config), walker.tile.eq(tile), walker.start.eq(start)]

        active = Signal()
        y, x, x_first = (Signal(COORDINATE_BITS, name=name) for name in ("y", "x", "x_first"))
        first, group, slot = Signal(), Signal(group_layout(design)), Signal(slot_bits(design))

        last_word, last_x, last_y = (Signal(name=f"last_{what}") for what in ("word", "x", "y"))
        last_in_tap_row = last_word & last_x
        last = Signal()
        m.d.comb += last.eq(last_in_tap_row & last_y)

        clear: Value = Const(1)
        if self._drain_cycles > 1:
            clear, wait = Signal(init=1, name="clear"), Signal(range(self._drain_cycles))
            with m.If(walker.take):
                m.d.sync += [clear.eq(0), wait.eq(self._drain_cycles - 1)]
            with m.Elif(~clear):
                m.d.sync += [clear.eq(wait == 1), wait.eq(wait - 1)]
        free = Signal(init=1)  # no vectors of a group are left after this cycle
        m.d.comb += [
            walker.take.eq(walker.ready & clear & free),
            self.stalled.eq(walker.ready & ~active & ~clear),
        ]

        take = walker.take
        words = count_loop(m, last_word, tile.words_last, clear=take | active & last_word, step=active, name="word")
        columns = count_loop(m, last_x, config.fx_last, clear=take | active & last_in_tap_row, step=active & last_word, name="tap_x")
        rows = count_loop(m, last_y, config.fy_last, clear=take, step=active & last_in_tap_row, name="tap_y")
        # Whether the next vector is the last, from what the three flags become: `take` goes everywhere and must not come late.
        next_x = Mux(last_word, Mux(last_x, columns.single, columns.ending), last_x)
        next_last = Mux(last_word, words.single, words.ending) & next_x & Mux(last_in_tap_row, rows.ending, last_y)
        m.d.sync += free.eq(Mux(take, words.single & columns.single & rows.single, ~active | last | next_last))
        walk_address(m, self.input_word, start=take, first=walker.input_word, step=active, stride=1,
                     ends=(last_word, last_in_tap_row), strides=(config.tap_x_words, config.tap_y_words), name="input")
        with m.If(take):
            m.d.sync += [active.eq(1), first.eq(1), group.eq(walker.group), slot.eq(walker.slot),
                         self.weight_word.eq(walker.weight_word), y.eq(walker.y), x.eq(walker.x), x_first.eq(walker.x)]
        with m.Elif(active):
            m.d.sync += [active.eq(~last), first.eq(0), self.weight_word.eq(self.weight_word + 1)]
            with m.If(last_in_tap_row):
                m.d.sync += [x.eq(x_first), y.eq(y + config.dilation_y)]
            with m.Elif(last_word):
                m.d.sync += x.eq(x + config.dilation_x)

        padding = Signal(design.lanes)
        m.d.comb += padding.eq(self._padding(m, y, x))
        m.d.comb += [self.issuing.eq(active), self.input_enable.eq(Mux(active, ~padding, 0))]
        m.d.sync += [
            self.o_valid.eq(active), self.o_first.eq(first), self.o_last.eq(last), self.o_padding.eq(padding),
            self.group.eq(group),
        ]
        self._elaborate_channels(m, slot, last_word)
        return m

    def _padding(self, m: Module, y: Signal, x: Signal) -> object:
        """Per lane: the tap lies outside the real rows or columns. Lane l sees the tile l bands further down."""
        tile, family = self.tile, self._design.family
        column = is_below(x, tile.x_low, family) | ~is_below(x, tile.x_high, family)
        low, high = Signal(signed(COORDINATE_BITS), name="y_low_0"), Signal(signed(COORDINATE_BITS), name="y_high_0")
        m.d.comb += [low.eq(tile.y_low), high.eq(tile.y_high)]
        lanes = []
        for lane in range(self._design.lanes):
            lanes.append(column | is_below(y.as_signed(), low, family) | ~is_below(y.as_signed(), high, family))
            if lane + 1 < self._design.lanes:
                low_next = Signal.like(low, name=f"y_low_{lane + 1}")
                high_next = Signal.like(high, name=f"y_high_{lane + 1}")
                m.d.sync += [low_next.eq(low - tile.band_rows), high_next.eq(high - tile.band_rows)]
                low, high = low_next, high_next
        return Cat(lanes)

    def _elaborate_channels(self, m: Module, slot: Signal, last_word: object) -> None:
        """Which columns count: by the row's group, or for XNOR by how many channels the word has."""
        design, config = self._design, self.config
        if design.is_xnor:
            m.d.sync += self.o_count.eq(Mux(last_word, self.tile.final_word_channels, design.cols))
            return
        if not has_columns(design):
            m.d.comb += [self.o_columns[row].eq(1) for row in range(design.rows)]
            return
        width = slot_bits(design)
        for row in range(design.rows):
            wanted = Signal(width, name=f"slot_{row}")
            m.d.sync += wanted.eq(slot + config.row_slots.word_select(row, width))
            m.d.comb += self.o_columns[row].eq(Cat(
                config.column_slots.word_select(column, width) == wanted for column in range(design.cols)))
