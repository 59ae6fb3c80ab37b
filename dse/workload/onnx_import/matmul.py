"""Gemm, MatMul and their integer kin as layers.

In ``A x B``, B is the weights: a constant as a rule, another operator's output in attention. (Where A is the constant, the same product is
``B' x A'``, transposed.) Rows of a two-dimensional A are the batch of a linear layer. Leading dimensions make the rows pixels of a 1x1
convolution, whose weights stay on chip for many pixels; dimensions that both operands have make groups of channels, each with its own
weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from boards.errors import InputError
from dse.workload.onnx_import.building import Building
from dse.workload.onnx_import.convolution import Operands, check_output, layer
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.shapes import Shape
from dse.workload.onnx_import.surrogates import MICROSOFT
from hdl.layer import MAX_EXTENT

INPUTS = {
    "MatMul": ("data", "weight"), "Gemm": ("data", "weight", "bias"),
    "MatMulInteger": ("data", "weight", "data_zero_point", "weight_zero_point"),
    "QLinearMatMul": ("data", "data_scale", "data_zero_point", "weight", "weight_scale", "weight_zero_point", "output_scale",
                      "output_zero_point"),
    f"{MICROSOFT}.QGemm": ("data", "data_scale", "data_zero_point", "weight", "weight_scale", "weight_zero_point", "bias",
                           "output_scale", "output_zero_point"),
    f"{MICROSOFT}.MatMulIntegerToFloat": ("data", "weight", "data_scale", "weight_scale", "data_zero_point", "weight_zero_point", "bias"),
}
GEMMS = ("Gemm", f"{MICROSOFT}.QGemm")


@dataclass(frozen=True)
class Product:
    """A matrix product: ``rows`` vectors of ``groups`` x ``inner`` elements become as many of ``groups`` x ``columns``.

    ``output``: the shape of ONNX's result. ``is_swapped``: the first operand is the weights. ``is_flat``: both are plain matrices.
    """

    rows: int
    inner: int
    columns: int
    groups: int
    output: Shape
    is_swapped: bool = False
    is_flat: bool = False

    @property
    def macs(self) -> int:
        return self.rows * self.inner * self.columns * self.groups


def operands(node: Node) -> Operands:
    """The tensors of a node of :data:`INPUTS`."""
    given = dict(zip(INPUTS[node.op], node.inputs, strict=False))
    for needed in ("data", "weight"):
        node.needed(INPUTS[node.op].index(needed), "a factor")
    return Operands(**given)


def product(node: Node, first: Shape, second: Shape, *, is_swapped: bool = False) -> Product:
    """The product of tensors of these shapes, by NumPy's rules for ``matmul``, or ONNX's for Gemm. Raises InputError."""
    if node.op in GEMMS and (len(first), len(second)) != (2, 2):
        raise InputError("Gemm multiplies two matrices", where=node.where, value=(first, second))
    if not first or not second or min((*first, *second)) < 1:
        raise InputError("no factors of a matrix product", where=node.where, value=(first, second))
    if node.whole("transA", 0):
        first = (*first[:-2], *reversed(first[-2:]))
    if node.whole("transB", 0):
        second = (*second[:-2], *reversed(second[-2:]))
    a = first if len(first) > 1 else (1, *first)
    b = second if len(second) > 1 else (*second, 1)
    if a[-1] != b[-2]:
        raise InputError(f"rows of {a[-1]} elements meet columns of {b[-2]}", where=node.where, value=(first, second))
    lead = max(len(a), len(b)) - 2
    outer_a, outer_b = ((1,) * (lead + 2 - len(shape)) + shape[:-2] for shape in (a, b))
    if any(one != other and 1 not in (one, other) for one, other in zip(outer_a, outer_b, strict=True)):
        raise InputError("leading dimensions do not agree", where=node.where, value=(first, second), allowed="equal sizes, or 1")
    output = (*(max(pair) for pair in zip(outer_a, outer_b, strict=True)), *(a[-2:-1] if len(first) > 1 else ()),
              *(b[-1:] if len(second) > 1 else ()))
    if is_swapped:
        outer_a, outer_b, rows, columns = outer_b, outer_a, b[-1], a[-2]
    else:
        rows, columns = a[-2], b[-1]
    groups = prod(one for one, other in zip(outer_a, outer_b, strict=True) if one == other)
    return Product(rows * prod(outer_a) // groups, a[-1], columns * prod(outer_b) // groups, groups, output, is_swapped,
                   is_flat=len(first) <= 2 and len(second) <= 2)


def matmul(building: Building, node: Node) -> None:
    """Add a matrix product."""
    tensors = operands(node)
    first, second = (building.shape(name, node) for name in (tensors.data, tensors.weight))
    swapped = is_swapped(building, tensors)
    found = product(node, first, second, is_swapped=swapped)
    check_output(building, node, found.output)
    if swapped:
        tensors = ordered(tensors)
    has_channels = not swapped and found.groups == 1 and found.output[-1:] == (found.columns,)
    apart = tensors.bias if tensors.bias and (swapped or not _is_a_column(building.shape(tensors.bias, node), found)) else ""
    if apart:
        tensors = replace(tensors, bias="")
    is_transposed = bool(node.whole("transA" if swapped else "transB", 0))
    weight_axis = -1 if swapped == is_transposed else -2  # along which the columns of the product lie
    add_product(building, node, tensors, found, weight_axis=weight_axis, channels=len(found.output) - 1 if has_channels else None)
    if apart:
        _add_bias(building, node, apart)


def is_swapped(building: Building, tensors: Operands) -> bool:
    """Whether the first factor is the weights."""
    return tensors.data in building.constants and tensors.weight not in building.constants


def ordered(tensors: Operands) -> Operands:
    """The tensors of a product whose first factor is the weights."""
    return replace(tensors, data=tensors.weight, weight=tensors.data, data_scale=tensors.weight_scale, weight_scale=tensors.data_scale,
                   data_zero_point=tensors.weight_zero_point, weight_zero_point=tensors.data_zero_point)


def _is_a_column(bias: Shape, found: Product) -> bool:
    """Whether a bias has one value for each column of the result, or one in all."""
    return prod(bias) == 1 or prod(bias) == bias[-1] == found.columns


def _add_bias(building: Building, node: Node, bias: str) -> None:
    """A bias that differs from row to row: the host adds it."""
    operator = building.source(node.outputs[0], node).operator
    others = [] if bias in building.constants else [building.source(bias, node).operator]
    tensor = building.tensor(operator)
    name = building.builder.host("add", operator, *others, name=building.unique(f"{node.label}.bias"), shape=tensor.shape,
                                 ops=tensor.elements, parameters=0 if others else prod(building.shape(bias, node)))
    building.produced(node, name, channels=None)


def add_product(building: Building, node: Node, tensors: Operands, found: Product, *, weight_axis: int, channels: int | None) -> None:
    dimensions = {"K": found.groups * found.columns, "G": found.groups}
    height, width = pixels(found.rows)
    if found.is_flat and found.rows <= MAX_EXTENT and found.groups == 1:
        shape, kind = (found.rows, found.inner, 1, 1), "linear"
    else:
        shape, kind = (1, found.groups * found.inner, height, width), "conv"
        dimensions |= {"FY": 1, "FX": 1}
    layer(building, node, kind, tensors, shape, dimensions, macs=found.macs, weight_axis=weight_axis, channels=channels)


def pixels(rows: int) -> tuple[int, int]:
    """Height and width of an image of so many pixels, the highest that the array can have; of an impossible height if there is none."""
    return next(((height, rows // height) for height in _heights(rows)), (rows, 1))


def _heights(rows: int) -> Iterator[int]:
    for height in range(min(rows, MAX_EXTENT), 0, -1):
        if rows % height == 0 and rows // height <= MAX_EXTENT:
            yield height
