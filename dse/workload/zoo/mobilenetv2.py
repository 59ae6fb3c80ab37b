"""MobileNetV2, width 1.0: M. Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018.

Input 224 x 224, pads of 1 on all sides as in torchvision, which documents 3,504,872 parameters and 0.301 GMAC; the paper prints 3.4 M
and 300 M. Its 52 convolutions are 299.5 MMAC (ZigZag's ONNX file).
"""

from __future__ import annotations

from typing import Any

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Table 2 of the paper: expansion, output channels, blocks, stride of the first."""


def mobilenetv2(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("mobilenetv2", weight_bits=weight_bits, activation_bits=activation_bits,
                       title="MobileNetV2 1.0")
    x = _conv(b, b.input((1, 3, 224, 224)), "conv0", K=32, F=3, S=2, P=1)
    for stage, (expansion, channels, count, stride) in enumerate(STAGES, 1):
        for index in range(1, count + 1):
            x = _block(b, x, f"block{stage}.{index}", expansion, channels, stride if index == 1 else 1)
    x = _conv(b, x, "conv_last", K=1280, F=1)
    b.linear(b.flatten(b.global_average_pool(x, "avgpool")), "fc", K=1000)
    return b.build()


def _conv(b: NetworkBuilder, x: str, name: str, **dimensions: Any) -> str:
    return b.activation("relu6", b.batch_norm(b.conv(x, name, bias=False, **dimensions)))


def _block(b: NetworkBuilder, x: str, name: str, expansion: int, channels: int, stride: int) -> str:
    wide = expansion * b.tensor(x).shape[1]
    y = x if expansion == 1 else _conv(b, x, f"{name}.expand", K=wide, F=1)
    y = _conv(b, y, f"{name}.depthwise", K=wide, F=3, S=stride, P=1, G=wide)
    y = b.batch_norm(b.conv(y, f"{name}.project", K=channels, F=1, bias=False))
    return b.add(y, x, name=f"{name}.add") if b.tensor(y).shape == b.tensor(x).shape else y


NETWORKS = {"mobilenetv2": mobilenetv2}
