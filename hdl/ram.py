"""Block RAM as a bank uses it: whole 18-Kb RAMs, never the 9-Kb half.

In simple dual port the 9-Kb half has a silicon erratum on Spartan-6 (AR 34712). Yosys 0.70 takes two of them for one 18-Kb RAM
only where that is cheaper (its costs are 65 and 129), so a bank is made deep enough, and cut into slices where needed, that it
never is. Measured with ``synth_xilinx -family xc6s`` (``tests/hdl/test_synthesis.py``): the count below is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDTHS_18KB = {512: 36, 1024: 18, 2048: 9, 4096: 4, 8192: 2, 16384: 1}
"""Depth -> widest word of one 18-Kb RAM (Xilinx UG383, simple dual port)."""
WIDTHS_9KB = {512: 18, 1024: 9, 2048: 4, 4096: 2, 8192: 1, 16384: 0}


@dataclass(frozen=True)
class RamShape:
    """A bank's RAM: ``depth`` entries (a power of two) in slices of ``slice_bits`` bits; ``blocks`` 18-Kb RAMs in all."""

    depth: int
    slice_bits: tuple[int, ...]
    blocks: int


def ram_shape(width_bits: int, entries: int) -> RamShape:
    """The smallest RAM of whole 18-Kb blocks that holds ``entries`` words of ``width_bits`` bits."""
    depth = max(512, 1 << (entries - 1).bit_length())
    while True:
        unit = min(depth, 16384)
        wide, half = WIDTHS_18KB[unit], WIDTHS_9KB[unit]
        count = -(-width_bits // wide)
        blocks = count * (depth // unit)
        if not half or -(-width_bits // half) >= 2 * count:
            return RamShape(depth, (width_bits,), blocks)
        if width_bits // count > half:
            base, wider = divmod(width_bits, count)
            return RamShape(depth, (base + 1,) * wider + (base,) * (count - wider), blocks)
        depth *= 2
