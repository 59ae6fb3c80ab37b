"""ZigZag workloads: a YAML list of layers, each a loop nest in index notation.

    - id: 0
      operator_type: Conv
      equation: O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]
      dimension_relations: [ix=1*ox+1*fx, iy=1*oy+1*fy]
      loop_dims: [B, K, C, OY, OX, FY, FX]
      loop_sizes: [1, 192, 192, 13, 13, 3, 3]
      operand_precision: {W: 8, I: 8, O: 16, O_final: 8}
      operand_source: {I: 0, W: 0}

``Conv``, ``Conv_downsample`` and ``Gemm`` run on the array, the other types on the host.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from boards.errors import InputError
from dse.workload.interop.assembly import Assembly
from dse.workload.interop.fields import items, mapping, text, whole
from dse.workload.interop.nest import BATCH_NAMES, HEIGHT_NAMES, WIDTH_NAMES, Axis, Index, Nest, Operand, recognise
from dse.workload.network import MAX_NODES, Network
from dse.workload.operators import ELEMENT_BITS, unknown

ON_ARRAY = ("Conv", "Conv_downsample", "Gemm")
ON_HOST = {"Add": "add", "Max": "max_pool", "MaxPool": "max_pool", "AveragePool": "average_pool",
           "GlobalAveragePool": "global_average_pool", "Pooling": "pool", "Pool": "pool"}
REQUIRED = ("id", "operator_type", "equation", "loop_dims", "loop_sizes", "operand_precision")
KEYS = (*REQUIRED, "name", "dimension_relations", "operand_source", "pr_loop_dims", "pr_loop_sizes", "padding")
PRECISIONS = ("W", "I", "O", "O_final")
EXAMPLE = "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"


@dataclass(frozen=True)
class Entry:
    """A layer of the file, its types checked. ``padding``: (size without padding or None, before, after) of each padded index."""

    where: str
    id: int
    name: str
    type: str
    nest: Nest
    bits: dict[str, int]
    sources: dict[str, int]
    padding: dict[str, tuple[int | None, int | None, int | None]] = field(default_factory=dict)


def load_zigzag(data: Any, path: str, weight_bits: int | None = None, activation_bits: int | None = None) -> Network:
    """The network of a workload file's content. Bits given here replace the file's most frequent ones; other layers keep theirs.

    Where a layer reads more rows than the layer before it writes, the difference is padding: these files leave it out. Raises
    InputError: file, layer, key.
    """
    if not isinstance(data, list) or not 1 <= len(data) <= MAX_NODES // 2:
        raise InputError("must be a list of layers", where=path, value=data, allowed=f"1 to {MAX_NODES // 2}")
    entries = [_entry(item, f"{path}: [{at}]") for at, item in enumerate(data)]
    usual = {key: Counter(entry.bits[key] for entry in entries if entry.type in ON_ARRAY and key in entry.bits).most_common(1)
             for key in ("W", "I")}
    heads = {key: found[0][0] if found else 8 for key, found in usual.items()}
    where = {key: next((entry.where for entry in entries if entry.bits.get(key) == bits), path) for key, bits in heads.items()}
    assembly = Assembly(path, weight_bits=weight_bits or _width(heads["W"], where["W"], "W"),
                        activation_bits=activation_bits or _width(heads["I"], where["I"], "I"))
    names: dict[int, str] = {}
    for entry in entries:
        if entry.id in names:
            raise InputError("an earlier layer has this id", where=f"{entry.where}.id", value=entry.id)
        for operand, source in entry.sources.items():
            if source != entry.id and source not in names:
                raise InputError("no such layer before this one", where=f"{entry.where}.operand_source.{operand}", value=source,
                                 allowed=f"an earlier id, or its own ({entry.id}) for data from outside")
        name = assembly.name(entry.name, otherwise=f"Layer{entry.id}")
        read = {operand: names[source] for operand, source in entry.sources.items() if source != entry.id}
        if entry.type in ON_ARRAY:
            names[entry.id] = _layer(assembly, entry, name, read, heads)
        else:
            names[entry.id] = _host(assembly, entry, name, read)
    return assembly.build()


def looks_like_workload(data: Any) -> bool:
    """Whether a YAML document is meant to be a workload."""
    return isinstance(data, list) and any(isinstance(item, Mapping) and {"operator_type", "equation", "loop_dims"} & item.keys()
                                          for item in data)


# -- layers -----------------------------------------------------------------------------------------------------------


def _layer(assembly: Assembly, entry: Entry, name: str, read: dict[str, str], heads: dict[str, int]) -> str:
    product = recognise(entry.nest)
    source = read.get(product.activations)
    if len(read) > (source is not None):
        assembly.remark("its weights come from another layer; they are taken as given", name)
    batch, channels, *_ = product.input_shape()
    have = assembly.builder.tensor(source).shape if source else ()
    sizes: list[int] = []
    pads: dict[str, int] = {}
    for axis, keys, at in ((product.y, ("PT", "PB"), 2), (product.x, ("PL", "PR"), 3)):
        size, before, after, is_assumed = _padded(entry, axis, have[at] if have[:2] == (batch, channels) else None)
        sizes.append(size)
        pads |= {key: pad for key, pad in zip(keys, (before, after), strict=True) if pad}
        if is_assumed:
            assembly.remark("padding taken from the sizes: it reads more than it gets", name)
    shape = (batch, channels, *sizes)
    connected = assembly.reads(source, shape, is_linear=product.is_linear) if source else None
    if source and connected is None:
        assembly.remark("reads another size than its source writes: it has an input of its own", name)
    bits = {key: None if entry.bits.get(key, heads[key]) == heads[key] else _width(entry.bits[key], entry.where, key) for key in heads}
    activation_bits = bits["I"] or assembly.builder.activation_bits
    taken = {"W": bits["W"] or assembly.builder.weight_bits, "I": activation_bits}
    if any(wanted not in ELEMENT_BITS and wanted < taken.get(key, 0) for key, wanted in entry.bits.items()):
        assembly.remark("bits that the array does not have: the next width is taken", name)
    if connected and assembly.builder.tensor(connected).bits > activation_bits:
        connected = assembly.builder.host("requantize", connected, name=assembly.name(f"{connected}_narrow", otherwise="narrow"),
                                          bits=activation_bits, ops=assembly.builder.tensor(connected).elements)
    final = entry.bits.get("O_final", heads["I"])
    if final > ELEMENT_BITS[-1]:
        assembly.remark(f"outputs of more than {ELEMENT_BITS[-1]} bits: the array writes no more", name)
    output_bits = None if final == heads["I"] else _width(min(final, ELEMENT_BITS[-1]), entry.where, "O_final")
    return assembly.layer(name, shape, {**product.dimensions(), **pads}, source=connected, weight_bits=bits["W"],
                          activation_bits=activation_bits, output_bits=output_bits)


def _padded(entry: Entry, axis: Axis, have: int | None) -> tuple[int, int, int, bool]:
    """Size without padding, padding before and after, and whether that is assumed. ``have``: what the source writes.

    ZigZag counts as inputs what the windows reach, less the padding; without any, a file's sizes may show it.
    """
    index = axis.index.names[0].upper() if axis.index else ""
    size, before, after = entry.padding.get(index, (None, None, None))
    effective = (axis.taps - 1) * axis.dilation + 1
    is_assumed = False
    if before is None or after is None:
        if size is None and have is not None and -axis.stride < axis.inputs - have < effective:
            size = have
        missing = 0 if size is None else max(0, axis.inputs - size)
        before, after, is_assumed = missing // 2, missing - missing // 2, missing > 0
    if size is None:
        size = axis.inputs - before - after
    if size < 1 or (size + before + after - effective) // axis.stride + 1 != axis.outputs:
        raise InputError(f"{size} and padding of {before} and {after} do not give {axis.outputs} outputs of a filter of {effective} at "
                         f"stride {axis.stride}", where=f"{entry.where}.pr_loop_sizes: {index}", value=size)
    return size, before, after, is_assumed


def _host(assembly: Assembly, entry: Entry, name: str, read: dict[str, str]) -> str:
    nest = entry.nest
    shape = _shape(nest.output, nest.sizes, entry.where)
    sources = list(dict.fromkeys(read.values())) or [assembly.builder.input(shape, assembly.name(f"{name}_input", otherwise="input"))]
    return assembly.builder.host(ON_HOST[entry.type], *sources, name=name, shape=shape, ops=min(prod(nest.sizes.values()), 1 << 60))


def _shape(output: Operand, sizes: Mapping[str, int], where: str) -> tuple[int, int, int, int]:
    """(B, C, H, W) of a host operator's output: loops by their names, all others are channels."""
    found = {"b": 1, "c": 1, "y": 1, "x": 1}
    for loop in output.loops:
        lower = loop.lower()
        if loop not in sizes:
            raise InputError("no such loop", where=f"{where}.equation", value=loop, allowed=", ".join(sizes))
        place = "b" if lower in BATCH_NAMES else "y" if lower in HEIGHT_NAMES else "x" if lower in WIDTH_NAMES else "c"
        found[place] *= sizes[loop]
    return found["b"], found["c"], found["y"], found["x"]


def _width(bits: int, where: str, operand: str) -> int:
    """The next width that the array has."""
    wide = next((width for width in ELEMENT_BITS if width >= bits), None)
    if wide is None:
        raise InputError("more bits than the array has", where=f"{where}.operand_precision.{operand}", value=bits,
                         allowed=f"1 to {ELEMENT_BITS[-1]}", suggestion="give the precision with --precision")
    return wide


# -- reading ----------------------------------------------------------------------------------------------------------


def _entry(item: Any, where: str) -> Entry:
    mapping(item, where, KEYS)
    for key in REQUIRED:
        if key not in item:
            raise InputError("missing", where=f"{where}.{key}", suggestion=f"a layer has {', '.join(REQUIRED)}")
    name = item.get("name")
    if name is not None and not isinstance(name, str):
        raise InputError("must be a string", where=f"{where}.name", value=name)
    where = f"{where} {name[:80]}" if name and name.isprintable() else where
    kind = item["operator_type"]
    if not isinstance(kind, str) or kind not in (*ON_ARRAY, *ON_HOST):
        raise unknown("not a type of ZigZag", kind, (*ON_ARRAY, *ON_HOST), where=f"{where}.operator_type")
    identity = whole(item["id"], f"{where}.id", 0)
    sizes = _sizes(item, where)
    sources = {key: whole(value, f"{where}.operand_source.{key}", 0)
               for key, value in mapping(item.get("operand_source") or {}, f"{where}.operand_source", ("W", "I")).items()}
    bits = {key: whole(value, f"{where}.operand_precision.{key}", 0 if kind in ON_HOST else 1, 64)
            for key, value in mapping(item["operand_precision"], f"{where}.operand_precision", PRECISIONS).items()}
    return Entry(where, identity, name or "", kind, _nest(item, sizes, sources, identity, where), bits, sources, _padding(item, where))


def _nest(item: Mapping[str, Any], sizes: dict[str, int], sources: dict[str, int], identity: int, where: str) -> Nest:
    equation = text(item["equation"], f"{where}.equation")
    joined = re.sub(r"\s+", "", equation)
    access = r"([A-Za-z]\w*)((?:\[\w*\])+)"
    found = re.fullmatch(rf"{access}\+?={access}([*+]){access}", joined, re.ASCII)
    if not found:
        raise InputError("not an equation of an output and two operands", where=f"{where}.equation", value=equation, suggestion=EXAMPLE)
    if (found[5] == "+" or found[3] == found[6]) and item["operator_type"] in ON_ARRAY:
        raise InputError(f"{item['operator_type']} multiplies two operands", where=f"{where}.equation", value=equation, suggestion=EXAMPLE)
    relations = _relations(item, where)

    def operand(name: str, brackets: str) -> Operand:
        indices = []
        for index in re.findall(r"\[(\w+)\]", brackets):
            if index.upper() in sizes or index.upper() not in relations:
                indices.append(Index(((index.upper(), 1),), index, f"{where}.equation", (index,)))
            else:
                terms, written = relations[index.upper()]
                indices.append(Index(terms, written, f"{where}.dimension_relations", (index,)))
        return Operand(name, tuple(indices), f"{where}.equation")

    output, one, other = (operand(found[at], found[at + 1]) for at in (1, 3, 6))
    constants = [name for name, source in sources.items() if source == identity]
    weights = "W" if "W" in (one.name, other.name) else constants[0] if len(constants) == 1 else other.name
    return Nest(sizes, output, (one, other), f"{where}.loop_dims", weights)


def _relations(item: Mapping[str, Any], where: str) -> dict[str, tuple[tuple[tuple[str, int], ...], str]]:
    """``"ix=2*ox+1*fx"`` -> {"IX": ((("OX", 2), ("FX", 1)), text)}."""
    found: dict[str, tuple[tuple[tuple[str, int], ...], str]] = {}
    for at, written in enumerate(items(item, "dimension_relations", str, where)):
        place = f"{where}.dimension_relations[{at}]"
        joined = re.sub(r"\s+", "", text(written, place))
        match = re.fullmatch(r"(\w+)=(?:([0-9]{1,6})\*)?(\w+)\+(?:([0-9]{1,6})\*)?(\w+)", joined, re.ASCII)
        if not match:
            raise InputError("not a relation", where=place, value=written, suggestion="for example ix=2*ox+1*fx")
        target, first, one, second, other = match.groups()
        if target.upper() in found:
            raise InputError(f"{target} has a relation already", where=place, value=written)
        found[target.upper()] = (((one.upper(), int(first or 1)), (other.upper(), int(second or 1))), written)
    return found


def _padding(item: Mapping[str, Any], where: str) -> dict[str, tuple[int | None, int | None, int | None]]:
    """Of every index in ``pr_loop_dims``: its size without padding, padding before and after."""
    names = [name.upper() for name in items(item, "pr_loop_dims", str, where)]
    sizes = items(item, "pr_loop_sizes", int, where) or [None] * len(names)
    pairs = items(item, "padding", list, where) or [[None, None]] * len(names)
    for key, values in (("pr_loop_sizes", sizes), ("padding", pairs)):
        if len(values) != len(names):
            raise InputError("must be as many as pr_loop_dims", where=f"{where}.{key}", value=item.get(key), allowed=str(len(names)))
    found = {}
    for name, size, pair in zip(names, sizes, pairs, strict=True):
        if size is not None:
            whole(size, f"{where}.pr_loop_sizes", 1)
        if len(pair) != 2:
            raise InputError("must be pairs", where=f"{where}.padding", value=pair, suggestion="[before, after]")
        before, after = (value if value is None else whole(value, f"{where}.padding", 0) for value in pair)
        found[name] = (size, before, after)
    return found


def _sizes(item: Mapping[str, Any], where: str) -> dict[str, int]:
    names, sizes = items(item, "loop_dims", str, where), items(item, "loop_sizes", int, where)
    if len(names) != len(sizes):
        raise InputError(f"{len(sizes)} sizes for {len(names)} loops", where=f"{where}.loop_sizes", value=sizes)
    found: dict[str, int] = {}
    for name, size in zip(names, sizes, strict=True):
        if name.upper() in found:
            raise InputError("a loop twice", where=f"{where}.loop_dims", value=name)
        found[name.upper()] = whole(size, f"{where}.loop_sizes: {name}", 1)
    return found
