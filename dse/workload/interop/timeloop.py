"""Timeloop problems: one layer, as loops and the projections of the tensors, or sizes for a shape that Timeloop brings along.

    problem:
      shape:
        dimensions: [C, M, P, R]
        coefficients: [{name: Wstride, default: 1}]
        data_spaces:
          - {name: Weights, projection: [[[C]], [[M]], [[R]]]}
          - {name: Inputs, projection: [[[C]], [[R], [P, Wstride]]]}        # R + P * Wstride
          - {name: Outputs, projection: [[[M]], [[P]]], read_write: True}
      instance: {C: 16, M: 32, P: 56, R: 3, Wstride: 2}

Both spellings are read, ``data-spaces`` and ``data_spaces``. A problem has no padding and no bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

from boards.errors import InputError
from dse.workload.interop.assembly import Assembly, listed
from dse.workload.interop.fields import items, mapping, text, whole
from dse.workload.interop.nest import Index, Nest, Operand, recognise
from dse.workload.network import Network
from dse.workload.operators import unknown

KEYS = ("version", "name", "shape", "instance")
SHAPE_KEYS = ("name", "dimensions", "coefficients", "data_spaces", "flatten", "ranks")
SPACE_KEYS = ("name", "projection", "read_write", "ranks")
DENSITIES = ("densities", "commonDensity", "common_density")
MAX_COEFFICIENT = 1 << 20


def _conv(channels: str) -> dict[str, Any]:
    def terms(*pairs: str) -> list[list[str]]:
        return [pair.split("*") for pair in pairs]

    return {
        "dimensions": ["R", "S", "P", "Q", "C", channels, "N"],
        "coefficients": [{"name": name, "default": 1} for name in ("Wstride", "Hstride", "Wdilation", "Hdilation")],
        "data_spaces": [
            {"name": "Weights", "projection": ["C", channels, "R", "S"]},
            {"name": "Inputs", "projection": ["N", "C", terms("R*Wdilation", "P*Wstride"), terms("S*Hdilation", "Q*Hstride")]},
            {"name": "Outputs", "projection": ["N", channels, "Q", "P"], "read_write": True}]}


SHAPES: dict[str, dict[str, Any]] = {
    "cnn_layer": _conv("K"),
    "gemm_ABZ": {"dimensions": ["M", "N", "K"], "data_spaces": [
        {"name": "A", "projection": ["M", "K"]}, {"name": "B", "projection": ["N", "K"]},
        {"name": "Z", "projection": ["M", "N"], "read_write": True}]}}
"""Shapes that Timeloop finds by name in its own ``problem-shapes``: its convolution (P, R are widths) and its matrix product."""


def load_timeloop(data: Mapping[str, Any], path: str, weight_bits: int | None = None, activation_bits: int | None = None) -> Network:
    """The network of one layer that the document with ``problem`` describes, w8a8 unless told otherwise.

    Raises InputError: file and key; for a nest that is no convolution or matrix product, its projection.
    """
    where = f"{path}: problem"
    problem = _underscored(mapping(data["problem"], where))
    assembly = Assembly(path, weight_bits=weight_bits or 8, activation_bits=activation_bits or 8)
    others = [key for key in data if key != "problem"]
    if others:
        assembly.remark(f"only the problem is read, not {listed(others)}")
    shape, place = _shape(problem, where)
    if "instance" in problem or isinstance(problem.get("shape"), Mapping):
        mapping(problem, where, KEYS)
        instance, at = mapping(problem.get("instance"), f"{where}.instance"), f"{where}.instance"
    else:  # the older form: sizes beside the shape
        instance, at = {key: value for key, value in problem.items() if key not in KEYS}, where
    nest = _nest(shape, instance, place, at, assembly)
    product = recognise(nest)
    name = assembly.name(PurePath(path).stem, otherwise="layer")
    assembly.layer(name, product.input_shape(), product.dimensions())
    return assembly.build()


def _shape(problem: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any], str]:
    """The shape, by name or written out, and how errors call it."""
    given = problem.get("shape", "cnn_layer")
    if isinstance(given, str):
        key = given.removesuffix(".yaml").replace("-", "_").lower()
        found = next((shape for name, shape in SHAPES.items() if name.lower() == key), None)
        if found is None:
            raise unknown("a shape that is in a file of Timeloop's, not in this one", given, list(SHAPES), where=f"{where}.shape")
        return found, f"{where}.shape"
    where = f"{where}.shape"
    shape = mapping(_underscored(mapping(given, where)), where, SHAPE_KEYS)
    for key in ("dimensions", "data_spaces"):
        if key not in shape:
            raise InputError("missing", where=f"{where}.{key}", suggestion="a shape has dimensions and data_spaces")
    return shape, where


def _nest(shape: Mapping[str, Any], instance: Mapping[str, Any], where: str, at: str, assembly: Assembly) -> Nest:
    loops = [text(loop, f"{where}.dimensions") for loop in items(shape, "dimensions", str, where)]
    repeated = [loop for loop in loops if loops.count(loop) > 1]
    if repeated:
        raise InputError("a dimension twice", where=f"{where}.dimensions", value=repeated[0])
    defaults = _coefficients(shape, where)
    _check_instance(instance, loops, defaults, at, assembly)
    missing = [loop for loop in loops if loop not in instance]
    if missing:
        raise InputError("missing", where=f"{at}.{missing[0]}", suggestion=f"sizes of {', '.join(loops)}")
    sizes = {loop: whole(instance[loop], f"{at}.{loop}", 1) for loop in loops}
    values = {name: whole(instance.get(name, default), f"{at}.{name}", 1, MAX_COEFFICIENT) for name, default in defaults.items()}
    spaces: list[tuple[Operand, bool]] = []
    for number, item in enumerate(items(shape, "data_spaces", dict, where)):
        spaces.append(_space(item, f"{where}.data_spaces[{number}]", loops, values))
    outputs = [operand for operand, is_written in spaces if is_written]
    inputs = [operand for operand, is_written in spaces if not is_written]
    if len(outputs) != 1 or len(inputs) != 2:
        raise InputError(f"{len(inputs)} data spaces that are read and {len(outputs)} that are written (read_write: True)",
                         where=f"{where}.data_spaces", allowed="two and one: inputs, weights; outputs")
    weights = next((operand.name for operand in inputs if operand.name.lower().startswith(("w", "filter", "kernel"))), inputs[1].name)
    return Nest(sizes, outputs[0], (inputs[0], inputs[1]), at, weights)


def _coefficients(shape: Mapping[str, Any], where: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, item in enumerate(items(shape, "coefficients", dict, where)):
        place = f"{where}.coefficients[{number}]"
        mapping(item, place, ("name", "default"))
        found[text(item.get("name"), f"{place}.name")] = whole(item.get("default", 1), f"{place}.default", 1, MAX_COEFFICIENT)
    return found


def _check_instance(instance: Mapping[str, Any], loops: list[str], defaults: Mapping[str, int], at: str, assembly: Assembly) -> None:
    """Files carry figures that Timeloop does not read (``H``, ``Hpad``): those are said to be ignored; what looks misspelt is refused."""
    known = [*loops, *defaults]
    ignored = []
    for key in instance:
        if key in known:
            continue
        if key in DENSITIES:
            assembly.remark("densities are not modelled: all weights are stored and multiplied")
            continue
        free = [name for name in known if name not in instance]
        near = next((name for name in free if name.lower() == key.lower()), None) or \
            next(iter(get_close_matches(key, [name for name in free if len(name) > 1], n=1, cutoff=0.75)), None)
        if near:
            raise InputError("unknown key", where=at, value=key, allowed=", ".join(known), suggestion=f"nearest: {near}")
        ignored.append(key)
    if ignored:
        assembly.remark(f"no projection uses {listed(ignored)}: ignored")


def _space(item: Mapping[str, Any], where: str, loops: list[str], values: Mapping[str, int]) -> tuple[Operand, bool]:
    """A data space, and whether it is written."""
    space = mapping(_underscored(item), where, SPACE_KEYS)
    name = text(space.get("name"), f"{where}.name")
    place = f"{where} {name[:40]}.projection" if name.isprintable() else f"{where}.projection"
    is_written = space.get("read_write", False)
    if not isinstance(is_written, bool):
        raise InputError("must be true or false", where=f"{where}.read_write", value=is_written)
    projection = space.get("projection")
    if not isinstance(projection, list) or not projection:
        raise InputError("must be a list of indices, each a list of [dimension] or [dimension, coefficient]", where=place, value=projection)
    return Operand(name, tuple(_index(given, f"{place}[{at}]", loops, values) for at, given in enumerate(projection)), place), is_written


def _index(given: Any, where: str, loops: list[str], values: Mapping[str, int]) -> Index:
    """``[[R, Wdilation], [P, Wstride]]``: a sum of products; or a dimension alone."""
    terms: list[tuple[str, int]] = []
    names: list[str] = []
    words: list[str] = []
    for term in [given] if isinstance(given, str) else given if isinstance(given, list) else [None]:
        parts = [term] if isinstance(term, str) else term
        if not isinstance(parts, list) or not 1 <= len(parts) <= 2 or not all(isinstance(part, str) for part in parts):
            raise InputError("must be a list of [dimension] or [dimension, coefficient]", where=where, value=given)
        loop, *coefficient = parts
        if loop not in loops:
            raise unknown("no such dimension", loop, loops, where=where)
        if coefficient and coefficient[0] not in values:
            raise unknown("no such coefficient", coefficient[0], list(values), where=where)
        terms.append((loop, values[coefficient[0]] if coefficient else 1))
        names += coefficient
        words.append("*".join(parts))
    return Index(tuple(terms), " + ".join(words), where, tuple(names))


def _underscored(data: Mapping[str, Any]) -> dict[str, Any]:
    """Older files write ``data-spaces``, ``read-write``."""
    return {key.replace("-", "_"): value for key, value in data.items()}
