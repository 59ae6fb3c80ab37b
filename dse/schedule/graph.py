"""The tile graph: every load, compute and store step of a run, with what it waits for.

A second way to the same number as :func:`dse.schedule.predict.predict`: the longest path through the graph is the run's cycles, and names
what is critical in each phase. Node times make the Gantt chart.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from dse.schedule.compiler import Program
from dse.schedule.predict import tile_costs
from dse.schedule.tiling import TilePlan
from hdl import timing as hardware
from sim.memory import MemoryTiming


@dataclass(frozen=True)
class Step:
    """A node: what is done (``fetch``, ``evaluate``, ``store``, ``load``, ``compute``), for which tile, on which resource.

    ``resource``: ``memory``, ``array`` or ``sequencer``; ``cycles``: its length.
    """

    kind: str
    tile: int
    resource: str
    cycles: int

    def __str__(self) -> str:
        return f"{self.kind} {self.tile}"


START, END = "start", "end"


def tile_graph(plan: TilePlan, program: Program, timing: MemoryTiming) -> nx.DiGraph:
    """A DAG from ``start`` to ``end`` over :class:`Step` nodes and one integer node (the phase's number) where each phase begins.

    Edge attribute ``cycles``: from the begin of the first node to that of the second. Node attributes ``begin``, ``end``: cycles, filled
    for steps (``end`` exclusive).
    """
    costs = tile_costs(plan)
    loads, computes, stores = (values.tolist() for values in (costs.load_beats, costs.compute_cycles, costs.store_beats))
    tiles = len(loads)
    graph = nx.DiGraph()
    fetch = Step("fetch", 0, "memory", hardware.START_CYCLES + timing.transfer_cycles(program.beats))
    first = Step("evaluate", 0, "sequencer", hardware.FIRST_EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * program.first_instructions)
    _follow(graph, START, fetch, 0)
    _follow(graph, fetch, first, fetch.cycles + hardware.FETCH_END_CYCLES)
    _follow(graph, first, 0, first.cycles + hardware.PHASE_CHANGE_CYCLES)
    for phase in range(tiles + 2):
        store, load, compute = phase - 2, phase, phase - 1
        last: Step | int = phase
        moved = 0
        # One memory queue in program order: the latency is paid by the phase's first transfer.
        for kind, tile, beats in (("store", store, stores[store] if store >= 0 else 0), ("load", load, loads[load] if load < tiles else 0)):
            if not beats:
                continue
            before = _beat_cycles(moved, timing) + (timing.latency_cycles + hardware.MEMORY_START_CYCLES if moved else 0)
            moved += beats
            after = _beat_cycles(moved, timing) + timing.latency_cycles + hardware.MEMORY_START_CYCLES
            step = Step(kind, tile, "memory", after - before)
            _follow(graph, last, step, last.cycles if isinstance(last, Step) else 0)
            last = step
        if phase == tiles + 1:
            # The run ends with the last write beat, counted.
            _follow(graph, last, END, (last.cycles if isinstance(last, Step) else 0) + 1)
            break
        following = phase + 1
        if isinstance(last, Step):
            _follow(graph, last, following, last.cycles + hardware.MEMORY_END_CYCLES + hardware.PHASE_CHANGE_CYCLES)
        if 0 <= compute < tiles:
            step = Step("compute", compute, "array", computes[compute])
            _follow(graph, phase, step, 0)
            _follow(graph, step, following, step.cycles + hardware.PHASE_CHANGE_CYCLES)
        if load < tiles:
            evaluation = hardware.EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * program.tile_instructions
            step = Step("evaluate", load + 1, "sequencer", evaluation)
            _follow(graph, phase, step, 0)
            _follow(graph, step, following, step.cycles + hardware.PHASE_CHANGE_CYCLES)
    _time(graph)
    return graph


def graph_cycles(graph: nx.DiGraph) -> int:
    """Cycles of the run: when ``end`` begins."""
    return int(graph.nodes[END]["begin"])


def critical_path(graph: nx.DiGraph) -> list[Step]:
    """The steps of the longest path, in order."""
    return [node for node in nx.dag_longest_path(graph, weight="cycles") if isinstance(node, Step)]


def _follow(graph: nx.DiGraph, before: object, after: object, cycles: int) -> None:
    graph.add_edge(before, after, cycles=cycles)


def _beat_cycles(beats: int, timing: MemoryTiming) -> int:
    return -(-beats * timing.den // timing.num)


def _time(graph: nx.DiGraph) -> None:
    for node in nx.topological_sort(graph):
        begin = max((graph.nodes[before]["begin"] + graph.edges[before, node]["cycles"] for before in graph.predecessors(node)),
                    default=0)
        graph.nodes[node]["begin"] = begin
        graph.nodes[node]["end"] = begin + (node.cycles if isinstance(node, Step) else 0)
