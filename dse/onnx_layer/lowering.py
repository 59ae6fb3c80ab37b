"""What ONNX Runtime gets in the place of operators that it does not have, or does not compute exactly.

QONNX's quantisers become arithmetic. Rounding half to even, for every opset: adding 1.5 * 2**23 to a number under 2**22 leaves a float32
no fraction bits, and the addition rounds. Nothing may simplify that away, so the model runs without optimisation.

Products of unsigned and signed bytes saturate at 16 bits in ONNX Runtime on x86 processors before VNNI; those of unsigned bytes do not. So
signed weights of such operators become unsigned ones, 128 more, and so do their zero points: the same sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.workload.onnx_import.building import Building
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.quantisation import Quantisation

WEIGHTS = {"QLinearConv": (0, 3, 5), "ConvInteger": (0, 1, 3), "QLinearMatMul": (0, 3, 5), "MatMulInteger": (0, 1, 3)}
"""Places of data, weights and their zero point."""
MAGIC = np.float32(1.5 * 2 ** 23)
ROUNDINGS = {"ROUND": "", "HALF_EVEN": "", "FLOOR": "Floor", "CEIL": "Ceil"}


def lowered(node: Node, quantisation: Quantisation) -> tuple[list[Any], list[Any]]:
    """Nodes and initialisers that compute the same as a Quant or BipolarQuant ``node``. Raises InputError for other rounding modes."""
    from onnx import helper, numpy_helper

    nodes: list[Any] = []
    tensors: list[Any] = []
    quantiser = quantisation.of_node(node)
    assert quantiser is not None
    prefix = node.outputs[0]

    def constant(value: NDArray[Any] | float, name: str) -> str:
        tensors.append(numpy_helper.from_array(np.asarray(value, np.float32), f"{prefix}/{name}"))
        return f"{prefix}/{name}"

    def step(op: str, *inputs: str, output: str | None = None) -> str:
        name = output or f"{prefix}/{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [name]))
        return name

    value, scale = node.input(0), quantiser.scale
    if quantiser.is_bipolar:
        below = step("Less", value, constant(0.0, "zero"))
        step("Where", below, step("Neg", scale), scale, output=prefix)
        return nodes, tensors
    mode = node.text("rounding_mode", "ROUND").upper()
    if mode not in ROUNDINGS:
        raise InputError("a rounding mode that ONNX Runtime has no operator for", where=f"{node.where}.rounding_mode", value=mode,
                         allowed=", ".join(ROUNDINGS))
    low, high = quantiser.range()
    value = step("Add", step("Div", value, scale), quantiser.zero_point)
    value = step("Min", step("Max", value, constant(low, "low")), constant(high, "high"))
    if ROUNDINGS[mode]:
        value = step(ROUNDINGS[mode], value)
    else:
        magic = constant(float(MAGIC), "magic")
        value = step("Sub", step("Add", value, magic), magic)
    step("Mul", step("Sub", value, quantiser.zero_point), scale, output=prefix)
    return nodes, tensors


def unsigned_weights(node: Node, building: Building) -> tuple[list[Any], list[Any]] | None:
    """``node`` with its signed bytes of weights as unsigned ones, where its data are unsigned; else ``None``."""
    from onnx import NodeProto, numpy_helper

    if node.op not in WEIGHTS:
        return None
    data, weights, zero_point = WEIGHTS[node.op]
    kinds = [building.quantisation.integer_type(node.input(at)) for at in (data, weights)]
    names = [name for name in (node.input(weights), node.input(zero_point)) if name]
    if kinds != [(8, False), (8, True)] or any(name not in building.constants for name in names):
        return None
    values = building.constants.value(node.input(weights))
    zeros = building.constants.value(node.input(zero_point)) if node.input(zero_point) else np.zeros((), np.int8)
    tensors = [numpy_helper.from_array((array.astype(np.int16) + 128).astype(np.uint8), f"{node.outputs[0]}/{name}")
               for array, name in ((values, "weights"), (zeros, "zero"))]
    changed = NodeProto()
    changed.CopyFrom(node.proto)
    changed.input.extend([""] * (zero_point + 1 - len(changed.input)))
    changed.input[weights], changed.input[zero_point] = tensors[0].name, tensors[1].name
    return [changed], tensors
