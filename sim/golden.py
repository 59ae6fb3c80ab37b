"""The NumPy golden model: exact integer convolution and output stage, independent of the hardware generators."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdl.compatibility import accumulation_bound, bias_limit, check_layer, element_range, output_range
from hdl.design import MULTIPLIER_BITS, SHIFT_MAX, Design
from hdl.errors import InputError
from hdl.layer import Layer

Ints = NDArray[np.int64]
MAX_ELEMENTS = 1 << 27  # of one tensor: 1 GiB as int64
EXACT_FLOAT = 1 << 53  # float64 holds every integer up to here
EXACT_INT = 1 << 63


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerTensors:
    """What a layer reads: integer values, not encodings (a 1-bit tensor holds -1 and +1), all int64.

    Parameters
    ----------
    input: (B, C, IY, IX), weight: (K, C/G, FY, FX).
    bias: (K,), in steps of the accumulator; 0 where outputs are 1 bit (thresholds do its work).
    multiplier, shift: (K,), of the output stage, 0 to 2**17 - 1 and 0 to 47; unused where outputs are 1 bit.
    threshold, flip: (K,), for 1-bit outputs only: ``acc >= threshold``, inverted where ``flip`` is 1.
    """

    input: Ints
    weight: Ints
    bias: Ints
    multiplier: Ints
    shift: Ints
    threshold: Ints | None = None
    flip: Ints | None = None

    def arrays(self) -> dict[str, Ints]:
        """The tensors that are there, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in values.items() if array is not None}


# -- computing --------------------------------------------------------------------------------------------------------


def golden(design: Design, layer: Layer, tensors: LayerTensors) -> Ints:
    """Outputs (B, K, OY, OX) of ``layer``, bit for bit what the hardware stores; ``tensors`` as :func:`check_tensors` wants."""
    acc = accumulate(layer, tensors)
    if design.has_threshold_output:
        if tensors.threshold is None or tensors.flip is None:
            raise InputError("1-bit outputs need threshold and flip", where="tensors")
        return binarize(acc, tensors.threshold, tensors.flip)
    acc += tensors.bias[None, :, None, None]
    low, high = output_range(design, layer)
    return requantize(acc, tensors.multiplier, tensors.shift, layer.output_zero_point, low, high)


def accumulate(layer: Layer, tensors: LayerTensors) -> Ints:
    """Sums of products (B, K, OY, OX), without bias: exact direct convolution, in which padded taps contribute nothing."""
    groups = layer.G
    # Channels first, so that one tap of one group is a matrix product (K/G x C/G) by (C/G x B*OY*OX).
    shifted = tensors.input.transpose(1, 0, 2, 3) - layer.input_zero_point
    kind = _exact_type(layer.reduction_length, shifted, tensors.weight)
    padded: NDArray[Any] = np.zeros((layer.C, layer.B, layer.IY + layer.PT + layer.PB, layer.IX + layer.PL + layer.PR), kind)
    padded[:, :, layer.PT:layer.PT + layer.IY, layer.PL:layer.PL + layer.IX] = shifted
    weight: NDArray[Any] = tensors.weight.reshape(groups, layer.K // groups, layer.C // groups, layer.FY, layer.FX).astype(kind)
    acc: NDArray[Any] = np.zeros((groups, layer.K // groups, layer.B * layer.OY * layer.OX), kind)
    for fy in range(layer.FY):
        top = fy * layer.DY
        rows = slice(top, top + (layer.OY - 1) * layer.SY + 1, layer.SY)
        for fx in range(layer.FX):
            left = fx * layer.DX
            window = padded[:, :, rows, left:left + (layer.OX - 1) * layer.SX + 1:layer.SX]
            acc += weight[..., fy, fx] @ window.reshape(groups, layer.C // groups, -1)
    result = acc.astype(np.int64).reshape(layer.K, layer.B, layer.OY, layer.OX)
    return np.ascontiguousarray(result.transpose(1, 0, 2, 3))


def requantize(acc: Ints, multiplier: Ints, shift: Ints, zero_point: int, low: int, high: int) -> Ints:
    """``clamp(((acc * multiplier[k] + 2**(shift[k]-1)) >> shift[k]) + zero_point, low, high)`` of ``acc`` (B, K, ...), with bias.

    ``>>`` is arithmetic, so halves round up; shift 0 has no rounding term.
    """
    channel = (1, -1, *(1,) * (acc.ndim - 2))
    factor, places = multiplier.reshape(channel), shift.reshape(channel)
    rounding = np.where(places > 0, np.int64(1) << np.maximum(places - 1, 0), 0)
    largest = int(np.abs(acc).max(initial=0)) * int(multiplier.max(initial=0)) + (1 << SHIFT_MAX)
    if largest >= EXACT_INT:  # 48 x 17 bits do not fit 64: Python's integers, slower by far and never needed by real layers
        acc, factor, rounding, places = (array.astype(object) for array in (acc, factor, rounding, places))
    scaled = ((acc * factor + rounding) >> places) + zero_point
    return np.clip(scaled, low, high).astype(np.int64)


def binarize(acc: Ints, threshold: Ints, flip: Ints) -> Ints:
    """+1 where ``acc >= threshold[k]`` and -1 elsewhere, the other way round where ``flip[k]`` is 1; ``acc`` is (B, K, ...)."""
    channel = (1, -1, *(1,) * (acc.ndim - 2))
    above = (acc >= threshold.reshape(channel)) ^ (flip.reshape(channel) != 0)
    return np.where(above, 1, -1).astype(np.int64)


def _exact_type(reduction_length: int, activations: Ints, weights: Ints) -> type:
    """float64, whose matrix products are fast, as long as no partial sum can leave its exact integers; else int64."""
    largest = reduction_length * int(np.abs(activations).max(initial=0)) * int(np.abs(weights).max(initial=0))
    if largest >= EXACT_INT:
        raise InputError("values too large for an exact sum", where="tensors", allowed="sums of products under 2**63")
    return np.float64 if largest <= EXACT_FLOAT else np.int64


# -- checking ---------------------------------------------------------------------------------------------------------


def check_tensors(design: Design, layer: Layer, tensors: LayerTensors) -> None:
    """Raise :class:`InputError`, naming tensor, index, value and range, where ``tensors`` are not what the layer can read."""
    check_layer(design, layer)
    weight_range, input_range = element_range(design.weight_bits), element_range(design.activation_bits, layer.activations_signed)
    bias = 0 if design.has_threshold_output else bias_limit(design, layer)
    per_channel = (layer.K,)
    _check("input", tensors.input, (layer.B, layer.C, layer.IY, layer.IX), input_range, design.activation_bits == 1)
    _check("weight", tensors.weight, (layer.K, layer.C // layer.G, layer.FY, layer.FX), weight_range, design.weight_bits == 1)
    _check("bias", tensors.bias, per_channel, (-bias, bias))
    _check("multiplier", tensors.multiplier, per_channel, (0, (1 << MULTIPLIER_BITS) - 1))
    _check("shift", tensors.shift, per_channel, (0, SHIFT_MAX))
    accumulator = 1 << design.accumulator_bits - 1
    for name, array, limits in (("threshold", tensors.threshold, (-accumulator, accumulator - 1)),
                                ("flip", tensors.flip, (0, 1))):
        if design.has_threshold_output:
            _check(name, array, per_channel, limits)
        elif array is not None:
            raise InputError(f"only 1-bit outputs have one, and these are {design.activation_bits}-bit", where=f"tensors.{name}",
                             suggestion="leave it out")


def _check(name: str, array: object, shape: tuple[int, ...], limits: tuple[int, int], is_binary: bool = False) -> None:
    where = f"tensors.{name}"
    if not isinstance(array, np.ndarray) or array.dtype != np.int64:
        found = array.dtype.name if isinstance(array, np.ndarray) else type(array).__name__
        raise InputError("must be an int64 array", where=where, value=found)
    if array.shape != shape:
        raise InputError("wrong shape", where=where, value=array.shape, allowed=str(shape))
    bad = (array < limits[0]) | (array > limits[1])
    if is_binary:
        bad |= array == 0
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError("out of range", where=f"{where}[{', '.join(map(str, index))}]", value=int(array[index]),
                         allowed="-1, 1" if is_binary else f"{limits[0]} to {limits[1]}")


# -- random test data -------------------------------------------------------------------------------------------------


def random_tensors(design: Design, layer: Layer, seed: int) -> LayerTensors:
    """Random tensors that :func:`check_tensors` accepts, the same for the same arguments.

    Elements are uniform over their range, and both ends occur in every tensor of two or more elements. Multiplier, shift and
    threshold follow each channel's own accumulators, so that outputs spread over the output range. From 8 channels on, two
    of them are extreme: the largest bias; and a multiplier of 1 unshifted, or a threshold that nothing reaches.
    """
    check_layer(design, layer)
    for name, size in (("input", layer.inputs), ("weight", layer.weights), ("output", layer.outputs)):
        if size > MAX_ELEMENTS:
            raise InputError(f"{name} tensor too large to simulate", where="layer", value=f"{size} elements",
                             allowed=f"at most {MAX_ELEMENTS}")
    rng = np.random.default_rng(seed)
    activations = _elements(rng, (layer.B, layer.C, layer.IY, layer.IX), design.activation_bits, layer.activations_signed)
    weight = _elements(rng, (layer.K, layer.C // layer.G, layer.FY, layer.FX), design.weight_bits, True)
    zeros = np.zeros(layer.K, np.int64)
    plain = LayerTensors(input=activations, weight=weight, bias=zeros, multiplier=zeros, shift=zeros)
    sums = accumulate(layer, plain).transpose(1, 0, 2, 3).reshape(layer.K, -1)
    first, second = rng.permutation(layer.K)[:2] if layer.K >= 8 else (None, None)
    if design.has_threshold_output:
        threshold = _thresholds(rng, sums)
        if first is not None:
            top = (1 << design.accumulator_bits - 1) - 1
            threshold[first] = min(accumulation_bound(layer, design.weight_bits, design.activation_bits) + 1, top)
        return LayerTensors(input=activations, weight=weight, bias=zeros, multiplier=zeros, shift=zeros, threshold=threshold,
                            flip=rng.integers(0, 2, layer.K))
    limit = bias_limit(design, layer)
    bias = _biases(rng, design, layer, sums).clip(-limit, limit)
    if first is not None:
        bias[first] = limit if rng.integers(2) else -limit
    multiplier, shift = _scales(rng, design, layer, sums + bias[:, None])
    if second is not None:
        multiplier[second], shift[second] = 1, 0
    return LayerTensors(input=activations, weight=weight, bias=bias, multiplier=multiplier, shift=shift)


def _elements(rng: np.random.Generator, shape: tuple[int, ...], bits: int, signed: bool) -> Ints:
    low, high = element_range(bits, signed)
    if bits == 1:
        return rng.integers(0, 2, shape) * 2 - 1
    values = rng.integers(low, high, shape, endpoint=True)
    if values.size >= 2:
        values.flat[rng.choice(values.size, 2, replace=False)] = (low, high)
    return values


def _thresholds(rng: np.random.Generator, sums: Ints) -> Ints:
    """Between the 20th and the 80th percentile of each channel's sums (K, N)."""
    ordered = np.sort(sums, axis=1)
    rank = (rng.uniform(0.2, 0.8, len(sums)) * sums.shape[1]).astype(np.int64)
    return np.take_along_axis(ordered, rank[:, None], axis=1)[:, 0]


def _biases(rng: np.random.Generator, design: Design, layer: Layer, sums: Ints) -> Ints:
    """Move each channel's sums (K, N) to about the middle of the output range; as large as their spread, so that none hides."""
    low, high = output_range(design, layer)
    below, above = layer.output_zero_point - low, high - layer.output_zero_point
    middle = (above - below) / 2 / max(abs(above), abs(below), 1)
    mean = sums.mean(axis=1)
    spread = np.abs(sums - mean[:, None]).max(axis=1)
    spread[spread == 0] = np.abs(sums).max()  # one output only: the bias alone tells the channels apart
    return np.rint((middle + rng.uniform(-0.5, 0.5, layer.K)) * spread - mean).astype(np.int64)


def _scales(rng: np.random.Generator, design: Design, layer: Layer, acc: Ints) -> tuple[Ints, Ints]:
    """Multiplier and shift (K,) that map the largest accumulators (K, N) of a channel near the ends of the output range."""
    low, high = output_range(design, layer)
    reach = max(abs(high - layer.output_zero_point), abs(low - layer.output_zero_point), 1)
    spread = np.maximum(np.abs(acc).max(axis=1), 1)
    if acc.shape[1] < 16:  # with few outputs a channel, each would be at an end of the range by its own measure
        spread = np.maximum(spread, 2 * int(np.median(spread)))
    multiplier, shift = np.zeros(layer.K, np.int64), np.zeros(layer.K, np.int64)
    for channel in range(layer.K):
        ratio = reach / int(spread[channel]) * rng.uniform(0.7, 1.4)
        fraction, exponent = math.frexp(ratio)
        # Up to 8 bits fewer than the multiplier has, so that its width and the shift vary.
        places = min(max(MULTIPLIER_BITS - exponent - int(rng.integers(0, 9)), 0), SHIFT_MAX)
        multiplier[channel] = min(round(math.ldexp(fraction, exponent + places)), (1 << MULTIPLIER_BITS) - 1)
        shift[channel] = places
    return multiplier, shift
