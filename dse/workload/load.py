"""WORKLOAD arguments: a network of the zoo, a file of ours or of another tool, or one layer in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import PurePath
from typing import Any

from boards.errors import InputError, nearest
from dse.workload.grammar import parse_layer
from dse.workload.network import Network
from dse.workload.zoo import NAMES, load_network
from hdl.layer import KINDS, SHORTHANDS, Layer, nearest_key

YAML, CSV, ONNX = (".yaml", ".yml"), ".csv", ".onnx"
FILES = (*YAML, CSV)
ALLOWED = ('a layer in place ("conv K=.. C=.. ..", "linear K=.. C=.."), a network of `nearmac networks`, '
           "or the path of an .onnx, of a layer, network, ZigZag or Timeloop .yaml or of a SCALE-Sim .csv")
OTHER_FILES = {
    "operational_array": "a ZigZag accelerator", "spatial_mapping": "a ZigZag mapping", "architecture": "a Timeloop architecture",
    "mapper": "a Timeloop mapper", "mapping": "a Timeloop mapping", "rows": "a design or a space (--design, --space)",
    "device": "a board (--board)"}
"""What else a YAML file with this key is."""

InputShapes = Mapping[str, Sequence[int]]


def load_workload(text: str, weight_bits: int | None = None, activation_bits: int | None = None,
                  input_shapes: InputShapes | None = None) -> Network | Layer:
    """What ``text`` says or names: a zoo network, a file, or a layer in place. See :func:`load_file` for files other than ``.onnx``.

    The bits are the precision of a network; without them it has its own. ``input_shapes``: of the inputs of an ONNX model, by name.
    Raises InputError: what is wrong, or what the text most resembles.
    """
    words = text.split()
    if not words:
        raise InputError("empty", where="WORKLOAD", value=text, allowed=ALLOWED)
    if is_onnx(text):
        from dse.workload.onnx_import.importer import load_onnx

        return load_onnx(text, weight_bits, activation_bits, input_shapes)
    if input_shapes:
        raise InputError("only ONNX models have inputs with open sizes", where="--input-shape", value=next(iter(input_shapes)),
                         suggestion="leave it out")
    if text.strip() in NAMES:
        return load_network(text.strip(), weight_bits, activation_bits)
    suffix = PurePath(text).suffix.lower()
    is_file = suffix in FILES
    if words[0] in KINDS or "=" in text and len(words) > 1 and not is_file:
        return parse_layer(text)
    if is_file:
        return load_file(text, weight_bits, activation_bits)
    if suffix == ".cfg":
        raise InputError("a configuration, not a workload", where="WORKLOAD", value=text, allowed=ALLOWED,
                         suggestion="a SCALE-Sim configuration belongs to --scalesim-config")
    near = nearest(words[0].lower(), (*KINDS, *NAMES))
    raise InputError("unknown workload", where="WORKLOAD", value=text, allowed=ALLOWED,
                     suggestion=f"nearest: {near}" if near else None)


def is_onnx(text: str) -> bool:
    """Whether ``text`` is the path of an ONNX model."""
    return PurePath(text).suffix.lower() == ONNX


def load_whole_network(text: str, weight_bits: int | None = None, activation_bits: int | None = None,
                       input_shapes: InputShapes | None = None) -> Network:
    """The network that ``text`` names, in the zoo or as a file. Raises InputError for anything else, a layer too."""
    name = text.strip()
    if not input_shapes and (name in NAMES or PurePath(name).suffix.lower() not in (*FILES, ONNX, ".cfg")):
        return load_network(name, weight_bits, activation_bits)
    found = load_workload(name, weight_bits, activation_bits, input_shapes)
    if isinstance(found, Layer):
        raise InputError("a single layer, not a network", where=name, suggestion="a network file has nodes")
    return found


def load_file(path: str, weight_bits: int | None = None, activation_bits: int | None = None) -> Network | Layer:
    """A ``.csv`` is a SCALE-Sim topology. A ``.yaml`` is recognised by its content: a list is a ZigZag workload; a mapping with ``nodes``
    a network of ours, with ``problem`` a Timeloop problem, with keys of a layer a layer.

    Raises InputError: what is wrong in it, or, where it is none of these, the nearest key that one of them has.
    """
    if PurePath(path).suffix.lower() == CSV:
        from dse.workload.interop.scalesim import load_topology

        return load_topology(path, weight_bits, activation_bits)
    from boards.strict_yaml import read_document

    data = read_document(path)
    if isinstance(data, list):
        from dse.workload.interop.zigzag import load_zigzag, looks_like_workload

        if looks_like_workload(data):
            return load_zigzag(data, path, weight_bits, activation_bits)
    elif isinstance(data, Mapping):
        if "nodes" in data:
            from dse.workload.network_file import network_from_mapping

            return network_from_mapping(data, where=path, weight_bits=weight_bits, activation_bits=activation_bits)
        if "problem" in data:
            from dse.workload.interop.timeloop import load_timeloop

            return load_timeloop(data, path, weight_bits, activation_bits)
        if any(key in LAYER_KEYS for key in data):
            return Layer.from_dict(data, where=f"{path}: layer")
    raise _unrecognised(data, path)


LAYER_KEYS = {field.name for field in fields(Layer)} - {"name"} | set(SHORTHANDS)
MARKS = {"nodes": "network", "problem": "Timeloop problem", "operator_type": "ZigZag layer", "equation": "ZigZag layer",
         "loop_dims": "ZigZag layer", "loop_sizes": "ZigZag layer", **dict.fromkeys(sorted(LAYER_KEYS), "layer")}
"""Keys that say what a file is."""


def _unrecognised(data: Any, path: str) -> InputError:
    """No workload: what it is instead, or what it was meant to be."""
    items = data if isinstance(data, list) else [data]
    keys = list(dict.fromkeys(key for item in items[:100] if isinstance(item, Mapping) for key in item))
    other = next((what for key, what in OTHER_FILES.items() if key in keys), None)
    near = next(((key, found) for key in keys if (found := nearest_key(key, list(MARKS))) and len(key) > 1), None)
    return InputError(f"{other}, not a workload" if other else "not a workload that is known", where=path, value=keys[:8] if keys else data,
                      allowed="a layer (kind, K, C, ..), a network (nodes), a ZigZag workload (a list with operator_type, equation, ..), "
                              "a Timeloop problem (problem)",
                      suggestion=f"nearest valid key: {near[1]} of a {MARKS[near[1]]}, for {near[0]}" if near and not other else None)
