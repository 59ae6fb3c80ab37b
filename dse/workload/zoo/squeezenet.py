"""SqueezeNet 1.0 (``squeezenet``) and 1.1: F. Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters", 2016.

1.0 is the paper's; 1.1 is its authors' later version, of 2.4 times fewer MACs. Input 224 x 224, pools that round up, as in torchvision,
which documents 1,248,424 parameters and 0.819 GMAC for 1.0, 1,235,496 and 0.349 GMAC for 1.1 (26 convolutions, 349.2 MMAC in the
ONNX project's light_squeezenet).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network

SQUEEZES = (16, 16, 32, 32, 48, 48, 64, 64)
"""Channels of each fire module's squeeze; both of its expansions have four times as many."""


def squeezenet(name: str, stem: dict[str, Any], pools: set[int], weight_bits: int, activation_bits: int) -> Network:
    """``pools``: the fire modules (2 to 9) that a pooling follows; 1 is the stem."""
    version = name.removeprefix("squeezenet") or "1.0"
    b = NetworkBuilder(name, weight_bits=weight_bits, activation_bits=activation_bits, title=f"SqueezeNet {version}")
    x = b.relu(b.conv(b.input((1, 3, 224, 224)), "conv1", **stem))
    for index, channels in enumerate(SQUEEZES, 2):
        if index - 1 in pools:
            x = b.max_pool(x, f"pool{index - 1}", F=3, S=2, ceil=True)
        x = _fire(b, x, f"fire{index}", channels)
    b.flatten(b.global_average_pool(b.relu(b.conv(x, "conv10", K=1000, F=1)), "avgpool"))
    return b.build()


def _fire(b: NetworkBuilder, x: str, name: str, squeeze: int) -> str:
    x = b.relu(b.conv(x, f"{name}.squeeze", K=squeeze, F=1))
    one = b.relu(b.conv(x, f"{name}.expand1x1", K=4 * squeeze, F=1))
    three = b.relu(b.conv(x, f"{name}.expand3x3", K=4 * squeeze, F=3, P=1))
    return b.concat(one, three, name=f"{name}.concat")


NETWORKS = {"squeezenet": partial(squeezenet, "squeezenet", {"K": 96, "F": 7, "S": 2}, {1, 4, 8}),
            "squeezenet1.1": partial(squeezenet, "squeezenet1.1", {"K": 64, "F": 3, "S": 2}, {1, 3, 5})}
