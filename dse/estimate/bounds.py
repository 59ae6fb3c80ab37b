"""Lower bounds of a layer's external traffic."""

from __future__ import annotations

from math import ceil, sqrt

from hdl.design import Design
from hdl.layer import Layer
from hdl.mapping import x_axis, y_axis


def compulsory_bytes(design: Design, layer: Layer) -> int:
    """Bytes that must cross the channel whatever the capacity: each weight, each output and each input that a tap reads, once.

    Elements at their own width; padding of words, the program and the output stage's parameters are not compulsory.
    """
    return compulsory_bits(layer, design.weight_bits, design.activation_bits) // 8


def compulsory_bits(layer: Layer, weight_bits: int, activation_bits: int) -> int:
    """The same in bits, of a layer with elements so wide."""
    return layer.weights * weight_bits + (layer.outputs + used_inputs(layer)) * activation_bits


def used_inputs(layer: Layer) -> int:
    """Input elements that some tap reads: a stride beyond the filter skips rows and columns."""
    count = layer.B * layer.C
    for axis in (y_axis(layer), x_axis(layer)):
        touched = {out * axis.stride + tap * axis.dilation for out in range(axis.outputs) for tap in range(axis.taps)}
        count *= sum(axis.first <= grid < axis.first + axis.count for grid in touched)
    return count


def capacity_bytes(design: Design) -> int:
    """On-chip capacity of the design's data banks (input, weight, output, psum), as block RAM holds it."""
    kinds = [kind for kind in design.bank_kinds if kind not in ("parameter", "program")]
    return sum(design.bank_depth(kind) * design.bank_width_bits(kind) * design.bank_count(kind) for kind in kinds) // 8


def communication_lower_bound_bytes(design: Design, layer: Layer) -> int:
    """A bound that no schedule of this layer can beat on this design: never above what is measured.

    The larger of the compulsory traffic and the Hong-Kung argument in the form of Irony, Toledo and Tiskin (2004), applied to the layer
    as a matrix product. Cut the run into phases that move S elements each, S the on-chip capacity: a phase has at most 2 S inputs, 2 S
    weights and 2 S partial sums at hand. One input stands in at most R = ceil(FY/SY) * ceil(FX/SX) places of the lowered input (strides
    and dilations reduced by their common divisor), so a phase does at most sqrt(R * (2 S)**3) products (Loomis and Whitney), and the run
    moves at least S * floor(MACs / sqrt(8 R S**3)) elements. S counts elements of the narrowest width, which keeps the bound safe.
    """
    narrowest = min(design.weight_bits, design.activation_bits)
    capacity = capacity_bytes(design) * 8 // narrowest
    y, x = y_axis(layer), x_axis(layer)
    places = ceil(layer.FY / y.stride) * ceil(layer.FX / x.stride)
    phases = int(real_macs(layer) / sqrt(8.0 * places * capacity**3))
    return max(compulsory_bytes(design, layer), phases * capacity * narrowest // 8)


def asymptotic_bound_bytes(design: Design, layer: Layer) -> int:
    """2 * MACs / sqrt(R * S) words, the asymptotic form of Chen et al. (HPCA 2020); a guide, not a bound for small layers."""
    width = max(design.weight_bits, design.activation_bits)
    capacity = capacity_bytes(design) * 8 / width
    reuse = layer.FY * layer.FX / (layer.SY * layer.SX)
    return ceil(2 * layer.macs / sqrt(reuse * capacity) * width / 8)


def real_macs(layer: Layer) -> int:
    """Products whose input is no padding."""
    total = layer.B * layer.K * (layer.C // layer.G)
    for axis in (y_axis(layer), x_axis(layer)):
        total *= sum(axis.first <= out * axis.stride + tap * axis.dilation < axis.first + axis.count
                     for out in range(axis.outputs) for tap in range(axis.taps))
    return total
