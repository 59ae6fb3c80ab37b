"""Families of design points: one array, bus and clock, and every configuration of its banks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boards.primitives import Family as DeviceFamily
from boards.schema import Board
from dse.schedule.banks import BANKS
from dse.sweep.axis import MAX_BANK_BYTES
from hdl.design import MAX_BANK_DEPTH, Design
from hdl.ram import ram_shape

if TYPE_CHECKING:
    from dse.sweep.space import Space
    from dse.sweep.workload import Workload

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Family:
    """Points that differ in their bank sizes alone.

    ``design``: the first point. ``banks``: (n, 4) bytes of each kind, in the order of ``BANKS``. ``first_index``: of the first point,
    counted over all families of a sweep.
    """

    board: str
    design: Design
    banks: Integers
    first_index: int

    def __len__(self) -> int:
        return len(self.banks)

    def point(self, at: int) -> Design:
        """The design of row ``at``."""
        return self.design.with_(**bank_sizes(self.banks[at]))

    def depths(self) -> Integers:
        """(n, 4) entries of each bank: ``Design.bank_depth`` of every point; 0 where there is no psum RAM."""
        return np.stack([bank_shapes(self.design, kind, self.banks[:, at])[0] for at, kind in enumerate(BANKS)], axis=1)

    def entry_bits(self) -> dict[str, Integers]:
        """Kind of bank -> (n,) bits of its entries' addresses: what :func:`dse.estimate.resources.estimate_logic` takes."""
        return entry_bits(dict(zip(BANKS, self.depths().T, strict=True)))

    def block_rams(self) -> Integers:
        """(n,) block RAMs: ``Design.block_rams`` of every point."""
        rams = [bank_shapes(self.design, kind, self.banks[:, at])[1] for at, kind in enumerate(BANKS)]
        return fixed_block_rams(self.design) + np.sum(rams, axis=0)


def families(space: Space, board: Board, workload: Workload, *, first_index: int = 0) -> list[Family]:
    """Every point of ``space`` on ``board``, in an order that depends on nothing else. Families that share layer searches are neighbours.

    ``workload`` decides the width of the accumulators, where the space leaves it open.
    """
    return space.enumerate(board, workload, first_index=first_index).families


def bank_sizes(row: Any) -> dict[str, int]:
    """``Design`` fields from bytes of each kind, in the order of ``BANKS``."""
    return {f"{kind}_bytes": int(size) for kind, size in zip(BANKS, row, strict=True)}


def fixed_block_rams(design: Design) -> int:
    """Block RAMs that are not banks of data."""
    return design.bank_rams("parameter") + design.bank_rams("program")


def entry_bits(depths: dict[str, Integers]) -> dict[str, Integers]:
    """Address bits of entries from their number, a power of two by kind; 0 where there are none."""
    return {kind: np.maximum(np.frexp(values)[1] - 1, 0) for kind, values in depths.items()}


def bank_shapes(design: Design, kind: str, sizes_bytes: Integers) -> tuple[Integers, Integers]:
    """(entries of each bank, block RAMs of all banks) of ``kind``, for total sizes in bytes.

    No psum RAM has 0 and 0. Sizes that ``Design`` refuses have -1 entries.
    """
    count, width = design.bank_count(kind), design.bank_width_bits(kind)
    sizes, back = np.unique(sizes_bytes, return_inverse=True)
    depths, rams = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    for at, size in enumerate(sizes.tolist()):
        if not (0 if kind == "psum" else 1) <= size <= MAX_BANK_BYTES:
            depths[at] = -1
        elif size:
            depths[at], blocks = _shape(width, size * 8 // (count * width), design.family, design.distributed_depth)
            rams[at] = blocks * count
    return depths[back], rams[back]


@lru_cache(maxsize=1 << 16)
def _shape(width_bits: int, entries: int, family: DeviceFamily, distributed_depth: int) -> tuple[int, int]:
    """(depth, blocks) of one bank; (-1, 0) for one that cannot be."""
    if not 1 <= entries <= MAX_BANK_DEPTH:
        return -1, 0
    shape = ram_shape(width_bits, entries, family=family, distributed_depth=distributed_depth)
    return (shape.depth, shape.blocks) if shape.depth <= MAX_BANK_DEPTH else (-1, 0)
