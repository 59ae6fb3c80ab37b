"""What a sweep evaluates its points on."""

from __future__ import annotations

from dataclasses import dataclass

from hdl.compatibility import accumulator_bits_needed
from hdl.design import MAX_ACCUMULATOR_BITS
from hdl.layer import Layer


@dataclass(frozen=True)
class Workload:
    """Layers that run on the array one after another. ``layers``: (name, layer, how many times the network has it, from 1). ``lines``:
    names of layers of which each alone reads the one before it, whose tensors could stay on chip."""

    name: str
    layers: tuple[tuple[str, Layer, int], ...]
    lines: tuple[tuple[str, ...], ...] = ()

    @property
    def macs(self) -> int:
        return sum(layer.macs * repeat for _, layer, repeat in self.layers)

    def accumulator_bits(self, weight_bits: int, activation_bits: int) -> int:
        """As wide as the widest layer needs, and never wider than a design can be: what needs more is refused when it is mapped."""
        widest = max(accumulator_bits_needed(layer, weight_bits, activation_bits) for _, layer, _ in self.layers)
        return min(widest, MAX_ACCUMULATOR_BITS)
