"""Best mappings of one layer on many designs that share an array and differ in their banks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dse.schedule.search import best_tiling
from dse.schedule.tiling import Tiling
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

Integers = NDArray[np.int64]
BANKS = ("input", "weight", "output", "psum")
"""The columns of an array of bank depths."""


class Objective(StrEnum):
    """What a mapping is chosen for."""

    BOTH = "both"  # fewest cycles; within 1 % of that, fewest bytes
    CYCLES = "cycles"  # fewest cycles, then fewest bytes
    BYTES = "bytes"  # fewest bytes, then fewest cycles


@dataclass(frozen=True)
class Mappings:
    """The best mapping of a layer for each of n bank configurations; arrays of length n, zero where not ``feasible``.

    ``reasons``: why not, by index, of the infeasible ones. ``tilings``: distinct tilings; ``tiling_index`` into them (-1: none).
    """

    feasible: NDArray[np.bool_]
    cycles: Integers
    beats_read: Integers
    beats_written: Integers
    issue_cycles: Integers
    compute_bound_cycles: Integers
    memory_bound_cycles: Integers
    drain_bound_cycles: Integers
    tiling_index: Integers
    tilings: tuple[Tiling, ...]
    reasons: dict[int, str]


class LayerSpace:
    """Every legal tiling of ``layer`` on the array of ``design``, whose bank sizes and clock do not matter.

    Raises InputError when the design cannot compute the layer whatever its banks.
    """

    def __init__(self, design: Design, layer: Layer) -> None:
        self.design, self.layer = design, layer

    def best(self, depths: Integers, timing: MemoryTiming, objective: Objective = Objective.BOTH) -> Mappings:
        """``depths``: (n, 4) entries of each bank, in the order of ``BANKS``; psum 0: none."""
        n = len(depths)
        zeros = {name: np.zeros(n, np.int64) for name in
                 ("cycles", "beats_read", "beats_written", "issue_cycles", "compute_bound_cycles", "memory_bound_cycles", "drain_bound_cycles")}
        index, tilings, reasons = np.full(n, -1), list[Tiling](), dict[int, str]()
        for at, row in enumerate(depths.tolist()):
            sizes = {}
            base = self.design.with_(psum_bytes=1 << 20) if row[3] else self.design.with_(psum_bytes=0)
            for kind, depth in zip(BANKS, row, strict=True):
                sizes[f"{kind}_bytes"] = -(-depth * base.bank_width_bits(kind) * base.bank_count(kind) // 8)
            try:
                choice = best_tiling(base.with_(**sizes), self.layer, timing, max_sizes=3)
            except InputError as error:
                reasons[at] = error.what
                continue
            for name in zeros:
                zeros[name][at] = getattr(choice.prediction, name)
            if choice.plan.tiling not in tilings:
                tilings.append(choice.plan.tiling)
            index[at] = tilings.index(choice.plan.tiling)
        return Mappings(index >= 0, **zeros, tiling_index=index, tilings=tuple(tilings), reasons=reasons)
