"""What the operator families share: the network under construction, and which of its operators holds which tensor of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from boards.errors import InputError
from dse.workload.builder import NetworkBuilder
from dse.workload.onnx_import.constants import Constants
from dse.workload.onnx_import.graph import Graph, Node, clean_name
from dse.workload.onnx_import.quantisation import Quantisation, Quantiser, array_width
from dse.workload.onnx_import.shapes import Shape, Shapes
from dse.workload.operators import MAX_NOTE, MAX_RANK, UNKNOWN_SHAPE, Tensor

MAX_ARRAY_BITS = 16
OTHER_BITS = 64  # of strings and the like


@dataclass(frozen=True)
class Source:
    """A tensor of the model in the network: the operator that produces it, which may have it in another shape.

    ``channels``: the axis, of the model's tensor, that a layer's output channels lie on. ``open``: the layer's output stage could
    still compute what follows.
    """

    operator: str
    channels: int | None = 1
    open: bool = False


class Building:
    """One import under way. ``layers``: array operators so far, by the label of their node."""

    def __init__(self, graph: Graph, shapes: Shapes, name: str, weight_bits: int, activation_bits: int) -> None:
        self.graph, self.shapes = graph, shapes
        self.constants = Constants(graph, shapes)
        self.quantisation = Quantisation(graph, shapes, self.constants)
        self.builder = NetworkBuilder(name, weight_bits=weight_bits, activation_bits=activation_bits, where=graph.path)
        self.sources: dict[str, Source] = {}
        self.notes: list[str] = []
        self._views: dict[tuple[str, Shape], str] = {}
        self._names: set[str] = {node.label for node in graph.nodes}

    # -- tensors of the model ---------------------------------------------------------------------------------------------

    def shape(self, name: str, node: Node) -> Shape:
        """The shape of a tensor that ``node`` reads. Raises InputError where it is unknown."""
        if name not in self.shapes.sizes:
            maker = self.graph.producers.get(name)
            raise InputError(f"the shape of its input {name} is unknown", where=node.where,
                             suggestion=f"{maker.op} {maker.label} produces it" if maker else None)
        return self.shapes.sizes[name]

    def bits(self, name: str) -> int:
        """Bits of a tensor's elements: of its integers, of the integers that it is quantised to, or the network's."""
        kind = self.quantisation.integer_type(name)
        if kind is not None:
            return kind[0] if kind[0] > MAX_ARRAY_BITS else array_width(kind[0])
        quantiser = self.quantisation.ahead(name) or self.quantisation.behind(name)
        if quantiser is not None and quantiser.array_bits <= MAX_ARRAY_BITS:
            return quantiser.array_bits
        return self.builder.activation_bits

    def source(self, name: str, node: Node) -> Source:
        """The operator that has the tensor ``name``; constants that are operands of layers become inputs of the network."""
        if name not in self.sources:
            if name not in self.constants:
                raise InputError("reads a tensor that nothing in the network holds", where=node.where, value=name)
            self.sources[name] = Source(self.builder.input(self.stored_shape(name), self.unique(clean_name(name) or "constant"),
                                                           bits=self.bits(name)))
        return self.sources[name]

    def stored_shape(self, name: str) -> Shape:
        """A tensor's shape as networks have it: no scalars, no more than 8 sizes; unknown where it holds nothing."""
        shape = self.shapes.sizes.get(name, UNKNOWN_SHAPE)
        if prod(shape) == 0:
            return UNKNOWN_SHAPE
        return (1,) if not shape else shape if len(shape) <= MAX_RANK else (prod(shape[:-MAX_RANK + 1]), *shape[-MAX_RANK + 1:])

    # -- operators of the network -----------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """``name``, or with a number behind it where that is taken; nobody else gets it then."""
        found, count = name, 2
        while found in self._names:
            found, count = f"{name}.{count}", count + 1
        self._names.add(found)
        return found

    def view(self, operator: str, shape: Sequence[int], label: str) -> str:
        """``operator``'s tensor in another shape of as many elements: a view of it, if it does not have that shape itself."""
        shape = tuple(shape)
        found = self.builder.tensor(operator).shape
        if found == shape:
            return operator
        if prod(found) != prod(shape):
            raise InputError(f"reads {shape}", where=f"{self.graph.path}: {label}.inputs", value=found)
        if (operator, shape) not in self._views:
            name = self.unique(f"{label}.view")
            self._views[operator, shape] = self.builder.host("reshape", operator, name=name, shape=shape, is_view=True)
        return self._views[operator, shape]

    def produced(self, node: Node, operator: str, *, channels: int | None = 1, is_open: bool = False) -> None:
        """``operator`` has the first output of ``node``."""
        self.hold(node.outputs[0], operator, channels=channels, is_open=is_open)

    def hold(self, name: str, operator: str, *, channels: int | None = 1, is_open: bool = False) -> None:
        """``operator`` has the tensor ``name``."""
        self.sources[name] = Source(operator, channels, is_open and self.graph.reader_count(name) == 1)
        if name in self.graph.outputs:
            self.builder.keep(operator)

    def passed_on(self, node: Node, source: Source) -> None:
        """``node`` does nothing that counts: its output is the tensor that ``source`` has."""
        name = node.outputs[0]
        alone = self.graph.reader_count(name) == 1
        self.sources[name] = replace(source, open=source.open and alone)
        if not alone or name in self.graph.outputs:
            self.builder.keep(source.operator)

    def close(self, name: str) -> None:
        """The tensor is quantised as it is: what follows is no longer the layer's."""
        source = self.sources[name]
        self.sources[name] = replace(source, open=False)
        self.builder.keep(source.operator)

    def note(self, label: str, text: str) -> str:
        """Keep a remark for the user; returns it, as an operator's note wants it."""
        text = "".join(letter for letter in text if letter.isprintable())
        self.notes.append(f"{label}: {text}")
        return text[:MAX_NOTE]

    def quantised(self, name: str) -> Quantiser | None:
        """How an operand of a layer is quantised, if its bits are the array's."""
        found = self.quantisation.behind(name)
        return found if found is not None and found.array_bits <= MAX_ARRAY_BITS else None

    def tensor(self, operator: str) -> Tensor:
        return self.builder.tensor(operator)
