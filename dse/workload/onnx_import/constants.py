"""Tensors whose values the model holds: initialisers, Constant, ConstantOfShape, and what operators make of them."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.workload.onnx_import.graph import STANDARD_DOMAINS, Graph, Node
from dse.workload.onnx_import.reading import check_dims, element_type
from dse.workload.onnx_import.shapes import SHAPE_ARITHMETIC, Shapes, reference
from dse.workload.onnx_import.surrogates import QONNX_DOMAINS

MAX_COMPUTED = 1 << 27  # elements of a value that is not in the file as it is
MAX_DEPTH = 100
COMPUTED = SHAPE_ARITHMETIC | {"Flatten", "Pow", "Round", "Clip"}
LINEAR = ("DequantizeLinear", "QuantizeLinear")
QUANTISERS = ("Quant", "IntQuant", "BipolarQuant")


class Constants:
    """Which tensors of a graph are constants, and their values: read, or computed, when asked for."""

    def __init__(self, graph: Graph, shapes: Shapes) -> None:
        self.graph, self.shapes = graph, shapes
        self._values: dict[str, NDArray[Any]] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """Tensors that do not depend on the model's inputs. A random number is none of them."""
        found = set(self.graph.initializers)
        for node in self.graph.nodes:
            read = [name for name in node.inputs if name]
            of_shape = node.op in ("Shape", "Size") and bool(read) and read[0] in self.shapes.sizes
            pure = node.op == "Constant" or bool(read) and not node.op.startswith(("Random", "Multinomial", "Bernoulli"))
            if of_shape or pure and not node.subgraphs() and all(name in found for name in read):
                found.update(name for name in node.outputs if name)
        return frozenset(found)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def value(self, name: str) -> NDArray[Any]:
        """The values of a constant tensor, read-only; large ones are mapped from their file. Raises InputError."""
        return self._value(name, 0)

    def optional(self, name: str) -> NDArray[Any] | None:
        """The values, or ``None`` where the tensor is left out or no constant."""
        return self.value(name) if name and name in self else None

    def scalar(self, name: str, what: str) -> float | int:
        """The one value of a constant tensor."""
        if name not in self:
            raise InputError(f"{what} that is computed while the model runs", where=self.graph.at(name), allowed="a constant")
        value = self.value(name)
        if value.size != 1:
            raise InputError(f"{what} has one value", where=self.graph.at(name), value=value.shape)
        return value.reshape(-1)[0].item()

    def _value(self, name: str, depth: int) -> NDArray[Any]:
        if name not in self._values:
            if depth > MAX_DEPTH:
                raise InputError(f"a constant computed by more than {MAX_DEPTH} operators", where=self.graph.at(name))
            if name in self.graph.initializers:
                found = self.graph.file.array(self.graph.initializers[name], self.graph.at(name))
            else:
                found = self._computed(self.graph.producers[name], name, depth)
            self._values[name] = found
        return self._values[name]

    def _computed(self, node: Node, name: str, depth: int) -> NDArray[Any]:
        if node.op == "Constant":
            return self._constant(node, name)
        if node.op in ("Identity", "Dropout") and name == node.outputs[0]:
            return self._value(node.needed(0, "the tensor"), depth + 1)
        if node.op in ("Shape", "Size") and node.input(0) in self.shapes.sizes:
            size = self.shapes.sizes[node.input(0)]
            return np.array(prod(size) if node.op == "Size" else size[node.whole("start", 0):node.whole("end", len(size))], np.int64)
        size = self.shapes.sizes.get(name, ())
        if prod(size) > MAX_COMPUTED and node.op != "ConstantOfShape":
            raise InputError("a computed constant too large", where=self.graph.at(name), value=size, allowed=f"{MAX_COMPUTED} elements")
        inputs = {read: self._value(read, depth + 1) for read in node.inputs if read}
        if node.op == "ConstantOfShape":
            return self._filled(node, inputs)
        if node.proto.domain in QONNX_DOMAINS and node.proto.op_type in QUANTISERS:
            from dse.workload.onnx_import.quantisation import quant_reference

            return quant_reference(node, *(inputs[read] for read in node.inputs if read))
        if node.op in LINEAR:
            from dse.workload.onnx_import.quantisation import linear_reference

            kind, _ = element_type(self.shapes.types.get(name, 1), self.graph.at(name))
            return linear_reference(node, kind, *(inputs[read] for read in node.inputs if read))
        if node.op not in COMPUTED or node.proto.domain not in STANDARD_DOMAINS:
            raise InputError(f"a constant computed by {node.op}", where=self.graph.at(name), suggestion="fold the model's constants first")
        found = reference(node.proto, inputs, self.graph.file.proto, MAX_COMPUTED)
        if found is None or name not in found:
            raise InputError(f"{node.op} cannot be computed", where=node.where)
        return found[name]

    def _constant(self, node: Node, name: str) -> NDArray[Any]:
        tensor = node.tensor("value")
        if tensor is not None:
            return self.graph.file.array(tensor, self.graph.at(name))
        for key in ("value_float", "value_int"):
            if node.has(key):
                return np.array(node.number(key, 0.0), np.float32) if key == "value_float" else np.array(node.whole(key, 0), np.int64)
        for key, kind in (("value_floats", np.float32), ("value_ints", np.int64)):
            if node.has(key):
                return np.array(node.numbers(key), kind)
        raise InputError("a constant without a tensor of numbers", where=node.where)

    def _filled(self, node: Node, inputs: dict[str, NDArray[Any]]) -> NDArray[Any]:
        """One value seen as a whole tensor: nothing is filled."""
        sizes = [int(size) for size in inputs[node.needed(0, "the shape")].reshape(-1)]
        shape = check_dims(sizes, node.where)
        tensor = node.tensor("value")
        value = np.zeros(1, np.float32) if tensor is None else self.graph.file.array(tensor, node.where)
        if value.size != 1:
            raise InputError("must be one value", where=f"{node.where}.value", value=value.shape)
        return np.broadcast_to(value.reshape(()), shape)
