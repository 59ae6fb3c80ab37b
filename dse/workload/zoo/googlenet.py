"""GoogLeNet (Inception v1) as in torchvision: C. Szegedy et al., "Going Deeper with Convolutions", CVPR 2015.

Without the auxiliary classifiers. torchvision's differs from the paper in two ways: 3x3 filters stand where the paper has 5x5 (its known
issue 906), and batch normalisation where the paper has biases and response normalisation. It documents 6,624,904 parameters and
1.498 GMAC; the paper's network (Caffe's bvlc_googlenet) has about 7.0 M and 1.6 GMAC.
"""

from __future__ import annotations

from typing import Any

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network

MODULES = {
    "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}
"""Table 1 of the paper: 1x1; 3x3 reduce, 3x3; 5x5 reduce, 5x5; pool projection."""


def googlenet(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("googlenet", weight_bits=weight_bits, activation_bits=activation_bits,
                       title="GoogLeNet (torchvision)")
    x = _conv(b, b.input((1, 3, 224, 224)), "conv1", K=64, F=7, S=2, P=3)
    x = b.max_pool(x, "maxpool1", F=3, S=2, ceil=True)
    x = _conv(b, x, "conv2", K=64, F=1)
    x = _conv(b, x, "conv3", K=192, F=3, P=1)
    x = b.max_pool(x, "maxpool2", F=3, S=2, ceil=True)
    for name, channels in MODULES.items():
        if name == "4a":
            x = b.max_pool(x, "maxpool3", F=3, S=2, ceil=True)
        elif name == "5a":
            x = b.max_pool(x, "maxpool4", F=2, S=2, ceil=True)
        x = _inception(b, x, f"inception{name}", channels)
    b.linear(b.flatten(b.global_average_pool(x, "avgpool")), "fc", K=1000)
    return b.build()


def _conv(b: NetworkBuilder, x: str, name: str, **dimensions: Any) -> str:
    return b.relu(b.batch_norm(b.conv(x, name, bias=False, **dimensions)))


def _inception(b: NetworkBuilder, x: str, name: str, channels: tuple[int, ...]) -> str:
    one, three_reduce, three, five_reduce, five, projection = channels
    branch1 = _conv(b, x, f"{name}.branch1", K=one, F=1)
    branch2 = _conv(b, _conv(b, x, f"{name}.branch2.0", K=three_reduce, F=1), f"{name}.branch2.1", K=three, F=3, P=1)
    branch3 = _conv(b, _conv(b, x, f"{name}.branch3.0", K=five_reduce, F=1), f"{name}.branch3.1", K=five, F=3, P=1)
    pool = b.max_pool(x, f"{name}.branch4.0", F=3, S=1, P=1, ceil=True)
    branch4 = _conv(b, pool, f"{name}.branch4.1", K=projection, F=1)
    return b.concat(branch1, branch2, branch3, branch4, name=f"{name}.concat")


NETWORKS = {"googlenet": googlenet}
