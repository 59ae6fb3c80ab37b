"""What Yosys 0.70 makes of products and banks on a device family: DSP blocks, block RAMs and cells of distributed RAM, counted exactly.

``tests/hdl/test_family.py`` holds the counts against synthesis. ``boards/primitives.py`` says what the blocks are; here is how synthesis
divides a product or a memory among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from boards.primitives import DSPS, FAMILIES, RAMS, Family, Ram


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


BLOCK_COST = {family: 64 if family is Family.ICE40 else 128 for family in Family}
MUX_COST = 0.5
"""What Yosys' ``memory_libmap`` weighs: a block, and a bit of each further choice between blocks side by side."""
ONE_BIT_WIDTHS = {Family.ICE40: {4096: 1}}
"""Widths beyond the block's own: iCE40's 16 bits can be written one by one."""


@lru_cache(maxsize=4096)
def dsp_blocks(family: Family, a_bits: int, b_bits: int) -> int:
    """DSP blocks of a signed product of ``a_bits`` x ``b_bits``; 0 where synthesis leaves all of it in look-up tables."""
    for rule in DSP_RULES[family]:
        blocks = _blocks(rule, max(a_bits, b_bits), min(a_bits, b_bits), a_bits + b_bits)
        if blocks:
            return blocks
    return 0


def _blocks(rule: DspRule, a: int, b: int, product: int) -> int:
    if a < rule.min_a or b < rule.min_b or product < rule.min_product:
        return 0
    sign = int(rule.signed_only)
    for width, most in ((a, rule.a_bits), (b, rule.b_bits)):
        if width <= most:
            continue
        size = (rule.slice_bits if width == a and rule.slice_bits else most)
        count = (width - most + size - sign - 1) // (size - sign)
        last = width - count * (size - sign)
        parts = [(size, product)] * count + [(last, 0)]
        if width == a:
            return sum(_blocks(rule, part, b, min(whole or part + b, b + part)) for part, whole in parts)
        return sum(_blocks(rule, a, part, min(whole or part + a, a + part)) for part, whole in parts)
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
def block_rams(family: Family, width_bits: int, depth: int) -> int:
    """Block RAMs, in units of :func:`block_ram`, of a memory with one port that writes and one that reads; ``depth``: a power of two."""
    kind = FAMILIES[family].block_ram
    unit = block_ram(family).bits
    options = []
    for ram in {kind, RAMS[kind].half or kind}:
        blocks = RAMS[ram].bits // unit
        widths = dict(RAMS[ram].widths)
        for rows, width in {**widths, **ONE_BIT_WIDTHS.get(family, {})}.items():
            if rows <= depth or rows == min(widths):
                banks = -(-depth // rows)
                count = -(-width_bits // width) * banks * blocks
                options.append((count * BLOCK_COST[family] + MUX_COST * width_bits * (banks - 1), count))
    return min(options)[1]


def distributed_rams(family: Family, width_bits: int, depth: int) -> int:
    """Cells of distributed RAM (RAM32M, RAM64M and the like) of a memory; ``depth``: a power of two."""
    sizes = DISTRIBUTED_WIDTHS[family]
    return min(-(-width_bits // width) * -(-depth // rows) for rows, width in sizes.items())
