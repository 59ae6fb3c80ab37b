"""How tensors are quantised: QuantizeLinear and DequantizeLinear pairs, QONNX's Quant and BipolarQuant, integer operands.

Integers stand for ``(value - zero_point) * scale``. Of the array's widths (1, 2, 4, 8, 16 bits) a tensor takes the next that holds it; the
array's 1-bit elements are -1 and +1, so that one bit of 0 and 1 takes two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.workload.onnx_import.constants import QUANTISERS, Constants
from dse.workload.onnx_import.graph import Graph, Node
from dse.workload.onnx_import.shapes import Shapes
from dse.workload.onnx_import.surrogates import MICROSOFT, QONNX_DOMAINS
from dse.workload.operators import ELEMENT_BITS

INTEGER_TYPES = {"UINT2": (2, False), "INT2": (2, True), "UINT4": (4, False), "INT4": (4, True), "UINT8": (8, False), "INT8": (8, True),
                 "UINT16": (16, False), "INT16": (16, True), "UINT32": (32, False), "INT32": (32, True), "UINT64": (64, False),
                 "INT64": (64, True), "BOOL": (8, False)}
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity")
QUANTIZE, DEQUANTIZE = ("QuantizeLinear", f"{MICROSOFT}.QuantizeLinear"), ("DequantizeLinear", f"{MICROSOFT}.DequantizeLinear")
THROUGH = ("Relu", "Clip", "BatchNormalization", "Add", "Mul", "Sub", "Div", "MaxPool", "Dropout", "Cast", *VIEWS)
"""Operators between a layer and the quantiser of its result, if everything else that they read is constant."""


@dataclass(frozen=True)
class Quantiser:
    """A quantised tensor: ``bits`` and ``signed`` of its integers; names of the tensors with scales and zero points (``""``: none).

    ``is_bipolar``: -1 and +1. ``narrow``: without the lowest integer. ``stored``: the tensor of integers, ``""`` where the file has
    none (QONNX). ``axis``: of scales that differ from channel to channel.
    """

    bits: int
    signed: bool
    scale: str
    zero_point: str
    stored: str = ""
    axis: int = 1
    is_bipolar: bool = False
    narrow: bool = False

    @property
    def array_bits(self) -> int:
        """The array's width that holds it as it is."""
        return 1 if self.is_bipolar else array_width(max(self.bits, 2))

    def range(self) -> tuple[int, int]:
        """Smallest and largest integer."""
        if self.is_bipolar:
            return -1, 1
        low, high = integer_range(self.bits, self.signed)
        return (low + 1, high) if self.narrow and self.signed else (low, high - 1) if self.narrow else (low, high)


def array_width(bits: int) -> int:
    """The next width that the array has; ``bits`` itself beyond 16."""
    return next((width for width in ELEMENT_BITS if width >= bits), bits)


def integer_range(bits: int, signed: bool) -> tuple[int, int]:
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def signed_width(low: int, high: int) -> int:
    """Bits of a signed integer that holds both."""
    return max((-low - 1).bit_length() if low < 0 else 0, max(high, 0).bit_length()) + 1


def is_quant(node: Node) -> bool:
    """Whether it is one of QONNX's quantisers to integers."""
    return node.proto.domain in QONNX_DOMAINS and node.proto.op_type in QUANTISERS


class Quantisation:
    """What a graph says about the widths of its tensors."""

    def __init__(self, graph: Graph, shapes: Shapes, constants: Constants) -> None:
        self.graph, self.shapes, self.constants = graph, shapes, constants
        self._targets: dict[str, Quantiser | None] = {}

    def integer_type(self, name: str) -> tuple[int, bool] | None:
        """Bits and signedness of a tensor of integers, ``None`` for other tensors."""
        from onnx import TensorProto

        kind = self.shapes.types.get(name)
        return INTEGER_TYPES.get(TensorProto.DataType.Name(kind)) if kind in TensorProto.DataType.values() else None

    def of_node(self, node: Node) -> Quantiser | None:
        """The quantiser that ``node`` is: what QuantizeLinear and Quant produce, what DequantizeLinear reads."""
        if node.op in (*QUANTIZE, *DEQUANTIZE):
            stored = node.outputs[0] if node.op in QUANTIZE else node.input(0)
            kind = self.integer_type(stored) or self.integer_type(node.input(2))
            if kind is None and node.op in QUANTIZE and not node.input(2) and not node.has("output_dtype"):
                kind = (8, False)
            if kind is None:
                return None
            return Quantiser(*kind, node.needed(1, "the scale"), node.input(2), stored, node.whole("axis", 1))
        if not is_quant(node):
            return None
        if node.proto.op_type == "BipolarQuant":
            return Quantiser(1, True, node.needed(1, "the scale"), "", is_bipolar=True)
        width = float(self.constants.scalar(node.needed(3, "the bit width"), "the bit width"))
        if not 0 < width <= 32:
            raise InputError("out of range", where=f"{node.where}.bit_width", value=width, allowed="up to 32")
        signed = bool(node.whole("signed", 1))
        return Quantiser(ceil(width), signed, node.needed(1, "the scale"), node.input(2), is_bipolar=signed and width == 1,
                         narrow=bool(node.whole("narrow", 1)))

    def behind(self, name: str) -> Quantiser | None:
        """How the values of ``name`` were quantised, seen through what only moves them."""
        for _ in range(len(VIEWS) * 4):
            node = self.graph.producers.get(name)
            if node is None:
                return None
            found = self.of_node(node)
            if found is not None:
                return found
            if node.op not in VIEWS:
                return None
            name = node.input(0)
        return None

    def ahead(self, name: str) -> Quantiser | None:
        """The quantiser that all readers of ``name`` apply, at once or after what a layer's output stage computes."""
        if name not in self._targets:
            self._targets[name] = self._ahead(name)
        return self._targets[name]

    def _ahead(self, start: str) -> Quantiser | None:
        found: Quantiser | None = None
        names, seen = [start], 0
        while names:
            name = names.pop()
            seen += 1
            if name in self.graph.outputs or seen > 50 or not self.graph.readers.get(name):
                return None
            for node in self.graph.readers[name]:
                quantiser = self.of_node(node) if node.op not in DEQUANTIZE else None
                if quantiser is not None and node.input(0) == name:
                    if found is not None and (found.bits, found.signed, found.scale) != (quantiser.bits, quantiser.signed, quantiser.scale):
                        return None
                    found = quantiser
                elif node.op in THROUGH and node.outputs[0] and all(
                        other in self.constants for other in node.inputs if other and other != name):
                    names.append(node.outputs[0])
                else:
                    return None
        return found

    def zero_point(self, name: str) -> int:
        """A zero point of the whole tensor; 0 where it is left out. Raises InputError for one that differs from channel to channel."""
        if not name:
            return 0
        value = self.constants.value(name).reshape(-1)
        if value.size < 1 or not (value == value[0]).all():
            raise InputError("zero points that differ from channel to channel", where=self.graph.at(name), allowed="one for activations")
        return int(value[0])


def linear_reference(node: Node, kind: np.dtype[Any], value: NDArray[Any], scale: NDArray[Any],
                     zero_point: NDArray[Any] | None = None) -> NDArray[Any]:
    """What QuantizeLinear or DequantizeLinear makes of ``value``, as elements of type ``kind``. Raises InputError."""
    axis, block = node.whole("axis", 1), node.whole("block_size", 0, 0)

    def spread(of: NDArray[Any]) -> NDArray[Any]:
        """One value for each element: of the tensor, of its index along the axis, or of its block there."""
        if of.size == 1:
            return of.reshape(())
        if not -value.ndim <= axis < value.ndim:
            raise InputError("no axis of the tensor", where=f"{node.where}.axis", value=axis, allowed=f"{value.ndim} axes")
        if of.ndim == 1 and of.size == value.shape[axis]:
            return of.reshape([-1 if at == axis % value.ndim else 1 for at in range(value.ndim)])
        if block and of.ndim == value.ndim and of.shape[axis] == ceil(value.shape[axis] / block):
            return np.take(of.repeat(block, axis), range(value.shape[axis]), axis)
        raise InputError("a scale for neither the tensor, its channels nor its blocks", where=node.where, value=of.shape)

    factor = spread(np.asarray(scale, np.float32))
    zero = np.float32(0) if zero_point is None else spread(np.asarray(zero_point, np.float32))
    if node.op in DEQUANTIZE:
        return ((np.asarray(value, np.float32) - zero) * factor).astype(kind)
    limits = np.iinfo(kind) if kind.kind in "iu" else None
    if limits is None:
        raise InputError("quantised to something else than integers", where=node.where, value=kind.name)
    with np.errstate(all="ignore"):
        return np.clip(np.rint(np.asarray(value, np.float32) / factor) + zero, limits.min, limits.max).astype(kind)


ROUNDING: dict[str, Callable[[Any], Any]] = {
    "ROUND": np.rint, "HALF_EVEN": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "ROUND_TO_ZERO": np.trunc, "DOWN": np.trunc,
    "UP": lambda value: np.copysign(np.ceil(np.abs(value)), value),
    "HALF_UP": lambda value: np.copysign(np.floor(np.abs(value) + 0.5), value),
    "HALF_DOWN": lambda value: np.copysign(np.ceil(np.abs(value) - 0.5), value)}
"""Rounding modes of QONNX; UP and HALF_UP go away from zero."""


def quant_reference(node: Node, value: NDArray[Any], scale: NDArray[Any], *rest: NDArray[Any]) -> NDArray[Any]:
    """What QONNX's Quant or BipolarQuant makes of ``value``."""
    return ((quant_integers(node, value, scale, *rest) - (rest[0] if rest else 0)) * scale).astype(np.float32)


def quant_integers(node: Node, value: NDArray[Any], scale: NDArray[Any], *rest: NDArray[Any]) -> NDArray[Any]:
    """The integers that Quant (``rest``: zero point, bit width) or BipolarQuant makes of ``value``, as float64."""
    if len(rest) < 2:
        return np.where(value >= 0, 1.0, -1.0)
    zero_point, width = rest[0], float(rest[1].reshape(-1)[0])
    signed, narrow = bool(node.whole("signed", 1)), bool(node.whole("narrow", 1))
    with np.errstate(all="ignore"):
        scaled = np.asarray(value, np.float64) / np.asarray(scale, np.float64) + zero_point
    if signed and width == 1:
        return np.where(scaled >= 0, 1.0, -1.0)
    mode = node.text("rounding_mode", "ROUND").upper()
    if mode not in ROUNDING:
        raise InputError("not a rounding mode", where=f"{node.where}.rounding_mode", value=mode, allowed=", ".join(ROUNDING))
    low, high = Quantiser(ceil(width), signed, "", "", narrow=narrow).range()
    return np.asarray(ROUNDING[mode](np.clip(scaled, low, high)))
