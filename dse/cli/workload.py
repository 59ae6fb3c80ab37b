"""WORKLOAD arguments: a layer in place or a file."""

from __future__ import annotations

from pathlib import PurePath

from boards.errors import InputError, nearest
from dse.workload.grammar import parse_layer
from dse.workload.layer_file import load_layer
from hdl.layer import KINDS, Layer
from sim.golden import MAX_ELEMENTS

LATER = {".onnx": "ONNX networks", ".csv": "SCALE-Sim topologies"}
ALLOWED = 'a layer in place ("conv K=.. C=.. ..", "linear K=.. C=..") or the path of a layer .yaml'


def read_workload(text: str, layer_name: str | None = None) -> Layer:
    """The layer that ``text`` says or names; ``layer_name`` must be its name when given.

    Raises InputError: what is wrong, or what the text most resembles.
    """
    layer = _read(text)
    if layer_name is not None and layer_name != layer.name:
        near = nearest(layer_name, [layer.name])
        raise InputError("no such layer in the workload", where="--layer", value=layer_name, allowed=layer.name,
                         suggestion=f"nearest: {near}" if near else None)
    return layer


def check_size(layer: Layer) -> None:
    """Refuse, before any long work, a layer whose tensors would not fit this machine's memory."""
    for name, size in (("input", layer.inputs), ("weight", layer.weights), ("output", layer.outputs)):
        if size > MAX_ELEMENTS:
            raise InputError(f"{name} tensor too large to simulate", where="layer", value=f"{size} elements",
                             allowed=f"at most {MAX_ELEMENTS}")


def _read(text: str) -> Layer:
    words = text.split()
    if not words:
        raise InputError("empty", where="WORKLOAD", value=text, allowed=ALLOWED)
    suffix = PurePath(text).suffix.lower()
    if words[0] in KINDS or "=" in text and len(words) > 1 and suffix not in (".yaml", ".yml"):
        return parse_layer(text)
    if suffix in LATER:
        raise InputError(f"{LATER[suffix]} come with the importers, which this version does not have", where="WORKLOAD", value=text,
                         allowed=ALLOWED)
    if suffix in (".yaml", ".yml"):
        return load_layer(text)
    near = nearest(words[0].lower(), KINDS)
    raise InputError("unknown workload", where="WORKLOAD", value=text, allowed=ALLOWED,
                     suggestion=f"nearest: {near}" if near else None)
