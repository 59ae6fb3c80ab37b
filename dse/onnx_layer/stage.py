"""The output stage of a layer, from what the model computes after it: one scale, offset and clamp a channel, as integers.

A layer's result is ``clamp(scale[k] * sum + offset[k], lo, hi)``, in numbers; ``sum`` is the array's integer sum. Normalisations, constant
factors and summands after the layer are in scale and offset.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.onnx_layer.arrange import Arrangement
from dse.workload.onnx_import.building import Building
from dse.workload.onnx_import.graph import Node
from hdl.design import MULTIPLIER_BITS, SHIFT_MAX

Reals = NDArray[np.float64]
PASSED = ("Identity", "Dropout", "Cast")


@dataclass(frozen=True)
class Affine:
    """``clamp(scale * x + offset, lo, hi)`` for each channel; ``output``: the tensor of the model that this is."""

    scale: Reals
    offset: Reals
    lo: float
    hi: float
    output: str

    def times(self, factor: Any) -> Affine:
        return replace(self, scale=self.scale * factor, offset=self.offset * factor)

    def plus(self, summand: Any) -> Affine:
        return replace(self, offset=self.offset + summand)


def after(building: Building, node: Node, place: Arrangement, folded: int) -> Affine:
    """What the model does to the results of ``node`` in ``folded`` operators that the network folds into the layer."""
    count = place.layer.K
    stage = Affine(np.ones(count), np.zeros(count), -math.inf, math.inf, node.outputs[0])
    while folded or _passes(building, stage.output):
        following = building.graph.readers[stage.output][0]
        if following.op not in PASSED:
            stage = _then(building, stage, following, place)
            folded -= 1
        stage = replace(stage, output=following.outputs[0])
    return stage


def _passes(building: Building, name: str) -> bool:
    readers = building.graph.readers.get(name, [])
    return len(readers) == 1 and readers[0].op in PASSED and name not in building.graph.outputs


def _then(building: Building, stage: Affine, node: Node, place: Arrangement) -> Affine:
    """``stage`` and then ``node``."""

    def values(name: str) -> Reals:
        return np.asarray(place.channels(np.asarray(building.constants.value(name), np.float64), "constant"), np.float64)

    if node.op in ("Relu", "Clip"):
        low, high = (0.0, math.inf) if node.op == "Relu" else (_limit(building, node, at) for at in (1, 2))
        return replace(stage, lo=max(stage.lo, low), hi=min(stage.hi, high))
    if node.op == "BatchNormalization":
        gamma, beta, mean, variance = (values(node.inputs[at]) for at in range(1, 5))
        factor = gamma / np.sqrt(variance + node.number("epsilon", 1e-5))
        return stage.plus(-mean).times(factor).plus(beta)
    constant = values(next(name for name in node.inputs if name != stage.output))
    if node.op == "Div" and not constant.all():
        raise InputError("division by 0", where=node.where)
    return {"Mul": lambda: stage.times(constant), "Div": lambda: stage.times(1 / constant), "Add": lambda: stage.plus(constant),
            "Sub": lambda: stage.plus(-constant)}[node.op]()


def _limit(building: Building, node: Node, at: int) -> float:
    if node.input(at):
        return float(building.constants.scalar(node.input(at), "a limit"))
    return node.number("min", -math.inf) if at == 1 else node.number("max", math.inf)


# -- as integers --------------------------------------------------------------------------------------------------------


def multipliers(ratio: Reals, where: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Multiplier and shift for each ratio: ``multiplier / 2**shift`` with as many bits as the multiplier has.

    Raises InputError for a ratio that is negative, no number, or 2**17 and more.
    """
    most = 1 << MULTIPLIER_BITS
    if not np.isfinite(ratio).all() or (ratio < 0).any() or (ratio >= most).any():
        worst = float(ratio[~(np.isfinite(ratio) & (ratio >= 0) & (ratio < most))][0])
        raise InputError("a scale that no output stage has", where=where, value=worst, allowed=f"0 to {most - 1} steps of the output a sum")
    fraction, exponent = np.frexp(ratio)
    shift = np.clip(MULTIPLIER_BITS - exponent, 0, SHIFT_MAX)
    multiplier = np.rint(np.ldexp(fraction, exponent + shift)).astype(np.int64)
    # Rounded up to the next power of two: one bit fewer, one place fewer.
    over = (multiplier == most) & (shift > 0)
    multiplier, shift = np.where(over, multiplier >> 1, multiplier), np.where(over, shift - 1, shift)
    return np.minimum(multiplier, most - 1), shift.astype(np.int64)


def clamp(stage: Affine, scale: float, zero_point: int, limits: tuple[int, int]) -> tuple[int, int]:
    """Ends of the output's integers within ``limits``: those of the type, and of the activation."""
    low, high = limits
    if stage.lo > -math.inf:
        low = max(low, min(round(stage.lo / scale) + zero_point, high))
    if stage.hi < math.inf:
        high = min(high, max(round(stage.hi / scale) + zero_point, low))
    return low, high
