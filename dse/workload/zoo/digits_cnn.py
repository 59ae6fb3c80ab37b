"""A small network of ours for digits of 8x8 pixels, such as the 1,797 of scikit-learn's ``load_digits`` (values 0 to 16).

Strides instead of pooling, so that everything but the softmax runs on the array. Counts by hand: parameters
(9 + 1) * 8 + (72 + 1) * 16 + (144 + 1) * 32 + (128 + 1) * 10 = 7,178; MACs 9 * 8 * 64 + 72 * 16 * 16 + 144 * 32 * 4 + 1,280 = 42,752.
"""

from __future__ import annotations

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network


def digits_cnn(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("digits-cnn", weight_bits=weight_bits, activation_bits=activation_bits, title="small CNN, digits")
    x = b.input((1, 1, 8, 8))
    x = b.relu(b.conv(x, "conv1", K=8, F=3, P=1))
    x = b.relu(b.conv(x, "conv2", K=16, F=3, S=2, P=1))
    x = b.relu(b.conv(x, "conv3", K=32, F=3, S=2, P=1))
    b.softmax(b.linear(b.flatten(x), "fc", K=10), "softmax")
    return b.build()


NETWORKS = {"digits-cnn": digits_cnn}
