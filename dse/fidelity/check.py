"""One point checked: prediction against simulation against NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field

from dse.schedule.compiler import compile_program
from dse.schedule.packing import pack_memory, unpack_output
from dse.schedule.predict import Prediction, predict
from dse.schedule.tiling import TilePlan, Tiling
from hdl.accelerator import Accelerator
from hdl.design import Design
from hdl.layer import Layer
from sim.engine import SimulationResult, run
from sim.golden import golden, random_tensors
from sim.memory import MemoryTiming

STALL_ALLOWANCE = 8
"""Random stalls make a run longer, by less than this factor."""


@dataclass(frozen=True)
class Point:
    """A design, a layer, how it is tiled, and the memory it meets. ``seed`` makes the tensors."""

    design: Design
    layer: Layer
    tiling: Tiling
    timing: MemoryTiming
    seed: int


@dataclass(frozen=True)
class Outcome:
    """``mismatches``: what differs, in words; empty when all agrees."""

    point: Point
    prediction: Prediction
    result: SimulationResult = field(repr=False)
    mismatches: tuple[str, ...]


def check_point(point: Point, *, engine: str = "auto", stall_seed: int | None = None) -> Outcome:
    """Run a point; with ``stall_seed`` memory stalls at random, and then only the bits and the bytes must agree."""
    plan = TilePlan(point.design, point.layer, point.tiling)
    program = compile_program(plan)
    prediction = predict(plan, program, point.timing)
    tensors = random_tensors(point.design, point.layer, point.seed)
    image = pack_memory(plan, program, tensors)
    limit = prediction.cycles * (STALL_ALLOWANCE if stall_seed is not None else 2) + 10_000
    result = run(Accelerator, point.design, image, 0, program.beats, point.timing, engine=engine, max_cycles=limit,
                 stall_seed=stall_seed)
    pairs = {
        "beats read": (prediction.beats_read, result.beats_read),
        "beats written": (prediction.beats_written, result.beats_written),
        "issue cycles": (prediction.issue_cycles, result.issue_cycles),
    }
    if stall_seed is None:
        pairs["cycles"] = (prediction.cycles, result.cycles)
    mismatches = [f"{what}: predicted {predicted}, simulated {simulated}"
                  for what, (predicted, simulated) in pairs.items() if predicted != simulated]
    output, expected = unpack_output(plan, program.memory, result.memory), golden(point.design, point.layer, tensors)
    wrong = int((output != expected).sum())
    if wrong:
        mismatches.append(f"output: {wrong} of {expected.size} values differ")
    return Outcome(point, prediction, result, tuple(mismatches))
