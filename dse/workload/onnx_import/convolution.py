"""Conv, ConvInteger, QLinearConv and their kin as layers; 1-D ones as convolutions of height 1."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from boards.errors import InputError
from dse.workload.onnx_import.building import MAX_ARRAY_BITS, Building
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.quantisation import Quantiser
from dse.workload.onnx_import.shapes import Shape
from dse.workload.onnx_import.surrogates import MICROSOFT
from dse.workload.onnx_import.weights import weight_bits

AXES = {1: "W", 2: "HW", 3: "DHW"}
PADDING = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@dataclass(frozen=True)
class Operands:
    """Names of the tensors that a layer reads, ``""`` for what it does not have. Scales and zero points of the integer operators."""

    data: str
    weight: str
    bias: str = ""
    data_scale: str = ""
    data_zero_point: str = ""
    weight_scale: str = ""
    weight_zero_point: str = ""
    output_scale: str = ""
    output_zero_point: str = ""


INPUTS = {
    "Conv": ("data", "weight", "bias"),
    "ConvInteger": ("data", "weight", "data_zero_point", "weight_zero_point"),
    "QLinearConv": ("data", "data_scale", "data_zero_point", "weight", "weight_scale", "weight_zero_point", "output_scale",
                    "output_zero_point", "bias"),
    "ConvTranspose": ("data", "weight", "bias"), "DeformConv": ("data", "weight", "offset", "bias", "mask"),
}
"""What each input of an operator is, in the order of ONNX's documentation."""


def operands(node: Node) -> Operands:
    """The tensors of a node of :data:`INPUTS`."""
    given = dict(zip(INPUTS[node.op], node.inputs, strict=False))
    for needed in ("data", "weight"):
        node.needed(INPUTS[node.op].index(needed), f"the {needed}")
    return Operands(**{name: tensor for name, tensor in given.items() if name in Operands.__dataclass_fields__})


@dataclass(frozen=True)
class Geometry:
    """A convolution over any number of axes, H before W: sizes of input, filter and output, and what lies between them."""

    batch: int
    outputs: int
    inputs: int
    groups: int
    size: Shape
    filter: Shape
    strides: Shape
    dilations: Shape
    begin: Shape
    end: Shape
    output: Shape

    @property
    def macs(self) -> int:
        return self.batch * self.outputs * prod(self.output) * (self.inputs // self.groups) * prod(self.filter)

    def dimensions(self) -> dict[str, int]:
        """What a layer of two axes has beyond its input."""
        found = {"K": self.outputs, "G": self.groups}
        for at, axis in enumerate("YX"):
            found |= {f"F{axis}": self.filter[at], f"S{axis}": self.strides[at], f"D{axis}": self.dilations[at]}
        pads = zip(("PT", "PL", "PB", "PR"), (*self.begin, *self.end), strict=True)
        return found | dict(pads)

    def with_height(self) -> Geometry:
        """One axis as the width of a height of 1."""
        one, none = (1,), (0,)
        return Geometry(self.batch, self.outputs, self.inputs, self.groups, one + self.size, one + self.filter, one + self.strides,
                        one + self.dilations, none + self.begin, none + self.end, one + self.output)


def geometry(node: Node, data: Shape, weight: Shape, bias: Shape | None) -> Geometry:
    """The convolution that ``node`` makes of tensors of these shapes. Raises InputError naming attribute and axis."""
    rank = len(data) - 2
    if rank not in AXES:
        raise InputError("its input must have 3 to 5 sizes (batch, channels, and W, HW or DHW)", where=node.where, value=data)
    if len(weight) != len(data):
        raise InputError(f"weights of {len(weight)} sizes for an input of {len(data)}", where=node.where, value=weight)
    if min((*data, *weight)) < 1:
        raise InputError("a tensor without elements", where=node.where, value=(data, weight))
    groups = node.whole("group", 1, 1)
    if data[1] != weight[1] * groups:
        raise InputError(f"weights for {weight[1]} channels a group and {groups} groups", where=f"{node.where}.group", value=data[1],
                         allowed=f"an input of {weight[1] * groups} channels")
    if weight[0] % groups:
        raise InputError(f"{weight[0]} output channels are not divided by the groups", where=f"{node.where}.group", value=groups)
    kernel = node.wholes("kernel_shape", rank, None, 1)
    if kernel is not None and tuple(kernel) != weight[2:]:
        raise InputError("the weights have another filter", where=f"{node.where}.kernel_shape", value=kernel, allowed=str(weight[2:]))
    if bias is not None and prod(bias) != weight[0]:
        raise InputError("not one bias for each output channel", where=f"{node.where}: bias", value=bias, allowed=f"({weight[0]},)")
    strides, dilations = (tuple(node.wholes(name, rank, [1] * rank, 1) or ()) for name in ("strides", "dilations"))
    covered = tuple((size - 1) * step + 1 for size, step in zip(weight[2:], dilations, strict=True))
    begin, end = paddings(node, data[2:], covered, strides)
    output = []
    for axis, size, extent, stride, pad in zip(AXES[rank], data[2:], covered, strides, map(sum, zip(begin, end, strict=True)),
                                               strict=True):
        if size + pad < extent:
            raise InputError(f"axis {axis}: the filter covers {extent}, more than the padded input of {size + pad}", where=node.where)
        output.append((size + pad - extent) // stride + 1)
    return Geometry(data[0], weight[0], data[1], groups, data[2:], weight[2:], strides, dilations, begin, end, tuple(output))


def paddings(node: Node, size: Shape, covered: Shape, strides: Shape) -> tuple[Shape, Shape]:
    """Elements before and after each axis: ``pads``, or as ``auto_pad`` says. SAME: as many outputs as strides fit in the input."""
    rank = len(size)
    mode = node.text("auto_pad", "NOTSET") or "NOTSET"
    if mode not in PADDING:
        raise InputError("not a way of padding", where=f"{node.where}.auto_pad", value=mode, allowed=", ".join(PADDING))
    pads = node.wholes("pads", 2 * rank, [0] * 2 * rank, 0) or []
    if mode == "NOTSET":
        return tuple(pads[:rank]), tuple(pads[rank:])
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
    begin, end = [], []
    for length, extent, stride in zip(size, covered, strides, strict=True):
        total = max((-(-length // stride) - 1) * stride + extent - length, 0)
        less, more = total // 2, total - total // 2
        begin.append(less if mode == "SAME_UPPER" else more)
        end.append(more if mode == "SAME_UPPER" else less)
    return tuple(begin), tuple(end)


# -- into the network ---------------------------------------------------------------------------------------------------


def convolution(building: Building, node: Node) -> None:
    """Add a convolution: to the array, or to the host with the reason where the array cannot have it."""
    tensors = operands(node)
    data, weight = (building.shape(name, node) for name in (tensors.data, tensors.weight))
    bias = building.shape(tensors.bias, node) if tensors.bias else None
    found = geometry(node, data, weight, bias)
    check_output(building, node, (found.batch, found.outputs, *found.output))
    if len(found.size) == 3:
        axis = f"axis D (filter {found.filter[0]}, input {found.size[0]})"
        on_host(building, node, "conv", found.macs, f"the array convolves over H and W only, not over {axis}")
        return
    flat = found if len(found.size) == 2 else found.with_height()
    layer(building, node, "conv", tensors, (found.batch, found.inputs, *flat.size), flat.dimensions(), macs=found.macs, weight_axis=0)


def layer(building: Building, node: Node, kind: str, tensors: Operands, shape: Shape, dimensions: dict[str, int], *, macs: int,
          weight_axis: int, channels: int | None = 1) -> None:
    """Add a ``conv`` or ``linear`` layer that reads its data in ``shape``; on the host where the array's limits do not allow it.

    ``weight_axis``: the axis of the weight tensor along which scales and zero points may differ; ``channels``: that of the output.
    """
    b = building.builder
    source = building.source(tensors.data, node)
    bits = weight_bits(building, tensors.weight, tensors.weight_zero_point, node, weight_axis)
    weights = None if tensors.weight in building.constants else building.source(tensors.weight, node).operator
    source_bits = node.whole("act_size", 0, 0, MAX_ARRAY_BITS) or building.tensor(source.operator).bits
    wide = max(source_bits, building.tensor(weights).bits if weights else 1)
    if wide > MAX_ARRAY_BITS:
        on_host(building, node, kind, macs, f"operands of {wide} bits, the array has at most {MAX_ARRAY_BITS}")
        return
    if weights:
        bits = max(bits, building.tensor(weights).bits)
    options = {"weight_bits": bits, "output_bits": output_bits(building, node), "bias": bool(tensors.bias), "weights": weights,
               **integers(building, tensors, output_quantiser(building, node)), **dimensions}
    try:
        # Whether the array has these sizes is known before a view is made for it.
        read = source.operator if building.tensor(source.operator).shape == shape else None
        if read is None:
            _check_limits(building, node, kind, shape, dimensions)
            read = building.view(source.operator, shape, node.label)
        method = b.conv if kind == "conv" else b.linear
        method(read, node.label, activation_bits=source_bits, **options)
    except InputError as error:
        what = " ".join(filter(None, ((error.where or "").rpartition(": ")[2], error.what)))
        if error.has_value:
            what += f": {error.value!r}" + (f", the array has {error.allowed}" if error.allowed else "")
        on_host(building, node, kind, macs, what)
        return
    building.produced(node, node.label, channels=channels, is_open=True)


def _check_limits(building: Building, node: Node, kind: str, shape: Shape, dimensions: dict[str, int]) -> None:
    """Raise InputError where the array has no layer of these sizes."""
    from hdl.layer import Layer

    sizes = {"IY": shape[2], "IX": shape[3]} if kind == "conv" else {}
    Layer.from_dict({"kind": kind, "B": shape[0], "C": shape[1], **sizes, **dimensions}, where=f"{building.graph.path}: {node.label}")


def check_output(building: Building, node: Node, shape: Shape) -> None:
    """Raise InputError where inference found another output than the layer has."""
    known = building.shapes.sizes.setdefault(node.outputs[0], shape)
    if known != shape:
        raise InputError(f"an output of {known} is expected", where=node.where, value=shape)


def output_quantiser(building: Building, node: Node) -> Quantiser | None:
    """How the layer's results are quantised: by the operator itself, or by what follows it."""
    if node.op in ("QLinearConv", "QLinearMatMul", f"{MICROSOFT}.QGemm"):
        kind = building.quantisation.integer_type(node.outputs[0])
        return Quantiser(*kind, "", "") if kind else None
    return building.quantisation.ahead(node.outputs[0])


def output_bits(building: Building, node: Node) -> int:
    """Of a layer's elements: never those of its sums, which the array requantises."""
    stated = node.whole("output_size", 0, 0, MAX_ARRAY_BITS) if node.has("weight_size") else 0
    found = output_quantiser(building, node)
    if found is None or found.array_bits > MAX_ARRAY_BITS:
        return stated or building.builder.activation_bits
    return found.array_bits


def integers(building: Building, tensors: Operands, output: Quantiser | None) -> dict[str, Any]:
    """Signedness and zero points of a layer's activations, as far as the model has them as constants."""
    quantisation, constants = building.quantisation, building.constants
    found: dict[str, Any] = {}
    kind, behind = quantisation.integer_type(tensors.data), quantisation.behind(tensors.data)
    zero_point = tensors.data_zero_point
    if kind is None and behind is not None and behind.array_bits <= MAX_ARRAY_BITS:
        kind, zero_point = (behind.bits, behind.signed), behind.zero_point
    if kind is not None and kind[0] <= MAX_ARRAY_BITS:
        found["activations_signed"] = kind[1]
        if zero_point in constants:
            found["input_zero_point"] = quantisation.zero_point(zero_point)
    if output is not None and output.array_bits <= MAX_ARRAY_BITS:
        found["outputs_signed"] = output.signed
        zero_point = tensors.output_zero_point or output.zero_point
        if zero_point in constants:
            found["output_zero_point"] = quantisation.zero_point(zero_point)
    return found


def on_host(building: Building, node: Node, kind: str, macs: int, note: str) -> None:
    """A layer that stays on the host, with its operations and the reason."""
    operators = [building.source(name, node).operator for name in node.inputs if name and name not in building.constants]
    parameters = sum(prod(building.shapes.sizes.get(name, (0,))) for name in node.inputs if name in building.constants)
    if not operators:
        operators = [building.source(node.inputs[0], node).operator]
    shape = building.stored_shape(node.outputs[0])
    name = building.builder.host(kind, *operators, name=node.label, shape=shape, bits=building.bits(node.outputs[0]), ops=2 * macs,
                                 parameters=parameters, note=building.note(node.label, note))
    building.produced(node, name)


def other_convolution(building: Building, node: Node) -> None:
    """ConvTranspose and DeformConv: counted by their names, not run on the array."""
    tensors = operands(node)
    data, weight = (building.shape(name, node) for name in (tensors.data, tensors.weight))
    if len(data) != len(weight) or len(data) < 3 or data[1] < 1:
        raise InputError(f"weights of {len(weight)} sizes for an input of {len(data)}", where=node.where, value=weight)
    groups = node.whole("group", 1, 1)
    if node.op == "ConvTranspose":  # every input element meets every weight of its group
        macs = data[0] * prod(data[2:]) * prod(weight)
        on_host(building, node, "conv_transpose", macs, "transposed convolutions are counted, not run on the array")
        return
    output = building.shape(node.outputs[0], node)
    macs = prod(output) * (data[1] // groups) * prod(weight[2:])
    on_host(building, node, "deform_conv", macs, "deformable convolutions are counted, not run on the array")
