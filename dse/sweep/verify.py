"""Confirms points of a sweep on the simulated hardware: one real layer or chain each, with the tilings that the sweep predicted with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boards.errors import InputError
from boards.schema import Board
from dse.choose import board_timing
from dse.schedule.chain import place_chain
from dse.schedule.compiler import compile_program
from dse.schedule.explore import Objective
from dse.schedule.predict import predict
from dse.schedule.search import Choice
from dse.schedule.tiling import TilePlan
from dse.simulate import simulate
from dse.simulate_chain import simulate_chain
from dse.sweep.chunks import at_bits
from dse.sweep.layers import MappedLayer, map_layers
from dse.sweep.results import design_of
from dse.sweep.workload import Workload
from dse.workload.line import JOINT
from hdl.design import Design
from sim.engine import SimulationResult
from sim.golden import MAX_ELEMENTS

MIN_CYCLES = 2_000
"""Shorter layers are mostly start and end, and confirm little."""
MAX_CYCLES = 2_000_000
"""Longer ones take more than seconds to simulate."""


@dataclass(frozen=True)
class Verification:
    """One layer (or chain, ``a+b``) of one point: what the sweep predicted, and what the hardware did."""

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
class Candidate:
    """What can be simulated of a point: a layer by itself, or a chain of several, as the sweep maps them."""

    name: str
    layers: tuple[MappedLayer, ...]

    @property
    def cycles(self) -> int:
        return sum(entry.figures.cycles for entry in self.layers)

    @property
    def beats(self) -> int:
        return sum(entry.figures.beats for entry in self.layers)


def verify_front(front: Sequence[Mapping[str, Any]], workload: Workload, boards: Sequence[Board], objective: Objective, count: int, *,
                 engine: str = "auto", notify: Callable[[str], None] | None = None) -> Iterator[Verification]:
    """Simulate ``count`` points spread over ``front`` (rows of ``points.parquet``, fastest to slowest), fewer if it has fewer.

    Each on the layer, or the chain of layers whose tensors stay on chip, with the fewest predicted cycles above ``MIN_CYCLES``, and on
    another one than the points before it where there is one of at most ``MAX_CYCLES``. A point with chains is tried on one of them.
    """
    by_name = {board.name: board for board in boards}
    rows = spread(sorted(front, key=lambda row: (row["seconds"], row["index"])), count)
    used: set[str] = set()
    for row in rows:
        board, design = by_name[row["board"]], design_of(row)
        candidate = pick(candidates(design, workload, board, objective), used)
        used.add(candidate.name)
        found, wrong = _simulate(design, candidate, board, workload.name, engine, notify)
        beat_bytes = design.bus_bits // 8
        yield Verification(
            index=row["index"], board=board.name, layer=candidate.name, engine=found.engine,
            predicted_cycles=candidate.cycles, cycles=found.cycles, predicted_bytes=candidate.beats * beat_bytes,
            bytes=(found.beats_read + found.beats_written) * beat_bytes, differing_outputs=wrong)


def _simulate(design: Design, candidate: Candidate, board: Board, workload: str, engine: str,
              notify: Callable[[str], None] | None) -> tuple[SimulationResult, int]:
    """The run, and how many outputs differ."""
    tilings = [entry.tiling for entry in candidate.layers]
    if len(candidate.layers) > 1:
        chain = place_chain(design, [entry.layer for entry in candidate.layers], tilings)
        whole = simulate_chain(chain, board, (), engine=engine, notify=notify)
        return whole.result, whole.differing_outputs
    (entry,) = candidate.layers
    plan = TilePlan(design, entry.layer, entry.tiling)
    program = compile_program(plan)
    choice = Choice(plan, program, predict(plan, program, board_timing(board, design)), 0)
    report, _ = simulate(entry.layer, board, choice, workload=workload, engine=engine, notify=notify)
    return report.result, report.differing_outputs


def spread(rows: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """``count`` of ``rows``, evenly from the first to the last."""
    if count >= len(rows):
        return list(rows)
    return [rows[at] for at in np.linspace(0, len(rows) - 1, count).round().astype(int).tolist()]


def candidates(design: Design, workload: Workload, board: Board, objective: Objective) -> list[Candidate]:
    """Every layer and chain that can be simulated."""
    mapped = {entry.name: entry for entry in map_layers(design, at_bits(workload, design.activation_bits), board, objective)}
    chains = dict.fromkeys(entry.chain for entry in mapped.values())
    found = [Candidate(JOINT.join(chain), tuple(mapped[name] for name in chain)) for chain in chains]
    possible = [one for one in found if max(max(member.layer.inputs, member.layer.weights, member.layer.outputs)
                                            for member in one.layers) <= MAX_ELEMENTS]
    if not possible:
        raise InputError("every layer's tensors are too large to simulate", where="--verify", allowed=f"at most {MAX_ELEMENTS} elements")
    return possible


def pick(possible: Sequence[Candidate], used: set[str]) -> Candidate:
    """A chain that is not too long, if there is one; the shortest that is not too short and has not been ``used``: the first of these
    that can be had."""
    def order(one: Candidate) -> tuple[bool, bool, bool, bool, int]:
        return one.cycles > MAX_CYCLES, len(one.layers) == 1, one.name in used, one.cycles < MIN_CYCLES, one.cycles

    return min(possible, key=order)
