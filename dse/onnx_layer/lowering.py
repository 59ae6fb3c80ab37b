"""QONNX's quantisers in operators that ONNX Runtime has.

Rounding half to even, for every opset: adding 1.5 * 2**23 to a number under 2**22 leaves a float32 no fraction bits, and the addition
rounds. Nothing may simplify that away, so the model runs without optimisation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.workload.onnx_import.graph import Node
from dse.workload.onnx_import.quantisation import Quantisation

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
