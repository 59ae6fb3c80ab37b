"""Whether the sizes in a SCALE-Sim topology hold padding: a row cannot say so, but what the next one reads shows it.

Tables mix two habits. Padding may be *applied*: the input is larger than the image by the filter less one, and its zeros count as data.
Or it is *forgotten*: the size is that of the image, and the outputs are too few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hdl.mapping import ceil_div

APPLIED = "the size holds padding: its zeros count as data and traffic; a network file of ours can say P= instead"
FORGOTTEN = "padding was forgotten: the next row reads as many rows and columns as if the outputs kept the size"
EITHER = "reads more than the row before writes: padding was forgotten there, or is in the size here"


@dataclass(frozen=True)
class PaddedRow:
    """A convolution of the table; sizes are (height, width), ``outputs`` without rounding up."""

    name: str
    inputs: tuple[int, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    channels: int
    output_channels: int
    outputs: tuple[int, ...]


def padding_remarks(rows: Sequence[PaddedRow]) -> list[tuple[str, list[str]]]:
    """Remarks and the layers that they are about."""
    applied, forgotten, either = [], [], []
    plain: set[str] = set()  # rows whose inputs hold no padding, as far as is known
    for before, row in zip(rows, rows[1:], strict=False):
        if row.channels != before.output_channels:
            continue
        unpadded = tuple(size - (taps - 1) for size, taps in zip(row.inputs, row.taps, strict=True))
        kept = tuple(ceil_div(size, stride) for size, stride in zip(before.inputs, before.strides, strict=True))
        if _follows(before.outputs, row.inputs):
            plain.add(row.name)
            continue
        could_be_applied = max(row.taps) > 1 and _follows(before.outputs, unpadded)
        could_be_forgotten = max(before.taps) > 1 and before.name not in applied and _follows(kept, row.inputs)
        if could_be_forgotten and (before.name in plain or not could_be_applied):
            forgotten.append(before.name)
            plain.add(row.name)
        elif could_be_applied and not could_be_forgotten:
            applied.append(row.name)
        elif could_be_applied:
            either.append(row.name)
    if either and bool(applied) != bool(forgotten):
        # All that is certain is of one habit: so is what could be either.
        certain, at = (applied, 0) if applied else (forgotten, -1)
        names = [row.name for row in rows]
        certain += [names[names.index(name) + at] for name in either]
        certain[:] = sorted(set(certain), key=names.index)
        either = []
    return [(what, names) for what, names in ((APPLIED, applied), (FORGOTTEN, forgotten), (EITHER, either)) if names]


def _follows(outputs: Sequence[int], inputs: Sequence[int]) -> bool:
    """Whether inputs of this size come from such outputs: as they are, or through a pooling by 2 or to one pixel."""
    return all(size in _reached(output) for output, size in zip(outputs, inputs, strict=True))


def _reached(size: int) -> set[int]:
    return {size, size // 2, ceil_div(size, 2), max(1, (size - 3) // 2 + 1), 1}
