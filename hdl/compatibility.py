"""Whether a design can compute a layer exactly: element ranges, accumulator width, groups against drains."""

from __future__ import annotations

from hdl.design import MAX_ACCUMULATOR_BITS, Design
from hdl.errors import InputError
from hdl.layer import Layer

MIN_ACCUMULATOR_BITS = 8  # what ``Design`` accepts


def element_range(bits: int, signed: bool = True) -> tuple[int, int]:
    """Smallest and largest value of an element; 1-bit elements are -1 and +1, whatever ``signed``."""
    if bits == 1:
        return -1, 1
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def output_range(design: Design, layer: Layer) -> tuple[int, int]:
    """``(lo, hi)`` of the output clamp, the type's range where the layer leaves them open."""
    low, high = element_range(design.activation_bits, layer.outputs_signed)
    return (low if layer.lo is None else layer.lo), (high if layer.hi is None else layer.hi)


def accumulation_bound(layer: Layer, weight_bits: int, activation_bits: int) -> int:
    """Largest magnitude that the sum of products can reach, over all weights and activations of these types."""
    weight_low, weight_high = element_range(weight_bits)
    low, high = element_range(activation_bits, layer.activations_signed)
    largest_weight = max(-weight_low, weight_high)
    largest_activation = max(abs(low - layer.input_zero_point), abs(high - layer.input_zero_point))
    return layer.reduction_length * largest_weight * largest_activation


def accumulator_bits_needed(layer: Layer, weight_bits: int, activation_bits: int) -> int:
    """Accumulator width for a ``Design``: the worst sum of products, one bit more for the bias, at least what is legal."""
    product_bits = max(2, weight_bits) + activation_bits + 1
    return max(MIN_ACCUMULATOR_BITS, product_bits + 1, _least_bits(layer, weight_bits, activation_bits) + 1)


def bias_limit(design: Design, layer: Layer) -> int:
    """Largest magnitude of a bias: what the worst sum of products leaves of the accumulator, in steps of the accumulator."""
    return (1 << design.accumulator_bits - 1) - 1 - accumulation_bound(layer, design.weight_bits, design.activation_bits)


def check_layer(design: Design, layer: Layer) -> None:
    """Raise :class:`InputError` where ``design`` could not compute ``layer`` exactly (capacity is the scheduler's matter)."""
    bits = design.activation_bits
    _check_zero_point("input_zero_point", layer.input_zero_point, bits, layer.activations_signed)
    _check_zero_point("output_zero_point", layer.output_zero_point, bits, layer.outputs_signed)
    low, high = element_range(bits, layer.outputs_signed)
    for name, value in (("lo", layer.lo), ("hi", layer.hi)):
        if bits == 1:
            if value not in (None, low if name == "lo" else high):
                raise InputError("1-bit outputs are not clamped", where=f"layer.{name}", value=value, suggestion="leave it out")
        elif value is not None and not low <= value <= high:
            raise InputError(f"outside {_type_name(bits, layer.outputs_signed)} outputs", where=f"layer.{name}", value=value,
                             allowed=f"{low} to {high}")
    _check_accumulator(design, layer)
    step = design.drains_per_lane
    if layer.G > 1 and (layer.K // layer.G) % step:
        raise InputError(f"{layer.K // layer.G} output channels of a group are not a multiple of the {step} drains of a lane",
                         where="layer.K", value=layer.K, allowed=f"multiples of {layer.G * step}, with G={layer.G}",
                         suggestion=f"or make drains at most lanes={design.lanes}")


def _type_name(bits: int, signed: bool) -> str:
    return f"{'signed' if signed else 'unsigned'} {bits}-bit"


def _check_zero_point(name: str, value: int, bits: int, signed: bool) -> None:
    if bits == 1:
        if value:
            raise InputError("1-bit elements have no zero point", where=f"layer.{name}", value=value, allowed="0")
        return
    low, high = element_range(bits, signed)
    if not low <= value <= high:
        raise InputError(f"outside {_type_name(bits, signed)} elements", where=f"layer.{name}", value=value,
                         allowed=f"{low} to {high}")


def _least_bits(layer: Layer, weight_bits: int, activation_bits: int) -> int:
    """Bits of a signed number that holds the bound, both ways."""
    return accumulation_bound(layer, weight_bits, activation_bits).bit_length() + 1


def _check_accumulator(design: Design, layer: Layer) -> None:
    least = _least_bits(layer, design.weight_bits, design.activation_bits)
    if design.accumulator_bits >= least:
        return
    shifted = f" with zero point {layer.input_zero_point}" if layer.input_zero_point else ""
    message = (f"accumulator needs at least {least} bits for {layer.reduction_length} products of "
               f"{design.weight_bits} x {design.activation_bits} bits{shifted}, not {design.accumulator_bits}")
    if least > MAX_ACCUMULATOR_BITS:
        raise InputError(message, where="design.accumulator_bits", allowed=f"at most {MAX_ACCUMULATOR_BITS}",
                         suggestion="use a narrower precision or a layer with a shorter reduction")
    raise InputError(message, where="design.accumulator_bits", allowed=f"{least} to {MAX_ACCUMULATOR_BITS}")
