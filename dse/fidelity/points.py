"""Random points over everything the hardware accepts: precisions, array shapes, geometries, tilings, memories."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from dse.fidelity.check import Point
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.compatibility import check_layer
from hdl.design import BUS_BITS, ELEMENT_BITS, Accumulate, Design, Multiplier, OutputMultiplier
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import Grouping, channel_alignment
from sim.memory import MemoryTiming

MAX_CYCLES = 30_000  # of array work in a random point
GEOMETRIES = ("plain", "kernel", "stride", "dilation", "pads", "groups", "depthwise", "linear", "pointwise", "batch")
PRECISIONS = [(w, a) for w in ELEMENT_BITS for a in ELEMENT_BITS]


def random_design(random: Random, weight_bits: int, activation_bits: int) -> Design:
    """A small design of the given precision; every option is drawn from its legal values."""
    xnor = weight_bits == activation_bits == 1
    rows, lanes = random.choice((1, 2, 3, 4, 4, 5, 7, 8)), random.choice((1, 1, 1, 2, 2, 3, 4))
    cols = random.choice((1, 7, 16, 24, 32, 33, 40) if xnor else (1, 2, 3, 4, 4, 5, 8))
    bus_bits = random.choice(BUS_BITS[:4])
    options: dict[str, Any] = {
        "rows": rows, "cols": cols, "lanes": lanes, "weight_bits": weight_bits, "activation_bits": activation_bits,
        "accumulator_bits": 16 if xnor else min(48, weight_bits + activation_bits + random.choice((10, 12, 14))),
        "accumulate": Accumulate.TREE if xnor else random.choice(list(Accumulate)),
        "output_multiplier": OutputMultiplier.SERIAL if activation_bits == 1 else random.choice(list(OutputMultiplier)),
        "bus_bits": bus_bits, "counters": random.random() < 0.5,
        "input_bytes": random.choice((512, 4096)) * lanes, "weight_bytes": random.choice((512, 4096)) * rows,
        "output_bytes": 2048 * lanes, "psum_bytes": random.choice((0, 4096, 4096)),
    }
    plain = Design(**{**options, "multiplier": Multiplier.LUT})
    options["drains"] = random.choice(plain.legal_drains())
    styles = [Multiplier.LUT]
    if not xnor and plain.product_bits >= 9:
        styles.append(Multiplier.DSP)
    return Design(**{**options, "multiplier": random.choice(styles)})


def random_layer(random: Random, geometry: str, activation_bits: int) -> Layer:
    """A small layer of one kind of geometry; sizes include 1, primes and more or less than a power of two."""
    size = random.choice((1, 2, 3, 5, 7, 8, 9, 13))
    dims = {"K": random.choice((1, 2, 3, 5, 8, 12, 17)), "C": random.choice((1, 2, 3, 4, 7, 8, 16, 33)), "FY": 1, "FX": 1,
            "IY": size, "IX": random.choice((1, 3, 4, 6, 11))}
    if geometry == "linear":
        dims = {"K": random.choice((1, 7, 10, 33)), "C": random.choice((1, 5, 16, 100)), "B": random.choice((1, 1, 3))}
    elif geometry != "pointwise":
        dims |= {"FY": random.choice((1, 2, 3, 5)), "FX": random.choice((1, 2, 3, 3))}
    if geometry == "kernel":
        dims |= random.choice(({"FY": 1, "FX": 7, "PL": 3, "PR": 3}, {"FY": 7, "FX": 1, "PT": 3, "PB": 3}))
    if geometry in ("stride", "dilation", "pads"):
        dims |= {"SY": random.choice((1, 2, 3)), "SX": random.choice((1, 2, 4))}
    if geometry in ("dilation", "pads"):
        dims |= {"DY": random.choice((1, 2, 3)), "DX": random.choice((1, 2, 4))}
    if geometry in ("pads", "groups", "depthwise", "stride"):
        for pad, taps, dilation in (("PT", "FY", "DY"), ("PB", "FY", "DY"), ("PL", "FX", "DX"), ("PR", "FX", "DX")):
            dims[pad] = random.randint(0, min(3, (dims[taps] - 1) * dims.get(dilation, 1)))
    if geometry == "groups":
        groups = random.choice((2, 3, 4, 6))
        dims |= {"G": groups, "K": groups * random.choice((1, 2, 3, 4)), "C": groups * random.choice((1, 2, 3, 5))}
    if geometry == "depthwise":
        channels = random.choice((2, 4, 6, 7, 8, 12, 16))
        dims |= {"G": channels, "C": channels, "K": channels * random.choice((1, 1, 2))}
    if geometry == "batch":
        dims["B"] = random.choice((2, 3))
    low, high = (-(1 << activation_bits - 1), (1 << activation_bits - 1) - 1)
    signed, out_signed = random.random() < 0.5, random.random() < 0.5
    options: dict[str, object] = {"kind": "linear" if geometry == "linear" else "conv", "name": geometry}
    if activation_bits > 1:
        options |= {
            "activations_signed": signed, "outputs_signed": out_signed,
            "input_zero_point": random.choice((0, low, high, 1)) - (0 if signed else low),
            "output_zero_point": random.choice((0, low, high)) - (0 if out_signed else low),
        }
        if random.random() < 0.3:
            options["lo"] = options["output_zero_point"]
    return Layer.from_dict({**options, **dims})


def random_tiling(random: Random, design: Design, layer: Layer) -> Tiling | None:
    """A tiling that the hardware accepts and the banks hold, or None when a few dozen tries find none."""
    group, align = Grouping.of(design, layer), channel_alignment(design)

    def part(total: int, step: int = 1) -> int:
        return total if random.random() < 0.4 else min(total, step * random.randint(1, max(1, total // step)))

    for _ in range(60):
        tiling = Tiling(ts=part(group.count), tk=part(group.outputs, align), tc=part(group.words), ty=part(layer.OY),
                        tx=part(layer.OX), order=random.choice(list(Order)), resident=random.random() < 0.3)
        try:
            plan = TilePlan(design, layer, tiling)
        except IllegalTiling:
            continue
        if plan.fits:
            return tiling
    return None


def random_timing(random: Random) -> MemoryTiming:
    den = random.choice((1, 2, 3, 7, 25, 100))
    return MemoryTiming(random.choice((8, 9, 12, 30)), random.randint(max(1, den // 4), den), den)


def random_points(seed: int, designs: int, per_design: int) -> Iterator[Point]:
    """``per_design`` points on each of ``designs`` distinct designs; precisions and geometries take turns, so that all occur."""
    random = Random(seed)
    seen: set[Design] = set()
    geometry = 0
    while len(seen) < designs:
        design = random_design(random, *PRECISIONS[len(seen) % len(PRECISIONS)])
        if design in seen:
            continue
        seen.add(design)
        found = 0
        while found < per_design:
            geometry += 1
            point = _random_point(random, design, GEOMETRIES[geometry % len(GEOMETRIES)])
            if point is not None:
                found += 1
                yield point


def _random_point(random: Random, design: Design, geometry: str) -> Point | None:
    try:
        layer = random_layer(random, geometry, design.activation_bits)
        check_layer(design, layer)
    except InputError:
        return None  # a combination that is refused where it is parsed
    if layer.macs > MAX_CYCLES * min(4, design.macs_per_cycle):
        return None
    tiling = random_tiling(random, design, layer)
    return Point(design, layer, tiling, random_timing(random), random.randrange(1 << 30)) if tiling else None
