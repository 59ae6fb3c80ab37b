"""Bits of weights: as the file stores them, with zero points subtracted, in the next width that the array has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.workload.onnx_import.building import MAX_ARRAY_BITS, Building
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.quantisation import array_width, integer_range, signed_width


def weight_bits(building: Building, name: str, zero_point: str, node: Node, axis: int) -> int:
    """Width of the array's signed weights for the tensor ``name``, whose integers have the tensor ``zero_point`` (``""``: none),
    of one value or of one for each index of ``axis``.

    Signed weights without zero points take their own width. For others it is that or the next that holds w - zero point: the values
    decide where the model holds them, the types' ranges where it computes them. Raises InputError where not even 16 bits hold it.
    """
    stated = node.whole("weight_size", 0, 0, MAX_ARRAY_BITS)  # ZigZag's attribute
    if stated:
        return array_width(stated)
    kind, quantiser = building.quantisation.integer_type(name), building.quantisation.behind(name)
    narrow = False
    if kind is not None and kind[0] <= MAX_ARRAY_BITS:
        (bits, signed), stored = kind, name
    elif kind is not None:
        return building.builder.weight_bits
    elif quantiser is None:
        return building.builder.weight_bits
    elif quantiser.is_bipolar:
        return 1
    elif quantiser.bits > MAX_ARRAY_BITS:
        raise InputError("no width of the array", where=f"{node.where}: weights", value=f"{quantiser.bits} bits", allowed="up to 16 bits")
    else:
        bits, signed, narrow = quantiser.bits, quantiser.signed, quantiser.narrow
        stored, zero_point, axis = quantiser.stored, quantiser.zero_point, quantiser.axis
    low, high = integer_range(bits, signed)
    low += narrow and signed
    offsets = _offsets(building, zero_point, (low, high))
    if signed and not offsets.any():
        return array_width(max(bits, 2))
    lows, highs = np.array(low), np.array(high)
    if stored and stored in building.constants:
        values = building.constants.value(stored)
        others = tuple(at for at in range(values.ndim) if at != axis % max(values.ndim, 1)) if offsets.size > 1 else None
        # Minima of what lies in the file: no copy of it.
        lows, highs = np.asarray(values.min(others), np.int64), np.asarray(values.max(others), np.int64)
        if offsets.size > 1 and offsets.shape != lows.shape:
            raise InputError("not one zero point for each output channel", where=f"{node.where}: weights", value=offsets.shape,
                             allowed=str(lows.shape))
    low, high = int((lows - offsets).min()), int((highs - offsets).max())
    width = array_width(max(signed_width(low, high), bits, 2))
    if width > MAX_ARRAY_BITS:
        raise InputError("weights less their zero point take more bits than the array has", where=f"{node.where}: weights", value=width,
                         allowed=f"up to {MAX_ARRAY_BITS}")
    return width


def _offsets(building: Building, zero_point: str, limits: tuple[int, int]) -> NDArray[np.int64]:
    """Zero points: their values, or the ends of their type where they are computed."""
    if not zero_point:
        return np.zeros(1, np.int64)
    value = building.constants.optional(zero_point)
    if value is None:
        return np.array(limits, np.int64)
    with np.errstate(invalid="ignore"):
        return value.astype(np.int64).reshape(-1)


