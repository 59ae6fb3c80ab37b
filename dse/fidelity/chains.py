"""Chains checked: layers whose tensors stay on chip, against prediction and NumPy; random ones too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from math import gcd
from random import Random

from dse.fidelity.check import STALL_ALLOWANCE
from dse.fidelity.points import PRECISIONS, random_design, random_timing
from dse.schedule.chain import ChainPrediction, ChainRun, pack_chain, place_chain, predict_chain, unpack_chain, why_not_kept
from dse.schedule.frame import ANYWHERE
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.accelerator import Accelerator
from hdl.compatibility import check_layer
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import Grouping, channel_alignment
from sim.engine import SimulationResult, run
from sim.golden import LayerTensors, golden, random_tensors
from sim.memory import MemoryTiming

MAX_CYCLES = 20_000  # of array work in a random layer


@dataclass(frozen=True)
class ChainPoint:
    """A design, its layers, how they are tiled, and the memory they meet. ``seed`` makes the tensors."""

    design: Design
    layers: tuple[Layer, ...]
    tilings: tuple[Tiling, ...]
    timing: MemoryTiming
    seed: int


@dataclass(frozen=True)
class ChainOutcome:
    """``mismatches``: what differs, in words; empty when all agrees."""

    run: ChainRun
    prediction: ChainPrediction
    result: SimulationResult = field(repr=False)
    mismatches: tuple[str, ...]


def chain_tensors(design: Design, layers: tuple[Layer, ...], seed: int) -> list[LayerTensors]:
    """Random tensors of every layer; each reads what the golden model says that the one before it writes."""
    result: list[LayerTensors] = []
    for number, layer in enumerate(layers):
        tensors = random_tensors(design, layer, seed + number)
        if result:
            tensors = replace(tensors, input=golden(design, layers[number - 1], result[-1]))
        result.append(tensors)
    return result


def check_chain_point(point: ChainPoint, *, engine: str = "auto", stall_seed: int | None = None) -> ChainOutcome:
    """Run a chain; with ``stall_seed`` memory stalls at random, and then only the bits and the bytes must agree."""
    return check_run(place_chain(point.design, point.layers, point.tilings), point.timing, point.seed, engine=engine, stall_seed=stall_seed)


def check_run(chain: ChainRun, timing: MemoryTiming, seed: int, *, engine: str = "auto", stall_seed: int | None = None) -> ChainOutcome:
    """The same for a chain that is placed already."""
    design, prediction = chain.design, predict_chain(chain, timing)
    tensors = chain_tensors(design, chain.layers, seed)
    expected = golden(design, chain.layers[-1], tensors[-1])
    limit = prediction.cycles * (STALL_ALLOWANCE if stall_seed is not None else 2) + 10_000
    result = run(Accelerator, design, pack_chain(chain, tensors), 0, chain.programs[0].beats, timing, engine=engine, max_cycles=limit,
                 stall_seed=stall_seed)
    names = ("beats_read", "beats_written", "issue_cycles", *(("cycles",) if stall_seed is None else ()))
    pairs = {name.replace("_", " "): (getattr(prediction, name), getattr(result, name)) for name in names}
    mismatches = [f"{what}: predicted {predicted}, simulated {simulated}"
                  for what, (predicted, simulated) in pairs.items() if predicted != simulated]
    wrong = int((unpack_chain(chain, result.memory) != expected).sum())
    if wrong:
        mismatches.append(f"output: {wrong} of {expected.size} values differ")
    return ChainOutcome(chain, prediction, result, tuple(mismatches))


# -- random chains ----------------------------------------------------------------------------------------------------


def random_chains(seed: int, designs: int, per_design: int) -> Iterator[ChainPoint]:
    """``per_design`` chains of two or three layers on each of ``designs`` designs; precisions take turns."""
    random = Random(seed)
    found = 0
    while found < designs:
        design = random_design(random, *PRECISIONS[(18 + 7 * found) % len(PRECISIONS)])
        design = design.with_(chaining=True, input_bytes=4096 * design.lanes)
        tried = (_random_chain(random, design, random.choice((2, 3))) for _ in range(20 * per_design))
        points = list(islice(filter(None, tried), per_design))
        if len(points) == per_design:
            found += 1
            yield from points


def _random_chain(random: Random, design: Design, length: int) -> ChainPoint | None:
    layers: list[Layer] = []
    while len(layers) < length:
        try:
            layer = _random_link(random, design, layers[-1] if layers else None)
            check_layer(design, layer)
        except InputError:
            return None  # a combination that is refused where it is parsed
        if layer.macs > MAX_CYCLES * min(4, design.macs_per_cycle) or layers and why_not_kept(design, layers[-1], layer):
            return None
        layers.append(layer)
    for _ in range(20):
        tilings = [_random_link_tiling(random, design, layer, number > 0, number < length - 1) for number, layer in enumerate(layers)]
        if None in tilings:
            return None
        point = ChainPoint(design, tuple(layers), tuple(filter(None, tilings)), random_timing(random), random.randrange(1 << 30))
        try:
            place_chain(design, point.layers, point.tilings)
        except (IllegalTiling, InputError):
            continue
        return point
    return None


def _random_link(random: Random, design: Design, before: Layer | None) -> Layer:
    """A layer that reads what ``before`` writes."""
    bits = design.activation_bits
    dims = {"K": random.choice((1, 3, 4, 8, 9, 16)), "FY": random.choice((1, 1, 2, 3)), "FX": random.choice((1, 1, 3, 4)),
            "SY": random.choice((1, 1, 2, 3)), "SX": random.choice((1, 1, 2)), "DY": random.choice((1, 1, 2))}
    dims |= {"C": random.choice((1, 3, 4, 8, 16)), "IY": random.choice((4, 7, 8, 11)), "IX": random.choice((1, 5, 8))} if before is None \
        else {"C": before.K, "IY": before.OY, "IX": before.OX}
    for pad, taps in (("PT", "FY"), ("PB", "FY"), ("PL", "FX"), ("PR", "FX")):
        dims[pad] = random.randint(0, dims[taps] - 1)
    if random.random() < 0.35:
        groups = random.choice([n for n in range(1, dims["C"] + 1) if dims["C"] % n == 0])
        dims |= {"G": groups, "K": groups * random.choice((1, 1, 2))}

    def number(signed: bool) -> int:
        low = -(1 << bits - 1) if signed else 0
        return random.choice((0, low, low + (1 << bits) - 1, low // 2 + 1)) if bits > 1 else 0

    signed = before.outputs_signed if before else random.random() < 0.5
    out_signed = random.random() < 0.5
    return Layer.conv(**dims, name=f"layer{0 if before is None else int(before.name[5:]) + 1}", activations_signed=signed,
                      outputs_signed=out_signed, input_zero_point=before.output_zero_point if before else number(signed),
                      output_zero_point=number(out_signed))


def _random_link_tiling(random: Random, design: Design, layer: Layer, kept_input: bool, kept_output: bool) -> Tiling | None:
    group = Grouping.of(design, layer)
    step = design.cols * design.words_per_entry("output") if kept_output else channel_alignment(design)

    def part(total: int, step: int = 1) -> int:
        return total if random.random() < 0.4 else min(total, step * random.randint(1, max(1, total // step)))

    for _ in range(30):
        tiling = Tiling(ts=part(group.count, step // gcd(step, group.outputs)), tk=part(group.outputs, step), tc=part(group.words),
                        ty=part(layer.OY), tx=part(layer.OX), order=random.choice(list(Order)), resident=random.random() < 0.2)
        try:
            plan = TilePlan(design, layer, tiling, input_entry=0 if kept_input else None, output_frame=ANYWHERE if kept_output else None)
        except IllegalTiling:
            continue
        if plan.fits:
            return tiling
    return None
