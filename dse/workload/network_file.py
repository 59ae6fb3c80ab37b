"""Networks as YAML files: a list of operators in order, each naming those it reads.

    name: tiny
    weight_bits: 8        # and activation_bits: of whatever does not say otherwise; 8 by default
    nodes:
      - {op: input, shape: [1, 3, 32, 32]}
      - {op: conv, name: conv1, K: 16, F: 3, P: 1}      # reads the node before it
      - {op: relu}
      - {op: max_pool, name: pool1, F: 2, S: 2}
      - {op: conv, name: conv2, K: 16, F: 3, P: 1}
      - {op: add, inputs: [pool1, conv2]}

``op`` is a method of :class:`NetworkBuilder` and the other keys are its arguments. ``host`` stands for every other operator: its
``operator``, ``shape``, ``ops``.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from boards.errors import InputError
from boards.strict_yaml import read_mapping
from dse.workload.builder import NetworkBuilder
from dse.workload.layer_file import dump_mapping
from dse.workload.network import MAX_NODES, Network
from dse.workload.operators import ArrayOperator, HostOperator, InputOperator, Operator, Window, unknown
from dse.workload.pooling import pooling_window
from hdl.layer import LIMITS, Layer

KEYS = ("name", "title", "weight_bits", "activation_bits", "nodes")
ACTIVATIONS = ("relu6", "clip", "sign", "sigmoid", "tanh")
OPS = ("input", "conv", "linear", "max_pool", "average_pool", "global_average_pool", "add", "multiply", "concat", "flatten", "batch_norm",
       "relu", "scale", "offset", *ACTIVATIONS, "softmax", "local_response_norm", "host")
LAYERS = ("conv", "linear")
SEVERAL = ("add", "multiply", "concat", "host")
"""Operators that read any number of others; a layer's second is the one that computes its weights."""


def load_network_file(path: str | Path, weight_bits: int | None = None, activation_bits: int | None = None) -> Network:
    """The network of a YAML file; bits given here replace those of the file's head. Raises InputError naming file and operator."""
    return network_from_mapping(read_mapping(path), where=str(path), weight_bits=weight_bits, activation_bits=activation_bits)


def network_from_mapping(data: Mapping[str, Any], *, where: str, weight_bits: int | None = None,
                         activation_bits: int | None = None) -> Network:
    """The network of a file's content; ``where`` is how errors call it."""
    for key in data:
        if key not in KEYS:
            raise unknown("unknown key", key, KEYS, where=where)
    nodes = data.get("nodes")
    if not isinstance(nodes, list) or not 1 <= len(nodes) <= MAX_NODES:
        raise InputError("must be a list of operators", where=f"{where}: nodes", value=nodes, allowed=f"1 to {MAX_NODES}")
    title = data.get("title", "")
    if not isinstance(title, str):
        raise InputError("must be a string", where=f"{where}: title", value=title)
    b = NetworkBuilder(data.get("name", "network"), title=title, where=where,
                       weight_bits=data.get("weight_bits", 8) if weight_bits is None else weight_bits,
                       activation_bits=data.get("activation_bits", 8) if activation_bits is None else activation_bits)
    last: str | None = None
    for index, node in enumerate(nodes):
        last = add_node(b, node, last, f"{where}: nodes[{index}]")
    return b.build()


def dump_network(network: Network) -> str:
    """YAML text that :func:`load_network_file` reads back to an equal network."""
    head = {"name": network.name, **({"title": network.title} if network.title else {}), "weight_bits": network.weight_bits,
            "activation_bits": network.activation_bits}
    lines = [f"  - {flow_text(node_mapping(network, node))}\n" for node in network.nodes]
    return dump_mapping(head) + "nodes:\n" + "".join(lines)


# -- reading ----------------------------------------------------------------------------------------------------------


def add_node(b: NetworkBuilder, node: Any, last: str | None, where: str) -> str:
    """Add the operator that a mapping of ``nodes`` describes, which by default reads ``last``; its name. Raises InputError at ``where``."""
    if not isinstance(node, Mapping):
        raise InputError("must be a mapping with op", where=where, value=node, suggestion="for example {op: conv, K: 16, F: 3}")
    arguments = dict(node)
    op = arguments.pop("op", None)
    if not isinstance(op, str) or op not in OPS:
        raise unknown("missing" if op is None else "unknown operator", op, OPS, where=f"{where}.op")
    if "name" in arguments and not isinstance(arguments["name"], str):
        raise InputError("must be a string", where=f"{where}.name", value=arguments["name"])
    positional: list[Any] = []
    if op in ACTIVATIONS:
        method, positional = b.activation, [op]
    else:
        method = getattr(b, op)
    if op == "host":
        positional.append(_text(arguments.pop("operator", None), f"{where}.operator"))
        if "window" in arguments:
            arguments["window"] = _window(arguments["window"], f"{where}.window")
    if op == "input":
        arguments["shape"] = _items(arguments.get("shape"), int, f"{where}.shape")
    else:
        positional += _sources(arguments.pop("inputs", last), op, f"{where}.inputs")
        if op in LAYERS and len(positional) == 2:
            arguments["weights"] = positional.pop()
        for key, kind in (("shape", int), ("folded", str)):
            if key in arguments:
                arguments[key] = _items(arguments[key], kind, f"{where}.{key}")
    _check_keys(method, arguments, where)
    added: str = method(*positional, **arguments)
    return added


def _sources(given: Any, op: str, where: str) -> list[str]:
    names = [given] if isinstance(given, str) else _items(given, str, where)
    if op not in SEVERAL and len(names) != 1 and not (op in LAYERS and len(names) == 2):
        raise InputError(f"{op} reads one operator", where=where, value=given)
    return names


def _items(given: Any, kind: type, where: str) -> list[Any]:
    if not isinstance(given, list) or not all(type(item) is kind for item in given):
        raise InputError(f"must be a list of {'whole numbers' if kind is int else 'names'}", where=where, value=given)
    return given


def _text(given: Any, where: str) -> str:
    if not isinstance(given, str) or not given:
        raise InputError("must be the operator's name", where=where, value=given, suggestion="for example sigmoid")
    return given


def _window(given: Any, where: str) -> Window:
    if not isinstance(given, Mapping):
        raise InputError("must be a mapping of FY, FX, ..", where=where, value=given)
    try:
        return pooling_window(given)
    except InputError as error:
        raise InputError(f"{error.where}: {error.what}", where=where, value=error.value, allowed=error.allowed,
                         suggestion=error.suggestion) from None


def _check_keys(method: Any, arguments: Mapping[str, Any], where: str) -> None:
    """Refuse keys that are no arguments of ``method``; dimensions are its own matter."""
    parameters = inspect.signature(method).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        strange = [key for key in arguments if key in ("self", "source")]
        known = list(LIMITS)
    else:
        known = [name for name in parameters if name not in ("op", "source", "sources")]
        strange = [key for key in arguments if key not in known]
    if strange:
        raise unknown("unknown key", strange[0], ["op", "inputs", *known], where=where)


# -- writing ----------------------------------------------------------------------------------------------------------


def node_mapping(network: Network, node: Operator) -> dict[str, Any]:
    """What :func:`add_node` makes ``node`` of; defaults are left out."""
    if isinstance(node, InputOperator):
        return {"op": "input", "name": node.name, "shape": list(node.output.shape),
                **({"bits": node.output.bits} if node.output.bits != network.activation_bits else {}),
                **({"is_state": True} if node.is_state else {})}
    if isinstance(node, HostOperator):
        given = {"op": "host", "operator": node.op, "name": node.name, "inputs": list(node.inputs), "shape": list(node.output.shape)}
        optional = {"bits": node.output.bits if node.output.bits != node.operands[0].bits else None, "ops": node.ops,
                    "parameters": node.parameters, "is_view": node.is_view, "folded": list(node.folded),
                    "window": asdict(node.window) if node.window else None, "note": node.note,
                    "read_elements": node.read_elements}
        return given | {key: value for key, value in optional.items() if value}
    return {"op": node.kind, "name": node.name, "inputs": list(node.inputs), **_dimensions(node.layer), **_options(network, node)}


def flow_text(value: Any) -> str:
    """Plain values as YAML on one line; every string is quoted."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow_text(item)}" for key, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _dimensions(layer: Layer) -> dict[str, Any]:
    """The fields of a layer that do not follow from its input."""
    follow = ("name", "kind", "B", "C", "IY", "IX", "OY", "OX", *(("FY", "FX") if layer.kind == "linear" else ()))
    always = ("K", "FY", "FX")
    return {field.name: getattr(layer, field.name) for field in fields(layer)
            if field.name not in follow and (field.name in always or getattr(layer, field.name) != field.default)}


def _options(network: Network, node: ArrayOperator) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "bias": True, "weight_bits": network.weight_bits, "activation_bits": network.operator(node.inputs[0]).output.bits,
        "output_bits": network.activation_bits, "folded": (), "repeat": 1}
    if "sign" in node.folded:
        usual["output_bits"] = None  # bits, whatever the precision that the file is read at
    given = {key: getattr(node, key) for key, value in usual.items() if getattr(node, key) != value}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
