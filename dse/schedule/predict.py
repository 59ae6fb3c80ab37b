"""Exact prediction: cycles and bytes of a tiled layer, equal to what the simulated hardware takes.

Per tile: beats to load, cycles to compute, beats to store; then the phases. `docs/timing.md` explains the rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.schedule.compiler import Program
from dse.schedule.tiling import INPUT_LOOPS, LOOPS, PARAMETER_LOOPS, WEIGHT_LOOPS, TilePlan
from hdl import timing as hardware
from hdl.drain import drain_cycles, tail_cycles
from hdl.errors import InputError
from sim.memory import MemoryTiming

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class TileCosts:
    """What each tile costs, in the order of the program.

    ``load_beats``, ``store_beats``: on the memory channel. ``compute_cycles``: from the phase's first cycle to the cycle of the last
    output word. ``issue_cycles``: operand vectors. ``drain_bound_cycles``: what the drains alone would need.
    """

    load_beats: Counts
    store_beats: Counts
    compute_cycles: Counts
    issue_cycles: Counts
    group_cycles: Counts
    drain_bound_cycles: Counts


@dataclass(frozen=True)
class Prediction:
    """Cycles and beats of a run, and what bounds it.

    ``cycles``: from the cycle in which ``start`` is taken to that of the last write beat, both counted. ``compute_bound_cycles``,
    ``memory_bound_cycles``, ``drain_bound_cycles``: what each resource alone would need, first load and last store apart.
    ``memory_stall_cycles``: between first load and last store, the cycles in which all but the memory is done and waits for it.
    ``phase_cycles``: of every phase, in order.
    """

    cycles: int
    beats_read: int
    beats_written: int
    issue_cycles: int
    compute_bound_cycles: int
    memory_bound_cycles: int
    drain_bound_cycles: int
    first_load_cycles: int
    last_store_cycles: int
    memory_stall_cycles: int
    phase_cycles: Counts

    @property
    def bound(self) -> tuple[str, int]:
        """(kind, cycles) of the resource that needs most."""
        return largest_bound(compute=self.compute_bound_cycles, memory=self.memory_bound_cycles, drain=self.drain_bound_cycles)


def largest_bound(**bounds: int) -> tuple[str, int]:
    """(name, cycles) of the largest; of equal ones the first."""
    kind = max(bounds, key=lambda name: bounds[name])
    return kind, bounds[kind]


def tile_costs(plan: TilePlan) -> TileCosts:
    """Costs of every tile, by broadcasting over the tile loops."""
    names = LOOPS[plan.tiling.order]
    shape = tuple(len(plan.loops[name]) for name in names)
    first = {name: loop[0] for name, loop in plan.loops.items()}

    def along(name: str, values: list[int]) -> Counts:
        """Values of one loop, shaped to broadcast."""
        return np.array(values, np.int64).reshape([-1 if other == name else 1 for other in names])

    def sizes(name: str) -> Counts:
        return along(name, [part.size for part in plan.loops[name]])

    rows, columns = along("Y", [w.rows for w in plan.y_windows]), along("X", [w.rows for w in plan.x_windows])
    band = along("Y", [w.band for w in plan.y_windows])
    words = "S" if len(plan.loops["C"]) == 1 else "C"
    channels = "S" if plan.tiling.ts > 1 else "K"
    pixel_in = along(words, [plan.input_beats(part, first["C"]) if words == "S" else plan.input_beats(first["S"], part)
                             for part in plan.loops[words]])
    pixel_out = along(channels, [plan.output_tile_beats(part, first["K"]) if channels == "S"
                                 else plan.output_tile_beats(first["S"], part) for part in plan.loops[channels]])
    runs = along("C", [plan.run_entries(c) for c in plan.loops["C"]]) * plan.weight_format.beats_per_entry
    weights = sizes("S") * along("K", [plan.records(k) for k in plan.loops["K"]]) * runs
    parameters = sizes("S") * sizes("K") * plan.design.parameter_beats
    input_moved, weights_moved = _moved(plan, names, INPUT_LOOPS), _moved(plan, names, WEIGHT_LOOPS)
    if plan.tiling.resident:
        loop = plan.revisiting_loop
        first_visit = along(loop, [int(at == 0) for at in range(len(plan.loops[loop]))])
        if plan.input_is_resident:
            input_moved = input_moved * first_visit
        else:
            weights_moved = weights_moved * first_visit
    load = (rows * columns * pixel_in * input_moved + weights * weights_moved
            + parameters * _moved(plan, names, PARAMETER_LOOPS))
    stored = along("C", [int(at == len(plan.loops["C"]) - 1) for at in range(len(plan.loops["C"]))])
    store = sizes("Y") * sizes("X") * pixel_out * stored

    vectors = along("C", [plan.vectors(c) for c in plan.loops["C"]])
    groups = band * sizes("X") * sizes("S") * plan.grouping.passes * along("K", [plan.blocks(k) for k in plan.loops["K"]])
    drain = drain_cycles(plan.design)
    spaced = np.maximum(vectors, drain)
    compute = compute_start_cycles(plan) + (groups - 1) * spaced + vectors - 1 + tail_cycles(plan.design) + 1

    def flat(values: Counts) -> Counts:
        return np.broadcast_to(values, shape).reshape(-1)

    return TileCosts(flat(load), flat(store), flat(compute), flat(groups * vectors), flat(groups * spaced), flat(groups * drain))


def drain_bound_cycles(costs: TileCosts) -> int:
    """What the drains alone would need; where they limit any tile, the array's time for the tiles that they do not."""
    limited = costs.drain_bound_cycles > costs.issue_cycles
    return int(np.where(limited, costs.drain_bound_cycles, costs.issue_cycles).sum() if limited.any() else costs.drain_bound_cycles.sum())


def memory_stall_cycles(memory: Counts, compute: Counts, evaluate: Counts) -> int:
    """Of arrays by phase; the first phase is a load alone and the last one a store."""
    return int(np.maximum(memory - np.maximum(compute, evaluate), 0)[1:-1].sum())


def compute_start_cycles(plan: TilePlan) -> int:
    """From a phase's first cycle to its first operand vector; the lanes' limits settle one lane a cycle."""
    return hardware.COMPUTE_START_CYCLES + plan.design.lanes - 1


def _moved(plan: TilePlan, names: tuple[str, ...], loops: frozenset[str]) -> Counts:
    """1 for each tile that differs from the one before it in one of ``loops``, and for the first."""
    shape = tuple(len(plan.loops[name]) for name in names)
    innermost = max((at for at, name in enumerate(names) if name in loops and shape[at] > 1), default=-1)
    result = np.ones(shape, np.int64)
    for at in range(innermost + 1, len(names)):
        result *= (np.arange(shape[at]) == 0).astype(np.int64).reshape([-1 if other == at else 1 for other in range(len(names))])
    return result


@dataclass(frozen=True)
class ProgramLength:
    """What the prediction needs to know of a program; see :class:`dse.schedule.compiler.Program`."""

    beats: int = 1
    first_instructions: int = 0
    tile_instructions: int = 0


def predict(plan: TilePlan, program: Program | ProgramLength, timing: MemoryTiming) -> Prediction:
    """The run of ``program``, to the cycle. Cost: a few array operations over the tiles.

    With the shortest ``ProgramLength`` it is a lower bound for any program of the plan. Raises InputError for a latency below
    ``lanes`` cycles.
    """
    if timing.latency_cycles < plan.design.lanes:
        raise InputError("the lanes' row limits settle one lane a cycle, during the memory's latency", where="latency_cycles",
                         value=timing.latency_cycles, allowed=f"at least {plan.design.lanes} for {plan.design.lanes} lanes")
    costs = tile_costs(plan)
    tiles = len(costs.load_beats)
    load, store, compute = (np.zeros(tiles + 2, np.int64) for _ in range(3))
    load[:tiles], compute[1:tiles + 1], store[2:] = costs.load_beats, costs.compute_cycles, costs.store_beats
    evaluate = np.zeros(tiles + 2, np.int64)
    evaluate[:tiles] = hardware.EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * program.tile_instructions
    memory = _memory_cycles(load + store, timing)
    phases = np.maximum(np.maximum(memory, compute), evaluate) + hardware.PHASE_CHANGE_CYCLES
    before = (hardware.START_CYCLES + timing.transfer_cycles(program.beats) + hardware.FETCH_END_CYCLES
              + hardware.FIRST_EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * program.first_instructions + hardware.PHASE_CHANGE_CYCLES)
    # The run ends with the last write beat: the last phase is its store alone.
    end = hardware.MEMORY_START_CYCLES + timing.transfer_cycles(int(store[-1])) + 1
    offered = timing.beats_per_cycle
    total_beats = int(load.sum() + store.sum())
    return Prediction(
        cycles=int(before + phases[:-1].sum() + end),
        beats_read=int(load.sum()) + program.beats, beats_written=int(store.sum()), issue_cycles=int(costs.issue_cycles.sum()),
        compute_bound_cycles=int(costs.issue_cycles.sum()),
        memory_bound_cycles=-int(-(total_beats / offered) // 1),
        drain_bound_cycles=drain_bound_cycles(costs),
        first_load_cycles=int(memory[0]), last_store_cycles=int(memory[-1]),
        memory_stall_cycles=memory_stall_cycles(memory, compute, evaluate), phase_cycles=phases)


def _memory_cycles(beats: Counts, timing: MemoryTiming) -> Counts:
    """Cycles from a phase's first cycle to the cycle before its memory queue is seen to be done."""
    moved = -(-beats * timing.den // timing.num)
    return np.where(beats > 0, hardware.MEMORY_START_CYCLES + timing.latency_cycles + moved + hardware.MEMORY_END_CYCLES, 0)
