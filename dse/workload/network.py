"""A network: operators in topological order, and the graph of tensors between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from boards.errors import InputError
from dse.workload.operators import ArrayOperator, HostOperator, InputOperator, Operator, Tensor, check_bits, check_name, unknown
from hdl.layer import Layer

if TYPE_CHECKING:
    import networkx

MAX_NODES = 20_000


@dataclass(frozen=True, kw_only=True)
class Network:
    """Operators and what flows between them; :class:`~dse.workload.builder.NetworkBuilder` makes one.

    Parameters
    ----------
    name: printable, without spaces.
    nodes: every operator after those it reads.
    weight_bits, activation_bits: the precision that was asked for; single operators may differ.
    title: what it is, in a few words.
    remarks: what an importer assumed or left out, for the user. Networks that differ in nothing else are equal.

    Raises
    ------
    InputError: a name is there twice, or an operator reads one that is not before it or has another size than it reads.
    """

    name: str
    nodes: tuple[Operator, ...]
    weight_bits: int = 8
    activation_bits: int = 8
    title: str = ""
    remarks: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_bits("weight_bits", self.weight_bits)
        check_bits("activation_bits", self.activation_bits)
        if len(self.nodes) > MAX_NODES:
            raise InputError("too many operators", where=self.name, value=len(self.nodes), allowed=f"at most {MAX_NODES}")
        done: dict[str, Operator] = {}
        for node in self.nodes:
            where = f"{self.name}: {node.name}"
            if node.name in done:
                raise InputError("an earlier operator has this name", where=where)
            missing = [name for name in node.inputs if name not in done]
            if missing:
                raise unknown("no such operator before this one", missing[0], list(done), where=f"{where}.inputs")
            check_edges(node, [done[name].output for name in node.inputs], where)
            done[node.name] = node
        if not self.array_layers():
            raise InputError("no convolution or linear layer", where=self.name)

    # -- what is in it --------------------------------------------------------------------------------------------------

    @cached_property
    def _by_name(self) -> dict[str, Operator]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def graph(self) -> networkx.DiGraph:
        """A frozen ``networkx.DiGraph``: nodes by name with ``operator``; edges with ``tensor``, ``shape``, ``elements``, ``bits``."""
        import networkx

        graph = networkx.DiGraph(name=self.name)
        for node in self.nodes:
            graph.add_node(node.name, operator=node)
            for source in node.inputs:
                tensor = self._by_name[source].output
                graph.add_edge(source, node.name, tensor=tensor, shape=tensor.shape, elements=tensor.elements, bits=tensor.bits)
        return networkx.freeze(graph)

    @property
    def precision(self) -> str:
        return f"w{self.weight_bits}a{self.activation_bits}"

    @property
    def array_operators(self) -> tuple[ArrayOperator, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ArrayOperator))

    @property
    def inputs(self) -> tuple[InputOperator, ...]:
        return tuple(node for node in self.nodes if isinstance(node, InputOperator))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the operators that no other reads."""
        read = {name for node in self.nodes for name in node.inputs}
        return tuple(node.name for node in self.nodes if node.name not in read)

    def operator(self, name: str) -> Operator:
        """The operator called ``name``. Raises InputError with the nearest one."""
        if name not in self._by_name:
            raise unknown("no such operator in the network", name, list(self._by_name), where=self.name)
        return self._by_name[name]

    def array_layers(self) -> dict[str, Layer]:
        """What the array computes, in order; see :attr:`array_operators` for precision, repeats and what is folded."""
        return {node.name: node.layer for node in self.array_operators}

    def host_operators(self) -> tuple[HostOperator, ...]:
        """What the array does not compute, in order. No latency of ours includes them."""
        return tuple(node for node in self.nodes if isinstance(node, HostOperator))

    # -- totals ---------------------------------------------------------------------------------------------------------

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference, repeats and padded taps included."""
        return sum(node.macs for node in self.array_operators)

    @property
    def weights(self) -> int:
        """Elements of all weight tensors, without biases."""
        return sum(node.weights for node in self.array_operators)

    @property
    def parameters(self) -> int:
        """Trained values: weights, biases, scale and offset of normalisations."""
        return sum(node.parameters for node in self.nodes if not isinstance(node, InputOperator))

    @property
    def activations(self) -> int:
        """Elements that one inference produces: the outputs of array layers and host operators, after what is folded into them."""
        return sum(node.activations for node in self.nodes if not isinstance(node, InputOperator))

    def totals(self) -> dict[str, int]:
        """Sums over the operators."""
        array, host = self.array_operators, self.host_operators()
        return {
            "array_layers": len(array), "host_operators": len(host), "macs": self.macs, "weights": self.weights,
            "parameters": self.parameters, "activations": self.activations,
            "array_activations": sum(node.activations for node in array),
            "weight_bytes": sum(node.weight_bytes for node in array), "operand_bytes": sum(node.operand_bytes for node in array),
            "host_ops": sum(node.ops for node in host), "host_bytes": sum(node.bytes_read + node.bytes_written for node in host)}

    def summary(self) -> dict[str, Any]:
        """Name, precision and totals, as plain values."""
        return {"name": self.name, "title": self.title, "precision": self.precision, **self.totals()}

    def to_dict(self) -> dict[str, Any]:
        """The object of ``nearmac networks NAME --json``: ``layers`` has array layers and host operators in order."""
        return {
            "name": self.name, "title": self.title, "precision": self.precision,
            "inputs": [{"name": node.name, "shape": list(node.output.shape), "bits": node.output.bits} for node in self.inputs],
            "layers": [node.to_dict() for node in self.nodes if not isinstance(node, InputOperator)],
            "outputs": list(self.outputs), "totals": self.totals(), "remarks": list(self.remarks)}


def check_edges(node: Operator, tensors: Iterable[Tensor], where: str) -> None:
    """Raise InputError where ``node`` reads something else than ``tensors``."""
    tensors = tuple(tensors)
    place = f"{where}." if where else ""
    if isinstance(node, HostOperator):
        expected = node.operands
    elif isinstance(node, ArrayOperator):
        layer = node.layer
        shape = (layer.B * node.repeat, layer.C, layer.IY, layer.IX)
        # A recurrent product reads a state that has the size of one step.
        if tensors and node.repeat > 1 and tensors[0].shape == (layer.B, layer.C, layer.IY, layer.IX):
            shape = tensors[0].shape
        expected = (Tensor(shape, tensors[0].bits if tensors else node.activation_bits),)
        for tensor, field in zip(tensors, ("activation_bits", "weight_bits"), strict=False):
            if tensor.bits > getattr(node, field):
                raise InputError(f"reads elements of {tensor.bits} bits", where=f"{place}{field}", value=getattr(node, field),
                                 allowed=f"at least {tensor.bits}")
        if len(tensors) == 2:
            if tensors[1].elements != node.weights:
                raise InputError(f"reads {node.weights} weights from {node.inputs[1]}, which is {tensors[1]}", where=f"{place}inputs")
            expected = (*expected, tensors[1])
    else:
        expected = ()
    if len(tensors) != len(expected):
        raise InputError(f"reads {len(expected)} tensors", where=f"{place}inputs", value=node.inputs)
    for source, tensor, wanted in zip(node.inputs, tensors, expected, strict=True):
        if tensor != wanted:
            raise InputError(f"reads {wanted} from {source}, which is {tensor}", where=f"{place}inputs")
