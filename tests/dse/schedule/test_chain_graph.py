"""Chains in a network's graph: which layers could be one, and the graph in which they are."""

from __future__ import annotations

import networkx
import pytest

from dse.fidelity.chains import check_run
from dse.schedule.chain_graph import collapse_chains, linkable
from dse.schedule.chain_search import even_spaces, plan_chain
from dse.workload.builder import NetworkBuilder
from hdl.design import Design
from hdl.layer import Layer
from sim.memory import MemoryTiming

TIMING = MemoryTiming(12, 14, 25)
DESIGN = Design(rows=4, cols=4, accumulator_bits=24, chaining=True)
LAYERS = (Layer.conv(name="a", K=8, C=4, OY=10, OX=8, FY=3, FX=3, P=1), Layer.conv(name="b", K=8, C=8, OY=10, OX=8, FY=1, FX=1),
          Layer.conv(name="c", K=6, C=8, IY=10, IX=8, FY=3, FX=3, P=1, S=2))


class Operator:
    """What the collapse looks at of an operator of a network."""

    def __init__(self, layer: Layer | None = None) -> None:
        self.layer = layer
        self.repeat = 1
        self.weight_bits = self.activation_bits = 8


def graph_of(edges: list[tuple[str, str]], layers: dict[str, Layer]) -> networkx.DiGraph:
    graph = networkx.DiGraph(edges, name="net")
    for name in graph:
        graph.nodes[name]["operator"] = Operator(layers.get(name))
    return networkx.freeze(graph)


def test_lines_of_layers_become_one_node() -> None:
    layers = {layer.name: layer for layer in LAYERS}
    graph = graph_of([("in", "a"), ("a", "b"), ("b", "c"), ("c", "pool")], layers)
    collapsed = collapse_chains(graph, DESIGN, TIMING, spaces=even_spaces)
    assert set(collapsed) == {"in", "a+b+c", "pool"} and list(collapsed.edges) == [("in", "a+b+c"), ("a+b+c", "pool")]
    plan = plan_chain(DESIGN, LAYERS, TIMING, spaces=even_spaces)
    node = collapsed.nodes["a+b+c"]
    assert node["saved_bytes"] == collapsed.graph["saved_bytes"] == plan.saved_bytes > 0
    assert node["saved_cycles"] == collapsed.graph["saved_cycles"] == plan.cycles_alone - plan.cycles > 0
    assert [operator.layer for operator in node["operators"]] == list(LAYERS)
    assert node["prediction"] == plan.predictions[0] and list(graph) == ["in", "a", "b", "c", "pool"]


def test_a_tensor_with_two_readers_stays_in_memory() -> None:
    layers = {layer.name: layer for layer in LAYERS}
    collapsed = collapse_chains(graph_of([("a", "b"), ("a", "add"), ("b", "add")], layers), DESIGN, TIMING, spaces=even_spaces)
    assert set(collapsed) == {"a", "b", "add"} and collapsed.graph["saved_bytes"] == 0


def inverted_residual(weight_bits: int) -> networkx.DiGraph:
    builder = NetworkBuilder("block", weight_bits=weight_bits)
    source = builder.input((1, 4, 8, 8))
    x = builder.activation("relu6", builder.conv(source, "expand", K=8, F=1))
    x = builder.activation("relu6", builder.conv(x, "depthwise", K=8, F=3, P=1, G=8))
    builder.add(builder.conv(x, "project", K=4, F=1), source, name="sum")
    return builder.build().graph


def test_a_network_is_such_a_graph() -> None:
    collapsed = collapse_chains(inverted_residual(8), DESIGN, TIMING, spaces=even_spaces)
    assert set(collapsed) == {"input", "expand+depthwise+project", "sum"}
    assert set(collapsed.edges) == {("input", "expand+depthwise+project"), ("expand+depthwise+project", "sum"), ("input", "sum")}
    run = collapsed.nodes["expand+depthwise+project"]["run"]
    assert check_run(run, TIMING, 1).mismatches == ()


def test_what_the_design_is_too_narrow_for_is_left_alone() -> None:
    collapsed = collapse_chains(inverted_residual(16), DESIGN, TIMING, spaces=even_spaces)
    assert set(collapsed) == {"input", "expand", "depthwise", "project", "sum"}


def test_a_layer_that_the_design_cannot_run_ends_a_line() -> None:
    layers = {layer.name: layer for layer in (*LAYERS, Layer.conv(name="d", K=600, C=6, IY=5, IX=4, FY=1, FX=1))}
    graph = graph_of([("a", "b"), ("b", "c"), ("c", "d")], layers)
    graph.nodes["b"]["operator"].weight_bits = 16
    assert set(collapse_chains(graph, DESIGN, TIMING, spaces=even_spaces)) == {"a", "b", "c+d"}


@pytest.mark.parametrize("changes, parts", [
    ({}, [slice(0, 3)]), ({"input_zero_point": 3}, [slice(0, 2)]), ({"G": 2, "K": 6}, [slice(0, 3)])])
def test_parts_of_a_line_that_can_be_linked(changes: dict[str, int], parts: list[slice]) -> None:
    last = Layer.conv(**{"name": "c", "K": 6, "C": 8, "IY": 10, "IX": 8, "FY": 3, "FX": 3, "P": 1, "S": 2, **changes})
    assert linkable(DESIGN, [*LAYERS[:2], last]) == parts
