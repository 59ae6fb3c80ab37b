"""A layer of a model as integers: the model's own quantisation where it has one, else one calibrated on samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.onnx_layer.arrange import Arrangement, arrangement
from dse.onnx_layer.codes import Codes, Ints, Reals, calibrated, quantised_weights
from dse.onnx_layer.runtime import Runtime
from dse.onnx_layer.stage import Affine, after, clamp, multipliers
from dse.workload.onnx_import.building import Building
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.importer import Imported
from dse.workload.onnx_import.quantisation import Quantiser, array_width, integer_range, signed_width
from dse.workload.operators import ArrayOperator, unknown
from hdl.compatibility import accumulation_bound
from hdl.design import MAX_ACCUMULATOR_BITS
from hdl.layer import Layer
from sim.golden import LayerTensors

DEFAULT_BITS = 8
NEGLIGIBLE_LSB = 0.25
"""A channel whose sums move the output by less is a constant: pruned channels would take accumulators of 60 bits for their biases."""


@dataclass(frozen=True)
class Prepared:
    """What the hardware gets, and what is expected of it.

    ``tensor``: the model's tensor that the outputs are; ``expected``: ONNX Runtime's integers for it (B, K, OY, OX), or its numbers in
    steps of the output, rounded. ``is_quantised``: the model quantises the layer itself. ``stage``: from the array's sums to numbers.
    """

    layer: Layer
    weight_bits: int
    activation_bits: int
    accumulator_bits: int
    tensors: LayerTensors
    tensor: str
    expected: Ints
    is_quantised: bool
    output: Codes
    stage: Affine

    def decode(self, output: Ints) -> Reals:
        """The hardware's outputs as numbers."""
        return np.asarray((output - self.output.zero_point) * self.output.scale, np.float64)


@dataclass(frozen=True)
class LayerValues:
    """A layer of a model and the tensors around it, arranged for the array: ``data`` and ``weight`` as numbers or integers."""

    building: Building
    node: Node
    operator: ArrayOperator
    place: Arrangement
    stage: Affine
    runtime: Runtime

    def read(self, name: str) -> NDArray[Any]:
        """A tensor's values for the first sample."""
        return self.runtime.value(name)


def find_layer(imported: Imported, name: str, runtime: Runtime) -> LayerValues:
    """The layer called ``name``. Raises InputError for an unknown one, and for products that are no operator of the model."""
    building, network = imported.building, imported.network
    found = network.array_layers()
    if name not in found:
        raise unknown("no such layer in the workload", name, list(found), where="--layer")
    operator = network.operator(name)
    assert isinstance(operator, ArrayOperator)
    node = next((node for node in building.graph.nodes if node.label == name), None)
    if node is None:
        node = next(node for node in building.graph.nodes if name.startswith(f"{node.label}."))
    place = arrangement(building, node, operator.layer)
    return LayerValues(building, node, operator, place, after(building, node, place, len(operator.folded)), runtime)


def prepare(values: LayerValues, weight_bits: int | None = None, activation_bits: int | None = None) -> Prepared:
    """The layer with integers. The bits are those of operands that the model does not quantise, by default 8.

    Raises InputError for what the hardware cannot compute exactly, naming it.
    """
    target, quantiser = _target(values)
    operands = values.place.operands
    values.runtime.fetch([name for name in (*vars(operands).values(), target) if name])
    data, codes = _data(values, activation_bits or DEFAULT_BITS)
    weight, weight_scale, width = _weights(values, weight_bits or 8)
    layer = replace(values.operator.layer, activations_signed=codes.signed, input_zero_point=codes.zero_point)
    stage = _with_bias(values, values.stage, codes.scale * weight_scale)
    reference = values.place.output(values.read(target))
    if quantiser is None:
        output = calibrated(values.runtime.every(target), activation_bits or max(codes.bits, DEFAULT_BITS))
        expected = output.encode(np.asarray(reference, np.float64))
    else:
        output = _codes(values, quantiser)
        expected = reference.astype(np.int64) if reference.dtype.kind in "iu" else _codes_of(reference, output)
    bits = max(codes.bits, output.bits)
    if output.bits == 1 < bits:
        raise InputError(f"1-bit outputs of a layer with {codes.bits}-bit inputs", where=values.node.where,
                         suggestion="the array writes thresholds only where both have 1 bit")
    reach = _reach(weight, codes)
    weight, stage = _upright(values, weight, width, stage, output, reach)
    tensors: dict[str, Ints] = {"input": data, "weight": weight}
    if bits == 1:
        tensors |= _thresholds(stage, reach)
        layer = replace(layer, outputs_signed=True, output_zero_point=0, lo=None, hi=None)
    else:
        limits = integer_range(output.bits, output.signed) if output.bits > 1 else (-1, 1)
        lo, hi = clamp(stage, output.scale, output.zero_point, limits if quantiser is None else quantiser.range())
        layer = replace(layer, outputs_signed=output.signed, output_zero_point=output.zero_point, lo=lo, hi=hi)
        tensors["multiplier"], tensors["shift"] = multipliers(stage.scale / output.scale, values.node.where)
        # Beyond this the channel is at an end of the range whatever its sum.
        most = reach + 2 * (hi - lo + 1) * output.scale / stage.scale
        tensors["bias"] = np.rint(np.clip(stage.offset / stage.scale, -most, most)).astype(np.int64)
    return Prepared(layer, width, bits, _accumulator_bits(values, layer, width, bits, tensors), LayerTensors(**tensors), target, expected,
                    _is_quantised(values), output, stage)


# -- operands -----------------------------------------------------------------------------------------------------------


def _data(values: LayerValues, bits: int) -> tuple[Ints, Codes]:
    """The layer's input (B, C, IY, IX) as integers."""
    name, place, quantisation = values.place.operands.data, values.place, values.building.quantisation
    kind, quantiser = quantisation.integer_type(name), quantisation.behind(name)
    if kind is not None:
        zero_point, scale = place.operands.data_zero_point, place.operands.data_scale
        codes = Codes(kind[0], kind[1], _whole(values, zero_point), _one(values, scale, "scale"))
        return place.data(values.read(name)).astype(np.int64), codes
    if quantiser is None or quantiser.array_bits > 16:
        codes = calibrated(values.runtime.every(name), bits)
        return codes.encode(place.data(values.read(name))), codes
    codes = _codes(values, quantiser)
    numbers = place.data(values.read(name))
    return _codes_of(numbers, codes), codes


def _codes_of(numbers: NDArray[Any], codes: Codes) -> Ints:
    """The integers behind dequantised numbers. Exact: the quotient is a whole number but for rounding."""
    if codes.bits == 1:
        return np.where(numbers >= 0, 1, -1).astype(np.int64)
    return (np.rint(np.asarray(numbers, np.float64) / codes.scale) + codes.zero_point).astype(np.int64)


def _weights(values: LayerValues, bits: int) -> tuple[Ints, Reals, int]:
    """Signed weights (K, C/G, FY, FX) with zero points subtracted, their scales (K,), and the array's width for them."""
    name, place, quantisation = values.place.operands.weight, values.place, values.building.quantisation
    kind, quantiser = quantisation.integer_type(name), quantisation.behind(name)
    if kind is not None:
        integers = place.weight(values.read(name)).astype(np.int64)
        if place.operands.weight_zero_point:
            zero = place.channels(values.read(place.operands.weight_zero_point).astype(np.int64), "zero point")
            integers = integers - zero[:, None, None, None]
        scale = values.read(place.operands.weight_scale) if place.operands.weight_scale else np.ones(1)
        return integers, np.asarray(place.channels(scale, "scale"), np.float64), _width(integers, kind[0])
    numbers = np.asarray(place.weight(values.read(name)), np.float64)
    if quantiser is None:
        integers, scales = quantised_weights(numbers, bits)
        return integers, scales, bits
    scales = _weight_scales(values, quantiser)
    if quantiser.is_bipolar:
        return np.where(numbers >= 0, 1, -1).astype(np.int64), scales, 1
    integers = np.rint(numbers / scales[:, None, None, None]).astype(np.int64)
    return integers, scales, _width(integers, quantiser.bits)


def _weight_scales(values: LayerValues, quantiser: Quantiser) -> Reals:
    """Scales (K,) of quantised weights. Raises InputError where they differ along another axis, or in blocks."""
    scale = np.asarray(values.read(quantiser.scale), np.float64)
    if scale.size == 1:
        return np.asarray(values.place.channels(scale, "scale"), np.float64)
    if sum(size > 1 for size in scale.shape) > 1:
        raise InputError("weights with a scale for each block", where=values.node.where, value=scale.shape,
                         allowed="one, or one for each output channel")
    return np.asarray(values.place.channels(scale, "scale"), np.float64)


def _width(integers: Ints, stored_bits: int) -> int:
    """The array's width for signed weights: that of the type, or the next that holds the values."""
    return max(array_width(max(2, signed_width(int(integers.min(initial=0)), int(integers.max(initial=0))))),
               array_width(max(2, stored_bits)))


def _codes(values: LayerValues, quantiser: Quantiser) -> Codes:
    """The integers of quantised activations."""
    return Codes(quantiser.array_bits, quantiser.signed, _whole(values, quantiser.zero_point), _one(values, quantiser.scale, "scale"))


def _whole(values: LayerValues, name: str) -> int:
    return int(_one(values, name, "zero point", 0.0))


def _one(values: LayerValues, name: str, what: str, default: float = 1.0) -> float:
    """A scale or zero point of a whole tensor."""
    if not name:
        return default
    found = np.asarray(values.read(name), np.float64).reshape(-1)
    if found.size < 1 or not (found == found[0]).all():
        raise InputError(f"one {what} for each channel of the activations", where=values.node.where, value=found.shape,
                         allowed="one in all")
    if what.endswith("scale") and not (np.isfinite(found[0]) and found[0] > 0):
        raise InputError("a scale must be positive", where=values.node.where, value=float(found[0]))
    return float(found[0])


# -- outputs ------------------------------------------------------------------------------------------------------------


def _target(values: LayerValues) -> tuple[str, Quantiser | None]:
    """The tensor to compare with: the quantised one after the layer, if there is one, and its quantiser."""
    operands, building = values.place.operands, values.building
    if operands.output_scale:
        kind = building.quantisation.integer_type(values.node.outputs[0])
        if kind is not None:
            return values.node.outputs[0], Quantiser(*kind, operands.output_scale, operands.output_zero_point)
    for node in building.graph.readers.get(values.stage.output, []):
        found = building.quantisation.of_node(node)
        if found is not None and node.input(0) == values.stage.output and found.array_bits <= 16 and not node.op.endswith(
                "DequantizeLinear"):
            return node.outputs[0], found
    return values.stage.output, None


def _is_quantised(values: LayerValues) -> bool:
    """Whether the model itself has integers for data and weights."""
    quantisation, operands = values.building.quantisation, values.place.operands
    return all(quantisation.integer_type(name) is not None or quantisation.behind(name) is not None
               for name in (operands.data, operands.weight))


def _with_bias(values: LayerValues, stage: Affine, scale: Reals) -> Affine:
    """``stage`` of the array's sums: they stand for ``scale`` each, and the layer's own bias comes before what follows it."""
    node, place = values.node, values.place
    factor = node.number("alpha", 1.0)
    bias = place.operands.bias if values.operator.bias else ""
    offset = np.zeros(place.layer.K)
    if bias:
        found = np.asarray(values.read(bias))
        offset = np.asarray(place.channels(found.astype(np.float64), "bias"), np.float64) * node.number("beta", 1.0)
        if found.dtype.kind in "iu":  # in steps of the sums
            offset = offset * scale
    return replace(stage, scale=stage.scale * scale * factor, offset=stage.offset + stage.scale * offset)


def _upright(values: LayerValues, weight: Ints, width: int, stage: Affine, output: Codes,
             reach: Reals) -> tuple[Ints, Affine]:
    """Channels without a negative scale: their weights are turned round. Channels that are constant, or as good as, get weights of 0.

    Where the output is one bit, thresholds know about signs.
    """
    scale, offset = stage.scale.copy(), stage.offset
    dead = scale == 0 if output.bits == 1 else np.abs(scale) * reach < output.scale * NEGLIGIBLE_LSB
    if dead.any():
        if width == 1:
            raise InputError("a channel that is constant, and 1-bit weights know no 0", where=values.node.where)
        weight = np.where(dead[:, None, None, None], 0, weight)
        scale[dead] = output.scale
    turned = scale < 0
    if output.bits > 1 and turned.any():
        if width > 1 and (weight[turned] == -(1 << width - 1)).any():
            raise InputError("a channel with a negative scale holds the most negative weight, which cannot be turned round",
                             where=values.node.where, value=-(1 << width - 1))
        weight = np.where(turned[:, None, None, None], -weight, weight)
        scale = np.abs(scale)
    return weight, replace(stage, scale=scale, offset=offset)


def _reach(weight: Ints, codes: Codes) -> Reals:
    """The largest magnitude of each channel's sums (K,)."""
    low, high = (-1, 1) if codes.bits == 1 else integer_range(codes.bits, codes.signed)
    return np.abs(weight).sum(axis=(1, 2, 3)).astype(np.float64) * max(abs(low - codes.zero_point), abs(high - codes.zero_point))


def _thresholds(stage: Affine, reach: Reals) -> dict[str, Ints]:
    """``scale * sum + offset >= 0`` as ``sum >= threshold``, inverted where the scale is negative."""
    zeros = np.zeros(len(stage.scale), np.int64)
    edge = np.clip(-stage.offset / stage.scale, -reach - 1, reach + 1)
    rising = stage.scale > 0
    threshold = np.where(rising, np.ceil(edge), np.floor(edge) + 1).astype(np.int64)
    return {"bias": zeros, "multiplier": zeros, "shift": zeros, "threshold": threshold, "flip": (~rising).astype(np.int64)}


def _accumulator_bits(values: LayerValues, layer: Layer, weight_bits: int, activation_bits: int, tensors: dict[str, Ints]) -> int:
    """Wide enough for the worst sum and the model's biases."""
    largest = accumulation_bound(layer, weight_bits, activation_bits) + int(np.abs(tensors["bias"]).max(initial=0))
    if "threshold" in tensors:
        largest = max(largest, int(np.abs(tensors["threshold"]).max(initial=0)))
    needed = max(largest.bit_length() + 1, max(2, weight_bits) + activation_bits + 2, 8)
    if needed > MAX_ACCUMULATOR_BITS:
        raise InputError(f"its sums and biases need {needed} bits", where=values.node.where, allowed=f"up to {MAX_ACCUMULATOR_BITS}")
    return needed


