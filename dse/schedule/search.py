"""The mapping of a layer on one design: the best tiling, its program, its prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.schedule.compiler import Program, compile_program
from dse.schedule.explore import BANKS, Integers, LayerSpace, Missing, Objective
from dse.schedule.predict import Prediction, predict
from dse.schedule.tiling import TilePlan
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import ceil_div
from sim.memory import MemoryTiming


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
    """The error for a layer of which no tile fits: the smallest tile's worst bank, what is missing, and a design that fits."""
    kind = missing.kind
    if kind is None:
        return InputError(str(missing), where="layer", value=str(layer), suggestion="use fewer columns, a narrower bus, or a psum RAM "
                          "(psum_bytes)")
    if kind == "parameter":
        return InputError(f"no tile fits: the parameter bank needs {missing.entries} entries and has {missing.there}", where="layer.K",
                          value=layer.K, suggestion="use more groups or fewer output channels")
    width, count = design.bank_width_bits(kind), design.bank_count(kind)
    needed_bytes = ceil_div(missing.entries * width * count, 8)
    there_bytes = missing.there * width * count // 8
    return InputError(f"no tile fits the {kind} banks: the smallest needs {needed_bytes} bytes, "
                      f"{needed_bytes - there_bytes} more than there are", where=f"design.{kind}_bytes",
                      value=getattr(design, f"{kind}_bytes"), allowed=f"at least {needed_bytes} for this layer",
                      suggestion=f"the nearest design that fits has {kind}_bytes={needed_bytes}")
