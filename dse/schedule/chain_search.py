"""Which tensors between consecutive layers stay on chip, and how the layers are tiled then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm, log, prod
from typing import Any

from dse.schedule.chain import ChainPrediction, ChainRun, check_chain, place_chain, predict_chain, predict_link, why_not_kept
from dse.schedule.explore import Objective
from dse.schedule.frame import ANYWHERE
from dse.schedule.predict import ProgramLength
from dse.schedule.program_shape import Pattern, program_shape
from dse.schedule.search import Choice, best_tiling
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import Grouping, ceil_div, channel_alignment
from sim.memory import MemoryTiming

MAX_SIZES = 6
"""Sizes tried along each loop, evenly spread over the distinct numbers of tiles."""
MAX_TILES = 20_000
"""Tilings of more tiles than this are not looked at."""
CYCLE_TOLERANCE = 0.01
"""Ways within this share of the fewest cycles compete on bytes."""

@dataclass(frozen=True)
class ChainPlan:
    """How consecutive layers run: as few runs as possible, the tensors inside each on chip.

    ``runs``, ``predictions``: in order; a run of one layer is that layer's best mapping by itself. ``alone``: the best mapping of every
    layer by itself, from memory to memory. ``tilings``: compared.
    """

    design: Design
    layers: tuple[Layer, ...]
    runs: tuple[ChainRun, ...]
    predictions: tuple[ChainPrediction, ...]
    alone: tuple[Choice, ...]
    tilings: int

    @cached_property
    def links(self) -> tuple[bool, ...]:
        """For each layer but the last: whether its output stays on chip for the next one."""
        return tuple(plan.output_is_kept for run in self.runs for plan in run.plans)[:-1]

    @property
    def cycles(self) -> int:
        return sum(prediction.cycles for prediction in self.predictions)

    @property
    def cycles_alone(self) -> int:
        """Of running the layers one by one."""
        return sum(choice.prediction.cycles for choice in self.alone)

    @property
    def bytes(self) -> int:
        """External bytes, programs included."""
        return sum(prediction.beats_read + prediction.beats_written for prediction in self.predictions) * self.design.bus_bits // 8

    @property
    def bytes_alone(self) -> int:
        return sum(choice.bytes for choice in self.alone)

    @property
    def saved_bytes(self) -> int:
        """Bytes that running the layers one by one would move, less those of this plan."""
        return self.bytes_alone - self.bytes


@dataclass(frozen=True)
class _Option:
    """A tiling of a layer; ``entries``: what it needs of an input bank, the next layer's region apart. No tiling: the best one alone."""

    entries: int
    cycles: int
    beats: int
    tiling: Tiling | None


@dataclass(frozen=True)
class _Way:
    """A way through the layers from one on, whose own option comes first. ``price``: what is made least."""

    price: tuple[int, int]
    options: tuple[_Option, ...] = ()
    kept: tuple[bool, ...] = ()  # of each layer: its output

    @property
    def cycles(self) -> int:
        return sum(option.cycles for option in self.options)


Price = tuple[int, int]
"""What a cycle and a beat cost, in the sum that is made least."""
PRICES: dict[Objective, Price] = {Objective.CYCLES: (1 << 40, 1), Objective.BYTES: (1, 1 << 40)}
BOTH_PRICES: tuple[Price, ...] = tuple((64, 1 << power) for power in range(16))


def plan_chain(design: Design, layers: Sequence[Layer], timing: MemoryTiming, *, objective: Objective = Objective.BOTH,
               max_sizes: int = MAX_SIZES) -> ChainPlan:
    """Which tensors stay on chip, and the tilings: the best by exact prediction among those tried.

    ``layers`` read each other's output. Up to ``max_sizes`` tile sizes are tried along each loop. With ``Objective.BOTH`` a byte is
    given the highest price at which the whole takes at most 1 % more cycles than the fewest. Raises InputError where a layer does not
    read what the one before it writes, where the design cannot chain, and where a layer does not fit.
    """
    check_chain(design, layers)
    alone = tuple(best_tiling(design, layer, timing) for layer in layers)
    search = _Search(design, tuple(layers), timing, max_sizes, alone)
    if objective is Objective.BOTH:
        way = search.best(PRICES[Objective.CYCLES])
        allowed = way.cycles * (1 + CYCLE_TOLERANCE)
        for price in BOTH_PRICES:
            other = search.best(price)
            if other.cycles > allowed:
                break
            way = other
    else:
        way = search.best(PRICES[objective])
    runs, predictions, first = [], [], 0
    for number, kept in enumerate(way.kept):
        if not kept:
            part = slice(first, number + 1)
            tilings = [option.tiling or choice.plan.tiling for option, choice in zip(way.options[part], alone[part], strict=True)]
            runs.append(place_chain(design, layers[part], tilings))
            predictions.append(predict_chain(runs[-1], timing))
            first = number + 1
    return ChainPlan(design, tuple(layers), tuple(runs), tuple(predictions), alone, search.compared)


class _Search:
    """The options of every layer, for each choice of where its tensors are; then the best way for any price."""

    def __init__(self, design: Design, layers: tuple[Layer, ...], timing: MemoryTiming, max_sizes: int, alone: tuple[Choice, ...]) -> None:
        self.design, self.timing, self.max_sizes = design, timing, max_sizes
        self.depth = design.bank_depth("input")
        self.compared = 0
        links = [why_not_kept(design, a, b) is None for a, b in zip(layers, layers[1:], strict=False)]
        self.options: list[dict[tuple[bool, bool], list[_Option]]] = []  # by whether input and output are kept
        for layer, choice, before, after in zip(layers, alone, [False, *links], [*links, False], strict=True):
            single = _Option(0, choice.prediction.cycles, choice.prediction.beats_read + choice.prediction.beats_written, None)
            self.options.append({(False, False): [single]} | {
                (input_kept, output_kept): self._tried(layer, input_kept, output_kept)
                for input_kept in (False, True)[:1 + before] for output_kept in (False, True)[:1 + after] if input_kept or output_kept})

    def best(self, price: Price) -> _Way:
        """From the last layer to the first: the cheapest way on, by how much of the input banks its first layer's input takes."""
        loaded, kept = _Way((0, 0)), list[_Way]()  # from the next layer on, its input loaded; and on chip
        for options in reversed(self.options):
            ways: dict[bool, list[_Way]] = {False: [], True: []}
            for (input_kept, output_kept), choices in options.items():
                for option in choices:
                    following = [way for way in kept if option.entries + way.options[0].entries <= self.depth] if output_kept else [loaded]
                    if following:
                        way = min(following, key=lambda way: way.price)
                        cost = option.cycles * price[0] + option.beats * price[1]
                        ways[input_kept].append(_Way((cost + way.price[0], option.beats + way.price[1]), (option, *way.options),
                                                     (output_kept, *way.kept)))
            loaded, kept = min(ways[False], key=lambda way: way.price), ways[True]
        return loaded

    def _tried(self, layer: Layer, input_kept: bool, output_kept: bool) -> list[_Option]:
        """Tilings that fit, of which none is as good as another in entries, cycles and beats."""
        found: list[_Option] = []
        for tiling in _tilings(self.design, layer, output_kept, self.max_sizes):
            try:
                plan = TilePlan(self.design, layer, tiling, input_entry=0 if input_kept else None,
                                output_frame=ANYWHERE if output_kept else None)
            except IllegalTiling:
                continue
            shape = program_shape(self.design, Pattern.of(plan)) if plan.fits else None
            if shape is None or not shape.fits:
                continue
            self.compared += 1
            length = ProgramLength(shape.beats(self.design.bus_bits), shape.first_instructions, shape.tile_instructions)
            link = predict_link(plan, length, self.timing)
            found.append(_Option(plan.needs()["input"][0], link.cycles, link.beats_read + link.beats_written, tiling))
        result: list[_Option] = []
        for option in sorted(found, key=lambda option: (option.entries, option.cycles, option.beats)):
            if not any(other.cycles <= option.cycles and other.beats <= option.beats for other in result):
                result.append(option)
        return result


def _tilings(design: Design, layer: Layer, output_kept: bool, max_sizes: int) -> Iterator[Tiling]:
    """Sizes along each loop, both orders where they differ, and weights that stay."""
    group = Grouping.of(design, layer)
    step = design.cols * design.words_per_entry("output") if output_kept else channel_alignment(design)
    channels = [(ts, group.outputs, group.words) for ts in tile_sizes(group.count, 1, max_sizes)]
    block = lcm(step, design.rows)  # a part of a block of rows costs as much as the whole
    tks = [group.outputs]
    if group.packed == 1:
        tks = sorted({*tile_sizes(group.outputs, block, max_sizes), min(block, group.outputs), min(step, group.outputs)})
    tcs = tile_sizes(group.words, design.words_per_entry("input"), max_sizes) if design.psum_bytes else [group.words]
    channels += [(1, tk, tc) for tk in tks for tc in tcs]
    for ts, tk, tc in dict.fromkeys(channels):
        weight_tiles = ceil_div(group.count, ts) * ceil_div(group.outputs, tk)
        for ty in tile_sizes(layer.OY, min(design.lanes, layer.OY), max_sizes):
            for tx in tile_sizes(layer.OX, 1, max_sizes):
                pixel_tiles = layer.B * ceil_div(layer.OY, ty) * ceil_div(layer.OX, tx)
                if prod((weight_tiles, pixel_tiles, ceil_div(group.words, tc))) > MAX_TILES:
                    continue
                orders = list(Order) if weight_tiles > 1 and pixel_tiles > 1 else [Order.WEIGHTS_OUTER]
                for order in orders:
                    for resident in (False, True) if len(orders) > 1 else (False,):
                        yield Tiling(ts=ts, tk=tk, tc=tc, ty=ty, tx=tx, order=order, resident=resident)


def tile_sizes(total: int, step: int, most: int) -> list[int]:
    """The whole, and multiples of ``step``: the most even split for each number of tiles, thinned to ``most``, evenly in ratio."""
    units = ceil_div(total, step)
    sizes = sorted({min(total, ceil_div(units, tiles) * step) for tiles in range(1, units + 1)})
    if len(sizes) <= most:
        return sizes
    wanted = [sizes[0] * (total / sizes[0]) ** (at / (most - 1)) for at in range(most)]
    return sorted({min(sizes, key=lambda size: abs(log(size / want))) for want in wanted})


# -- networks ---------------------------------------------------------------------------------------------------------


def collapse_chains(graph: Any, design: Design, timing: MemoryTiming, *, objective: Objective = Objective.BOTH,
                    max_sizes: int = MAX_SIZES) -> Any:
    """A copy of a network's ``networkx.DiGraph`` in which layers whose tensors stay on chip are one node.

    Nodes are array layers if their ``operator`` has a ``layer``, no repeats, and no more bits than the design; of those, each that is
    the only reader of the one before it is tried. A collapsed node is called after its layers, joined by ``+``, and has ``operators``
    (theirs), ``run`` (:class:`ChainRun`), ``prediction`` and ``saved_bytes``; ``graph.graph["saved_bytes"]`` is the sum.
    """
    import networkx

    result = networkx.DiGraph(graph)
    result.graph["saved_bytes"] = 0
    for names in _lines(graph, design):
        layers = [graph.nodes[name]["operator"].layer for name in names]
        try:
            plan = plan_chain(design, layers, timing, objective=objective, max_sizes=max_sizes)
        except InputError:
            continue  # a layer that does not fit: as it is
        first = 0
        for run, prediction in zip(plan.runs, plan.predictions, strict=True):
            last = first + len(run.plans)
            if last - first > 1:
                alone = sum(choice.bytes for choice in plan.alone[first:last])
                moved = (prediction.beats_read + prediction.beats_written) * design.bus_bits // 8
                _collapse(result, names[first:last], run=run, prediction=prediction, saved_bytes=alone - moved)
            first = last
    return result


def _lines(graph: Any, design: Design) -> Iterator[list[str]]:
    """Longest lines of layers of which each alone reads the one before it and could find its output on chip."""
    import networkx

    def follower(name: str) -> str | None:
        after = list(graph.successors(name))
        layer = _layer(graph, name, design)
        if layer is None or len(after) != 1 or graph.in_degree(after[0]) != 1:
            return None
        second = _layer(graph, after[0], design)
        if second is None:
            return None
        try:
            check_chain(design, [layer, second])
        except InputError:
            return None
        return after[0] if why_not_kept(design, layer, second) is None else None

    following = {name: follower(name) for name in networkx.topological_sort(graph)}
    begun = set(following.values())
    for name in following:
        line, at = [name], following[name]
        while at is not None:
            line.append(at)
            at = following[at]
        if name not in begun and len(line) > 1:
            yield line


def _layer(graph: Any, name: str, design: Design) -> Layer | None:
    operator = graph.nodes[name].get("operator")
    layer: Layer | None = getattr(operator, "layer", None)
    fits = getattr(operator, "repeat", 1) == 1 and getattr(operator, "weight_bits", 0) <= design.weight_bits \
        and getattr(operator, "activation_bits", 0) <= design.activation_bits
    return layer if fits else None


def _collapse(graph: Any, names: Sequence[str], **values: Any) -> None:
    before, after = list(graph.in_edges(names[0], data=True)), list(graph.out_edges(names[-1], data=True))
    operators = tuple(graph.nodes[name].get("operator") for name in names)
    graph.remove_nodes_from(names)
    merged = "+".join(names)
    graph.add_node(merged, operators=operators, **values)
    graph.add_edges_from((source, merged, data) for source, _, data in before)
    graph.add_edges_from((merged, target, data) for _, target, data in after)
    graph.graph["saved_bytes"] += values["saved_bytes"]
