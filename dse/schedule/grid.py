"""Exact cycles and beats of all tilings of a layer, whether they fit the banks or not, structure by structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dse.schedule.axes import Floats, Sizes
from dse.schedule.closed_form import Run
from dse.schedule.explore import tiling_blocks
from dse.schedule.kernel import KernelGrids, library
from dse.schedule.phase_kinds import Structure
from dse.schedule.tiling import Tiling

MOST = 1 << 15
"""Tilings of a grid, if its row and column cuts are no more: few enough for a processor's cache."""


@dataclass(frozen=True)
class Grid:
    """Tilings of one structure: every one of some channel cuts with every row and column cut.

    ``channels``: shape (channel cuts, 3), ``ts``, ``tk``, ``tc`` of each; ``rows``, ``columns``: ``ty``, ``tx``. ``cycles`` and
    ``beats_read``: shape (channel cuts, row cuts, column cuts); ``beats_written``: (channel cuts, 1, 1), for it depends on nothing else.
    Whole numbers.
    """

    structure: Structure
    channels: Floats
    rows: Floats
    columns: Floats
    cycles: Floats
    beats_read: Floats
    beats_written: Floats

    def tiling(self, channel: int, row: int, column: int) -> Tiling:
        ts, tk, tc = self.channels[channel].astype(int).tolist()
        return Tiling(ts=ts, tk=tk, tc=tc, ty=int(self.rows[row]), tx=int(self.columns[column]), order=self.structure.order,
                      resident=self.structure.resident)


def evaluate_grids(run: Run, sizes: Sizes = Sizes.EVEN, *, compiled: bool = True) -> Iterator[Grid]:
    """All tilings of a layer on a design, in grids of about ``MOST``; ``compiled``: by the compiled kernel, where there is a compiler.

    As exact as :class:`dse.schedule.closed_form.ClosedForm`, either way. The banks of the design do not matter.
    """
    kernel = library(build=True) if compiled else None
    if kernel is None:
        yield from _by_numpy(run, sizes)
        return
    grids = KernelGrids(kernel, run, sizes)
    for part in grids.parts:
        for start in range(0, len(part.channels), step := _step(len(part.ys) * len(part.xs))):
            channels = part.channels[start:start + step]
            yield Grid(part.structure, channels[:, :3], part.ys[:, 0], part.xs[:, 0], *grids.evaluate(part, channels))


def _by_numpy(run: Run, sizes: Sizes) -> Iterator[Grid]:
    for block in tiling_blocks(run, sizes):
        c, y, x = block.channels, block.y.size, block.x.size
        for start in range(0, len(c.ts), step := _step(len(y) * len(x))):
            form, channels = block.grid(start, start + step), np.stack([c.ts, c.tk, c.tc], axis=1)[start:start + step]
            cycles, read = (np.broadcast_to(values, (len(channels), len(y) * len(x))).reshape(-1, len(y), len(x))
                            for values in (form.cycles, form.beats_read))
            yield Grid(block.structure, channels, y, x, cycles, read, np.broadcast_to(form.stored_beats, (len(channels), 1))[:, :, None])


def _step(pixels: int) -> int:
    return max(1, MOST // pixels)
