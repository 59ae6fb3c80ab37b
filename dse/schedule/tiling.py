"""A tiling: the part of a layer that is on chip at once, and the order in which the parts are visited."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import prod

from dse.schedule.frame import Frame, every_row
from hdl.design import Design
from hdl.layer import Layer
from hdl.mapping import Axis, Format, Grouping, ceil_div, channel_alignment, output_beats, x_axis, y_axis
from hdl.program import LENGTH_BITS


class Order(StrEnum):
    """Which tile loops are outermost. Channel tiles are always innermost: their partial sums stay on chip."""

    WEIGHTS_OUTER = "weights_outer"  # a weight tile stays while the pixel tiles pass
    PIXELS_OUTER = "pixels_outer"  # a pixel tile stays while the weight tiles pass


LOOPS = {
    Order.WEIGHTS_OUTER: ("S", "K", "B", "Y", "X", "C"),
    Order.PIXELS_OUTER: ("B", "Y", "X", "S", "K", "C"),
}
"""Tile loops, outermost first. S: supergroups (:class:`hdl.mapping.Grouping`), K: their output channels, C: input words."""

MAX_BURST_BEATS = (1 << LENGTH_BITS) - 1
INPUT_LOOPS = frozenset("SBYXC")
WEIGHT_LOOPS = frozenset("SKC")
PARAMETER_LOOPS = frozenset("SK")
OUTPUT_LOOPS = frozenset("SKBYX")
PIXEL_LOOPS = frozenset("BYX")


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """Tile sizes; every tile has them but the last of each loop, which may be smaller.

    ``ts`` supergroups; ``tk`` output channels of a supergroup; ``tc`` input words of a supergroup; ``ty``, ``tx`` output rows and
    columns. With ``tk`` or ``tc`` below the whole, ``ts`` is 1. ``resident``: what the inner loops visit again and again (the input
    with ``WEIGHTS_OUTER``, the weights with ``PIXELS_OUTER``) has a region on chip for every tile, and is loaded once.
    """

    ts: int
    tk: int
    tc: int
    ty: int
    tx: int
    order: Order = Order.WEIGHTS_OUTER
    resident: bool = False

    def __str__(self) -> str:
        kept = " resident" if self.resident else ""
        return f"ts={self.ts} tk={self.tk} tc={self.tc} ty={self.ty} tx={self.tx} order={self.order}{kept}"


class IllegalTiling(Exception):
    """A tiling that the hardware cannot run for this layer and design; the message says why."""


@dataclass(frozen=True)
class Part:
    """One tile's part of one loop: ``start`` and ``size`` along it."""

    start: int
    size: int


@lru_cache(maxsize=4096)
def parts(total: int, size: int) -> tuple[Part, ...]:
    return tuple(Part(start, min(size, total - start)) for start in range(0, total, size))


@dataclass(frozen=True)
class Window:
    """A tile's rows (or columns) on the input grid (:class:`hdl.mapping.Axis`).

    ``low``, ``high``: real rows relative to the first that its outputs touch; ``band``: output rows of a lane; ``shift``: rows
    that no lane stores, by which the bank's frame is moved up.
    """

    part: Part
    low: int
    high: int
    band: int
    shift: int

    @property
    def rows(self) -> int:
        return self.high - self.low


@lru_cache(maxsize=65536)
def windows(axis: Axis, size: int, lanes: int) -> tuple[Window, ...] | str:
    """The windows of an axis cut into tiles of ``size`` outputs, or why the hardware cannot run them."""
    result = []
    for part in parts(axis.outputs, size):
        low, high = axis.window(part.start, part.size)
        if high <= low:
            return "a tile lies in the padding altogether"
        band = ceil_div(part.size, lanes)
        shift = min(max(0, low - lane * band * axis.stride) for lane in range(ceil_div(part.size, band)))
        result.append(Window(part, low, high, band, shift))
    # The hardware knows first, middle and last tiles: all middle ones must look alike.
    if len({(w.low, w.high, w.band, w.shift) for w in result[1:-1]}) > 1:
        return "more than the first and last tile touch the padding"
    return tuple(result)


class TilePlan:
    """Everything about a tiled layer that both program and prediction are made from.

    Parameters
    ----------
    input_entry: where in the input banks the layer before has put the whole input; None: tiles of it are loaded from memory.
    output_frame: where the whole output goes as the input of the next layer; None: to memory. Both need ``design.chaining``.

    Raises
    ------
    IllegalTiling: tile boundaries that words, beats or the padding logic do not allow.
    """

    def __init__(self, design: Design, layer: Layer, tiling: Tiling, *, input_entry: int | None = None,
                 output_frame: Frame | None = None) -> None:
        self.design, self.layer, self.tiling = design, layer, tiling
        self.input_entry, self.output_frame = input_entry, output_frame
        self.grouping = group = Grouping.of(design, layer)
        self.y_axis, self.x_axis = y_axis(layer), x_axis(layer)
        if self.input_is_kept:  # nothing is left out
            self.y_axis = every_row(self.y_axis, layer.SY, layer.DY, layer.IY)
            self.x_axis = every_row(self.x_axis, layer.SX, layer.DX, layer.IX)
        self.input_format, self.weight_format = Format.of(design, "input"), Format.of(design, "weight")
        self.loops = {
            "S": parts(group.count, tiling.ts), "K": parts(group.outputs, tiling.tk), "C": parts(group.words, tiling.tc),
            "B": parts(layer.B, 1), "Y": parts(layer.OY, tiling.ty), "X": parts(layer.OX, tiling.tx),
        }
        self._check_channels()
        self._check_resident()
        self.y_windows = self._windows("ty", self.y_axis, tiling.ty, design.lanes)
        self.x_windows = self._windows("tx", self.x_axis, tiling.tx, 1)
        self._measure()
        self._check_lengths()

    # -- checks -------------------------------------------------------------------------------------------------------

    def _check_channels(self) -> None:
        tiling, group = self.tiling, self.grouping
        count = {name: len(loop) for name, loop in self.loops.items()}
        if tiling.ts > 1 and (count["K"] > 1 or count["C"] > 1):
            raise IllegalTiling("several groups in a tile need all of their channels")
        if group.packed > 1 and count["K"] > 1:
            raise IllegalTiling("packed groups need all of their output channels")
        align = channel_alignment(self.design)
        if count["S"] > 1 and tiling.ts * group.outputs % align:
            raise IllegalTiling("output channels of a tile of groups end inside a beat")
        if count["K"] > 1 and tiling.tk % align:
            raise IllegalTiling("output channels of a tile end inside a beat")
        if count["C"] > 1 and tiling.tc % self.input_format.words_per_entry:
            raise IllegalTiling("input words of a channel tile end inside a beat")
        if count["S"] > 1 and tiling.ts * group.words % self.input_format.words_per_entry:
            raise IllegalTiling("input words of a tile of groups end inside a beat")
        if self.design.drains_per_lane > 1:
            step = self.design.drains_per_lane
            if (group.count > 1 or count["K"] > 1) and (group.outputs % step or tiling.tk % step):
                raise IllegalTiling("output channels of a tile are no multiple of the drains of a lane")
        if count["C"] > 1 and not self.design.psum_bytes:
            raise IllegalTiling("channel tiles need a psum RAM")
        entry = self.design.cols * self.design.words_per_entry("output")
        for loop, channels in (("S", tiling.ts * group.outputs), ("K", tiling.tk)):
            if self.output_is_kept and count[loop] > 1 and channels % entry:
                raise IllegalTiling("output channels of a tile end inside an entry of the input banks")

    def _check_resident(self) -> None:
        """One loop must say alone whether a tile is on chip already: its flag is a table over that loop's classes."""
        if not self.tiling.resident:
            return
        several = {name for name, loop in self.loops.items() if len(loop) > 1}
        if self.tiling.order is Order.WEIGHTS_OUTER:
            if "S" in several or "K" not in several or not several & INPUT_LOOPS:
                raise IllegalTiling("no input tile is visited again")
        elif len(several & PIXEL_LOOPS) != 1 or not several & WEIGHT_LOOPS:
            raise IllegalTiling("no weight tile is visited again along one loop")
        if self.input_is_kept and self.input_is_resident:
            raise IllegalTiling("the input is on chip already")

    def _windows(self, name: str, axis: Axis, size: int, lanes: int) -> tuple[Window, ...]:
        result = windows(axis, size, lanes)
        if isinstance(result, str):
            raise IllegalTiling(f"{name}: {result}")
        return result

    def _check_lengths(self) -> None:
        """Bursts and counters of the hardware have finite fields."""
        first = {name: loop[0] for name, loop in self.loops.items()}
        columns = self.frame_columns
        lengths = {
            "weights of a tile": self.weight_beats(first["S"], first["K"], first["C"]),
            "parameters of a tile": self.parameter_beats(first["S"], first["K"]),
            "input row of a tile": columns * self.pixel_beats if self.input_is_contiguous and not self.input_is_kept else 0,
            "output row of a tile": first["X"].size * self.output_tile_beats(first["S"], first["K"]),
        }
        for what, beats in lengths.items():
            if beats > MAX_BURST_BEATS:
                raise IllegalTiling(f"{what} are {beats} beats, over {MAX_BURST_BEATS}")

    # -- sizes on chip ------------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        group, design, layer, y = self.grouping, self.design, self.layer, self.y_axis
        frames = []
        for window in dict.fromkeys(self.y_windows[at] for at in (0, len(self.y_windows) // 2, -1)):  # all kinds
            span = y.span(window.band)
            for lane in range(ceil_div(window.part.size, window.band)):
                frames.append(min(span, window.high - lane * window.band * y.stride) - window.shift)
        self.frame_rows = max(frames)
        self.frame_columns = max(self.x_windows[at].rows for at in (0, len(self.x_windows) // 2, -1))
        self.kept_shift = 0
        whole_words = group.count * group.words
        self.pixel_beats = self.input_format.beats(whole_words)  # of a whole pixel in external memory
        # The first part of every loop is as large as any.
        s, k, c = (self.loops[name][0] for name in "SKC")
        self.pixel_entries = self.input_entries(s, c)
        if self.input_is_kept:
            self._measure_kept_input()
        self.row_entries = self.frame_columns * self.pixel_entries
        self.input_slot = self.frame_rows * self.row_entries
        self.output_pixel_beats = design_output_pixel(design, layer.K)
        self.weight_slot = self.weight_entries(s, k, c)
        self.parameter_slot = ceil_div(s.size * k.size, design.drains_per_lane)
        pixels = self.y_windows[0].band * self.loops["X"][0].size
        self.output_slot = pixels * self.output_tile_beats(s, k)
        self.psum_entries = pixels * self.groups_in_pixel(s, k) * design.drain_steps if len(self.loops["C"]) > 1 else 0

    def _measure_kept_input(self) -> None:
        """One region has the whole input: all channels and columns, and the rows of every tile's bands at one distance a lane."""
        y, lanes = self.y_axis, self.design.lanes
        self.pixel_entries = self.input_format.entries(self.grouping.count * self.grouping.words)
        self.frame_columns = self.x_axis.count
        self.kept_shift, self.frame_rows = y.first, y.count
        if lanes > 1:
            bands = {window.band for window in self.y_windows}
            if len(bands) > 1:
                raise IllegalTiling("lanes hold a kept input at the distance of a tile's bands, which must be one")
            band = bands.pop() * y.stride
            self.kept_shift = min(max(0, y.first - lane * band) for lane in range(lanes))
            self.frame_rows = min(self.kept_span, y.first + y.count) - self.kept_shift

    @property
    def kept_span(self) -> int:
        """With a kept input: grid rows from the first that lane 0 touches to its last."""
        last = self.y_windows[-1]
        return last.part.start * self.y_axis.stride + self.y_axis.span(last.band)

    @property
    def input_frame(self) -> Frame:
        """The region of a kept input."""
        assert self.input_entry is not None
        band = self.y_windows[0].band * self.y_axis.stride
        return Frame(self.input_entry, self.input_slot, (self.y_axis.first - self.kept_shift) * self.row_entries, self.row_entries,
                     self.pixel_entries, self.y_axis.first, self.kept_span - 1, band, band * self.row_entries)

    def blocks(self, k: Part) -> int:
        """Array blocks of a supergroup's part of output channels, in one pass."""
        return ceil_div(k.size, self.design.rows) if self.grouping.packed == 1 else self.grouping.blocks

    def groups_in_pixel(self, s: Part, k: Part) -> int:
        """Pixel groups (array blocks) of one pixel."""
        return s.size * self.grouping.passes * self.blocks(k)

    def records(self, k: Part) -> int:
        """Weight runs of one supergroup."""
        return k.size if self.grouping.packed == 1 else self.grouping.group_outputs

    def vectors(self, c: Part) -> int:
        """Operand vectors of a reduction: L."""
        return c.size * self.layer.FY * self.layer.FX

    def run_entries(self, c: Part) -> int:
        return self.weight_format.entries(self.vectors(c))

    def weight_entries(self, s: Part, k: Part, c: Part) -> int:
        """Entries of every row's weight bank that a tile occupies."""
        return s.size * self.blocks(k) * self.run_entries(c)

    def weight_beats(self, s: Part, k: Part, c: Part) -> int:
        return s.size * self.records(k) * self.run_entries(c) * self.weight_format.beats_per_entry

    def parameter_beats(self, s: Part, k: Part) -> int:
        return s.size * k.size * self.design.parameter_beats

    def input_entries(self, s: Part, c: Part) -> int:
        """Entries of one pixel's part."""
        words = s.size * self.grouping.words if len(self.loops["C"]) == 1 else c.size
        return self.input_format.entries(words)

    def input_beats(self, s: Part, c: Part) -> int:
        """Beats that travel for one pixel's part: none where the input is on chip."""
        return 0 if self.input_is_kept else self.input_entries(s, c) * self.input_format.beats_per_entry

    @property
    def input_is_kept(self) -> bool:
        """The layer before has left the whole input on chip."""
        return self.input_entry is not None

    @property
    def output_is_kept(self) -> bool:
        """The output stays on chip for the next layer."""
        return self.output_frame is not None

    @property
    def input_is_contiguous(self) -> bool:
        """A row of a tile is one burst: whole pixels side by side."""
        return len(self.loops["C"]) == 1 and len(self.loops["S"]) == 1 and self.x_axis.step == 1

    def output_tile_beats(self, s: Part, k: Part) -> int:
        """Beats of one pixel's part of a tile's output."""
        return output_beats(self.design, s.size * k.size)

    @property
    def output_is_contiguous(self) -> bool:
        return len(self.loops["K"]) == 1 and len(self.loops["S"]) == 1 and self.output_is_dense and not self.output_is_kept

    @property
    def output_is_dense(self) -> bool:
        """No beats of padding between pixels of the output."""
        return output_beats(self.design, self.layer.K) == self.output_pixel_beats

    def changes(self, loops: frozenset[str]) -> int:
        """How many times data that depends on ``loops`` is loaded (or stored): once a tile that differs in one of them."""
        names = LOOPS[self.tiling.order]
        innermost = max((at for at, name in enumerate(names) if name in loops and len(self.loops[name]) > 1), default=-1)
        return prod(len(self.loops[name]) for name in names[:innermost + 1])

    @property
    def input_is_resident(self) -> bool:
        """Every input tile keeps a region of its own, and is loaded only while the first weight tile is used."""
        return self.tiling.resident and self.tiling.order is Order.WEIGHTS_OUTER

    @property
    def weights_are_resident(self) -> bool:
        """Every weight tile keeps a region of its own, and is loaded only while the first pixel tile is used."""
        return self.tiling.resident and self.tiling.order is Order.PIXELS_OUTER

    @property
    def revisiting_loop(self) -> str:
        """With a resident tiling: the loop in whose first tile the resident data is loaded."""
        return "K" if self.input_is_resident else next(name for name in "BYX" if len(self.loops[name]) > 1)

    def tiles(self, loops: frozenset[str]) -> int:
        """Different tiles of data that depends on ``loops``."""
        return prod(len(self.loops[name]) for name in loops)

    def varies(self, loop: str) -> bool:
        """Whether tiles differ in size along a loop."""
        parts = self.loops[loop]
        return parts[-1].size != parts[0].size

    def windows_vary(self, loop: str) -> bool:
        """Whether tiles differ along ``"Y"`` or ``"X"`` in how their windows lie on the input."""
        windows = self.y_windows if loop == "Y" else self.x_windows
        return len({(w.low, w.high, w.shift) for w in (windows[0], windows[len(windows) // 2], windows[-1])}) > 1

    def slots(self, loops: frozenset[str]) -> int:
        """Regions of a bank: two where loading one overlaps using the other, one for what is loaded once."""
        return 2 if self.changes(loops) > 1 else 1

    def needs(self) -> dict[str, tuple[int, int]]:
        """Bank kind -> (entries needed, entries there)."""
        design = self.design
        regions = self.tiles(INPUT_LOOPS) if self.input_is_resident else 1 if self.input_is_kept else self.slots(INPUT_LOOPS)
        entries = {
            "input": self.input_slot * regions + (self.output_frame.entries if self.output_frame else 0),
            "weight": self.weight_slot * (self.tiles(WEIGHT_LOOPS) if self.weights_are_resident else self.slots(WEIGHT_LOOPS)),
            "output": self.output_slot * self.slots(OUTPUT_LOOPS),
            "parameter": self.parameter_slot * self.slots(PARAMETER_LOOPS),
        }
        if self.psum_entries:
            entries["psum"] = self.psum_entries
        return {kind: (need, design.bank_depth(kind)) for kind, need in entries.items()}

    @property
    def fits(self) -> bool:
        return all(need <= there for need, there in self.needs().values())


def design_output_pixel(design: Design, channels: int) -> int:
    """Beats from one pixel of an output tensor to the next: its words, padded to whole beats."""
    return Format.of(design, "output").beats(ceil_div(channels, design.cols))
