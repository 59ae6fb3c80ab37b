"""A layer of a model against ONNX Runtime: the difference of every output, and the noise that quantisation adds, by precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.errors import InputError
from dse.onnx_layer.codes import Ints, Reals
from dse.onnx_layer.prepare import LayerValues, Prepared, prepare
from dse.onnx_layer.runtime import runtime_version
from hdl.design import ELEMENT_BITS, Design, Multiplier
from sim.golden import accumulate, golden

TOLERANCE_LSB = 1
"""ONNX Runtime requantises in floating point and rounds halves to even; the output stage multiplies and shifts, and rounds them up."""


@dataclass(frozen=True)
class NoiseRow:
    """Signal-to-noise ratios of a layer whose weights and activations have ``bits``, in dB; ``None`` where there is no noise at all.

    ``operands_db``: weights and inputs quantised, sums and outputs exact; ``output_db``: outputs as the hardware writes them.
    ``refused``: why the array cannot compute it.
    """

    bits: int
    operands_db: float | None = None
    output_db: float | None = None
    refused: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"bits": self.bits, "operands_db": self.operands_db, "output_db": self.output_db, "refused": self.refused or None}


@dataclass(frozen=True)
class OnnxComparison:
    """The hardware's outputs beside ONNX Runtime's, in steps of the output's integers (LSB).

    ``differing``: outputs that are not equal; ``largest_lsb``: the largest difference. ``noise``: for layers that the model does not
    quantise, the noise at each precision. ``output_db``: the signal-to-noise ratio of this run.
    """

    tensor: str
    reference: str
    is_quantised: bool
    outputs: int
    differing: int
    largest_lsb: int
    output_db: float | None
    samples: int
    noise: tuple[NoiseRow, ...] = ()

    @property
    def matches(self) -> bool:
        """Every output of a quantised layer is within one step. Layers that we quantise differ by that, and nothing is wrong."""
        return not self.is_quantised or self.largest_lsb <= TOLERANCE_LSB

    def to_dict(self) -> dict[str, Any]:
        """``onnx`` in the object of `nearmac simulate --json`."""
        return {"tensor": self.tensor, "reference": self.reference, "is_quantised": self.is_quantised, "outputs": self.outputs,
                "differing_outputs": self.differing, "largest_difference_lsb": self.largest_lsb, "tolerance_lsb": TOLERANCE_LSB,
                "within_tolerance": self.matches, "output_db": self.output_db, "samples": self.samples,
                "noise": [row.to_dict() for row in self.noise]}


def compare(values: LayerValues, prepared: Prepared, output: Ints, *, with_noise: bool = True) -> OnnxComparison:
    """``output`` (B, K, OY, OX) of the hardware for ``prepared``, beside what ONNX Runtime says."""
    difference = np.abs(output - prepared.expected)
    signal = np.asarray(values.place.output(values.read(values.stage.output)), np.float64)
    rows = () if prepared.is_quantised or not with_noise else tuple(noise(values, bits) for bits in reversed(ELEMENT_BITS))
    return OnnxComparison(
        prepared.tensor, f"ONNX Runtime {runtime_version()}", prepared.is_quantised, output.size, int((difference > 0).sum()),
        int(difference.max(initial=0)), ratio_db(signal, prepared.decode(output)), len(values.runtime.samples), rows)


def noise(values: LayerValues, bits: int) -> NoiseRow:
    """The layer with ``bits`` for weights and activations, through the golden model."""
    try:
        prepared = prepare(values, bits, bits)
        signal = np.asarray(values.place.output(values.read(values.stage.output)), np.float64)
        output = golden(golden_design(prepared), prepared.layer, prepared.tensors)
    except InputError as error:
        return NoiseRow(bits, refused=str(error))
    return NoiseRow(bits, ratio_db(signal, exact_output(prepared)), ratio_db(signal, prepared.decode(output)))


def exact_output(prepared: Prepared) -> Reals:
    """The layer's results as numbers, with exact sums of the quantised operands."""
    stage = prepared.stage
    sums = accumulate(prepared.layer, prepared.tensors).astype(np.float64)
    shape = (1, -1, 1, 1)
    return np.asarray(np.clip(sums * stage.scale.reshape(shape) + stage.offset.reshape(shape), stage.lo, stage.hi))


def ratio_db(signal: Reals, found: Reals) -> float | None:
    """10 * log10(sum of squares of the signal / sum of squares of the difference); ``None`` where one of them is 0."""
    power, noise_power = float(np.square(signal).sum()), float(np.square(signal - found).sum())
    if not noise_power:
        return None
    return 10 * math.log10(power / noise_power) if power else None


def golden_design(prepared: Prepared) -> Design:
    """The smallest design that computes the layer: the golden model needs its widths only."""
    return Design(rows=1, cols=1, weight_bits=prepared.weight_bits, activation_bits=prepared.activation_bits,
                  accumulator_bits=prepared.accumulator_bits, multiplier=Multiplier.LUT)
