"""From a file to a network: each operator of the model by its family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath

from boards.errors import InputError
from dse.workload.network import Network
from dse.workload.onnx_import import convolution, host, matmul, recurrent
from dse.workload.onnx_import.building import Building, Source
from dse.workload.onnx_import.graph import STANDARD_DOMAINS, Graph, Node, clean_name, read_graph
from dse.workload.onnx_import.quantisation import DEQUANTIZE, QUANTISERS, QUANTIZE
from dse.workload.onnx_import.reading import ModelFile, read_model
from dse.workload.onnx_import.shapes import Shapes, infer_shapes
from dse.workload.onnx_import.surrogates import QONNX_DOMAINS

DEFAULT_BITS = 8
DEFINED = ("Attention",)
"""Operators that ONNX defines by others, matrix products among them."""
CONVOLUTIONS = ("Conv", "ConvInteger", "QLinearConv")
HANDLERS: dict[str, Callable[[Building, Node], None]] = {
    **dict.fromkeys(CONVOLUTIONS, convolution.convolution),
    **dict.fromkeys(("ConvTranspose", "DeformConv"), convolution.other_convolution),
    **dict.fromkeys(matmul.INPUTS, matmul.matmul), **dict.fromkeys(recurrent.GATES, recurrent.recurrent),
    **dict.fromkeys(host.VIEWS, host.view), "Transpose": host.transpose,
    **dict.fromkeys((*QUANTIZE, *DEQUANTIZE), host.quantiser),
    **{f"{domain}.{op}": host.quantiser for domain in QONNX_DOMAINS for op in QUANTISERS},
    "Relu": host.activation, "Clip": host.activation, "BatchNormalization": host.batch_norm,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), host.arithmetic), "MaxPool": host.pooling, "AveragePool": host.pooling}
"""What adds an operator to the network; every other one is the host's."""


@dataclass(frozen=True)
class Imported:
    """A network and the model it is from. ``notes``: what stays on the host although the array might be expected to compute it."""

    network: Network
    graph: Graph
    shapes: Shapes
    building: Building
    notes: tuple[str, ...]


def import_onnx(path: str, weight_bits: int | None = None, activation_bits: int | None = None,
                input_shapes: Mapping[str, Sequence[int]] | None = None) -> Imported:
    """The network of an ONNX model, with everything that was found out about it.

    The bits are those of operators that the model does not quantise itself: 8 by default. ``input_shapes``: sizes of the model's
    inputs by name, for those that have no fixed ones.

    Raises InputError: the file, the operator and the attribute that is wrong, an input without a size, a model without any layer.
    """
    graph = read_graph(_flat(read_model(path)))
    shapes = infer_shapes(graph, input_shapes)
    building = Building(graph, shapes, clean_name(PurePath(path).stem) or "model", weight_bits or DEFAULT_BITS,
                        activation_bits or DEFAULT_BITS)
    for name in graph.inputs:
        if graph.reader_count(name):
            operator = building.builder.input(building.stored_shape(name), building.unique(clean_name(name) or "input"),
                                              bits=building.bits(name))
            building.sources[name] = Source(operator)
    for node in graph.nodes:
        if not node.outputs or all(name in building.constants for name in node.outputs if name):
            continue
        HANDLERS.get(node.op, host.host)(building, node)
    if not building.builder.has_layers():
        raise _no_layers(building)
    return Imported(building.builder.build(), graph, shapes, building, tuple(building.notes))


def load_onnx(path: str, weight_bits: int | None = None, activation_bits: int | None = None,
              input_shapes: Mapping[str, Sequence[int]] | None = None) -> Network:
    """The network of an ONNX model; see :func:`import_onnx`."""
    return import_onnx(path, weight_bits, activation_bits, input_shapes).network


def _flat(file: ModelFile) -> ModelFile:
    """The model with its own functions put where they are called, and ONNX's definitions where operators hide products."""
    from onnx import inliner

    proto = file.proto
    try:
        if proto.functions:
            proto = inliner.inline_local_functions(proto)
    except Exception as error:  # what the C++ code throws
        raise InputError(f"its functions cannot be put in place: {' '.join(str(error).split())[:200]}", where=file.path) from None
    hidden = sorted({node.op_type for node in proto.graph.node if node.domain in STANDARD_DOMAINS and node.op_type in DEFINED})
    if hidden:
        with suppress(Exception):  # without it, the operator stays one of the host, with a note
            proto = inliner.inline_selected_functions(proto, [("", op) for op in hidden], inline_schema_functions=True)
    return ModelFile(file.path, proto)


def _no_layers(building: Building) -> InputError:
    counts = Counter(node.op for node in building.graph.nodes)
    found = ", ".join(f"{count} {op}" for op, count in counts.most_common(6))
    return InputError("no layer that the array computes", where=building.graph.path, value=found,
                      suggestion="; ".join(building.notes[:3]) or None)
