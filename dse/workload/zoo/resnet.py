"""ResNet-18 and ResNet-50: K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.

Input 224 x 224, as in torchvision, whose ResNet-50 has its strides in the 3x3 convolutions ("version 1.5"; the paper has them in the
1x1 before, which makes 3.8 GMAC). torchvision documents 11,689,512 parameters and 1.814 GMAC for ResNet-18 (its 20 convolutions
alone, in ZigZag's ONNX file, are 1,813.6 M), 25,557,032 and 4.089 GMAC for ResNet-50.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network

WIDTHS = (64, 128, 256, 512)


def resnet(name: str, blocks: tuple[int, int, int, int], is_bottleneck: bool, weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder(name, weight_bits=weight_bits, activation_bits=activation_bits,
                       title=f"ResNet-{name.removeprefix('resnet')}{' v1.5' if is_bottleneck else ''}")
    block = _bottleneck if is_bottleneck else _basic
    x = b.input((1, 3, 224, 224))
    x = b.max_pool(b.relu(_conv(b, x, "conv1", K=64, F=7, S=2, P=3)), "maxpool", F=3, S=2, P=1)
    for stage, (width, count) in enumerate(zip(WIDTHS, blocks, strict=True), 1):
        for index in range(count):
            x = block(b, x, f"layer{stage}.{index}", width, 2 if stage > 1 and index == 0 else 1)
    b.linear(b.flatten(b.global_average_pool(x, "avgpool")), "fc", K=1000)
    return b.build()


def _conv(b: NetworkBuilder, x: str, name: str, **dimensions: Any) -> str:
    return b.batch_norm(b.conv(x, name, bias=False, **dimensions))


def _basic(b: NetworkBuilder, x: str, name: str, width: int, stride: int) -> str:
    y = b.relu(_conv(b, x, f"{name}.conv1", K=width, F=3, S=stride, P=1))
    y = _conv(b, y, f"{name}.conv2", K=width, F=3, P=1)
    return _join(b, x, y, name, stride)


def _bottleneck(b: NetworkBuilder, x: str, name: str, width: int, stride: int) -> str:
    y = b.relu(_conv(b, x, f"{name}.conv1", K=width, F=1))
    y = b.relu(_conv(b, y, f"{name}.conv2", K=width, F=3, S=stride, P=1))
    y = _conv(b, y, f"{name}.conv3", K=4 * width, F=1)
    return _join(b, x, y, name, stride)


def _join(b: NetworkBuilder, x: str, y: str, name: str, stride: int) -> str:
    """Add the block's input, projected where its shape is another."""
    channels = b.tensor(y).shape[1]
    if b.tensor(x).shape != b.tensor(y).shape:
        x = _conv(b, x, f"{name}.downsample", K=channels, F=1, S=stride)
    return b.relu(b.add(y, x, name=f"{name}.add"))


NETWORKS = {"resnet18": partial(resnet, "resnet18", (2, 2, 2, 2), False), "resnet50": partial(resnet, "resnet50", (3, 4, 6, 3), True)}
