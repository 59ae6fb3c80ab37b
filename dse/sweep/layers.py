"""The layers of one design point: how a sweep maps them, and what each takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from boards.schema import Board
from dse.choose import board_timing
from dse.schedule.chain import predict_link
from dse.schedule.chain_search import Figures
from dse.schedule.explore import LayerSpace, Objective
from dse.schedule.frame import ANYWHERE
from dse.schedule.predict import ProgramLength
from dse.schedule.program_shape import Pattern, program_shape
from dse.schedule.search import bank_depths
from dse.schedule.tiling import TilePlan, Tiling
from dse.sweep.chaining import FIGURES, ways
from dse.sweep.evaluate import BOUNDS, TILE_SIZES
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming


@dataclass(frozen=True)
class MappedLayer:
    """A layer of a design point as the sweep maps it; ``figures``: of one of its ``repeat`` runs, in its chain if it is in one.
    ``chain``: names of the layers that run from one start with it, in order; itself alone where it runs by itself."""

    design: Design
    name: str
    layer: Layer
    repeat: int
    figures: Figures
    tiling: Tiling
    chain: tuple[str, ...]

    @property
    def output_stays(self) -> bool:
        """On chip, for the next layer of the chain."""
        return self.name != self.chain[-1]

    def memory_stall_cycles(self, timing: MemoryTiming) -> int:
        """Of one of its runs; see :class:`dse.schedule.predict.Prediction`."""
        plan = TilePlan(self.design, self.layer, self.tiling, input_entry=None if self.name == self.chain[0] else 0,
                        output_frame=ANYWHERE if self.output_stays else None)
        shape = program_shape(self.design, Pattern.of(plan))
        length = ProgramLength(shape.beats(self.design.bus_bits), shape.first_instructions, shape.tile_instructions)
        return predict_link(plan, length, timing).memory_stall_cycles


def map_layers(design: Design, workload: Workload, board: Board, objective: Objective = Objective.BOTH) -> list[MappedLayer]:
    """Every layer of a design point, in order. Raises InputError when a layer cannot be mapped."""
    timing, depths = board_timing(board, design), bank_depths(design)
    found: dict[str, MappedLayer] = {}
    for name, layer, repeat in workload.layers:
        best = LayerSpace(design, layer, TILE_SIZES).best(depths[None, :], timing, objective)
        if not best.feasible[0]:
            raise InputError(f"layer {name}: {best.reasons[0]}", where="layer", value=str(layer))
        figures = Figures(*(int(getattr(best, figure)[0]) for figure in FIGURES))
        found[name] = MappedLayer(design, name, layer, repeat, figures, best.tilings[int(best.tiling_index[0])], (name,))
    alone = {name: entry.figures for name, entry in found.items()}
    for line, way in ways(design, workload, timing, objective, depths, alone):
        for names, part in product(line.names, way.runs):
            for name, chosen in zip(names[part], way.chosen[part], strict=True):
                if chosen is not None:
                    table, row = chosen
                    found[name] = replace(found[name], figures=Figures.linked(table, row), tiling=table.tiling(row), chain=names[part])
    return list(found.values())


def layer_table(design: Design, workload: Workload, board: Board, objective: Objective = Objective.BOTH) -> list[dict[str, Any]]:
    """Each layer of a design point: cycles and bytes (of all its repeats), what bounds it, its share of the time, the cycles that it
    waits for memory between first load and last store, whether its output stays on chip, and ``compute_bound_mb_s``, what the board
    would have to offer so that array or drains are what it waits for.

    Raises InputError when a layer cannot be mapped.
    """
    timing = board_timing(board, design)
    rows: list[dict[str, Any]] = []
    for entry in map_layers(design, workload, board, objective):
        figures, repeat = entry.figures, entry.repeat
        bounds = {kind: getattr(figures, f"{kind}_bound_cycles") * repeat for kind in BOUNDS}
        moved = figures.beats * repeat * (design.bus_bits // 8)
        array_seconds = max(bounds["compute"], bounds["drain"]) / (design.clock_mhz * 1e6)
        rows.append({
            "name": entry.name, "repeat": repeat, "macs": entry.layer.macs * repeat, "cycles": figures.cycles * repeat,
            "memory_stall_cycles": entry.memory_stall_cycles(timing) * repeat, "external_bytes": moved,
            "bound": max(bounds, key=lambda kind: bounds[kind]), "output_stays": entry.output_stays,
            **{f"{kind}_bound_cycles": cycles for kind, cycles in bounds.items()},
            "tiling": str(entry.tiling), "compute_bound_mb_s": moved / array_seconds / 1e6})
    total = sum(row["cycles"] for row in rows)
    return [{**row, "time_share": row["cycles"] / total} for row in rows]
