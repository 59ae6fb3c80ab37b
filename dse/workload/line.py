"""Layers of a network that follow each other: which do, and some of them, or a single layer, as a network of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from boards.errors import InputError
from dse.workload.network import Network
from dse.workload.operators import ArrayOperator, InputOperator, Operator, Tensor, unknown
from hdl.layer import Layer

JOINT = "+"
"""Between the names of layers that are meant together."""


def lines(network: Network) -> list[tuple[str, ...]]:
    """Names of the layers of each longest line: array operators without repeats, of which each is the only reader of the one before it.
    Lines of one layer are left out."""
    readers: dict[str, list[str]] = {node.name: [] for node in network.nodes}
    for node in network.nodes:
        for source in dict.fromkeys(node.inputs):
            readers[source].append(node.name)
    layers = {node.name for node in network.array_operators if node.repeat == 1}
    return lines_among(readers, lambda name: name in layers and len(network.operator(name).inputs) == 1)


def lines_among(readers: Mapping[str, Sequence[str]], is_link: Callable[[str], bool]) -> list[tuple[str, ...]]:
    """``readers``: of each operator, in topological order. ``is_link``: whether it is a layer that reads one tensor."""
    following = {name: after[0] for name, after in readers.items() if len(after) == 1 and is_link(name) and is_link(after[0])}
    begun = set(following.values())
    result = []
    for name in following:
        if name not in begun:
            line = [name]
            while line[-1] in following:
                line.append(following[line[-1]])
            result.append(tuple(line))
    return result


def line_of(network: Network, names: Sequence[str], *, where: str = "--layer") -> Network:
    """The layers ``names`` and an input, called ``"<network>:<a>+<b>"``. Raises InputError, at ``where``, when one is no array layer or
    does not read the one before it."""
    layers = network.array_layers()
    joined = JOINT.join(names)
    operators: list[ArrayOperator] = []
    for name in names:
        if name not in layers:
            raise unknown("no such layer in the workload", name, list(layers), where=where)
        operator = network.operator(name)
        assert isinstance(operator, ArrayOperator)
        if operators and operator.inputs != (operators[-1].name,):
            raise InputError(f"{name} reads {' and '.join(operator.inputs)}, not {operators[-1].name}", where=where, value=joined,
                             suggestion="name layers that follow each other, with nothing between them")
        operators.append(operator)
    first = operators[0].layer
    source = InputOperator(name="input" if "input" not in names else "source",
                           output=Tensor((first.B * operators[0].repeat, first.C, first.IY, first.IX), operators[0].activation_bits))
    nodes: list[Operator] = [source, replace(operators[0], inputs=(source.name,)), *operators[1:]]
    return Network(name=f"{network.name}:{joined}", nodes=tuple(nodes), weight_bits=network.weight_bits,
                   activation_bits=network.activation_bits)


def network_of(layer: Layer, weight_bits: int = 8, activation_bits: int = 8) -> Network:
    """An input and ``layer``, which has no biases, called like the layer."""
    source = InputOperator(name="input" if layer.name != "input" else "source",
                           output=Tensor((layer.B, layer.C, layer.IY, layer.IX), activation_bits))
    node = ArrayOperator(layer=layer, inputs=(source.name,), weight_bits=weight_bits, activation_bits=activation_bits,
                         output_bits=activation_bits, bias=False)
    return Network(name=layer.name, nodes=(source, node), weight_bits=weight_bits, activation_bits=activation_bits)
