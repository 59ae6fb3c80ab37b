"""A workload as a network for inputs of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from boards.errors import InputError
from dse.workload.builder import NetworkBuilder
from dse.workload.line import network_of
from dse.workload.load import is_onnx, load_workload
from dse.workload.network import Network
from dse.workload.network_file import add_node, node_mapping
from dse.workload.operators import ArrayOperator, HostOperator, InputOperator, unknown
from dse.workload.pooling import pooled
from hdl.layer import Layer


def load_sized(text: str, input_shapes: Mapping[str, Sequence[int]] | None = None) -> Network:
    """The network that ``text`` says or names, or its single layer as a network, with inputs of these shapes. Raises InputError."""
    if is_onnx(text):
        found = load_workload(text, input_shapes=input_shapes)  # sizes inside the model follow too
        assert isinstance(found, Network)
        return found
    found = load_workload(text)
    network = network_of(found) if isinstance(found, Layer) else found
    return resized(network, input_shapes) if input_shapes else network


def resized(network: Network, input_shapes: Mapping[str, Sequence[int]]) -> Network:
    """``network`` with inputs, by name, of the shapes (B, C, H, W): layers keep their output channels, filters, strides, pads and groups,
    and pooling its windows; sizes, input channels and with them weights follow.

    Raises InputError for a name that is no input, where a filter no longer fits, and for operators of which it is not known how their
    output follows from their input.
    """
    for name in input_shapes:
        if name not in {node.name for node in network.inputs}:
            raise unknown("no such input", name, [node.name for node in network.inputs], where="--input-shape")
    b = NetworkBuilder(network.name, weight_bits=network.weight_bits, activation_bits=network.activation_bits, title=network.title)
    b.remarks += network.remarks
    for node in network.nodes:
        mapping = node_mapping(network, node)
        if isinstance(node, InputOperator):
            shape = tuple(input_shapes.get(node.name, node.output.shape))
            if len(shape) != len(node.output.shape):
                raise InputError(f"{node.name} has {len(node.output.shape)} sizes", where="--input-shape", value="x".join(map(str, shape)),
                                 allowed=f"such as {'x'.join(map(str, node.output.shape))}")
            mapping["shape"] = list(shape)
        elif isinstance(node, HostOperator):
            shape = _shape(node, [b.tensor(name).shape for name in node.inputs], f"{network.name}: {node.name}")
            mapping["shape"] = list(shape)
            mapping["ops"] = node.ops * prod(shape) // node.output.elements
        elif isinstance(node, ArrayOperator) and node.layer.G == node.layer.C > 1:
            channels = b.tensor(node.inputs[0]).shape[1]  # depthwise stays depthwise
            mapping |= {"G": channels, "K": channels * (node.layer.K // node.layer.C)}
        add_node(b, mapping, None, network.name)
    return b.build()


def _shape(node: HostOperator, shapes: Sequence[tuple[int, ...]], where: str) -> tuple[int, ...]:
    """Of the output, for operands of ``shapes``."""
    before, after, first = [operand.shape for operand in node.operands], node.output.shape, shapes[0]
    if list(shapes) == before:
        return after
    if node.window is not None:
        try:
            return (*first[:2], *(pooled(axis, size, node.window, _is_ceil(node)) for axis, size in zip("YX", first[2:], strict=True)))
        except InputError as error:
            raise InputError(error.what, where=f"{where}.{error.where}", value=error.value) from None
    if node.op == "concat" and len(after) == 4 and after[1] == sum(shape[1] for shape in before):
        return (first[0], sum(shape[1] for shape in shapes), *first[2:])
    if node.is_view and len(after) == 4 and after == (before[0][0], prod(before[0][1:]), 1, 1):
        return (first[0], prod(first[1:]), 1, 1)
    if node.op == "global_average_pool":
        return (*first[:2], 1, 1)
    if node.op in ("add", "multiply") and all(len({*sizes, 1}) <= 2 for sizes in zip(*shapes, strict=True)):
        return tuple(map(max, *shapes))
    if len(shapes) == 1 and after == before[0]:
        return first
    raise InputError(f"it is not known what {node.op} makes of another input size", where=where, value=list(first))


def _is_ceil(node: HostOperator) -> bool:
    """Whether the pooling rounds sizes up: whether those it has are not those of rounding down."""
    assert node.window is not None
    down = tuple(pooled(axis, size, node.window, False) for axis, size in zip("YX", node.operands[0].shape[2:], strict=True))
    return down != node.output.shape[2:]
