"""Which multipliers a design may have: what its precision, device family and array allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boards.primitives import FAMILIES
from hdl.choices import Accumulate, Multiplier, OutputMultiplier
from hdl.errors import InputError
from hdl.family import DSP_RULES, dsp_blocks, dsp_operand_bits
from hdl.multiply import DSP_OPERAND_BITS

if TYPE_CHECKING:
    from hdl.design import Design


def check_multiplier(design: Design) -> None:
    """Refuse multipliers that the precision, the family or the array does not allow. Raises InputError."""
    if design.is_xnor:
        if design.multiplier is not Multiplier.LUT:
            raise InputError("w1a1 uses XNOR-popcount and no multiplier", where="design.multiplier",
                             value=str(design.multiplier), allowed="lut")
        if design.accumulate is Accumulate.PER_COLUMN:
            raise InputError("w1a1 counts all columns together", where="design.accumulate",
                             value=str(design.accumulate), allowed="tree")
    elif design.multiplier is not Multiplier.LUT:
        pairs = design.multiplier is Multiplier.DSP_PAIR
        _check_block(design, design.pair_operand_bits if pairs else design.weight_operand_bits, pairs=pairs)
    if design.has_threshold_output and design.output_multiplier is not OutputMultiplier.SERIAL:
        raise InputError("1-bit outputs use thresholds and no output multiplier", where="design.output_multiplier",
                         value=str(design.output_multiplier), allowed="serial (nothing is built)")
    if design.output_multiplier is OutputMultiplier.DSP and dsp_operand_bits(design.family)[1] < DSP_OPERAND_BITS:
        raise InputError(f"the output stage multiplies by {DSP_OPERAND_BITS} bits, more than a DSP block of {design.family} takes",
                         where="design.output_multiplier", value=str(design.output_multiplier), allowed="serial, lut")


def _check_block(design: Design, weight_bits: int, *, pairs: bool) -> None:
    """Whether synthesis uses DSP blocks for products of ``weight_bits`` by an activation; one each where they are pairs'."""
    bits, (wide, narrow) = design.activation_operand_bits, dsp_operand_bits(design.family)
    if not dsp_blocks(design.family, weight_bits, bits):
        rule = DSP_RULES[design.family][-1]
        kept = f"under {rule.min_product} bits" if rule.min_product else f"of operands under {rule.min_a} bits"
        raise InputError(f"products of {weight_bits} x {bits} bits are too narrow for a DSP block (synthesis keeps products {kept} "
                         "in LUTs)", where="design.multiplier", value=str(design.multiplier), allowed="lut")
    if pairs and (weight_bits > wide or bits > narrow):
        raise InputError(f"two products of {design.precision} need a block of {weight_bits} x {bits} bits, more than the {wide} x {narrow} "
                         f"of {FAMILIES[design.family].dsp}", where="design.multiplier", value=str(design.multiplier), allowed="dsp, lut")
    if pairs and design.rows % 2:
        raise InputError("pairs of rows need an even number of them", where="design.rows", value=design.rows,
                         allowed="even, with dsp_pair", suggestion=f"{design.rows + 1}, or multiplier: dsp")
