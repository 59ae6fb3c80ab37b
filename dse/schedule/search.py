"""Finds the tiling of a layer on a design: fewest cycles, and within 1 % of that fewest bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, lcm, log

from dse.schedule.compiler import Program, compile_program
from dse.schedule.predict import Prediction, ProgramLength, predict
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.compatibility import check_layer
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import Grouping, ceil_div, channel_alignment
from sim.memory import MemoryTiming

CYCLE_TOLERANCE = 0.01
"""Mappings within this share of the fewest cycles compete on bytes."""
MAX_TILES = 20_000
"""Tilings of more tiles than this are not looked at while there are others: the phases would be shorter than their overhead."""
MAX_SIZES = 12
"""Sizes tried along each loop, evenly spread over the distinct numbers of tiles."""


@dataclass(frozen=True)
class Choice:
    """The mapping chosen: plan, program, prediction, and how many tilings were compared."""

    plan: TilePlan
    program: Program
    prediction: Prediction
    candidates: int

    @property
    def bytes(self) -> int:
        return total_bytes(self.plan.design, self.prediction)


def total_bytes(design: Design, prediction: Prediction) -> int:
    return (prediction.beats_read + prediction.beats_written) * design.bus_bits // 8


def best_tiling(design: Design, layer: Layer, timing: MemoryTiming, *, max_sizes: int = MAX_SIZES) -> Choice:
    """The best mapping by exact prediction among those enumerated; up to ``max_sizes`` tile sizes are tried along each loop.

    Raises InputError when the design cannot compute the layer, or no tile of it fits the banks: which bank, and what is missing.
    """
    check_layer(design, layer)
    plans = fitting_plans(design, layer, max_sizes)
    # A program adds cycles to its plan's bound and never takes any away, so programs are compiled from the lowest bound up, until
    # the bounds pass what is already found.
    bounded = sorted(((predict(plan, ProgramLength(), timing).cycles, at) for at, plan in enumerate(plans)))
    predicted: list[tuple[Prediction, TilePlan, Program]] = []
    fewest: float = inf
    for bound, at in bounded:
        if bound > fewest * (1 + CYCLE_TOLERANCE):
            break
        try:
            program = compile_program(plans[at])
        except InputError:
            continue
        predicted.append((predict(plans[at], program, timing), plans[at], program))
        fewest = min(fewest, predicted[-1][0].cycles)
    if not predicted:
        raise does_not_fit(design, layer)
    near = [entry for entry in predicted if entry[0].cycles <= fewest * (1 + CYCLE_TOLERANCE)]
    prediction, plan, program = min(near, key=lambda entry: (total_bytes(design, entry[0]), entry[0].cycles))
    return Choice(plan, program, prediction, len(plans))


def fitting_plans(design: Design, layer: Layer, max_sizes: int = MAX_SIZES) -> list[TilePlan]:
    """Every enumerated tiling that the hardware runs and the banks hold, without those of very many tiles if there are others."""
    few: list[tuple[int, TilePlan]] = []
    many: list[tuple[int, TilePlan]] = []
    for plan in legal_plans(design, layer, max_sizes):
        if plan.fits:
            tiles = 1
            for loop in plan.loops.values():
                tiles *= len(loop)
            (few if tiles <= MAX_TILES else many).append((tiles, plan))
    if few:
        return [plan for _, plan in few]
    return [plan for _, plan in sorted(many, key=lambda entry: entry[0])[:1]]


def legal_plans(design: Design, layer: Layer, max_sizes: int = MAX_SIZES) -> Iterator[TilePlan]:
    """The enumeration: sizes along each loop, and both orders where they differ."""
    for tiling in enumerate_tilings(design, layer, max_sizes):
        try:
            yield TilePlan(design, layer, tiling)
        except IllegalTiling:
            continue


def enumerate_tilings(design: Design, layer: Layer, max_sizes: int = MAX_SIZES) -> Iterator[Tiling]:
    group, align = Grouping.of(design, layer), channel_alignment(design)
    channel_tiles: list[tuple[int, int, int]] = []  # ts, tk, tc
    for ts in tile_sizes(group.count, _group_step(design, group), max_sizes):
        channel_tiles.append((ts, group.outputs, group.words))
    # Whole blocks of rows where words and beats allow: a part of one costs as much as the whole.
    step = lcm(align, design.rows) if lcm(align, design.rows) <= group.outputs else align
    tks = tile_sizes(group.outputs, step, max_sizes) if group.packed == 1 else [group.outputs]
    tcs = tile_sizes(group.words, design.words_per_entry("input"), max_sizes) if design.psum_bytes else [group.words]
    channel_tiles += [(1, tk, tc) for tk in dict.fromkeys([*tks, min(align, group.outputs)]) for tc in tcs]
    for ts, tk, tc in dict.fromkeys(channel_tiles):
        for ty in tile_sizes(layer.OY, min(design.lanes, layer.OY), max_sizes):
            for tx in tile_sizes(layer.OX, 1, max_sizes):
                weight_tiles = ceil_div(group.count, ts) * ceil_div(group.outputs, tk)
                pixel_tiles = layer.B * ceil_div(layer.OY, ty) * ceil_div(layer.OX, tx)
                orders = list(Order) if weight_tiles > 1 and pixel_tiles > 1 else [Order.WEIGHTS_OUTER]
                for order in orders:
                    yield Tiling(ts=ts, tk=tk, tc=tc, ty=ty, tx=tx, order=order)


def _group_step(design: Design, group: Grouping) -> int:
    """Supergroups that end on a beat, of outputs and inputs."""
    step = 1
    while (step * group.outputs % channel_alignment(design) or step * group.words % design.words_per_entry("input")) \
            and step < group.count:
        step += 1
    return step


def tile_sizes(total: int, step: int, most: int) -> list[int]:
    """The whole, and multiples of ``step``: the most even split for each number of tiles, thinned to about ``most``, evenly in ratio."""
    units = ceil_div(total, step)
    sizes = sorted({min(total, ceil_div(units, tiles) * step) for tiles in range(1, units + 1)})
    if len(sizes) <= most:
        return sizes
    wanted = [sizes[0] * (total / sizes[0]) ** (at / (most - 1)) for at in range(most)]
    return sorted({min(sizes, key=lambda size: abs(log(size / want))) for want in wanted})


def does_not_fit(design: Design, layer: Layer) -> InputError:
    """The error for a layer of which no tile fits: the smallest tile's worst bank, what is missing, and a design that fits."""
    closest: tuple[float, str, int, int] | None = None
    for plan in legal_plans(design, layer):
        kind, (need, there) = max(plan.needs().items(), key=lambda item: item[1][0] / item[1][1])
        if closest is None or need / there < closest[0]:
            closest = (need / there, kind, need, there)
    if closest is None:
        return InputError("no tile of the layer ends where words and beats do", where="layer", value=str(layer),
                          suggestion="use fewer columns, a narrower bus, or a psum RAM (psum_bytes)")
    _, kind, need, there = closest
    if kind == "parameter":
        return InputError(f"no tile fits: the parameter bank needs {need} entries and has {there}", where="layer.K", value=layer.K,
                          suggestion="use more groups or fewer output channels")
    width, count = design.bank_width_bits(kind), design.bank_count(kind)
    needed_bytes = ceil_div(need * width * count, 8)
    there_bytes = there * width * count // 8
    return InputError(f"no tile fits the {kind} banks: the smallest needs {needed_bytes} bytes, "
                      f"{needed_bytes - there_bytes} more than there are", where=f"design.{kind}_bytes",
                      value=getattr(design, f"{kind}_bytes"), allowed=f"at least {needed_bytes} for this layer",
                      suggestion=f"the nearest design that fits has {kind}_bytes={needed_bytes}")
