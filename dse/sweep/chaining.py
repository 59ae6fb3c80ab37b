"""Tensors that stay on chip in a sweep: what they save at each design point, and how the layers run then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from dse.schedule.banks import alike
from dse.schedule.chain_graph import linkable
from dse.schedule.chain_search import Figures, LineSearch, Way, even_spaces
from dse.schedule.explore import Objective
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.layer import Layer
from sim.memory import MemoryTiming

Integers = NDArray[np.int64]
FIGURES = tuple(field.name for field in fields(Figures))
SAVINGS = ("kept_tensors", "saved_cycles", "saved_beats")


@dataclass(frozen=True)
class Line:
    """Layers that a design could run from one start; ``names``: of each of the equal lines that the workload has."""

    layers: tuple[Layer, ...]
    names: tuple[tuple[str, ...], ...]


def lines_of(design: Design, workload: Workload) -> list[Line]:
    """The lines of the workload, cut where the design can keep no tensor whatever its banks."""
    layers = {name: replace(layer, name="layer") for name, layer, _ in workload.layers}
    found: dict[tuple[Layer, ...], list[tuple[str, ...]]] = {}
    for line in workload.lines:
        for part in linkable(design, [layers[name] for name in line]):
            found.setdefault(tuple(layers[name] for name in line[part]), []).append(line[part])
    return [Line(members, tuple(names)) for members, names in found.items()]


def savings(design: Design, workload: Workload, timing: MemoryTiming, objective: Objective, depths: Integers, alive: Integers,
            alone: Mapping[Layer, Mapping[str, Integers]]) -> dict[str, Integers]:
    """What is to be added to the sums of the layers one by one, and ``SAVINGS``: arrays by row of ``depths``, (n, 4).

    ``alive``: rows where every layer can be mapped. ``alone``: figures of each layer (named ``"layer"``) by itself, by row.
    """
    result = {name: np.zeros(len(depths), np.int64) for name in (*FIGURES, *SAVINGS)}
    if not design.chaining or not len(alive):
        return result
    rows, place = np.unique(depths[alive], axis=0, return_inverse=True)
    place = place.reshape(-1)
    sample = alive[np.unique(place, return_index=True)[1]]  # one row of each
    for line in lines_of(design, workload):
        times = len(line.names)
        for which, search in _searches(design, line, timing, objective, rows):
            for row in which.tolist():
                one_by_one = [Figures(*(int(alone[layer][name][sample[row]]) for name in FIGURES)) for layer in line.layers]
                way = search.best(rows[row].tolist(), one_by_one)
                if not any(way.kept):
                    continue
                apart, here = sum(one_by_one, Figures()), alive[place == row]
                for name in FIGURES:
                    result[name][here] += times * (getattr(way.figures, name) - getattr(apart, name))
                for name, value in zip(SAVINGS, (sum(way.kept), apart.cycles - way.figures.cycles, apart.beats - way.figures.beats),
                                       strict=True):
                    result[name][here] += times * value
    return result


def ways(design: Design, workload: Workload, timing: MemoryTiming, objective: Objective, depths: Integers,
         alone: Mapping[str, Figures]) -> list[tuple[Line, Way]]:
    """How each line runs on one design with banks of these ``depths``, (4,). ``alone``: figures of each layer by itself, by name."""
    result = []
    for line in lines_of(design, workload) if design.chaining else ():
        (_, search), = _searches(design, line, timing, objective, depths[None, :])
        result.append((line, search.best(depths.tolist(), [alone[name] for name in line.names[0]])))
    return result


def _searches(design: Design, line: Line, timing: MemoryTiming, objective: Objective, rows: Integers) -> Iterator[
        tuple[Integers, LineSearch]]:
    """(rows, the search for them): those whose programs have the same fields share one."""
    for kind, which in alike(design, rows.tobytes()):
        levels = tuple(tuple(np.unique(column).tolist()) for column in rows[which].T)
        yield which, LineSearch(kind, line.layers, timing, objective, even_spaces, levels)

