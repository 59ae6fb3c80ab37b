"""Exact cycles and beats of all tilings of a layer, whether they fit the banks or not, structure by structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dse.schedule.axes import Floats, Sizes
from dse.schedule.closed_form import Run
from dse.schedule.explore import tiling_blocks
from dse.schedule.factors import Block
from dse.schedule.kernel import KernelGrid, library

MOST = 1 << 18
"""Tilings of a grid, if its row and column cuts are no more."""
SMALL = 1 << 13
"""The same with NumPy: what a processor's cache holds."""


@dataclass(frozen=True)
class Grid:
    """Every channel cut from ``first`` on of a block of tilings, with every row and column cut.

    ``cycles``, ``beats_read``: shape (channel cuts, row cuts, column cuts); ``beats_written``: (channel cuts, 1, 1), for it depends on
    nothing else. Whole numbers.
    """

    block: Block
    first: int
    cycles: Floats
    beats_read: Floats
    beats_written: Floats


def evaluate_grids(run: Run, sizes: Sizes = Sizes.EVEN, *, compiled: bool = True) -> Iterator[Grid]:
    """All tilings of a layer on a design, in grids of up to ``MOST``; ``compiled``: by the compiled kernel, where there is a compiler.

    As exact as :class:`dse.schedule.closed_form.ClosedForm`, by either way. The banks of the design do not matter.
    """
    kernel = library(build=True) if compiled else None
    for block in tiling_blocks(run, sizes):
        count, shape = len(block.channels.ts), (len(block.y.size), len(block.x.size))
        step = max(1, (SMALL if kernel is None else MOST) // (shape[0] * shape[1]))
        grid = None if kernel is None else KernelGrid(kernel, run, block.structure, block.channels, block.y, block.x)
        for start in range(0, count, step):
            stop = min(start + step, count)
            if grid is not None:
                yield Grid(block, start, *grid.figures(start, stop))
                continue
            form = block.grid(start, stop)
            cycles, read = (np.broadcast_to(values, (stop - start, shape[0] * shape[1])).reshape(-1, *shape)
                            for values in (form.cycles, form.beats_read))
            yield Grid(block, start, cycles, read, np.broadcast_to(form.stored_beats, (stop - start, 1))[:, :, None])
