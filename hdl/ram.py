"""The RAM of a bank: whole block RAMs, or distributed RAM where a bank is shallow.

On Spartan-6 it is never the 9-Kb half, which has a silicon erratum in simple dual port (AR 34712). Yosys 0.70 takes two of them for one
18-Kb RAM only where that is cheaper (its costs are 65 and 129), so there a bank is made deep enough, and cut into slices where needed,
that it never is. The counts are those of synthesis, exactly (``tests/hdl/test_family.py``, ``tests/hdl/test_synthesis.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from boards.primitives import Family, RamKind
from hdl.family import DISTRIBUTED_WIDTHS, block_ram, block_rams, chosen_rams, distributed_rams

MIN_DISTRIBUTED_DEPTH = 16


@dataclass(frozen=True)
class RamShape:
    """A bank's RAM: ``depth`` entries (a power of two) in slices of ``slice_bits`` bits; ``blocks`` block RAMs in all, in units of
    :func:`hdl.family.block_ram`, or else ``cells`` of distributed RAM."""

    depth: int
    slice_bits: tuple[int, ...]
    blocks: int
    cells: int = 0


@lru_cache(maxsize=1 << 14)
def ram_shape(width_bits: int, entries: int, *, family: Family = Family.SPARTAN6, distributed_depth: int = 0) -> RamShape:
    """The smallest RAM that holds ``entries`` words of ``width_bits`` bits: distributed up to ``distributed_depth``, else block RAM."""
    depth = 1 << (entries - 1).bit_length()
    if max(depth, MIN_DISTRIBUTED_DEPTH) <= distributed_depth:
        depth = max(depth, MIN_DISTRIBUTED_DEPTH)
        return RamShape(depth, (width_bits,), 0, distributed_rams(family, width_bits, depth))
    depth = max(depth, least_depth(family))
    if family is Family.SPARTAN6:
        return _without_halves(width_bits, depth)
    return RamShape(depth, (width_bits,), block_rams(family, width_bits, depth))


def least_depth(family: Family) -> int:
    """Entries of the shallowest bank in block RAM: what one holds of its widest words."""
    return block_ram(family).widths[0][0]


def block_ram_depths(family: Family) -> list[int]:
    """Depths at which a block RAM is used whole, by width."""
    return [depth for depth, _ in block_ram(family).widths]


def can_distribute(family: Family) -> bool:
    return bool(DISTRIBUTED_WIDTHS[family])


def _without_halves(width_bits: int, depth: int) -> RamShape:
    """Spartan-6: deep enough, and in slices, so that two 9-Kb halves are nowhere cheaper than one whole RAM."""
    family, widths = Family.SPARTAN6, dict(block_ram(Family.SPARTAN6).widths)
    while True:
        count = -(-width_bits // widths[min(depth, max(widths))])
        base, wider = divmod(width_bits, count)
        for slices in ((width_bits,), (base + 1,) * wider + (base,) * (count - wider)):
            chosen = [chosen_rams(family, bits, depth) for bits in slices]
            if all(kind is RamKind.RAMB16 for kind, _ in chosen):
                return RamShape(depth, slices, sum(number for _, number in chosen))
        depth *= 2
