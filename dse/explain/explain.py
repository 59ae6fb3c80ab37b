"""Explains a prediction: every assumption and formula with its numbers, from MACs to cycles, bytes and frames a second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from boards.schema import Board
from dse.choose import board_timing
from dse.explain.derivation import Derivation, Step
from dse.explain.gains import explain_gains
from dse.explain.operands import explain_design, explain_folding, explain_layer, explain_memory
from dse.explain.phases import PARTS, explain_cycles
from dse.explain.results import explain_results
from dse.schedule.search import Choice
from hdl.design import Design
from hdl.layer import Layer
from sim.memory import MemoryTiming

FACTORS = ("columns_used", "rows_used", "lanes_used", "time_used")
"""Whose product is the utilisation."""


@dataclass(frozen=True)
class Explanation:
    """A mapping with the derivation of its prediction. ``steps``: facts and formulas in order, each over those before it."""

    workload: str
    board: str | None
    choice: Choice = field(repr=False)
    derivation: Derivation = field(repr=False)

    @property
    def design(self) -> Design:
        return self.choice.plan.design

    @property
    def layer(self) -> Layer:
        return self.choice.plan.layer

    @property
    def steps(self) -> list[Step]:
        return self.derivation.steps

    def sections(self) -> Iterator[tuple[str, list[Step]]]:
        """(title, steps) in order."""
        for title, steps in groupby(self.steps, key=lambda step: step.section):
            yield title, list(steps)

    @property
    def text(self) -> str:
        """What `nearmac explain` prints: a line a step, ``name = formula = numbers = value unit  [note]``; ``~`` stands before a value that
        is rounded to six digits."""
        head = [("workload", self.workload), ("board", self.board or "none"),
                ("design", f"{self.design.array} {self.design.precision}, {self.design.multiplier} multipliers"),
                ("mapping", f"{self.choice.plan.tiling}; the best of {self.choice.candidates:,} compared")]
        lines = [f"{name}: {value}" for name, value in head]
        for title, steps in self.sections():
            lines += ["", title, *(f"  {step.text}" for step in steps)]
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `nearmac explain --json`."""
        design, prediction, d = self.design, self.choice.prediction, self.derivation
        return {
            "workload": self.workload, "layer": self.layer.to_dict(), "board": self.board,
            "design": {**design.to_dict(), "precision": design.precision}, "tiling": str(self.choice.plan.tiling),
            "tilings_compared": self.choice.candidates, "macs": self.layer.macs, "cycles": prediction.cycles,
            "bytes_read": d["bytes_read"], "bytes_written": d["bytes_written"],
            "frames_per_s": float(d["frames_per_s"]), "bound": {"kind": prediction.bound[0], "cycles": prediction.bound[1]},
            "parts": {name: {"cycles": d[name], "meaning": meaning} for name, meaning in PARTS.items()},
            "utilization": {name: float(d[name]) for name in (*FACTORS, "utilization")},
            "steps": [step.to_dict() for step in self.steps],
        }


def explain(choice: Choice, board: Board, *, workload: str = "") -> Explanation:
    """The prediction of a mapping on a board, written out; and what one more of each resource would buy, searched again.

    :func:`dse.simulate.choose` makes the choice. Raises nothing of its own: a formula that differed from the prediction would be a bug.
    """
    timing = board_timing(board, choice.plan.design)
    derivation = derive(choice, timing, board)
    explain_gains(derivation, choice, board, timing)
    return Explanation(workload or str(choice.plan.layer), board.name, choice, derivation)


def derive(choice: Choice, timing: MemoryTiming, board: Board | None = None) -> Derivation:
    """All steps to the prediction of ``choice`` with memory of ``timing``; with a ``board`` its memory's figures too."""
    d, plan = Derivation(), choice.plan
    explain_layer(d, plan.design, plan.layer)
    explain_memory(d, plan.design, timing, board)
    explain_design(d, plan.design)
    explain_folding(d, plan.design, plan.layer)
    explain_cycles(d, plan, choice.program, choice.prediction)
    explain_results(d, plan, choice.prediction)
    return d
