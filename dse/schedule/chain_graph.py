"""Chains in a network's graph: the graph in which layers whose tensors stay on chip are one node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dse.schedule.chain import check_chain, why_not_kept
from dse.schedule.chain_search import ChainPlan, Spaces, plan_chain
from dse.schedule.explore import Objective
from dse.schedule.search import Choice, best_tiling
from dse.workload.line import JOINT, lines_among
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

if TYPE_CHECKING:
    import networkx


Mapping = Callable[[Any], Choice | None]
"""Of an operator, its layer's best mapping by itself; None where the design cannot run it."""


def linkable(design: Design, layers: Sequence[Layer]) -> list[slice]:
    """The parts of a line, of two layers or more, whose inner tensors the design could keep on chip, were its banks as deep as needed."""
    parts, first = [], 0
    for at in range(1, len(layers) + 1):
        if at == len(layers) or not _can_link(design, layers[at - 1], layers[at]):
            if at - first > 1:
                parts.append(slice(first, at))
            first = at
    return parts


def _can_link(design: Design, first: Layer, second: Layer) -> bool:
    try:
        check_chain(design, [first, second])
    except InputError:
        return False
    return why_not_kept(design, first, second) is None


def collapse_chains(graph: networkx.DiGraph, design: Design, timing: MemoryTiming, *, objective: Objective = Objective.BOTH,
                    spaces: Spaces | None = None, mapping: Mapping | None = None) -> networkx.DiGraph:
    """A copy of a network's graph in which layers whose tensors stay on chip are one node.

    Nodes are layers if their ``operator`` has a ``layer`` and no repeats. Tried are lines of layers that the design can run, with no more
    bits than it has, of which each is the only reader of the one before it. A collapsed node is called after its
    layers, joined by ``+``, and has ``operators`` (theirs), ``run`` (:class:`dse.schedule.chain.ChainRun`), ``prediction``, ``alone``
    (each layer's :class:`dse.schedule.search.Choice` by itself), ``saved_cycles`` and ``saved_bytes``; ``graph.graph`` has their sums.
    ``mapping``: in place of a search of each layer's own.
    """
    import networkx

    mapping = mapping or own_mapping(design, timing, objective)
    result = networkx.DiGraph(graph)
    result.graph |= {"saved_cycles": 0, "saved_bytes": 0}
    readers = {name: list(graph.successors(name)) for name in networkx.topological_sort(graph)}

    def is_link(name: str) -> bool:
        operator = graph.nodes[name].get("operator")
        is_layer = getattr(operator, "layer", None) is not None and getattr(operator, "repeat", 1) == 1 and graph.in_degree(name) <= 1
        return is_layer and mapping(operator) is not None

    for line in lines_among(readers, is_link):
        operators = [graph.nodes[name]["operator"] for name in line]
        for part in linkable(design, [operator.layer for operator in operators]):
            choices = [choice for operator in operators[part] if (choice := mapping(operator)) is not None]
            plan = plan_chain(design, [operator.layer for operator in operators[part]], timing, objective=objective, spaces=spaces,
                              alone=choices)
            names = iter(line[part])
            for values in _runs(plan):
                members = [next(names) for _ in values["alone"]]
                if len(members) > 1:
                    _collapse(result, members, **values)
    return result


def own_mapping(design: Design, timing: MemoryTiming, objective: Objective) -> Mapping:
    """The best mapping of each layer; searched once for layers that differ in nothing but their names."""
    found: dict[Layer, Choice | None] = {}

    def mapping(operator: Any) -> Choice | None:
        if operator.weight_bits > design.weight_bits or operator.activation_bits > design.activation_bits:
            return None
        key = replace(operator.layer, name="layer")
        if key not in found:
            try:
                found[key] = best_tiling(design, operator.layer, timing, objective=objective)
            except InputError:
                found[key] = None
        return found[key]

    return mapping


def _runs(plan: ChainPlan) -> Iterator[dict[str, Any]]:
    """What a node has, of each run."""
    first = 0
    for run, prediction in zip(plan.runs, plan.predictions, strict=True):
        alone = plan.alone[first:first + len(run.plans)]
        first += len(run.plans)
        yield {"run": run, "prediction": prediction, "alone": alone,
               "saved_cycles": sum(choice.prediction.cycles for choice in alone) - prediction.cycles,
               "saved_bytes": sum(choice.bytes for choice in alone) - prediction.beats * plan.design.bus_bits // 8}


def _collapse(graph: networkx.DiGraph, names: Sequence[str], **values: Any) -> None:
    before, after = list(graph.in_edges(names[0], data=True)), list(graph.out_edges(names[-1], data=True))
    operators = tuple(graph.nodes[name].get("operator") for name in names)
    graph.remove_nodes_from(names)
    merged = JOINT.join(names)
    graph.add_node(merged, operators=operators, **values)
    graph.add_edges_from((source, merged, data) for source, _, data in before)
    graph.add_edges_from((merged, target, data) for _, target, data in after)
    for name in ("saved_cycles", "saved_bytes"):
        graph.graph[name] += values[name]
