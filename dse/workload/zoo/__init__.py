"""Networks that are built in. Their names are known without building any."""

from __future__ import annotations

from importlib import import_module

from dse.workload.network import Network
from dse.workload.operators import unknown

MODULES = {
    "alexnet": "alexnet", "alexnet-owt": "alexnet", "cnv": "binary", "deepspeech-gru": "deepspeech_gru", "digits-cnn": "digits_cnn",
    "googlenet": "googlenet", "lenet5": "lenet5", "lfc": "binary", "mobilenetv2": "mobilenetv2", "resnet18": "resnet",
    "resnet50": "resnet", "squeezenet": "squeezenet", "squeezenet1.1": "squeezenet", "vgg16": "vgg",
}
"""Module of each network. It has ``NETWORKS``: name -> function of (weight_bits, activation_bits); and ``PRECISION``, if not w8a8."""
NAMES = tuple(MODULES)
DEFAULT_PRECISION = (8, 8)


def load_network(name: str, weight_bits: int | None = None, activation_bits: int | None = None) -> Network:
    """The network called ``name``, at a precision; by default w8a8, or the network's own (binary networks: w1a1).

    Raises InputError for an unknown name, with the nearest one.
    """
    if name not in MODULES:
        raise unknown("not in the zoo", name, NAMES, where="network")
    module = import_module(f"{__name__}.{MODULES[name]}")
    own_weight_bits, own_activation_bits = getattr(module, "PRECISION", DEFAULT_PRECISION)
    network: Network = module.NETWORKS[name](own_weight_bits if weight_bits is None else weight_bits,
                                             own_activation_bits if activation_bits is None else activation_bits)
    return network
