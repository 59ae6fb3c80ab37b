"""LeNet-5: Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-Based Learning Applied to Document Recognition", 1998.

As it is built today: every map of C3 sees all six of S2, subsampling is average pooling without trained values, and the output is
linear. That is 61,706 parameters (Zhang et al., "Dive into Deep Learning", 7.6: the same network) and 416,520 MACs. The paper's own has
60,000: its C3 sees a table of subsets (1,516 instead of 2,416), subsampling has 12 + 32, and the output compares with fixed patterns.
C1 (156 parameters), C5 (48,120) and F6 (10,164) are as there. tanh is no clamp, so it stays on the host.
"""

from __future__ import annotations

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network


def lenet5(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("lenet5", weight_bits=weight_bits, activation_bits=activation_bits, title="LeNet-5, digits")
    x = b.input((1, 1, 32, 32))
    x = b.average_pool(b.activation("tanh", b.conv(x, "c1", K=6, F=5)), "s2", F=2, S=2)
    x = b.average_pool(b.activation("tanh", b.conv(x, "c3", K=16, F=5)), "s4", F=2, S=2)
    x = b.activation("tanh", b.conv(x, "c5", K=120, F=5))
    x = b.activation("tanh", b.linear(x, "f6", K=84))
    b.softmax(b.linear(x, "output", K=10), "softmax")
    return b.build()


NETWORKS = {"lenet5": lenet5}
