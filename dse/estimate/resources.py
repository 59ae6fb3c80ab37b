"""Resources of a design: DSP blocks and block RAMs exactly, LUTs and FFs as a rough estimate.

The LUT and FF figures are fitted by hand to a few syntheses (Yosys 0.70, ``synth_xilinx -family xc6s``; `benchmarks/area.py`): up
to 30 % above what synthesis gives, enough to leave out arrays that cannot fit. They are estimates, and every output says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log2

from boards.schema import Board
from hdl.design import Accumulate, Design, Multiplier, OutputMultiplier
from hdl.errors import InputError
from hdl.family import block_ram
from hdl.mapping import ceil_div

CONTROL_LUTS = 1200
"""Sequencer, issue unit, memory channel, counters apart."""
COUNTER_LUTS = 260
CONTROL_FFS = 2600
CHAINING_LUTS, CHAINING_LUTS_A_LANE = 153, 65  # the second is of each lane but the first
CHAINING_FFS, CHAINING_FFS_A_LANE = 129, 55
"""As synthesised with and without: 149 look-up tables and 126 flip-flops more for 4x4x1, 239 and 245 for 2x2x2, 348 and 290 for 2x2x4."""
OUTPUT_LUTS = {OutputMultiplier.SERIAL: 200, OutputMultiplier.DSP: 150, OutputMultiplier.LUT: 800}


@dataclass(frozen=True)
class Resources:
    """``dsps`` and ``block_rams`` (in units of :func:`hdl.family.block_ram`) are exact; ``luts`` and ``ffs`` are rough estimates, of
    Spartan-6 at that."""

    luts: int
    ffs: int
    dsps: int
    block_rams: int


def estimate_resources(design: Design) -> Resources:
    luts = CONTROL_LUTS + (COUNTER_LUTS if design.counters else 0) + _array_luts(design) + _drain_luts(design)
    ffs = CONTROL_FFS + 14 * design.lanes + _array_ffs(design) + 120 * design.drains
    if design.chaining:
        luts += CHAINING_LUTS + CHAINING_LUTS_A_LANE * (design.lanes - 1)
        ffs += CHAINING_FFS + CHAINING_FFS_A_LANE * (design.lanes - 1)
    return Resources(int(luts), int(ffs), design.dsps, design.block_rams)


def _array_luts(design: Design) -> float:
    dots, cols, width = design.rows * design.lanes, design.cols, design.accumulator_bits
    readout = design.drains * width * ceil_div(design.drain_steps, 4) * 0.7
    if design.is_xnor:
        return dots * (2.1 * cols + 12) + design.lanes * 20 + readout
    multiply = 0.0
    if design.multiplier is Multiplier.LUT:
        multiply = design.macs_per_cycle * lut_multiplier_luts(design.weight_bits, design.activation_bits)
    operands = design.lanes * cols * (design.activation_bits + 1) + design.rows * cols
    if design.accumulate is Accumulate.TREE:
        adders = dots * ((cols - 1) * (design.product_bits + log2(max(2, cols)) / 2) + width)
        return multiply + operands + adders + readout
    adders = 0 if design.multiplier is Multiplier.DSP else design.macs_per_cycle * width
    return multiply + operands + adders + readout * cols + design.drains * (cols - 1) * width


def lut_multiplier_luts(weight_bits: int, activation_bits: int) -> float:
    """Rows of partial products, the first level of which adds two rows a LUT."""
    if weight_bits == 1 or activation_bits == 1:
        return weight_bits + activation_bits + 1
    rows = weight_bits
    return (rows - 1) * (activation_bits + 3)


def _array_ffs(design: Design) -> float:
    dots, cols, width = design.rows * design.lanes, design.cols, design.accumulator_bits
    if design.is_xnor:
        return dots * (1.1 * cols + 2 * width) + design.rows * cols + design.lanes * cols
    operands = design.rows * cols * design.weight_operand_bits + design.lanes * cols * design.activation_operand_bits
    if design.accumulate is Accumulate.PER_COLUMN:
        return operands + design.macs_per_cycle * width
    return operands + dots * ((cols - 1) * (design.product_bits + 1) + 2 * width)


def _drain_luts(design: Design) -> float:
    if design.has_threshold_output:
        return design.drains * 2 * design.accumulator_bits
    return design.drains * (OUTPUT_LUTS[design.output_multiplier] + design.accumulator_bits + 40)


@lru_cache(maxsize=256)
def usable(board: Board) -> dict[str, int]:
    """What a design may use of a board: luts, ffs, dsps, and block RAMs in units of :func:`hdl.family.block_ram`."""
    under = board.usable
    return {"dsps": under["dsps"], "block_rams": under["block_rams"] * board.device.block_ram_bits // block_ram(board.device.family).bits,
            "luts": under["luts"], "ffs": under["ffs"]}


def overshoot(design: Design, board: Board) -> dict[str, tuple[int, int]]:
    """Resource -> (used, usable under the board's ceilings), for those that do not suffice."""
    used, have = estimate_resources(design), usable(board)
    need = {"dsps": used.dsps, "block_rams": used.block_rams, "luts": used.luts, "ffs": used.ffs}
    return {name: (need[name], have[name]) for name in need if need[name] > have[name]}


def check_fits(design: Design, board: Board) -> None:
    """Raise InputError when the design exceeds the board: which resource, by how much; or is made for another family."""
    if design.family != board.device.family:
        raise InputError(f"the design is for another family than {board.name}", where="design.family", value=str(design.family),
                         allowed=str(board.device.family))
    over = overshoot(design, board)
    if over:
        parts = [f"{name.replace('_', ' ')}: {need} of {have} usable ({'estimate, ' if name in ('luts', 'ffs') else ''}"
                 f"{need - have} too many)" for name, (need, have) in over.items()]
        raise InputError(f"the design does not fit {board.name}: " + "; ".join(parts), where="--design",
                         suggestion="use a smaller array or smaller buffers, or another board")
