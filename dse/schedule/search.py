"""The mapping of a layer on one design: the best tiling, its program, its prediction."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dse.schedule.banks import BANKS
from dse.schedule.compiler import Program, compile_program
from dse.schedule.explore import Integers, LayerSpace, Missing, Objective
from dse.schedule.predict import Prediction, predict
from dse.schedule.tiling import TilePlan
from hdl.design import FIXED_DEPTHS, MAX_BANK_DEPTH, Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import ceil_div
from hdl.ram import ram_shape
from hdl.timing import MIN_MEMORY_LATENCY_CYCLES
from sim.memory import MemoryTiming

MOST_TRIED = 4
"""Designs of which :func:`nearest_fit` finds out whether they fit."""


@dataclass(frozen=True)
class Choice:
    """The mapping chosen: plan, program, prediction, and how many tilings were compared."""

    plan: TilePlan
    program: Program
    prediction: Prediction
    candidates: int

    @property
    def bytes(self) -> int:
        moved = self.prediction.beats_read + self.prediction.beats_written
        return moved * self.plan.design.bus_bits // 8


def bank_depths(design: Design) -> Integers:
    """Entries of each bank, in the order of ``BANKS``."""
    return np.array([design.bank_depth(kind) if kind in design.bank_kinds else 0 for kind in BANKS], np.int64)


def best_tiling(design: Design, layer: Layer, timing: MemoryTiming, *, objective: Objective = Objective.BOTH) -> Choice:
    """The best mapping of all that fit, by exact prediction.

    Raises InputError when the design cannot compute the layer, or no tile of it fits the banks: which bank, and what is missing.
    """
    best = LayerSpace(design, layer).best(bank_depths(design)[None, :], timing, objective)
    if not best.feasible[0]:
        raise does_not_fit(design, layer, best.reasons[0])
    plan = TilePlan(design, layer, best.tilings[0])
    program = compile_program(plan)
    prediction = predict(plan, program, timing)
    assert (prediction.cycles, prediction.beats_read, prediction.beats_written) == (
        best.cycles[0], best.beats_read[0], best.beats_written[0]), "closed form and prediction differ"
    return Choice(plan, program, prediction, best.compared)


def does_not_fit(design: Design, layer: Layer, missing: Missing) -> InputError:
    """The error for a layer of which no tile fits: every bank that is too small for the closest one, and a design that fits."""
    fitting = nearest_fit(design, layer)
    if fitting is None:
        then = "use fewer columns, a narrower bus, more groups, or fewer output channels"
    else:
        changed = [name for name in (f"{kind}_bytes" for kind in BANKS) if getattr(fitting, name) != getattr(design, name)]
        values = ", ".join(f"{name}={getattr(fitting, name)}" for name in changed)
        more = fitting.block_rams - design.block_rams
        then = f"it fits with {values} ({more} block RAM{'s' if more != 1 else ''} more)"
    if not missing.banks:
        return InputError(missing.summary, where="layer", value=str(layer), suggestion=then)
    needs = " and ".join(_need(design, *bank) for bank in missing.banks)
    worst = missing.banks[0][0]
    return InputError(f"{missing.summary}: the closest needs {needs}", where="layer.K" if worst == "parameter" else f"design.{worst}_bytes",
                      suggestion=then)


def _need(design: Design, kind: str, entries: int, there: int) -> str:
    """"13440 bytes of weight (4096 asked for, whole block RAMs hold 7680)"."""
    if kind == "parameter":
        return f"{entries} {kind} entries ({there} there)"
    bits = design.bank_width_bits(kind) * design.bank_count(kind)
    asked, held = getattr(design, f"{kind}_bytes"), there * bits // 8
    present = f"{asked} asked for, whole block RAMs hold {held}" if held != asked else f"{held or 'none'} there"
    return f"{ceil_div(entries * bits, 8)} bytes of {kind} ({present})"


def nearest_fit(design: Design, layer: Layer) -> Design | None:
    """The design with banks so much larger, or a psum RAM, that a tile of the layer fits: of those found the one with the fewest
    block RAMs. None: there is none."""
    timing = MemoryTiming.from_fraction(MIN_MEMORY_LATENCY_CYCLES, Fraction(1))  # whether a tile fits does not depend on it
    least_psum = ceil_div(design.accumulator_bits * design.drains, 8)
    found: list[Design] = []
    for base in (design,) if design.psum_bytes else (design, design.with_(psum_bytes=least_psum)):
        needs = LayerSpace(base, layer).smallest_needs(timing)
        possible = (needs[:4] <= MAX_BANK_DEPTH).all(axis=0) & (needs[4] <= FIXED_DEPTHS["parameter"])
        wanted = np.maximum(needs[:4, possible], bank_depths(design)[:, None])
        powers = 1 << np.ceil(np.log2(np.maximum(wanted, 1))).astype(np.int64)  # what block RAMs are made for
        for depths in np.unique(powers, axis=1).T.tolist():
            grown = {f"{kind}_bytes": _held_bytes(base, kind, depth) for kind, depth in zip(BANKS, depths, strict=True)
                     if kind in base.bank_kinds and depth > (design.bank_depth(kind) if kind in design.bank_kinds else 0)}
            with suppress(InputError):  # no such banks
                found.append(base.with_(**grown))
    for option in sorted(found, key=lambda option: option.block_rams)[:MOST_TRIED]:
        if LayerSpace(option, layer).best(bank_depths(option)[None, :], timing, Objective.BYTES).feasible[0]:
            return option
    return None


def _held_bytes(design: Design, kind: str, depth: int) -> int:
    """What the whole block RAMs of all banks of a kind hold at so many entries."""
    width = design.bank_width_bits(kind)
    return ceil_div(ram_shape(width, depth).depth * width * design.bank_count(kind), 8)
