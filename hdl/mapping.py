"""How a layer's geometry lies on the hardware: the row and column grid, groups of channels, words and beats.

Everything that both the compiler and the memory layout need, as plain integers; no hardware here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from hdl.design import Design
from hdl.layer import Layer


def ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


@dataclass(frozen=True)
class Axis:
    """One spatial axis of a layer, on the grid of the rows (or columns) that its taps can touch.

    With stride s and dilation d only every gcd(s, d)-th row is ever read (every s-th for a kernel of one row), so only those
    are loaded: grid row j is input row ``j * step - pad``. On the grid, output o and tap f touch ``o * stride + f * dilation``,
    and the real rows are ``first <= j < first + count``.
    """

    step: int
    pad: int
    stride: int
    dilation: int
    taps: int
    first: int
    count: int
    outputs: int

    @classmethod
    def of(cls, *, outputs: int, inputs: int, taps: int, stride: int, dilation: int, pad: int) -> Axis:
        step = gcd(stride, dilation) if taps > 1 else stride
        first = ceil_div(pad, step)
        if first * step - pad >= inputs:  # the step would jump over the whole input
            step, first = 1, pad
        count = (inputs - 1 - (first * step - pad)) // step + 1
        grid_dilation = dilation // step if taps > 1 else 1
        return cls(step, pad, stride // step, grid_dilation, taps, first, count, outputs)

    def span(self, outputs: int) -> int:
        """Grid rows touched by ``outputs`` consecutive outputs."""
        return (outputs - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def window(self, start: int, outputs: int) -> tuple[int, int]:
        """Real rows among those that outputs ``start .. start+outputs-1`` touch, relative to the first touched: [low, high)."""
        origin, span = start * self.stride, self.span(outputs)
        low = min(max(0, self.first - origin), span)
        high = max(low, min(span, self.first + self.count - origin))
        return low, high

    def input_index(self, grid: int) -> int:
        return grid * self.step - self.pad


@dataclass(frozen=True)
class Grouping:
    """How the layer's groups share words and rows.

    Groups of which several fit a word are packed side by side in it, the largest number that divides the groups; such a
    *supergroup* behaves like one dense layer of ``outputs`` channels whose rows see only their own group's columns. A group
    that is not packed is a supergroup of its own.

    * ``count`` supergroups, each of ``words`` input words and ``outputs`` output channels;
    * its outputs take ``passes * blocks`` array blocks of up to ``rows`` channels: the ``passes`` reuse the same weight words
      with the column masks moved on by ``slots_per_pass`` groups;
    * ``records`` weight runs travel for a supergroup, each written to the rows of ``row_pattern`` (shifted one row a record).
    """

    count: int
    packed: int
    group_inputs: int
    group_outputs: int
    words: int
    outputs: int
    blocks: int
    passes: int
    slots_per_pass: int
    row_pattern: int
    row_slots: tuple[int, ...]
    column_slots: tuple[int, ...]

    @classmethod
    def of(cls, design: Design, layer: Layer) -> Grouping:
        rows, cols = design.rows, design.cols
        inputs, outputs = layer.C // layer.G, layer.K // layer.G
        packed = 1
        # A 1-bit weight has no zero and XNOR no mask: there each group takes words of its own.
        if not design.is_xnor and (rows % outputs == 0 or outputs % rows == 0):
            packed = max(n for n in range(1, max(1, cols // inputs) + 1) if layer.G % n == 0)
        words = ceil_div(packed * inputs, cols)
        if packed == 1:
            return cls(layer.G, 1, inputs, outputs, words, outputs, ceil_div(outputs, rows), 1, 0, 1, (0,) * rows, (0,) * cols)
        total = packed * outputs
        unused = cols  # a slot number that no row ever asks for
        column_slots = tuple(c // inputs if c < packed * inputs else unused for c in range(cols))
        if rows % outputs == 0:
            share = rows // outputs
            pattern = sum(1 << (n * outputs) for n in range(share))
            return cls(layer.G // packed, packed, inputs, outputs, words, total, 1, ceil_div(total, rows), share, pattern,
                       tuple(r // outputs for r in range(rows)), column_slots)
        return cls(layer.G // packed, packed, inputs, outputs, words, total, outputs // rows, packed, 1, 1, (0,) * rows,
                   column_slots)

    def channel_slot(self, channel: int, cols: int) -> tuple[int, int]:
        """Input channel -> (word of the pixel, element of the word)."""
        group, within = divmod(channel, self.group_inputs)
        if self.packed > 1:
            return group // self.packed, (group % self.packed) * self.group_inputs + within
        return group * self.words + within // cols, within % cols


@dataclass(frozen=True)
class Format:
    """Words of one kind of data in external memory and in a bank entry."""

    words_per_entry: int
    beats_per_entry: int

    @classmethod
    def of(cls, design: Design, kind: str) -> Format:
        return cls(design.words_per_entry(kind), design.beats_per_entry(kind))

    def entries(self, words: int) -> int:
        return ceil_div(words, self.words_per_entry)

    def beats(self, words: int) -> int:
        """Beats of ``words`` consecutive words that start on a beat."""
        return self.entries(words) * self.beats_per_entry


def output_beats(design: Design, channels: int) -> int:
    """Beats in which ``channels`` consecutive output channels of a pixel leave: the last word is cut at its last used beat."""
    form = Format.of(design, "output")
    if form.beats_per_entry == 1:
        return form.beats(ceil_div(channels, design.cols))
    words, rest = divmod(channels, design.cols)
    return words * form.beats_per_entry + ceil_div(rest * design.activation_bits, design.bus_bits)


def channel_alignment(design: Design) -> int:
    """Where a tile of output channels may start: on whole beats, and on whole words where a word's last beat is not full."""
    in_beat = design.bus_bits // design.activation_bits
    return in_beat if design.cols % in_beat == 0 else design.cols * design.words_per_entry("output")


def y_axis(layer: Layer) -> Axis:
    return Axis.of(outputs=layer.OY, inputs=layer.IY, taps=layer.FY, stride=layer.SY, dilation=layer.DY, pad=layer.PT)


def x_axis(layer: Layer) -> Axis:
    return Axis.of(outputs=layer.OX, inputs=layer.IX, taps=layer.FX, stride=layer.SX, dilation=layer.DX, pad=layer.PL)
