"""Operators of other domains: which ONNX operator gives an output of the same shape.

ONNX's shape inference knows its own operators only. Quantisers leave the shape as it is; ONNX Runtime's operators on quantised tensors
(domain ``com.microsoft``) have that of their namesakes. Names and operand order: documentation of ONNX Runtime's contributed operators
and of QONNX.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import NodeProto

QONNX_DOMAINS = ("onnx.brevitas", "qonnx.custom_op.general", "finn.custom_op.general")
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Surrogate:
    """``op`` of ONNX reading some of the inputs: ``first``, and then every ``step``-th up to ``count``."""

    op: str
    first: int = 0
    step: int = 1
    count: int = 1
    attributes: tuple[str, ...] = ()

    def inputs(self, names: list[str]) -> list[str]:
        return names[self.first::self.step][:self.count]


POOLING = ("auto_pad", "ceil_mode", "kernel_shape", "pads", "strides")
CONVOLUTION = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
SAME_SHAPE = Surrogate("Identity")
SURROGATES = {
    **{(domain, op): SAME_SHAPE for domain in QONNX_DOMAINS for op in ("Quant", "IntQuant", "BipolarQuant", "FloatQuant", "Trunc")},
    **{(MICROSOFT, op): SAME_SHAPE for op in (
        "QuantizeLinear", "DequantizeLinear", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "Gelu", "FastGelu", "QuickGelu",
        "BiasGelu", "SkipLayerNormalization", "EmbedLayerNormalization")},
    (MICROSOFT, "QLinearAdd"): Surrogate("Add", step=3, count=2),
    (MICROSOFT, "QLinearMul"): Surrogate("Mul", step=3, count=2),
    (MICROSOFT, "QLinearAveragePool"): Surrogate("AveragePool", attributes=POOLING),
    (MICROSOFT, "QLinearGlobalAveragePool"): Surrogate("GlobalAveragePool"),
    (MICROSOFT, "QLinearConcat"): Surrogate("Concat", first=2, step=3, count=1 << 16, attributes=("axis",)),
    (MICROSOFT, "FusedConv"): Surrogate("Conv", count=3, attributes=CONVOLUTION),
    (MICROSOFT, "FusedGemm"): Surrogate("Gemm", count=3, attributes=("transA", "transB", "alpha", "beta")),
    (MICROSOFT, "QGemm"): Surrogate("Gemm", step=3, count=2, attributes=("transA", "transB", "alpha")),
    (MICROSOFT, "MatMulIntegerToFloat"): Surrogate("MatMul", count=2),
    (MICROSOFT, "DynamicQuantizeMatMul"): Surrogate("MatMul", count=2),
}


def surrogate(node: NodeProto) -> NodeProto | None:
    """The node of ONNX's own that shape inference gets instead of ``node``, if there is one."""
    from onnx import NodeProto

    found = SURROGATES.get((node.domain, node.op_type))
    channels_last = any(attribute.name == "channels_last" and attribute.i for attribute in node.attribute)
    if found is None or channels_last:
        return None
    kept = [attribute for attribute in node.attribute if attribute.name in found.attributes]
    return NodeProto(op_type=found.op, name=node.name, input=found.inputs(list(node.input)), output=node.output[:1], attribute=kept)
