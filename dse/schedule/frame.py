"""Where a whole input lies in the input banks when the layer before has put it there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hdl.mapping import Axis


@dataclass(frozen=True)
class Frame:
    """A region of the input banks that holds a layer's whole input (`dse/schedule/chain.py`).

    ``entry``: where it begins; ``entries``: its size, in every lane. ``origin``: entry of the first real row in lane 0, counted from
    the region's beginning; ``row_first``: that row's grid coordinate. A lane has ``span_last + 1`` grid rows (one lane: all); the next
    one's begin ``band_rows`` rows later and at ``band_entries`` entries less.
    """

    entry: int
    entries: int
    origin: int
    row_entries: int
    pixel_entries: int
    row_first: int
    span_last: int
    band_rows: int
    band_entries: int


ANYWHERE = Frame(0, 0, 0, 0, 0, 0, 0, 0, 0)
"""Stands for the next layer's frame where only its being there matters."""


def every_row(axis: Axis, stride: int, dilation: int, inputs: int) -> Axis:
    """An axis on a grid of all its ``inputs`` rows, those that no tap touches included; ``stride``, ``dilation``: the layer's."""
    return replace(axis, step=1, stride=stride, dilation=dilation, first=axis.pad, count=inputs)
