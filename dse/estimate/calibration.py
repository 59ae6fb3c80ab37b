"""The estimator's coefficients, fitted to synthesis, and how far off they were on designs that the fit never saw.

``calibration.json`` is data that ``benchmarks/resources.py fit`` writes; it names that command and the version of Yosys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from boards.primitives import Family

DATA = Path(__file__).with_name("calibration.json")
LEAST_HELD_OUT = 40
"""Designs that calibration never saw without which an estimate is called rough."""
BOUNDS = (0.05, 0.12, 0.20)
"""Relative errors over these designs that an estimate keeps: median, nine in ten, worst."""


@dataclass(frozen=True)
class Errors:
    """Relative errors of held-out designs: ``median``, ``p90`` (nine in ten are no larger) and ``worst``."""

    median: float
    p90: float
    worst: float

    @property
    def within_bounds(self) -> bool:
        return all(error <= bound for error, bound in zip((self.median, self.p90, self.worst), BOUNDS, strict=True))


@dataclass(frozen=True)
class Calibration:
    """Of one family.

    ``luts``, ``ffs``: cost of each count of :mod:`dse.estimate.structure`. ``training``, ``held_out``: designs that were synthesised to fit
    it, to check it; where there are none of these ``errors`` is empty. ``errors``: by ``"luts"`` and ``"ffs"``.
    """

    family: Family
    luts: Mapping[str, float]
    ffs: Mapping[str, float]
    training: int
    held_out: int
    errors: Mapping[str, Errors]

    @property
    def rough(self) -> bool:
        """Not shown, by enough designs, to keep :data:`BOUNDS`."""
        return self.held_out < LEAST_HELD_OUT or not all(errors.within_bounds for errors in self.errors.values())

    @property
    def label(self) -> str:
        """What a table says of figures of this family: an estimate, and how good it was."""
        if not self.errors:
            return "rough estimate, unchecked"
        nine = max(errors.p90 for errors in self.errors.values())
        return f"{'rough ' if self.rough else ''}estimate, nine in ten within {nine:.0%}"


@lru_cache(maxsize=1)
def _data() -> dict[str, dict[str, object]]:
    families: dict[str, dict[str, object]] = json.loads(DATA.read_text())["families"]
    return families


@lru_cache(maxsize=len(Family))
def calibration(family: Family) -> Calibration:
    """The coefficients of a family."""
    data = dict(_data()[family])
    errors = {name: Errors(**values) for name, values in data.pop("errors").items()}  # type: ignore[attr-defined]
    return Calibration(family=family, errors=errors, **data)  # type: ignore[arg-type]
