"""WORKLOAD arguments: a network of the zoo, a file, or one layer in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from boards.errors import InputError, nearest
from dse.workload.grammar import parse_layer
from dse.workload.network import Network
from dse.workload.zoo import NAMES, load_network
from hdl.layer import KINDS, Layer

YAML = (".yaml", ".yml")
ONNX = ".onnx"
LATER = {".csv": "SCALE-Sim topologies"}
ALLOWED = ('a layer in place ("conv K=.. C=.. ..", "linear K=.. C=.."), a network of `nearmac networks`, '
           "or the path of an .onnx or a layer or network .yaml")

InputShapes = Mapping[str, Sequence[int]]


def load_workload(text: str, weight_bits: int | None = None, activation_bits: int | None = None,
                  input_shapes: InputShapes | None = None) -> Network | Layer:
    """What ``text`` says or names: a zoo network, an ``.onnx``, a layer or network ``.yaml``, or a layer in place.

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
    is_file = suffix in YAML
    if words[0] in KINDS or "=" in text and len(words) > 1 and not is_file:
        return parse_layer(text)
    if suffix in LATER:
        raise InputError(f"{LATER[suffix]} come with the importers, which this version does not have", where="WORKLOAD", value=text,
                         allowed=ALLOWED)
    if is_file:
        return _load_file(text, weight_bits, activation_bits)
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
    if not input_shapes and (name in NAMES or PurePath(name).suffix.lower() not in (*YAML, ONNX, *LATER)):
        return load_network(name, weight_bits, activation_bits)
    found = load_workload(name, weight_bits, activation_bits, input_shapes)
    if isinstance(found, Layer):
        raise InputError("a single layer, not a network", where=name, suggestion="a network file has nodes")
    return found


def _load_file(path: str, weight_bits: int | None, activation_bits: int | None) -> Network | Layer:
    """A file with ``nodes`` is a network, any other a layer."""
    from boards.strict_yaml import read_mapping
    from dse.workload.network_file import network_from_mapping

    data = read_mapping(path)
    if "nodes" in data:
        return network_from_mapping(data, where=path, weight_bits=weight_bits, activation_bits=activation_bits)
    return Layer.from_dict(data, where=f"{path}: layer")
