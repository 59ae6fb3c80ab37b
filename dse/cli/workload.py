"""WORKLOAD arguments of commands that run something: a network, one layer of it, or a layer in place or in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from boards.errors import InputError
from dse.cli.console import print_remarks
from dse.cli.design_options import DesignOptions
from dse.workload.line import JOINT, line_of
from dse.workload.load import load_workload
from dse.workload.network import Network
from dse.workload.operators import ArrayOperator, unknown
from hdl.layer import Layer
from sim.golden import MAX_ELEMENTS


@dataclass(frozen=True)
class Target:
    """What a command is to run: a network, at the precision that the design options ask for, or one layer (``network`` is None)."""

    network: Network | None
    options: DesignOptions


def read_target(text: str, layer_name: str | None, options: DesignOptions,
                input_shapes: Mapping[str, Sequence[int]] | None = None) -> Target:
    """Whether ``text`` with ``--layer`` is a network (or layers of one that follow each other, ``a+b``) or one layer, and the design
    options for it.

    A layer of a network runs at the network's precision where the options say nothing. ``input_shapes``: of an ONNX model. What an
    importer remarks is printed. Raises InputError.
    """
    found = load_workload(text, input_shapes=input_shapes)
    if isinstance(found, Network):
        print_remarks(found.remarks)
    network = _at_precision(text, found, options, input_shapes)
    if network is None:
        return Target(None, options)
    if layer_name is None:
        return Target(network, options)
    if JOINT in layer_name and layer_name not in network.array_layers():
        return Target(line_of(network, layer_name.split(JOINT)), options)
    operator = layer_operator(network, layer_name)
    if options.design is None and options.precision is None:
        return Target(None, replace(options, precision=operator.precision))
    weight_bits, activation_bits = _bits(options)
    if operator.weight_bits > weight_bits or operator.activation_bits > activation_bits:
        asked = options.precision or f"w{weight_bits}a{activation_bits}"
        raise InputError(f"{layer_name} of {network.name} is {operator.precision}",
                         where="--precision" if options.design is None else options.design, value=asked,
                         allowed=f"at least {operator.weight_bits} and {operator.activation_bits} bits")
    return Target(None, options)


def read_workload(text: str, layer_name: str | None = None, input_shapes: Mapping[str, Sequence[int]] | None = None) -> Layer:
    """The layer that ``text`` says or names; ``layer_name`` must be its name, or one of a network's.

    Raises InputError: what is wrong, or what the text most resembles.
    """
    found = load_workload(text, input_shapes=input_shapes)
    if isinstance(found, Network):
        if layer_name is None:
            raise InputError(f"{found.name} has {len(found.array_operators)} layers", where="--layer",
                             allowed=", ".join(found.array_layers()), suggestion="name one")
        return layer_operator(found, layer_name).layer
    if layer_name is not None and layer_name != found.name:
        raise unknown("no such layer in the workload", layer_name, [found.name], where="--layer")
    return found


def check_size(layer: Layer) -> None:
    """Refuse, before any long work, a layer whose tensors would not fit this machine's memory."""
    for name, size in (("input", layer.inputs), ("weight", layer.weights), ("output", layer.outputs)):
        if size > MAX_ELEMENTS:
            raise InputError(f"{name} tensor too large to simulate", where="layer", value=f"{size} elements",
                             allowed=f"at most {MAX_ELEMENTS}")


def _bits(options: DesignOptions) -> tuple[int, int]:
    """Weight and activation bits of the design that is asked for."""
    parsed = options.parse()
    if parsed.design is not None:
        return parsed.design.weight_bits, parsed.design.activation_bits
    return parsed.weight_bits, parsed.activation_bits


def _at_precision(text: str, found: Network | Layer, options: DesignOptions,
                  input_shapes: Mapping[str, Sequence[int]] | None) -> Network | None:
    """The network at the precision of the options, if they have one."""
    if isinstance(found, Layer):
        return None
    if options.design is None and options.precision is None:
        return found
    again = load_workload(text, *_bits(options), input_shapes)
    assert isinstance(again, Network)
    return again


def layer_operator(network: Network, name: str) -> ArrayOperator:
    """The layer called ``name``. Raises InputError: what it is instead, or the nearest one."""
    layers = network.array_layers()
    if name not in layers:
        hosts = {node.name: node.op for node in network.host_operators()}
        if name in hosts:
            raise InputError(f"{hosts[name]} is an operator of the host, not of the array", where="--layer", value=name,
                             allowed=", ".join(layers))
        raise unknown("no such layer in the workload", name, list(layers), where="--layer")
    found = network.operator(name)
    assert isinstance(found, ArrayOperator)
    return found
