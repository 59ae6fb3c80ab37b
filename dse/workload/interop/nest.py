"""Loop nests that multiply and accumulate, as ZigZag and Timeloop describe a layer, recognised as convolution or matrix product.

    output[..] += one[..] * other[..]      over all loops; every index is a sum of loops, each times a whole number

What each loop does follows from the tensors that it indexes, whatever it is called:

    in the output and both inputs      groups
    in the output and the activations  a row of a matrix or a batch; summed with a filter's loop: a height or width
    in the output and the weights      output channels
    in both inputs alone               input channels, or a filter
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from boards.errors import InputError
from dse.workload.operators import MAX_ELEMENTS, check_whole
from hdl.layer import MAX_EXTENT

MAX_LOOPS = 32
# Names that loops, indices and coefficients have in ZigZag's and Timeloop's own files (Timeloop: P, R are widths, Q, S heights).
HEIGHT_NAMES = frozenset(("oy", "fy", "iy", "y", "q", "s", "h", "oh", "fh", "kh", "ih", "hstride", "hdilation"))
WIDTH_NAMES = frozenset(("ox", "fx", "ix", "x", "p", "r", "w", "ow", "fw", "kw", "iw", "wstride", "wdilation"))
BATCH_NAMES = frozenset(("b", "n"))


@dataclass(frozen=True)
class Index:
    """One index of a tensor. ``terms``: (loop, coefficient); ``text``, ``where``: as the user wrote it, and where; ``names``: what else
    it is called by, to tell heights from widths."""

    terms: tuple[tuple[str, int], ...]
    text: str
    where: str
    names: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple(loop for loop, _ in self.terms)


@dataclass(frozen=True)
class Operand:
    """A tensor of the nest."""

    name: str
    indices: tuple[Index, ...]
    where: str

    @property
    def loops(self) -> frozenset[str]:
        return frozenset(loop for index in self.indices for loop in index.loops)


@dataclass(frozen=True)
class Nest:
    """``sizes``: of every loop; ``weights``: which input holds the weights, where that is known."""

    sizes: Mapping[str, int]
    output: Operand
    inputs: tuple[Operand, Operand]
    where: str
    weights: str | None = None


@dataclass(frozen=True)
class Axis:
    """A height or width: outputs, filter, stride, dilation; ``index``: what the input is indexed with (``None``: it has no such axis)."""

    outputs: int = 1
    taps: int = 1
    stride: int = 1
    dilation: int = 1
    index: Index | None = None

    @property
    def inputs(self) -> int:
        """Size that the outputs reach, padding included."""
        return (self.outputs - 1) * self.stride + (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True)
class Product:
    """What a nest computes; channels are those of a group. ``activations``: the input that is not the weights."""

    activations: str
    batch: int
    groups: int
    output_channels: int
    input_channels: int
    y: Axis
    x: Axis

    @property
    def is_linear(self) -> bool:
        """No extent, so that nothing but B, K, C and G is left."""
        return all((axis.outputs, axis.taps, axis.stride) == (1, 1, 1) for axis in (self.y, self.x))

    def dimensions(self) -> dict[str, Any]:
        """Keys of a layer: all but its input's. B, C, IY and IX follow from the input that it reads."""
        channels = {"K": self.groups * self.output_channels, **({"G": self.groups} if self.groups > 1 else {})}
        if self.is_linear:
            return channels
        return {**channels, "FY": self.y.taps, "FX": self.x.taps, "SY": self.y.stride, "SX": self.x.stride, "DY": self.y.dilation,
                "DX": self.x.dilation}

    def input_shape(self) -> tuple[int, int, int, int]:
        """(B, C, IY, IX) that the windows reach, padding included."""
        return self.batch, self.groups * self.input_channels, self.y.inputs, self.x.inputs


def recognise(nest: Nest) -> Product:
    """The convolution or matrix product that ``nest`` is. Raises InputError naming the index (projection) that is neither's."""
    _check_sizes(nest)
    weights, activations = _roles(nest)
    for operand in (nest.output, weights, activations):
        _check_indices(nest, operand)
    _plain(nest, nest.output, "the output's index is a sum or has a coefficient: a transposed or dilated output, no convolution")
    _plain(nest, weights, "the weights' index is a sum or has a coefficient: no convolution")
    rows, axes = [], []
    for index in activations.indices:
        found = _axis(nest, index, weights)
        if found is None:
            rows += [loop for loop in index.loops if loop in nest.output.loops and loop not in weights.loops]
        else:
            axes.append(found)
    _check_readers(nest, weights, activations)
    filters = {loop for axis in axes if axis.index for loop in axis.index.loops}
    return _product(nest, weights, activations, rows, axes, filters)


# -- roles ------------------------------------------------------------------------------------------------------------


def _roles(nest: Nest) -> tuple[Operand, Operand]:
    """Weights and activations. A sum of loops says which is which, then names, then the order (of a matrix product: weights second)."""
    one, other = nest.inputs
    sums = [any(len(index.terms) > 1 for index in operand.indices) for operand in nest.inputs]
    if all(sums):
        index = next(index for index in other.indices if len(index.terms) > 1)
        raise InputError("both inputs have sums of loops: no convolution", where=index.where, value=index.text)
    if sums[1] or not sums[0] and nest.weights == one.name:
        return one, other
    return other, one


def _check_sizes(nest: Nest) -> None:
    if len(nest.sizes) > MAX_LOOPS:
        raise InputError("too many loops", where=nest.where, value=len(nest.sizes), allowed=f"at most {MAX_LOOPS}")
    for loop, size in nest.sizes.items():
        try:
            check_whole(loop, size, 1, MAX_ELEMENTS)
        except InputError as error:
            raise InputError(error.what, where=f"{nest.where}.{loop}", value=size, allowed=error.allowed) from None


def _check_indices(nest: Nest, operand: Operand) -> None:
    seen: set[str] = set()
    for index in operand.indices:
        for loop, coefficient in index.terms:
            if loop not in nest.sizes:
                raise InputError(f"{loop} is no loop of the nest", where=index.where, value=index.text, allowed=", ".join(nest.sizes))
            if coefficient < 1:
                raise InputError("coefficients must be at least 1", where=index.where, value=index.text)
            if loop in seen:
                raise InputError(f"{loop} indexes {operand.name} twice: a diagonal, no convolution", where=index.where, value=index.text)
            seen.add(loop)


def _plain(nest: Nest, operand: Operand, what: str) -> None:
    for index in operand.indices:
        if len(index.terms) != 1 or index.terms[0][1] != 1:
            raise InputError(what, where=index.where, value=index.text)


def _axis(nest: Nest, index: Index, weights: Operand) -> Axis | None:
    """The height or width that an index of the activations is; ``None`` for a row, a batch, channels or groups."""
    several = tuple(term for term in index.terms if nest.sizes[term[0]] > 1)  # a loop of one pass adds nothing
    for terms in (index.terms, several):
        if len(terms) == 1 and terms[0][1] == 1:
            return None
        moving = [term for term in terms if term[0] in nest.output.loops and term[0] not in weights.loops]
        taps = [term for term in terms if term[0] in weights.loops and term[0] not in nest.output.loops]
        if len(moving) <= 1 and len(taps) <= 1 and len(moving) + len(taps) == len(terms):
            (output, stride), (tap, dilation) = (moving or [("", 1)])[0], (taps or [("", 1)])[0]
            return Axis(nest.sizes.get(output, 1), nest.sizes.get(tap, 1), stride, dilation, index)
    raise InputError("neither a loop nor an output's position times stride plus a filter's times dilation: no convolution",
                     where=index.where, value=index.text)


def _check_readers(nest: Nest, weights: Operand, activations: Operand) -> None:
    """Every loop of more than one pass is in two tensors at least."""
    operands = (nest.output, weights, activations)
    for loop, size in nest.sizes.items():
        readers = [operand for operand in operands if loop in operand.loops]
        if len(readers) < 2 and size > 1:
            if not readers:
                raise InputError("a loop that indexes nothing", where=nest.where, value=loop)
            index = next(index for index in readers[0].indices if loop in index.loops)
            does = "repeats the result" if readers[0] is nest.output else "sums one input alone"
            raise InputError(f"{loop} indexes {readers[0].name} alone: it {does}, no convolution or matrix product", where=index.where,
                             value=index.text)


# -- the product ------------------------------------------------------------------------------------------------------


def _product(nest: Nest, weights: Operand, activations: Operand, rows: list[str], axes: list[Axis], filters: set[str]) -> Product:
    def total(loops: Iterable[str]) -> int:
        return prod(nest.sizes[loop] for loop in loops)

    output = nest.output.loops
    groups = output & weights.loops & activations.loops
    sizes = total(groups), total(output & weights.loops - groups), total((weights.loops & activations.loops) - output - filters)
    y, x, batch = _place(nest, rows, axes)
    return Product(activations.name, batch, *sizes, y, x)


def _place(nest: Nest, rows: list[str], axes: list[Axis]) -> tuple[Axis, Axis, int]:
    """Height, width and batch: by their names, else the first sum is the height (a single one the width)."""
    if len(axes) > 2:
        axes = [axis for axis in axes if (axis.outputs, axis.taps) != (1, 1)]
    if len(axes) > 2:
        index = axes[2].index
        assert index is not None
        raise InputError("a third axis that a filter moves along: 3-D convolutions are not supported", where=index.where, value=index.text)
    named: dict[str, Axis] = {}
    unnamed: list[Axis] = []
    for axis in axes:
        assert axis.index is not None
        side = _side((*axis.index.loops, *axis.index.names))
        if side and side not in named:
            named[side] = axis
        else:
            unnamed.append(axis)
    for axis in reversed(unnamed):
        named["x" if "x" not in named else "y"] = axis
    rest: list[str] = []
    plain = {loop: Axis(outputs=nest.sizes[loop]) for loop in rows}
    sides = {_side((loop,)) for loop in rows}
    for loop in rows:  # a filter of one tap need not be written
        side = _side((loop,))
        if side and side not in named and (axes or {"x", "y"} <= sides):
            named[side] = plain[loop]
        else:
            rest.append(loop)
    if not axes and not named:
        return _matrix(nest, rest)
    return named.get("y", Axis()), named.get("x", Axis()), prod(nest.sizes[loop] for loop in rest)


def _side(names: Iterable[str]) -> str:
    found = {"y" if name.lower() in HEIGHT_NAMES else "x" for name in names if name.lower() in HEIGHT_NAMES | WIDTH_NAMES}
    return found.pop() if len(found) == 1 else ""


def _matrix(nest: Nest, rows: list[str]) -> tuple[Axis, Axis, int]:
    """A matrix product's rows: pixels of a 1x1 convolution, which the array takes many at a time; named as one, a batch."""
    batches = [loop for loop in rows if loop.lower() in BATCH_NAMES]
    batch = prod(nest.sizes[loop] for loop in batches)
    if batch > MAX_EXTENT:
        batches, batch = [], 1
    pixels = prod(nest.sizes[loop] for loop in rows if loop not in batches)
    height, width = matrix_rows(pixels, where=f"{nest.where}: {' '.join(rows)}")
    return Axis(outputs=height), Axis(outputs=width), batch


def matrix_rows(rows: int, *, where: str) -> tuple[int, int]:
    """So many rows of a matrix product as height and width of an image: one column of pixels, or the squarest image that is exact.

    Raises InputError when there is none.
    """
    if rows <= MAX_EXTENT:
        return rows, 1
    found = [height for height in range(1, MAX_EXTENT + 1) if rows % height == 0 and rows // height <= MAX_EXTENT]
    if not found:
        raise InputError("rows that are no product of two sizes", where=where, value=rows, allowed=f"sizes of 1 to {MAX_EXTENT}",
                         suggestion="add rows, or divide the product in two")
    height = min(found, key=lambda size: (abs(size - rows // size), -size))
    return height, rows // height
