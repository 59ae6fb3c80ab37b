"""Random small networks with residual branches, views, several inputs and outputs."""

from __future__ import annotations

import random

import pytest

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network

CHANNELS, SIZE = 4, 6


def random_network(seed: int) -> Network:
    """About twelve operators; all tensors have four channels but those that are concatenated, pooled or flattened."""
    draw = random.Random(seed)
    b = NetworkBuilder(f"random{seed}")
    sources = [b.input((1, CHANNELS, SIZE, SIZE), f"input{index}") for index in range(draw.randint(1, 2))]
    sources.append(b.conv(sources[0], K=CHANNELS, F=3, P=1))
    for _ in range(draw.randint(4, 12)):
        source = draw.choice(sources[-4:])
        channels = b.tensor(source).shape[1]
        like = [other for other in sources if b.tensor(other).shape == b.tensor(source).shape]
        op = draw.choice(("conv", "conv", "relu", "batch_norm", "add", "add", "multiply", "max_pool", "concat", "flatten", "softmax"))
        if op == "conv":
            sources.append(b.conv(source, K=CHANNELS, F=1))
        elif op in ("add", "multiply"):
            sources.append(getattr(b, op)(source, draw.choice(like)))
        elif op == "max_pool":
            sources.append(b.max_pool(source, F=3, S=draw.randint(1, 2), P=1))
        elif op == "concat":
            sources.append(b.concat(source, draw.choice(like)) if channels < 16 else b.relu(source))
        elif op == "flatten":
            sources.append(b.host("reshape", source, name=f"view{len(sources)}", shape=b.tensor(source).shape, is_view=True))
        else:
            sources.append(getattr(b, op)(source))
    return b.build()


@pytest.fixture(params=range(40))
def network(request) -> Network:
    return random_network(request.param)
