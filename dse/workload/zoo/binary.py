"""The binary networks of BNN-PYNQ: ``cnv`` for 32x32 colour images (CIFAR-10) and ``lfc`` for 28x28 digits (MNIST).

Y. Umuroglu et al., "FINN: A Framework for Fast, Scalable Binarized Neural Network Inference", FPGA 2017; the layers and their
operation counts are in BNN-PYNQ's ``bnn/src/network/cnvW1A1/hw/config.h`` (2 ops a MAC) and ``lfcW1A1``.

* ``cnv``: 59,489,024 MACs. Its last layer is padded from 10 to 64 outputs, as in the hardware; without that it is 59,461,376. The
  first layer reads 8-bit pixels with 1-bit weights (w1a8), all others are w1a1. Normalisation and sign are done before the pooling, as in
  the hardware: they are monotonous, so the maximum of bits is the bit of the maximum. The last layer's outputs are 16-bit scores
  (``L8_API``); an array that writes 1-bit outputs compares them with thresholds instead.
* ``lfc``: 2,910,208 MACs, without the hardware's padding of 784 inputs to 832 and of 10 outputs to 64. The host makes bits of the
  8-bit pixels first, as in BNN-PYNQ; the outputs are bits (``L3_API``).

Other precisions (cnvW2A2 and so on) clamp instead of taking the sign. Convolutions and linear layers have no biases.
"""

from __future__ import annotations

from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network

PRECISION = (1, 1)
PIXEL_BITS = 8
SCORE_BITS = 16
CLASSES, PADDED_CLASSES = 10, 64


def cnv(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("cnv", weight_bits=weight_bits, activation_bits=activation_bits, title="CNV of BNN-PYNQ, CIFAR-10")
    x = b.input((1, 3, 32, 32), bits=max(PIXEL_BITS, activation_bits))
    for index, channels in enumerate((64, 64, 128, 128, 256, 256)):
        x = _quantised(b, b.conv(x, f"conv{index}", K=channels, F=3, bias=False), activation_bits)
        if index in (1, 3):
            x = b.max_pool(x, f"pool{index}", F=2, S=2)
    for index in (6, 7):
        x = _quantised(b, b.linear(x, f"fc{index}", K=512, bias=False), activation_bits)
    x = b.linear(x, "fc8", K=PADDED_CLASSES, bias=False, output_bits=SCORE_BITS)
    b.host("slice", x, name="classes", shape=(1, CLASSES, 1, 1))
    return b.build()


def lfc(weight_bits: int, activation_bits: int) -> Network:
    b = NetworkBuilder("lfc", weight_bits=weight_bits, activation_bits=activation_bits, title="LFC of BNN-PYNQ, MNIST")
    x = b.flatten(b.input((1, 1, 28, 28), bits=max(PIXEL_BITS, activation_bits)))
    if activation_bits == 1:
        x = b.activation("sign", x, "binarise")
    for index in range(3):
        x = _quantised(b, b.linear(x, f"fc{index}", K=1024, bias=False), activation_bits)
    b.linear(x, "fc3", K=CLASSES, bias=False)
    return b.build()


def _quantised(b: NetworkBuilder, x: str, activation_bits: int) -> str:
    return b.activation("sign" if activation_bits == 1 else "clip", b.batch_norm(x))


NETWORKS = {"cnv": cnv, "lfc": lfc}
