"""Confirms points of a sweep on the simulated hardware: one real layer each, with the tiling that the sweep predicted with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.errors import InputError
from boards.schema import Board
from dse.choose import board_timing
from dse.schedule.compiler import compile_program
from dse.schedule.explore import LayerSpace, Objective
from dse.schedule.predict import predict
from dse.schedule.search import Choice, bank_depths
from dse.schedule.tiling import TilePlan
from dse.simulate import simulate
from dse.sweep.chunks import at_bits
from dse.sweep.evaluate import TILE_SIZES
from dse.sweep.results import design_of
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.layer import Layer
from sim.golden import MAX_ELEMENTS

MIN_CYCLES = 2_000
"""Shorter layers are mostly start and end, and confirm little."""
MAX_CYCLES = 2_000_000
"""Longer ones take more than seconds to simulate."""


@dataclass(frozen=True)
class Verification:
    """One layer of one point: what the sweep predicted, and what the hardware did."""

    index: int
    board: str
    layer: str
    engine: str
    predicted_cycles: int
    cycles: int
    predicted_bytes: int
    bytes: int
    differing_outputs: int

    @property
    def matches(self) -> bool:
        return (self.cycles, self.bytes, self.differing_outputs) == (self.predicted_cycles, self.predicted_bytes, 0)

    def __str__(self) -> str:
        bits = "bits exact" if not self.differing_outputs else f"{self.differing_outputs:,} outputs DIFFER"
        if (self.cycles, self.bytes) == (self.predicted_cycles, self.predicted_bytes):
            figures = f"{self.cycles:,} cycles and {self.bytes:,} bytes as predicted"
        else:
            figures = (f"MISMATCH: {self.cycles:,} cycles, {self.predicted_cycles:,} predicted; "
                       f"{self.bytes:,} bytes, {self.predicted_bytes:,} predicted")
        return f"point {self.index} on {self.board}, {self.layer}: {figures}, {bits} ({self.engine})"


@dataclass(frozen=True)
class _Mapped:
    """A layer on a point as the sweep maps it."""

    name: str
    layer: Layer
    choice: Choice
    cycles: int
    beats: int


def verify_front(front: Sequence[Mapping[str, Any]], workload: Workload, boards: Sequence[Board], objective: Objective, count: int, *,
                 engine: str = "auto", notify: Callable[[str], None] | None = None) -> Iterator[Verification]:
    """Simulate ``count`` points spread over ``front`` (rows of ``points.parquet``, fastest to slowest), fewer if it has fewer.

    Each on the layer with the fewest predicted cycles above ``MIN_CYCLES``, and on another layer than the points before it where
    there is one of at most ``MAX_CYCLES``.
    """
    by_name = {board.name: board for board in boards}
    rows = spread(sorted(front, key=lambda row: (row["seconds"], row["index"])), count)
    used: set[str] = set()
    for row in rows:
        board, design = by_name[row["board"]], design_of(row)
        mapped = pick_layer(map_layers(design, workload, board, objective), used)
        used.add(mapped.name)
        report, _ = simulate(mapped.layer, board, mapped.choice, workload=workload.name, engine=engine, notify=notify)
        beat_bytes = design.bus_bits // 8
        yield Verification(
            index=row["index"], board=board.name, layer=mapped.name, engine=report.result.engine,
            predicted_cycles=mapped.cycles, cycles=report.cycles, predicted_bytes=mapped.beats * beat_bytes,
            bytes=(report.result.beats_read + report.result.beats_written) * beat_bytes, differing_outputs=report.differing_outputs)


def spread(rows: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """``count`` of ``rows``, evenly from the first to the last."""
    if count >= len(rows):
        return list(rows)
    return [rows[at] for at in np.linspace(0, len(rows) - 1, count).round().astype(int).tolist()]


def map_layers(design: Design, workload: Workload, board: Board, objective: Objective) -> list[_Mapped]:
    """Every layer that can be simulated, each once, with the mapping that a sweep finds and what it predicts."""
    timing = board_timing(board, design)
    depths = bank_depths(design)[None, :]
    found: list[_Mapped] = []
    for name, layer, _ in at_bits(workload, design.activation_bits).layers:
        if max(layer.inputs, layer.weights, layer.outputs) > MAX_ELEMENTS:
            continue
        best = LayerSpace(design, layer, TILE_SIZES).best(depths, timing, objective)
        plan = TilePlan(design, layer, best.tilings[int(best.tiling_index[0])])
        program = compile_program(plan)
        choice = Choice(plan, program, predict(plan, program, timing), best.compared)
        found.append(_Mapped(name, layer, choice, int(best.cycles[0]), int(best.beats_read[0] + best.beats_written[0])))
    if not found:
        raise InputError("every layer's tensors are too large to simulate", where="--verify", allowed=f"at most {MAX_ELEMENTS} elements")
    return found


def pick_layer(mapped: Sequence[_Mapped], used: set[str]) -> _Mapped:
    """The shortest layer that is not too short, has not been ``used`` and is not too long: the first of these that can be had."""
    def order(entry: _Mapped) -> tuple[bool, bool, bool, int]:
        return entry.cycles > MAX_CYCLES, entry.name in used, entry.cycles < MIN_CYCLES, entry.cycles

    return min(mapped, key=order)

