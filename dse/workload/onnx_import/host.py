"""Operators that the array does not compute: what the output stage can fold, views, and everything else with its operations and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import prod

import numpy as np

from boards.errors import InputError
from dse.workload.builder import OPS_PER_ELEMENT
from dse.workload.onnx_import.building import Building, Source
from dse.workload.onnx_import.convolution import AXES, paddings
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.quantisation import DEQUANTIZE, QUANTIZE
from dse.workload.onnx_import.shapes import Shape
from dse.workload.onnx_import.surrogates import MICROSOFT
from dse.workload.operators import UNKNOWN_SHAPE, Window

NAMES = {
    "Add": "add", "Sum": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Concat": "concat", "Softmax": "softmax",
    "LogSoftmax": "log_softmax", "MaxPool": "max_pool", "AveragePool": "average_pool", "GlobalAveragePool": "global_average_pool",
    "GlobalMaxPool": "global_max_pool", "LRN": "local_response_norm", "BatchNormalization": "batch_norm", "ReduceMean": "reduce_mean",
    "PRelu": "prelu", "ScatterND": "scatter_nd", f"{MICROSOFT}.QLinearAdd": "add", f"{MICROSOFT}.QLinearMul": "multiply",
    f"{MICROSOFT}.QLinearConcat": "concat", f"{MICROSOFT}.QLinearAveragePool": "average_pool",
    f"{MICROSOFT}.QLinearGlobalAveragePool": "global_average_pool", "QuantizeLinear": "quantize", "DynamicQuantizeLinear": "quantize"}
"""What operators are called here; the others by ONNX's name."""
OPS_PER_OUTPUT = {
    **{name: 1 for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Neg", "Abs", "Floor", "Ceil", "Round", "Sqrt", "Exp", "Log",
                            "Reciprocal", "And", "Or", "Not", "Xor", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Where",
                            "Pow", "Sign", "Erf", "Relu", f"{MICROSOFT}.QLinearAdd", f"{MICROSOFT}.QLinearMul")},
    "LeakyRelu": 2, "PRelu": 2, "ThresholdedRelu": 2, "HardSigmoid": 4, "HardSwish": 5, "Clip": 2, "QuantizeLinear": 5,
    "DynamicQuantizeLinear": 7, "Elu": 4, "Selu": 4, "Celu": 5, "Softplus": 3, "Softsign": 3, "Mish": 9, "Gelu": 5, "Swish": 5,
    "LogSoftmax": 6, "InstanceNormalization": 9, "LayerNormalization": 9, "GroupNormalization": 9, "RMSNormalization": 6,
    "Sigmoid": OPS_PER_ELEMENT["sigmoid"], "Tanh": OPS_PER_ELEMENT["tanh"], "Softmax": OPS_PER_ELEMENT["softmax"],
    "BatchNormalization": OPS_PER_ELEMENT["batch_norm"]}
"""Operations an output element: an addition, multiplication, comparison, exponential or root is one. Operators that are nowhere here
move data, or are not known: they have none."""
OPS_PER_INPUT = {
    "GlobalAveragePool": 1, "GlobalMaxPool": 1, "ReduceMean": 1, "ReduceSum": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceProd": 1,
    "ReduceL2": 2, "ReduceL1": 2, "ReduceSumSquare": 2, "ReduceLogSumExp": 2, "ArgMax": 1, "ArgMin": 1, "CumSum": 1, "TopK": 1,
    f"{MICROSOFT}.QLinearGlobalAveragePool": 1}
PARTS = ("Slice", "Split", "Gather", "SpaceToDepth", "DepthToSpace", "Transpose", "Crop", "Resize", "Upsample", "Expand", "Tile")
"""Operators that read no more of their operand than they write."""
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast")
RANDOM = ("RandomNormal", "RandomUniform")
PER_CHANNEL = {"Mul": "scale", "Div": "scale", "Add": "offset", "Sub": "offset"}
MAX_CLAMP = 6.0
UNDONE = {
    **dict.fromkeys((f"{MICROSOFT}.{op}" for op in ("FusedConv", "FusedGemm", "FusedMatMul", "NhwcFusedConv", "Attention",
                                                    "MultiHeadAttention", "DynamicQuantizeMatMul", "QAttention")),
                    "ONNX Runtime's optimiser made it: import the model as it was before"),
    "Einsum": "a product written as Einsum is not looked into: export it as MatMul",
    "Attention": "its products are not looked into: export them as MatMul and Softmax"}
"""Operators that hide products, and what to do about it."""


def host(building: Building, node: Node) -> None:
    """Add any operator as one of the host, an output tensor each; those that nobody reads are left out."""
    wanted = [name for name in node.outputs if name and (building.graph.reader_count(name) or name == node.outputs[0])]
    read = [name for name in node.inputs if name and name not in building.constants]
    captured = [name for name in building.graph.captured.get(node, ()) if name not in building.constants]
    operators = [building.source(name, node).operator for name in (*read, *captured)]
    parameters = sum(prod(building.shapes.sizes.get(name, (0,))) for name in node.inputs
                     if name in building.constants and building.quantisation.integer_type(name) is None)
    note = ""
    if node.subgraphs():
        note = _control_flow(building, node)
    elif node.op in UNDONE:
        note = building.note(node.label, UNDONE[node.op])
    for at, name in enumerate(node.outputs):
        if name not in wanted:
            continue
        label = node.label if at == 0 or name == wanted[0] else building.unique(f"{node.label}.{at}")
        shape, bits = building.stored_shape(name), building.bits(name)
        if not operators:  # nothing that flows through the network: a random tensor, a loop over constants
            building.hold(name, building.builder.input(shape, label, bits=bits))
            continue
        first = name == wanted[0]
        part = prod(shape) if node.op in PARTS and len(operators) == 1 and shape != UNKNOWN_SHAPE else None
        whole = building.tensor(operators[0]).elements
        building.hold(name, building.builder.host(
            operator_name(node), *operators, name=label, shape=shape, bits=bits, ops=_ops(building, node, shape) if first else 0,
            parameters=parameters if first else 0, note=note if first else "",
            read_elements=min(part, whole) or None if part is not None and whole else None))


def operator_name(node: Node) -> str:
    """``LeakyRelu`` -> ``leaky_relu``."""
    if node.op in NAMES:
        return NAMES[node.op]
    name = node.op.removeprefix(f"{MICROSOFT}.")
    letters = [f"_{letter.lower()}" if letter.isupper() and at and not name[at - 1].isupper() and name[at - 1].isalnum() else letter.lower()
               for at, letter in enumerate(name) if letter.isprintable() and not letter.isspace()]
    return "".join(letters)[:100] or "unknown"


def _ops(building: Building, node: Node, shape: Shape) -> int:
    inputs = building.stored_shape(node.inputs[0]) if node.inputs and node.inputs[0] else UNKNOWN_SHAPE
    if node.op == "LRN":
        return prod(shape) * (node.whole("size", 1, 1) + 6)
    if node.op == "Sum":
        return prod(shape) * (len(node.inputs) - 1)
    return min(prod(shape) * OPS_PER_OUTPUT.get(node.op, 0) + prod(inputs) * OPS_PER_INPUT.get(node.op, 0), 1 << 60)


def _control_flow(building: Building, node: Node) -> str:
    """A note of what a node's own graphs hold, layers above all."""
    counts: Counter[str] = Counter()
    stack = node.subgraphs()
    while stack:
        graph = stack.pop()
        counts.update(inner.op_type for inner in graph.node)
        for inner in graph.node:
            stack += [attribute.g for attribute in inner.attribute if attribute.HasField("g")]
            stack += [other for attribute in inner.attribute for other in attribute.graphs]
    layers = [f"{counts[op]} {op}" for op in ("Conv", "Gemm", "MatMul", "LSTM", "GRU") if counts[op]]
    inside = f"control flow over {sum(counts.values())} operators{', among them ' if layers else ''}{', '.join(layers)}"
    return building.note(node.label, f"{inside}: not looked into")


# -- what costs nothing -----------------------------------------------------------------------------------------------


def view(building: Building, node: Node) -> None:
    """Reshape and the like, Identity, Dropout and conversions of floats: nothing moves."""
    name, output = node.needed(0, "the tensor"), node.outputs[0]
    source = building.source(name, node)
    if node.op in ("Identity", "Dropout", "Cast"):
        kinds = [building.quantisation.integer_type(tensor) for tensor in (name, output)]
        # Sums of an integer layer leave the array requantised, whatever type the model converts them to.
        is_sum = building.builder.is_layer(source.operator) and kinds[1] is None
        if (node.op != "Cast" or kinds == [None, None] or is_sum) and not any(
                building.graph.reader_count(other) for other in node.outputs[1:] if other):
            building.passed_on(node, source)
            return
        host(building, node)
        return
    shape = building.stored_shape(output)
    if shape == UNKNOWN_SHAPE or prod(shape) != building.tensor(source.operator).elements:
        host(building, node)
        return
    building.produced(node, building.view(source.operator, shape, node.label))


def transpose(building: Building, node: Node) -> None:
    """A view where only sizes of 1 change places; else the host moves it."""
    shape = building.shapes.sizes.get(node.needed(0, "the tensor"))
    order = node.open_list("perm") or list(range(len(shape or ())))[::-1]
    if shape is not None and sorted(order) == list(range(len(shape))):
        moved = [axis for axis in order if shape[axis] != 1]
        if moved == sorted(moved):
            view(building, node)
            return
    host(building, node)


def quantiser(building: Building, node: Node) -> None:
    """Quantisers and dequantisers are part of what produces and reads the tensor, unless that has other bits."""
    source = building.source(node.needed(0, "the tensor"), node)
    found = building.quantisation.of_node(node)
    if node.op not in DEQUANTIZE and (found is None or found.array_bits != building.tensor(source.operator).bits):
        host(building, node)
        return
    building.passed_on(node, source)
    if node.op in QUANTIZE or node.op not in DEQUANTIZE:
        building.close(node.outputs[0])


# -- what the output stage may compute --------------------------------------------------------------------------------


def activation(building: Building, node: Node) -> None:
    """Relu and Clip: folded into a layer or addition before it."""
    source = building.source(node.needed(0, "the tensor"), node)
    kind = building.quantisation.integer_type(node.inputs[0])
    if kind is not None and not source.open:
        host(building, node)
        return
    b = building.builder
    name = "relu" if node.op == "Relu" else _clip(building, node)
    operator = b.activation(name, source.operator, node.label)
    building.produced(node, operator, channels=source.channels)


def _clip(building: Building, node: Node) -> str:
    """``relu``, ``relu6`` or ``clip`` by its limits, which are attributes before opset 11."""
    limits = [float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None
              for value in (building.constants.optional(node.input(at)) for at in (1, 2))]
    low = limits[0] if node.input(1) else node.number("min", -np.inf)
    high = limits[1] if node.input(2) else node.number("max", np.inf)
    return "clip" if low != 0 else "relu6" if high == MAX_CLAMP else "relu" if high is not None and high > 3e38 else "clip"


def batch_norm(building: Building, node: Node) -> None:
    """Scale and offset of each channel, with the statistics of training."""
    source = building.source(node.needed(0, "the tensor"), node)
    constant = all(name in building.constants for name in node.inputs[1:] if name)
    shape = building.shapes.sizes.get(node.inputs[0], ())
    if not constant or len(building.tensor(source.operator).shape) != 4 or source.channels != 1 or len(shape) < 2 or node.whole(
            "training_mode", 0):
        host(building, node)
        return
    for at, what in ((1, "scale"), (2, "offset"), (3, "mean"), (4, "variance")):
        found = building.shape(node.needed(at, f"the {what}"), node)
        if found != shape[1:2]:
            raise InputError(f"not one {what} for each channel", where=node.where, value=found, allowed=str(shape[1:2]))
    building.produced(node, building.builder.batch_norm(source.operator, node.label), is_open=source.open)


def arithmetic(building: Building, node: Node) -> None:
    """Sums and products: with constants of one value, or of one a channel, after a layer they are its output stage's."""
    constants = [name for name in node.inputs if name in building.constants]
    others = [name for name in node.inputs if name not in building.constants]
    if len(node.inputs) == 2 and len(constants) == len(others) == 1 and (
            node.op in ("Add", "Mul") or node.inputs[0] == others[0]) and node.op in PER_CHANNEL:
        source = building.source(others[0], node)
        size = building.shapes.sizes.get(others[0])
        if source.open and size is not None and _is_per_channel(building.shape(constants[0], node), size, source):
            method: Callable[[str, str], str] = getattr(building.builder, PER_CHANNEL[node.op])
            building.produced(node, method(source.operator, node.label), channels=source.channels, is_open=True)
            return
    host(building, node)


def _is_per_channel(constant: Shape, size: Shape, source: Source) -> bool:
    """Whether a constant of this shape has one value, or one for each of the layer's channels."""
    if prod(constant) == 1 and len(constant) <= len(size):
        return True
    if source.channels is None or len(constant) > len(size):
        return False
    padded = (1,) * (len(size) - len(constant)) + constant
    return all(found == (size[at] if at == source.channels else 1) for at, found in enumerate(padded))


def pooling(building: Building, node: Node) -> None:
    """MaxPool and AveragePool, with their windows where they have two axes."""
    name = node.needed(0, "the tensor")
    source, size = building.source(name, node), building.shape(name, node)
    shape = building.stored_shape(node.outputs[0])
    rank = len(size) - 2
    if rank not in AXES or any(building.graph.reader_count(other) for other in node.outputs[1:] if other):
        host(building, node)
        return
    filter_ = tuple(node.wholes("kernel_shape", rank, None, 1) or ())
    if not filter_:
        raise InputError("missing", where=f"{node.where}.kernel_shape")
    strides, dilations = (tuple(node.wholes(key, rank, [1] * rank, 1) or ()) for key in ("strides", "dilations"))
    window = None
    if rank == 2 and max(dilations) == 1:
        begin, end = paddings(node, size[2:], filter_, strides)
        window = Window(filter_[0], filter_[1], strides[0], strides[1], begin[0], begin[1], end[0], end[1])
    building.produced(node, building.builder.host(NAMES[node.op], source.operator, name=node.label, shape=shape,
                                                  bits=building.bits(node.outputs[0]), ops=min(prod(shape) * prod(filter_), 1 << 60),
                                                  window=window))
