"""Four GRU layers of 400 units, in the style of Deep Speech 2 (D. Amodei et al., ICML 2016), without its convolutions.

The size is that of the bandwidth article by E. Culurciello, A. Zaidy and V. Gokhale (2017). Ours are the input, 400 features a step, so
that every product is 400 -> 400, and the length: 50 steps, one second of speech at 20 ms a step.

A layer has three gates (K. Cho et al., 2014), and two linear layers compute their six products: ``input`` for all steps at once
(B = 50 vectors share the weights), ``recurrent`` for one step after the other (``repeat`` = 50: the same weights, read again for every
step, because each step needs the state of the one before). The gates join them on the host: the reset gate acts on the recurrent
product, as in cuDNN and PyTorch. The state is an input of the graph: the edge from the gates back to it would close a cycle.

Parameters by PyTorch's ``nn.GRU(400, 400, num_layers=4)``: 4 * (2 * 3 * 400 * 400 + 2 * 3 * 400) = 3,849,600; every weight is used once a
step: 50 * 3,840,000 = 192,000,000 MACs.
"""

from __future__ import annotations

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network

LAYERS, UNITS, STEPS = 4, 400, 50
GATE_OPS = 21
"""A unit and step: two sigmoids of sums (2 * 5), r * u, its sum with w, tanh (1 + 1 + 5), (1 - z) * n + z * h (4)."""


def deepspeech_gru(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("deepspeech-gru", weight_bits=weight_bits, activation_bits=activation_bits,
                       title=f"{LAYERS} GRU layers of {UNITS}")
    x = b.input((STEPS, UNITS, 1, 1))
    for layer in range(1, LAYERS + 1):
        state = b.input((1, UNITS, 1, 1), f"gru{layer}.state", is_state=True)
        products = b.linear(x, f"gru{layer}.input", K=3 * UNITS)
        recurrent = b.linear(state, f"gru{layer}.recurrent", K=3 * UNITS, repeat=STEPS)
        x = b.host("gru_gates", products, recurrent, name=f"gru{layer}.gates", shape=(STEPS, UNITS, 1, 1), ops=GATE_OPS * STEPS * UNITS)
    return b.build()


NETWORKS = {"deepspeech-gru": deepspeech_gru}
