"""The choice of what stays on chip: the traffic it saves is measured, and no other choice of those tried is better."""

from __future__ import annotations

from itertools import product

import networkx
import pytest

from dse.fidelity.chains import check_run
from dse.fidelity.check import Point, check_point
from dse.schedule.chain import place_chain, predict_chain
from dse.schedule.chain_search import ChainPlan, _tilings, collapse_chains, plan_chain, tile_sizes
from dse.schedule.explore import Objective
from dse.schedule.tiling import IllegalTiling
from dse.workload.builder import NetworkBuilder
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

TIMING = MemoryTiming(12, 14, 25)
DESIGN = Design(rows=4, cols=4, accumulator_bits=24, chaining=True)
LAYERS = (Layer.conv(name="a", K=8, C=4, OY=10, OX=8, FY=3, FX=3, P=1), Layer.conv(name="b", K=8, C=8, OY=10, OX=8, FY=1, FX=1),
          Layer.conv(name="c", K=6, C=8, IY=10, IX=8, FY=3, FX=3, P=1, S=2))


def measured_bytes(plan: ChainPlan) -> tuple[int, int]:
    """Of the plan's runs, and of every layer by itself; every run is held against prediction and NumPy."""
    together = alone = 0
    for run in plan.runs:
        outcome = check_run(run, TIMING, 5)
        assert outcome.mismatches == ()
        together += outcome.result.beats_read + outcome.result.beats_written
    for layer, choice in zip(plan.layers, plan.alone, strict=True):
        single = check_point(Point(plan.design, layer, choice.plan.tiling, TIMING, 5))
        assert single.mismatches == ()
        alone += single.result.beats_read + single.result.beats_written
    return together * plan.design.bus_bits // 8, alone * plan.design.bus_bits // 8


def test_the_traffic_saved_is_what_is_measured() -> None:
    plan = plan_chain(DESIGN, LAYERS, TIMING)
    together, alone = measured_bytes(plan)
    assert plan.links == (True, True) and len(plan.runs) == 1
    assert (plan.bytes, plan.bytes_alone, plan.saved_bytes) == (together, alone, alone - together)
    # At least each tensor's way out and back in: 10 x 8 pixels of 8 bytes, both times.
    assert plan.saved_bytes >= 2 * 2 * 10 * 8 * 8
    assert plan.cycles < plan.cycles_alone


def test_what_does_not_fit_travels() -> None:
    design = DESIGN.with_(input_bytes=2048)  # 512 entries: 160 and 160 fit, 384 and 160 do not
    wide = (Layer.conv(name="a", K=16, C=8, OY=12, OX=8, FY=1, FX=1), Layer.conv(name="b", K=8, C=16, OY=12, OX=8, FY=1, FX=1),
            Layer.conv(name="c", K=8, C=8, OY=12, OX=8, FY=1, FX=1), Layer.conv(name="d", K=40, C=8, OY=12, OX=8, FY=1, FX=1),
            Layer.conv(name="e", K=4, C=40, OY=12, OX=8, FY=1, FX=1))
    plan = plan_chain(design, wide, TIMING, max_sizes=3)
    assert plan.links[-1] is False  # 12 x 8 pixels of 10 words
    assert [len(run.plans) for run in plan.runs][-1] == 1
    assert sum(len(run.plans) for run in plan.runs) == 5 and len(plan.links) == 4


@pytest.mark.parametrize("objective", list(Objective))
def test_no_combination_of_the_tilings_tried_is_better(objective: Objective) -> None:
    design = DESIGN.with_(lanes=2)
    layers = (Layer.conv(name="a", K=8, C=4, OY=10, OX=1, FY=3, FX=1, PT=1, PB=1), Layer.conv(name="b", K=8, C=8, OY=10, OX=1, FY=1, FX=1))
    plan = plan_chain(design, layers, TIMING, objective=objective, max_sizes=2)
    found = [(sum(choice.prediction.cycles for choice in plan.alone), plan.bytes_alone)]
    for tilings in product(_tilings(design, layers[0], True, 2), _tilings(design, layers[1], False, 2)):
        try:
            prediction = predict_chain(place_chain(design, layers, tilings), TIMING)
        except IllegalTiling:
            continue
        found.append((prediction.cycles, (prediction.beats_read + prediction.beats_written) * 2))
    assert (plan.cycles, plan.bytes) in found and len(found) > 20
    fewest, least = min(found), min((moved, cycles) for cycles, moved in found)
    if objective is Objective.CYCLES:
        assert (plan.cycles, plan.bytes) == fewest
    elif objective is Objective.BYTES:
        assert (plan.bytes, plan.cycles) == least
    else:
        assert plan.cycles <= 1.01 * fewest[0] and least[0] <= plan.bytes <= fewest[1]


def test_a_layer_that_does_not_follow_is_refused() -> None:
    with pytest.raises(InputError, match=r"^layers\[1\].C: c does not read what a writes, got 9; allowed: 8, the K before it$"):
        plan_chain(DESIGN, (LAYERS[0], Layer.conv(name="c", K=4, C=9, OY=10, OX=8, FY=1, FX=1)), TIMING)


def test_tile_sizes_end_on_steps_and_include_the_whole() -> None:
    assert tile_sizes(13, 1, 20) == [1, 2, 3, 4, 5, 7, 13]
    assert tile_sizes(192, 4, 4)[0] == 4 and tile_sizes(192, 4, 4)[-1] == 192


# -- networks ---------------------------------------------------------------------------------------------------------


class Operator:
    """What the collapse looks at of an operator of a network."""

    def __init__(self, layer: Layer | None = None) -> None:
        self.layer = layer
        self.repeat = 1


def graph_of(edges: list[tuple[str, str]], layers: dict[str, Layer]) -> networkx.DiGraph:
    graph = networkx.DiGraph(edges, name="net")
    for name in graph:
        graph.nodes[name]["operator"] = Operator(layers.get(name))
    return networkx.freeze(graph)


def test_lines_of_layers_become_one_node() -> None:
    layers = {layer.name: layer for layer in LAYERS}
    graph = graph_of([("in", "a"), ("a", "b"), ("b", "c"), ("c", "pool")], layers)
    collapsed = collapse_chains(graph, DESIGN, TIMING, max_sizes=3)
    assert set(collapsed) == {"in", "a+b+c", "pool"} and list(collapsed.edges) == [("in", "a+b+c"), ("a+b+c", "pool")]
    plan = plan_chain(DESIGN, LAYERS, TIMING, max_sizes=3)
    node = collapsed.nodes["a+b+c"]
    assert node["saved_bytes"] == collapsed.graph["saved_bytes"] == plan.saved_bytes > 0
    assert [operator.layer for operator in node["operators"]] == list(LAYERS)
    assert node["prediction"] == plan.predictions[0] and list(graph) == ["in", "a", "b", "c", "pool"]


def test_a_tensor_with_two_readers_stays_in_memory() -> None:
    layers = {layer.name: layer for layer in LAYERS}
    collapsed = collapse_chains(graph_of([("a", "b"), ("a", "add"), ("b", "add")], layers), DESIGN, TIMING)
    assert set(collapsed) == {"a", "b", "add"} and collapsed.graph["saved_bytes"] == 0


def inverted_residual(weight_bits: int) -> networkx.DiGraph:
    builder = NetworkBuilder("block", weight_bits=weight_bits)
    source = builder.input((1, 4, 8, 8))
    x = builder.activation("relu6", builder.conv(source, "expand", K=8, F=1))
    x = builder.activation("relu6", builder.conv(x, "depthwise", K=8, F=3, P=1, G=8))
    builder.add(builder.conv(x, "project", K=4, F=1), source, name="sum")
    return builder.build().graph


def test_a_network_is_such_a_graph() -> None:
    collapsed = collapse_chains(inverted_residual(8), DESIGN, TIMING, max_sizes=3)
    assert set(collapsed) == {"input", "expand+depthwise+project", "sum"}
    assert set(collapsed.edges) == {("input", "expand+depthwise+project"), ("expand+depthwise+project", "sum"), ("input", "sum")}
    run = collapsed.nodes["expand+depthwise+project"]["run"]
    assert check_run(run, TIMING, 1).mismatches == ()


def test_what_the_design_is_too_narrow_for_is_left_alone() -> None:
    assert set(collapse_chains(inverted_residual(16), DESIGN, TIMING)) == {"input", "expand", "depthwise", "project", "sum"}
