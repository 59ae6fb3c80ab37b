"""Resources of a design: DSP blocks, block RAMs and distributed RAM exactly, look-up tables and flip-flops as an estimate.

The estimate counts what the design is made of (:mod:`dse.estimate.structure`) and weighs it with coefficients that are fitted to synthesis
for each family (:mod:`dse.estimate.calibration`). How good it is: ``docs/resources.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from boards.schema import Board
from dse.estimate.calibration import calibration
from dse.estimate.structure import Counts, Number, entry_bits, flip_flops, look_up_tables
from hdl.design import Design
from hdl.errors import InputError
from hdl.family import block_ram


@dataclass(frozen=True)
class Resources:
    """``dsps``, ``block_rams`` (in units of :func:`hdl.family.block_ram`) and ``distributed_rams`` (cells) are exactly those of synthesis;
    ``luts`` and ``ffs`` are estimates (LUT1 to LUT6, ECP5's CCU2C as two, those that are RAM apart)."""

    luts: int
    ffs: int
    dsps: int
    block_rams: int
    distributed_rams: int = 0


@lru_cache(maxsize=4096)
def estimate_resources(design: Design) -> Resources:
    """What a design takes of a device of its family."""
    luts, ffs = estimate_logic(design, entry_bits(design))
    return Resources(luts, ffs, design.dsps, design.block_rams, design.distributed_rams)


def estimate_logic(design: Design, entries: Mapping[str, Number]) -> tuple[Number, Number]:
    """(look-up tables, flip-flops) of a design whose banks have entries of so many address bits.

    ``entries``: by kind, as :func:`dse.estimate.structure.entry_bits` has them; numbers, or arrays of one length, and then the results
    are arrays, too. The bank sizes of ``design`` itself do not count.
    """
    costs = calibration(design.family)
    return _weighed(look_up_tables(design, entries), costs.luts), _weighed(flip_flops(design, entries), costs.ffs)


def _weighed(counts: Counts, costs: Mapping[str, float]) -> Number:
    total: Number = sum(costs[name] * count for name, count in counts.items())
    return np.rint(total).astype(np.int64) if isinstance(total, np.ndarray) else round(total)


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
