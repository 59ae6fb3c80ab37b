"""An ONNX graph in order: nodes with checked attributes, who makes each tensor and who reads it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from boards.errors import InputError
from dse.workload.network import MAX_NODES
from dse.workload.onnx_import.reading import ModelFile
from dse.workload.operators import MAX_NAME, unknown

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

STANDARD_DOMAINS = ("", "ai.onnx")
MAX_WHOLE = 1 << 40  # of attributes that are sizes


@dataclass(frozen=True, eq=False)
class Node:
    """One operator of the file. ``label``: how errors and users call it, unlike every other's."""

    proto: NodeProto
    label: str
    where: str

    @property
    def op(self) -> str:
        """``Conv``; with its domain where that is not ONNX's own: ``com.microsoft.QLinearAdd``."""
        domain = self.proto.domain
        return self.proto.op_type if domain in STANDARD_DOMAINS else f"{domain}.{self.proto.op_type}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors it reads; an optional one that is left out is ``""``."""
        return tuple(self.proto.input)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.proto.output)

    def input(self, index: int) -> str:
        """Name of an input, ``""`` where it is left out."""
        return self.proto.input[index] if index < len(self.proto.input) else ""

    def needed(self, index: int, what: str) -> str:
        """Name of an input that must be there."""
        name = self.input(index)
        if not name:
            raise InputError(f"{self.proto.op_type} without its input {index}, {what}", where=self.where)
        return name

    @cached_property
    def _attributes(self) -> dict[str, Any]:
        return {attribute.name: attribute for attribute in self.proto.attribute}

    def has(self, name: str) -> bool:
        return name in self._attributes

    def whole(self, name: str, default: int, low: int = -MAX_WHOLE, high: int = MAX_WHOLE) -> int:
        attribute = self._attributes.get(name)
        if attribute is None:
            return default
        self._check_kind(name, attribute, attribute.INT, "a whole number")
        if not low <= attribute.i <= high:
            raise InputError("out of range", where=f"{self.where}.{name}", value=attribute.i, allowed=f"{low} to {high}")
        return int(attribute.i)

    def wholes(self, name: str, count: int, default: list[int] | None, low: int) -> list[int] | None:
        """A list of ``count`` whole numbers from ``low`` on; ``default`` where it is left out."""
        attribute = self._attributes.get(name)
        if attribute is None or not attribute.ints and attribute.type in (attribute.INTS, attribute.UNDEFINED):
            return default
        self._check_kind(name, attribute, attribute.INTS, "a list of whole numbers")
        values = [int(value) for value in attribute.ints]
        if len(values) != count:
            raise InputError(f"must have {count} values", where=f"{self.where}.{name}", value=values)
        if any(not low <= value <= MAX_WHOLE for value in values):
            raise InputError("out of range", where=f"{self.where}.{name}", value=values, allowed=f"from {low} on")
        return values

    def open_list(self, name: str) -> list[int]:
        """A list of whole numbers of any length, empty where it is left out."""
        attribute = self._attributes.get(name)
        return [] if attribute is None else [int(value) for value in attribute.ints]

    def number(self, name: str, default: float) -> float:
        attribute = self._attributes.get(name)
        if attribute is None:
            return default
        self._check_kind(name, attribute, attribute.FLOAT, "a number")
        return float(attribute.f)

    def text(self, name: str, default: str) -> str:
        attribute = self._attributes.get(name)
        if attribute is None:
            return default
        self._check_kind(name, attribute, attribute.STRING, "text")
        return str(attribute.s.decode("utf-8", "replace"))

    def tensor(self, name: str) -> TensorProto | None:
        attribute = self._attributes.get(name)
        return None if attribute is None or not attribute.HasField("t") else attribute.t

    def subgraphs(self) -> list[GraphProto]:
        """What control flow runs."""
        found = [attribute.g for attribute in self.proto.attribute if attribute.HasField("g")]
        return found + [graph for attribute in self.proto.attribute for graph in attribute.graphs]

    def numbers(self, name: str) -> list[float] | None:
        """A list of numbers, ``None`` where it is left out."""
        attribute = self._attributes.get(name)
        return None if attribute is None else [float(value) for value in (attribute.floats or attribute.ints)]

    def _check_kind(self, name: str, attribute: Any, kind: int, words: str) -> None:
        if attribute.type not in (kind, attribute.UNDEFINED):
            raise InputError(f"must be {words}", where=f"{self.where}.{name}", value=attribute.AttributeType.Name(attribute.type))


@dataclass(frozen=True, eq=False)
class Graph:
    """The main graph of a model; control flow's own graphs stay inside their nodes."""

    file: ModelFile
    nodes: tuple[Node, ...]
    """Every node after those it reads."""
    inputs: dict[str, ValueInfoProto]
    """Those that the model does not bring a value for."""
    initializers: dict[str, TensorProto]
    outputs: frozenset[str]
    producers: dict[str, Node] = field(repr=False)
    readers: dict[str, list[Node]] = field(repr=False)
    captured: dict[Node, tuple[str, ...]] = field(repr=False)
    """Tensors that the subgraphs of control flow read, besides the node's inputs."""

    @property
    def path(self) -> str:
        return self.file.path

    def at(self, name: str) -> str:
        """How errors call a tensor."""
        return f"{self.path}: {name}"

    def reader_count(self, name: str) -> int:
        """Nodes that read a tensor, and one more for whoever reads an output of the model."""
        return len(self.readers.get(name, ())) + (name in self.outputs)


def read_graph(file: ModelFile) -> Graph:
    """Order, names, producers and readers. Raises InputError for cycles, tensors from nowhere and names given twice."""
    proto, path = file.proto.graph, file.path
    if len(proto.node) > MAX_NODES:
        raise InputError("too many operators", where=path, value=len(proto.node), allowed=f"at most {MAX_NODES}")
    if proto.sparse_initializer:
        raise InputError("sparse weights", where=path, value=proto.sparse_initializer[0].values.name, suggestion="make them dense")
    initializers = {tensor.name: tensor for tensor in proto.initializer}
    # Files before version 4 list the tensors that have values as inputs too.
    inputs = {value.name: value for value in proto.input if value.name not in initializers}
    nodes = [Node(node, label, f"{path}: {label}") for node, label in zip(proto.node, _labels(proto.node), strict=True)]
    producers: dict[str, Node] = {}
    for node in nodes:
        for name in node.outputs:
            if name and (name in producers or name in inputs or name in initializers):
                raise InputError("a tensor that exists already", where=f"{node.where}.output", value=name)
            if name:
                producers[name] = node
    known = {*inputs, *initializers, *producers}
    readers: dict[str, list[Node]] = defaultdict(list)
    before: dict[Node, list[Node]] = {}
    captured = {node: tuple(sorted(_captured(node, known))) for node in nodes if node.subgraphs()}
    for node in nodes:
        read = [name for name in (*node.inputs, *captured.get(node, ())) if name]
        for name in read:
            if name not in known:
                raise unknown("no such tensor", name, sorted(known), where=f"{node.where}.input")
            readers[name].append(node)
        before[node] = [producers[name] for name in read if name in producers]
    missing = [value.name for value in proto.output if value.name not in known]
    if missing:
        raise unknown("no such tensor", missing[0], sorted(known), where=f"{path}: output")
    return Graph(file, _ordered(before, path), inputs, initializers, frozenset(value.name for value in proto.output), producers,
                 dict(readers), captured)


def _ordered(before: dict[Node, list[Node]], path: str) -> tuple[Node, ...]:
    """The file's own order where it is one; it should be."""
    place = {node: index for index, node in enumerate(before)}
    if all(place[source] < place[node] for node, sources in before.items() for source in sources):
        return tuple(before)
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        circle = [node.label for node in error.args[1]]
        text = " -> ".join(circle if len(circle) < 8 else [*circle[:6], ".."])
        raise InputError("operators that wait for each other", where=path, value=text) from None


def _captured(node: Node, known: set[str]) -> set[str]:
    """Outer tensors that the subgraphs of control flow read."""
    found: set[str] = set()
    stack = node.subgraphs()
    while stack:
        graph = stack.pop()
        for inner in graph.node:
            found.update(name for name in inner.input if name in known)
            stack += [attribute.g for attribute in inner.attribute if attribute.HasField("g")]
            stack += [other for attribute in inner.attribute for other in attribute.graphs]
    return found - set(node.inputs)


def _labels(nodes: Any) -> list[str]:
    """A printable name without spaces for each node: its own, or operator and index (``Conv_3``) where it has none or shares it."""
    cleaned = [clean_name(node.name) for node in nodes]
    counts = Counter(cleaned)
    taken = {name for name in cleaned if counts[name] == 1}
    labels: list[str] = []
    for index, (node, name) in enumerate(zip(nodes, cleaned, strict=True)):
        if not name or counts[name] > 1:
            base = name or f"{clean_name(node.op_type) or 'node'}_{index}"
            name, at = base, index
            while name in taken:
                name, at = f"{base[:MAX_NAME - 12]}_{at}", at + len(nodes)
            taken.add(name)
        labels.append(name)
    return labels


def clean_name(name: str) -> str:
    """``name`` as networks accept it: printable, without spaces, not too long."""
    kept = "".join("_" if letter.isspace() else letter for letter in name if letter.isprintable() or letter.isspace())
    return kept[:MAX_NAME - 12]
