"""Integers for numbers: of activations by their range, of weights channel by channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.workload.onnx_import.quantisation import integer_range

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Codes:
    """A tensor's integers for numbers: ``(integer - zero_point) * scale``."""

    bits: int
    signed: bool
    zero_point: int
    scale: float

    def encode(self, values: NDArray[Any]) -> Ints:
        """Nearest integers; 1 bit: the sign."""
        if self.bits == 1:
            return np.where(values >= 0, 1, -1).astype(np.int64)
        low, high = integer_range(self.bits, self.signed)
        return np.clip(np.rint(np.asarray(values, np.float64) / self.scale) + self.zero_point, low, high).astype(np.int64)


def quantised_weights(numbers: Reals, bits: int) -> tuple[Ints, Reals]:
    """Symmetric weights: one scale for each output channel (K,). 1 bit: signs, scaled by the mean magnitude."""
    rest = tuple(range(1, numbers.ndim))
    if bits == 1:
        scale = np.abs(numbers).mean(axis=rest)
        return np.where(numbers >= 0, 1, -1).astype(np.int64), np.where(scale > 0, scale, 1.0)
    top = (1 << bits - 1) - 1
    scale = np.abs(numbers).max(axis=rest) / top
    scale = np.where(scale > 0, scale, 1.0)
    return np.clip(np.rint(numbers / scale.reshape(-1, *(1,) * len(rest))), -top, top).astype(np.int64), scale


def calibrated(samples: list[NDArray[Any]], bits: int) -> Codes:
    """Integers for activations by their range over ``samples``: unsigned, 0 exactly one of them. 1 bit: signs, by the mean magnitude."""
    if bits == 1:
        mean = float(np.mean([np.abs(np.asarray(sample, np.float64)).mean() for sample in samples]))
        return Codes(1, True, 0, mean or 1.0)
    low = min(0.0, *(float(sample.min(initial=0)) for sample in samples))
    high = max(0.0, *(float(sample.max(initial=0)) for sample in samples))
    steps = (1 << bits) - 1
    scale = (high - low) / steps or 1.0
    return Codes(bits, False, round(-low / scale), scale)
