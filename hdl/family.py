"""What Yosys 0.70 makes of products and banks on a device family: DSP blocks, block RAMs and cells of distributed RAM, counted exactly.

``tests/hdl/test_family.py`` holds the counts against synthesis. ``boards/primitives.py`` says what the blocks are; here is how synthesis
divides a product or a memory among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from boards.primitives import DSPS, FAMILIES, RAMS, Family, Ram, RamKind


@dataclass(frozen=True)
class DspRule:
    """One round of Yosys' ``mul2dsp``: products of at least these widths (the wider operand is a) go to blocks of ``a_bits`` x ``b_bits``.

    ``slice_bits``: of a wider operand's parts but the last, sign included; ``signed_only``: parts need a sign bit.
    """

    a_bits: int
    b_bits: int
    min_a: int = 2
    min_b: int = 2
    min_product: int = 0
    slice_bits: int = 0
    signed_only: bool = False


DSP_RULES = {
    Family.SPARTAN6: (DspRule(18, 18, min_product=9, signed_only=True),),
    Family.SERIES7: (DspRule(25, 18, min_product=9, slice_bits=18, signed_only=True),),
    Family.ULTRASCALE_PLUS: (DspRule(27, 18, min_product=9, slice_bits=18, signed_only=True),),
    Family.ECP5: (DspRule(18, 18),),
    Family.ICE40: (DspRule(16, 16, min_product=11),),
    Family.GOWIN: (DspRule(36, 36, 22, 22), DspRule(18, 18, 10, 4), DspRule(9, 9, 4, 4)),
}
"""The options that ``synth_xilinx``, ``synth_ecp5``, ``synth_ice40 -dsp`` and ``synth_gowin`` (gw1n, gw2a) pass to ``mul2dsp``."""

DISTRIBUTED_WIDTHS = {Family.SPARTAN6: {32: 6, 64: 3}, Family.SERIES7: {32: 6, 64: 3}, Family.ULTRASCALE_PLUS: {32: 14, 64: 7},
                      Family.ECP5: {16: 4}, Family.GOWIN: {16: 4}, Family.ICE40: {}}
"""Depth -> width of one cell of distributed RAM with a port that writes and one that reads."""


RAM_COST = {RamKind.RAMB16: 129, RamKind.RAMB8: 65, RamKind.RAMB36: 257, RamKind.RAMB18: 129, RamKind.DP16KD: 128,
            RamKind.SB_RAM40_4K: 64, RamKind.BSRAM: 128}
MUX_COST = 0.5
"""What Yosys' ``memory_libmap`` weighs: blocks, and a bit of each further choice between blocks side by side."""
ONE_BIT_WIDTHS = {RamKind.SB_RAM40_4K: (4096, 1)}
"""Widths beyond the block's own: iCE40's 16 bits can be written one by one."""


@lru_cache(maxsize=4096)
def dsp_blocks(family: Family, a_bits: int, b_bits: int) -> int:
    """DSP blocks of a signed product of ``a_bits`` x ``b_bits``; 0 where synthesis leaves all of it in look-up tables."""
    return _blocks(DSP_RULES[family], max(a_bits, b_bits), min(a_bits, b_bits), a_bits + b_bits)


def _blocks(rules: tuple[DspRule, ...], a: int, b: int, product: int) -> int:
    """The wide operand is cut first; each part goes on by the same rule, and what a rule does not take by the next."""
    if not rules:
        return 0
    rule = rules[0]
    if a < rule.min_a or b < rule.min_b or product < rule.min_product:
        return _blocks(rules[1:], max(a, b), min(a, b), product)
    sign = int(rule.signed_only)
    for is_a, width, most, other in ((True, a, rule.a_bits, b), (False, b, rule.b_bits, a)):
        if width > most:
            size = rule.slice_bits if is_a and rule.slice_bits else most
            count = (width - most + size - sign - 1) // (size - sign)
            last = width - count * (size - sign)
            parts = [(size, min(product, size + other))] * count + [(last, last + other)]
            return sum(_blocks(rules, *((part, b) if is_a else (a, part)), bits) for part, bits in parts)
    return 1


def dsp_operand_bits(family: Family) -> tuple[int, int]:
    """(wider, narrower) signed operand of one DSP block."""
    dsp = DSPS[FAMILIES[family].dsp]
    return dsp.a_bits, dsp.b_bits


def block_ram(family: Family) -> Ram:
    """The unit in which block RAMs of a family are counted: RAMB16, RAMB18 (a RAMB36 is two), DP16KD, SB_RAM40_4K, BSRAM."""
    ram = RAMS[FAMILIES[family].block_ram]
    return RAMS[ram.half] if ram.half is not None and family is not Family.SPARTAN6 else ram


@lru_cache(maxsize=1 << 16)
def chosen_rams(family: Family, width_bits: int, depth: int) -> tuple[RamKind, int]:
    """The block RAMs that synthesis chooses for a memory with one port that writes and one that reads; ``depth``: a power of two."""
    whole = FAMILIES[family].block_ram
    options = []
    for kind in (whole, RAMS[whole].half):
        if kind is None:
            continue
        shapes = (*RAMS[kind].widths, *([ONE_BIT_WIDTHS[kind]] if kind in ONE_BIT_WIDTHS else ()))
        for rows, width in shapes:
            if rows <= depth or rows == shapes[0][0]:
                banks = -(-depth // rows)
                count = -(-width_bits // width) * banks
                options.append((count * RAM_COST[kind] + MUX_COST * width_bits * (banks - 1), kind, count))
    _, kind, count = min(options)
    return kind, count


def block_rams(family: Family, width_bits: int, depth: int) -> int:
    """The same in units of :func:`block_ram`."""
    kind, count = chosen_rams(family, width_bits, depth)
    return -(-count * RAMS[kind].bits // block_ram(family).bits)


def distributed_rams(family: Family, width_bits: int, depth: int) -> int:
    """Cells of distributed RAM (RAM32M, RAM64M and the like) of a memory; ``depth``: a power of two."""
    sizes = DISTRIBUTED_WIDTHS[family]
    return min(-(-width_bits // width) * -(-depth // rows) for rows, width in sizes.items())
