"""A model's tensors as the layer has them, and the other way round: (B, C, H, W) and (K, C/G, FY, FX)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.workload.onnx_import import convolution, matmul
from dse.workload.onnx_import.building import Building
from dse.workload.onnx_import.convolution import Operands
from dse.workload.onnx_import.graph import Node
from hdl.layer import Layer

Array = NDArray[Any]


@dataclass(frozen=True)
class Arrangement(ABC):
    """How the operands of ``node`` lie in ``layer``. ``operands``: names, the weights second whatever the model calls them."""

    node: Node
    layer: Layer
    operands: Operands

    @abstractmethod
    def data(self, array: Array) -> Array:
        """(B, C, IY, IX)."""

    @abstractmethod
    def weight(self, array: Array) -> Array:
        """(K, C/G, FY, FX)."""

    @abstractmethod
    def output(self, array: Array) -> Array:
        """(B, K, OY, OX)."""

    @abstractmethod
    def channels(self, array: Array, what: str) -> Array:
        """(K,) of one value, or of one for each channel."""

    def _channels(self, array: Array, count: int, what: str) -> Array:
        flat = np.asarray(array).reshape(-1)
        if flat.size not in (1, count):
            raise InputError(f"not one {what} for each output channel", where=self.node.where, value=np.shape(array), allowed=f"({count},)")
        return np.broadcast_to(flat, (count,))


class ConvolutionArrangement(Arrangement):
    def data(self, array: Array) -> Array:
        return array.reshape(self.layer.B, self.layer.C, self.layer.IY, self.layer.IX)

    def weight(self, array: Array) -> Array:
        return array.reshape(self.layer.K, self.layer.C // self.layer.G, self.layer.FY, self.layer.FX)

    def output(self, array: Array) -> Array:
        return array.reshape(self.layer.B, self.layer.K, self.layer.OY, self.layer.OX)

    def channels(self, array: Array, what: str) -> Array:
        return self._channels(array, self.layer.K, what)


@dataclass(frozen=True)
class ProductArrangement(Arrangement):
    """A matrix product: rows are pixels (or batch), columns output channels, dimensions that both operands have are groups."""

    product: matmul.Product
    first: tuple[int, ...]
    second: tuple[int, ...]

    def _factors(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Leading sizes of the data and of the weights, equally many."""
        shapes = [shape if len(shape) > 1 else (1, 1) for shape in (self.first, self.second)]
        lead = max(map(len, shapes)) - 2
        outer = [(1,) * (lead + 2 - len(shape)) + tuple(shape[:-2]) for shape in shapes]
        return (outer[1], outer[0]) if self.product.is_swapped else (outer[0], outer[1])

    def _axes(self) -> tuple[list[int], list[int], list[int]]:
        """Leading axes that are groups, that only the data have, that only the weights have."""
        data, weights = self._factors()
        groups = [at for at, (one, other) in enumerate(zip(data, weights, strict=True)) if one == other]
        return (groups, [at for at, one in enumerate(data) if at not in groups and one > 1],
                [at for at, one in enumerate(weights) if at not in groups and one > 1])

    def _matrix(self, array: Array, *, is_first: bool) -> Array:
        """A factor as (leading.., rows, inner) for the data, (leading.., inner, columns) for the weights."""
        name = "transA" if is_first else "transB"
        if self.node.whole(name, 0):
            array = array.swapaxes(-1, -2)
        if array.ndim == 1:
            array = array[None, :] if is_first else array[:, None]
        return array.swapaxes(-1, -2) if self.product.is_swapped else array

    def data(self, array: Array) -> Array:
        outer, _ = self._factors()
        found, (groups, alone, _) = self.product, self._axes()
        matrix = self._matrix(array, is_first=not found.is_swapped).reshape(*outer, -1, found.inner)
        lead = len(outer)
        rest = [at for at in range(lead) if at not in groups and at not in alone]
        matrix = matrix.transpose(*groups, *alone, *rest, lead, lead + 1).reshape(found.groups, found.rows, found.inner)
        if self.layer.kind == "linear":
            return matrix.reshape(found.rows, found.inner, 1, 1)
        return matrix.transpose(0, 2, 1).reshape(1, self.layer.C, self.layer.IY, self.layer.IX)

    def weight(self, array: Array) -> Array:
        _, outer = self._factors()
        found, (groups, _, alone) = self.product, self._axes()
        matrix = self._matrix(array, is_first=found.is_swapped).reshape(*outer, found.inner, -1)
        lead = len(outer)
        rest = [at for at in range(lead) if at not in groups and at not in alone]
        matrix = matrix.transpose(*groups, *alone, *rest, lead + 1, lead)
        return matrix.reshape(self.layer.K, found.inner, 1, 1)

    def output(self, array: Array) -> Array:
        found, (groups, alone, others) = self.product, self._axes()
        data, weights = self._factors()
        lead = [max(pair) for pair in zip(data, weights, strict=True)]
        matrix = array.reshape(*lead, -1, 1) if len(self.second) == 1 else array.reshape(*lead, -1, array.shape[-1] if array.ndim else 1)
        if found.is_swapped:
            matrix = matrix.swapaxes(-1, -2)
        rest = [at for at in range(len(lead)) if at not in (*groups, *alone, *others)]
        matrix = matrix.transpose(*groups, *others, len(lead) + 1, *alone, *rest, len(lead))
        if self.layer.kind == "linear":
            return np.ascontiguousarray(matrix.reshape(self.layer.K, found.rows).T).reshape(found.rows, self.layer.K, 1, 1)
        return matrix.reshape(1, self.layer.K, self.layer.OY, self.layer.OX)

    def channels(self, array: Array, what: str) -> Array:
        count = self._columns()
        return np.tile(self._channels(array, count, what), self.layer.K // count)

    def _columns(self) -> int:
        """Columns of one matrix of the weights."""
        _, weights = self._factors()
        return self.product.columns // prod(weights[at] for at in self._axes()[2])


def arrangement(building: Building, node: Node, layer: Layer) -> Arrangement:
    """How ``node``, a convolution or matrix product, became ``layer``. Raises InputError for other operators."""
    if node.op in convolution.INPUTS:
        return ConvolutionArrangement(node, layer, convolution.operands(node))
    if node.op not in matmul.INPUTS:
        raise InputError(f"a product of {node.op} cannot be compared with ONNX Runtime: it is no tensor of the model", where=node.where,
                         suggestion="leave --input out, and it runs on random tensors")
    tensors = matmul.operands(node)
    first, second = (building.shape(name, node) for name in (tensors.data, tensors.weight))
    is_swapped = matmul.is_swapped(building, tensors)
    found = matmul.product(node, first, second, is_swapped=is_swapped)
    return ProductArrangement(node, layer, matmul.ordered(tensors) if is_swapped else tensors, found, first, second)
