"""LSTM, GRU and RNN as matrix products: one for the inputs of all steps at once, one for the state of each step in turn.

As in the network zoo (``deepspeech-gru``): the state is an input of the graph, as the edge from the gates back to it would close a cycle;
gates join the products on the host. Each direction has its own. ONNX's GRU applies the reset gate before the recurrent product unless
``linear_before_reset`` is 1; that product is then two, one after the other.
"""

from __future__ import annotations

from math import prod
from typing import Any

from boards.errors import InputError
from dse.workload.onnx_import.building import Building
from dse.workload.onnx_import.convolution import on_host
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.matmul import pixels
from dse.workload.onnx_import.shapes import Shape
from dse.workload.onnx_import.weights import weight_bits
from hdl.layer import MAX_EXTENT

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
GATE_OPS = {"LSTM": 30, "GRU": 21, "RNN": 6}
"""Operations a unit and step. LSTM: four sums of two products (4), three sigmoids (12), tanh (5), f * c + i * g (3), o * tanh(c) (6); GRU:
as in the zoo; RNN: a sum and tanh. Other activations are counted as these."""
PEEPHOLE_OPS = 6
DIRECTIONS = {"forward": ("",), "reverse": (".reverse",), "bidirectional": ("", ".reverse")}


def recurrent(building: Building, node: Node) -> None:
    """Add the products and gates of a recurrent operator."""
    b, needed = building.builder, ("the input", "the weights", "the recurrent weights")
    names = tuple(node.needed(at, what) for at, what in enumerate(needed))
    data, weight, state_weight = (building.shape(name, node) for name in names)
    gates = GATES[node.op]
    steps, batch, inputs, units, directions = _sizes(node, data, weight, state_weight, gates)
    source = building.source(names[0], node)
    if node.input(4):
        building.note(node.label, "sequence_lens is not looked at: every step of every sequence counts")
    height, width = pixels(steps * batch)
    rows = steps * batch
    is_linear = rows <= MAX_EXTENT
    if not is_linear and max(height, width) > MAX_EXTENT:
        macs = directions_macs(rows, gates, inputs, units, len(directions))
        on_host(building, node, node.op.lower(), macs, f"{rows} steps, the array counts to {MAX_EXTENT} in two axes")
        return
    shape = (rows, inputs, 1, 1) if is_linear else (1, inputs, height, width)
    read = building.view(source.operator, shape, node.label)
    bits = [max(weight_bits(building, name, "", node, 0), 0 if name in building.constants else building.bits(name)) for name in names[1:]]
    has_bias = bool(node.input(3))
    products: list[str] = []
    for at, direction in enumerate(directions):
        prefix = f"{node.label}{direction}"
        options: dict[str, Any] = {"K": gates * units, "weight_bits": bits[0], "bias": has_bias,
                   "weights": _rows_of(building, node, names[1], at, 0, gates * units)}
        product = b.linear(read, building.unique(f"{prefix}.input"), **options) if is_linear else b.conv(
            read, building.unique(f"{prefix}.input"), F=1, **options)
        state = b.input((batch, units, 1, 1), building.unique(f"{prefix}.state"), is_state=True)
        products.append(product)
        parts = [("recurrent", 0, gates * units)]
        if node.op == "GRU" and not node.whole("linear_before_reset", 0):
            parts = [("recurrent", 0, 2 * units), ("candidate", 2 * units, units)]
        for name, first, count in parts:
            weights = _rows_of(building, node, names[2], at, first, count)
            products.append(b.linear(state, building.unique(f"{prefix}.{name}"), K=count, repeat=steps, weight_bits=bits[1], bias=has_bias,
                                     weights=weights))
    initial = [node.input(at) for at in (5, 6) if node.input(at) and node.input(at) not in building.constants]
    others = [building.source(name, node).operator for name in initial]
    ops = (GATE_OPS[node.op] + (PEEPHOLE_OPS if node.input(7) else 0)) * rows * units * len(directions)
    whole = next((name for name in node.outputs if name), None)
    if whole is None:
        raise InputError("an operator without outputs", where=node.where)
    size = (steps, len(directions), batch, units)
    joined = b.host(f"{node.op.lower()}_gates", *products, *others, name=node.label, shape=size, ops=ops,
                    bits=building.bits(whole))
    _outputs(building, node, joined)


def directions_macs(rows: int, gates: int, inputs: int, units: int, directions: int) -> int:
    """Of all steps and directions."""
    return rows * gates * units * (inputs + units) * directions


def _sizes(node: Node, data: Shape, weight: Shape, state_weight: Shape, gates: int) -> tuple[int, int, int, int, tuple[str, ...]]:
    """Steps, batch, inputs, units and directions. Raises InputError where the operands do not agree on them."""
    way = node.text("direction", "forward")
    if way not in DIRECTIONS:
        raise InputError("not a direction", where=f"{node.where}.direction", value=way, allowed=", ".join(DIRECTIONS))
    for what, shape in (("input", data), ("weights", weight), ("recurrent weights", state_weight)):
        if len(shape) != 3 or min(shape) < 1:
            raise InputError(f"its {what} must have three sizes", where=node.where, value=shape)
    steps, batch, inputs = data if not node.whole("layout", 0) else (data[1], data[0], data[2])
    directions, units = DIRECTIONS[way], state_weight[2]
    if node.whole("hidden_size", units, 1) != units:
        raise InputError("the recurrent weights have another size", where=f"{node.where}.hidden_size",
                         value=node.whole("hidden_size", units), allowed=str(units))
    for what, shape, expected in (("weights", weight, (len(directions), gates * units, inputs)),
                                  ("recurrent weights", state_weight, (len(directions), gates * units, units))):
        if shape != expected:
            raise InputError(f"{what} of another size", where=node.where, value=shape, allowed=str(expected))
    return steps, batch, inputs, units, directions


def _rows_of(building: Building, node: Node, name: str, direction: int, first: int, count: int) -> str | None:
    """The operator that computes some rows of a weight tensor (directions, rows, columns); ``None`` for constants."""
    if name in building.constants:
        return None
    operator = building.source(name, node).operator
    shape = building.shape(name, node)
    if shape[:2] == (1, count):
        return operator
    part = building.unique(f"{node.label}.rows{direction}.{first}")
    return building.builder.host("slice", operator, name=part, shape=(1, count, shape[2]), read_elements=count * shape[2])


def _outputs(building: Building, node: Node, joined: str) -> None:
    """Y, the gates' output; Y_h and Y_c, each a part as large as the last step's state."""
    for at, name in enumerate(node.outputs):
        if not name:
            continue
        shape = building.stored_shape(name)
        if prod(shape) == building.tensor(joined).elements:
            operator = building.view(joined, shape, node.label)
        else:
            operator = building.builder.host("slice", joined, name=building.unique(f"{node.label}.{at}"), shape=shape,
                                             read_elements=prod(shape) or None)
        building.hold(name, operator)
