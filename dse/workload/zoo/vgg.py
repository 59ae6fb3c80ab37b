"""VGG-16 (configuration D): K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", 2014.

Input 224 x 224. torchvision documents 138,357,544 parameters and 15.47 GMAC; the paper prints 138 million. Convolutions: 14.7 M
weights and 15.3 GMAC (Chen et al., Eyeriss, ISSCC 2016).
"""

from __future__ import annotations

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and convolutions before each pooling."""


def vgg16(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("vgg16", weight_bits=weight_bits, activation_bits=activation_bits, title="VGG-16 (D)")
    x = b.input((1, 3, 224, 224))
    for stage, (channels, count) in enumerate(STAGES, 1):
        for index in range(1, count + 1):
            x = b.relu(b.conv(x, f"conv{stage}_{index}", K=channels, F=3, P=1))
        x = b.max_pool(x, f"pool{stage}", F=2, S=2)
    x = b.flatten(x)
    x = b.relu(b.linear(x, "fc6", K=4096))
    x = b.relu(b.linear(x, "fc7", K=4096))
    b.linear(x, "fc8", K=1000)
    return b.build()


NETWORKS = {"vgg16": vgg16}
