"""A network as steps that each write one tensor: what footprints are counted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from boards.errors import InputError
from dse.workload.builder import OPS_PER_ELEMENT
from dse.workload.network import Network
from dse.workload.operators import CLAMPS, NORMALISATIONS, ArrayOperator, HostOperator, InputOperator, Operator
from hdl.layer import Layer

BITS = (1, 64)
"""Fewest and most bits of an element."""
POOLINGS = ("max_pool", "average_pool", "global_average_pool")
ELEMENTWISE = (*NORMALISATIONS, *CLAMPS, "sigmoid", "tanh", "add", "multiply")
"""Operators that can write over an operand: each output element depends on the element of the same place alone."""
CHEAP = (*NORMALISATIONS, *CLAMPS, "sigmoid", "tanh", "softmax", "local_response_norm", *POOLINGS)
"""Operators of one operand that take few operations an element."""
_OUTPUT_FREE = ("conv", "linear", *NORMALISATIONS, "add", "multiply", "concat", "average_pool", "global_average_pool")
_INPUT_FREE = ("relu", "relu6", "clip", "offset", "sigmoid", "tanh", "add")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One operator, or one of those folded into it.

    ``ops``: what it is, then what is folded into it; ``inputs``: indices of earlier steps; ``elements``: of its output, for the
    workload's own batch; ``parameters``: trained values; ``operations``: 2 x MACs, or the host's ops; ``lowered_elements``: of the
    matrix that im2col makes of its input, 0 where its input is that matrix already. In a network with more channels in all layers but the
    last, its output grows (``widens``) or stays, so does its input (``input_widens``), and its weights grow with a power of the width
    (``weight_power``).
    """

    name: str
    ops: tuple[str, ...]
    kind: str
    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    elements: int
    bits: int
    weights: int = 0
    parameters: int = 0
    weight_bits: int = 8
    operations: int = 0
    is_view: bool = False
    lowered_elements: int = 0
    lowered_bits: int = 8
    input_elements: int = 0
    asymptotic_inflation: float = 1.0
    widens: bool = True
    input_widens: bool = True
    weight_power: int = 0

    @property
    def needs_output(self) -> bool:
        """Whether its backward step reads its output. A folded normalisation has no other trace of its input."""
        first, *folded = self.ops
        return first not in _OUTPUT_FREE or any(op in CLAMPS or op in ("batch_norm", "scale") for op in folded)

    @property
    def needs_input(self) -> bool:
        """Whether its backward step reads its operands."""
        return self.ops[0] not in _INPUT_FREE

    @property
    def is_cheap(self) -> bool:
        return self.kind == "host" and len(self.inputs) == 1 and self.ops[0] in CHEAP

    @property
    def inflation(self) -> float | None:
        """Elements of the lowered matrix for each of the layer's input."""
        return self.lowered_elements / self.input_elements if self.lowered_elements else None


def steps_of(network: Network, *, weight_bits: int | None = None, activation_bits: int | None = None,
             is_unfused: bool = False) -> list[Step]:
    """The steps of a network in its order.

    ``weight_bits``, ``activation_bits``: of every trained value, and of every tensor; by default those of each operator.
    ``is_unfused``: a normalisation or activation that is folded into an operator is a step of its own, after it, and writes a tensor
    as large as the operator's. Raises InputError for bits outside 1 to 64.
    """
    for name, bits in (("weights-bits", weight_bits), ("activations-bits", activation_bits)):
        if bits is not None and not BITS[0] <= bits <= BITS[1]:
            raise InputError("out of range", where=f"--{name}", value=bits, allowed=f"{BITS[0]} to {BITS[1]}")
    outputs = _outermost(network)
    steps: list[Step] = []
    place: dict[str, int] = {}
    for node in network.nodes:
        inputs = tuple(place[name] for name in node.inputs)
        bits = node.output.bits if activation_bits is None else activation_bits
        grows = any(steps[source].widens for source in inputs[:1 if isinstance(node, ArrayOperator) else None])
        step = _step(network, node, inputs, bits, weight_bits, activation_bits)
        if step.kind != "input":
            step = replace(step, input_widens=grows, widens=(step.kind != "host" or grows) and node.name not in outputs)
        if isinstance(node, ArrayOperator):
            is_depthwise = node.layer.G == node.layer.C > 1
            step = replace(step, weight_power=int(step.widens) + int(grows and not is_depthwise))
        steps += _taken_apart(node, step, len(steps)) if is_unfused and len(step.ops) > 1 else [step]
        place[node.name] = len(steps) - 1
    return steps


def _step(network: Network, node: Operator, inputs: tuple[int, ...], bits: int, weight_bits: int | None,
          activation_bits: int | None) -> Step:
    """The step of a whole operator, but for how it grows with the network's width."""
    shape, elements = node.output.shape, node.output.elements
    if isinstance(node, InputOperator):
        return Step(name=node.name, ops=("input",), kind="input", inputs=(), shape=shape, elements=elements, bits=bits,
                    widens=node.is_state)
    if isinstance(node, HostOperator):
        return Step(name=node.name, ops=(node.op, *node.folded), kind="host", inputs=inputs, shape=shape, elements=elements, bits=bits,
                    parameters=node.parameters, weight_bits=network.weight_bits if weight_bits is None else weight_bits,
                    operations=node.ops, is_view=node.is_view)
    layer = node.layer
    return Step(name=node.name, ops=(node.op, *node.folded), kind=node.kind, inputs=inputs, shape=shape, elements=elements, bits=bits,
                weights=0 if node.has_computed_weights else node.weights, parameters=node.parameters,
                weight_bits=node.weight_bits if weight_bits is None else weight_bits, operations=2 * node.macs,
                lowered_bits=node.activation_bits if activation_bits is None else activation_bits,
                lowered_elements=_lowered_elements(layer), input_elements=layer.inputs,
                asymptotic_inflation=layer.FY * layer.FX / (layer.SY * layer.SX))


def _outermost(network: Network) -> set[str]:
    """Operators between the last layers and the network's outputs: their channels are what the network answers with."""
    found: set[str] = set()
    pending = list(network.outputs)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            node = network.operator(name)
            if isinstance(node, HostOperator):
                pending += node.inputs
    return found


def _lowered_elements(layer: Layer) -> int:
    """Of the im2col matrix, C*FY*FX x B*OY*OX; none where a column is a pixel of the input as it stands."""
    is_input = (layer.FY, layer.FX, layer.SY, layer.SX) == (1, 1, 1, 1) and (layer.OY, layer.OX) == (layer.IY, layer.IX)
    return 0 if layer.kind == "linear" or is_input else layer.B * layer.C * layer.FY * layer.FX * layer.OY * layer.OX


def _taken_apart(node: Operator, step: Step, index: int) -> list[Step]:
    """``step`` without what is folded into it, and a step for each of those; ``index``: of the first."""
    first, *folded = step.ops
    channels = node.layer.K if isinstance(node, ArrayOperator) else 0
    values = [channels * NORMALISATIONS.get(op, 0) for op in folded]
    work = [step.elements * OPS_PER_ELEMENT[op] for op in folded]
    done = step.operations - (sum(work) if step.kind == "host" else 0)  # a host operator's ops include what is folded
    parts = [replace(step, ops=(first,), parameters=step.parameters - sum(values), operations=done)]
    for op, parameters, operations in zip(folded, values, work, strict=True):
        parts.append(Step(name=f"{step.name}.{op}", ops=(op,), kind="host", inputs=(index + len(parts) - 1,), shape=step.shape,
                          elements=step.elements, bits=step.bits, parameters=parameters, weight_bits=step.weight_bits,
                          operations=operations, widens=step.widens, input_widens=step.widens))
    return parts


def readers_of(steps: Sequence[Step]) -> list[list[int]]:
    """Of each step, those that read its output."""
    readers: list[list[int]] = [[] for _ in steps]
    for index, step in enumerate(steps):
        for source in dict.fromkeys(step.inputs):
            readers[source].append(index)
    return readers
