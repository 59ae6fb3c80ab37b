"""Some layers of a network that follow each other, as a network of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boards.errors import InputError
from dse.workload.network import Network
from dse.workload.operators import ArrayOperator, InputOperator, Operator, Tensor, unknown

JOINT = "+"
"""Between the names of layers that are meant together."""


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
