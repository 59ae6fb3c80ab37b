"""Simulate one layer on one design: choose what is open, predict, run the hardware, compare bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boards.schema import Board
from dse.choose import board_timing, choose_design
from dse.estimate.bounds import asymptotic_bound_bytes, communication_lower_bound_bytes, compulsory_bytes
from dse.estimate.external_memory import check_external_memory
from dse.estimate.resources import Resources, check_fits, estimate_resources
from dse.fidelity.check import STALL_ALLOWANCE
from dse.schedule.packing import pack_memory, unpack_output
from dse.schedule.search import Choice, best_tiling
from hdl.accelerator import Accelerator
from hdl.compatibility import output_range
from hdl.design import Design
from hdl.layer import Layer
from sim.engine import SimulationResult, run
from sim.golden import LayerTensors, check_tensors, golden, random_tensors


@dataclass(frozen=True)
class LayerReport:
    """What `nearmac simulate` shows of one layer; bytes and cycles as measured, predictions beside them.

    ``bound``: the resource that limits the design on this layer, and the cycles it alone needs. ``utilization``: MACs a cycle over
    MACs built. ``issue_fraction``: cycles that issue an operand vector. ``external_mb_s``: 1e6 bytes a second, average over the run.
    """

    workload: str
    layer: Layer
    board: str
    choice: Choice = field(repr=False)
    result: SimulationResult = field(repr=False)
    bit_exact: bool
    differing_outputs: int
    stalled: bool
    resources: Resources

    @property
    def design(self) -> Design:
        return self.choice.plan.design

    @property
    def cycles(self) -> int:
        return self.result.cycles

    @property
    def matches(self) -> bool:
        """Bits, bytes and (without random stalls) cycles are as predicted."""
        prediction, result = self.choice.prediction, self.result
        return (self.bit_exact and (self.stalled or result.cycles == prediction.cycles)
                and result.beats_read == prediction.beats_read and result.beats_written == prediction.beats_written)

    @property
    def seconds_on_device(self) -> float:
        return self.cycles / (self.design.clock_mhz * 1e6)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `nearmac simulate --json`."""
        design, prediction, result, layer = self.design, self.choice.prediction, self.result, self.layer
        beat_bytes = design.bus_bits // 8
        kind, bound_cycles = prediction.bound
        moved = (result.beats_read + result.beats_written) * beat_bytes
        return {
            "workload": self.workload, "layer": layer.to_dict(), "board": self.board,
            "design": {**design.to_dict(), "precision": design.precision},
            "tiling": str(self.choice.plan.tiling), "tilings_compared": self.choice.candidates,
            "engine": result.engine, "macs": layer.macs,
            "cycles": result.cycles, "predicted_cycles": prediction.cycles,
            "bytes_read": result.beats_read * beat_bytes, "bytes_written": result.beats_written * beat_bytes,
            "predicted_bytes_read": prediction.beats_read * beat_bytes,
            "predicted_bytes_written": prediction.beats_written * beat_bytes,
            "bit_exact": self.bit_exact, "differing_outputs": self.differing_outputs, "random_stalls": self.stalled,
            "utilization": layer.macs / (result.cycles * design.macs_per_cycle),
            "issue_fraction": result.issue_cycles / result.cycles,
            "seconds_on_device": self.seconds_on_device,
            "throughput_gops": 2 * layer.macs / self.seconds_on_device / 1e9,
            "external_mb_s": moved / self.seconds_on_device / 1e6,
            "bound": {"kind": kind, "cycles": bound_cycles},
            "bounds": {"compute_cycles": prediction.compute_bound_cycles, "memory_cycles": prediction.memory_bound_cycles,
                       "drain_cycles": prediction.drain_bound_cycles, "first_load_cycles": prediction.first_load_cycles,
                       "last_store_cycles": prediction.last_store_cycles, "memory_stall_cycles": prediction.memory_stall_cycles},
            "compulsory_bytes": compulsory_bytes(design, layer),
            "lower_bound_bytes": communication_lower_bound_bytes(design, layer),
            "asymptotic_bound_bytes": asymptotic_bound_bytes(design, layer),
            "resources": {"luts_estimate": self.resources.luts, "ffs_estimate": self.resources.ffs, "dsps": self.resources.dsps,
                          "block_rams_18kb": self.resources.block_rams},
            "counters": result.counters,
            "simulated_cycles_per_s": result.cycles_per_s, "wall_s": result.wall_s, "build_s": result.build_s,
        }


def choose(layer: Layer, board: Board, *, weight_bits: int = 8, activation_bits: int = 8, design: Design | None = None,
           options: dict[str, Any] | None = None) -> Choice:
    """The mapping of ``layer``: on ``design`` where it is given, else on the fastest design with these ``options``.

    ``options``: ``Design`` fields the user fixed. Raises InputError when it does not fit the board, the layer does not fit its memory, or
    no tile fits the banks.
    """
    if design is None:
        check_external_memory(layer, board, weight_bits, activation_bits)
        return choose_design(board, layer, weight_bits, activation_bits, fixed=options)
    check_external_memory(layer, board, design.weight_bits, design.activation_bits)
    check_fits(design, board)
    return best_tiling(design, layer, board_timing(board, design))


def simulate(layer: Layer, board: Board, choice: Choice, *, workload: str = "", engine: str = "auto", seed: int = 0,
             tensors: LayerTensors | None = None, stall_seed: int | None = None, vcd: str | Path | None = None,
             vcd_cycles: tuple[int, int] = (0, 10_000), progress: Callable[[int], None] | None = None,
             notify: Callable[[str], None] | None = None) -> tuple[LayerReport, dict[str, NDArray[np.int64]]]:
    """Run the hardware on ``tensors`` (random ones by ``seed`` when not given) and compare it with prediction and golden model.

    Returns the report and the integer tensors that the hardware read and produced, by the names that `--save-tensors` uses.
    Raises InputError for bad tensors, and what :func:`sim.engine.run` raises.
    """
    plan, program, prediction = choice.plan, choice.program, choice.prediction
    design = plan.design
    if tensors is None:
        tensors = random_tensors(design, layer, seed)
    check_tensors(design, layer, tensors)
    image = pack_memory(plan, program, tensors)
    limit = (prediction.cycles + 10_000) * (STALL_ALLOWANCE if stall_seed is not None else 2)
    result = run(Accelerator, design, image, program.memory.program.address, program.beats, board_timing(board, design),
                 engine=engine, max_cycles=limit, stall_seed=stall_seed, vcd=vcd, vcd_cycles=vcd_cycles, progress=progress,
                 notify=notify)
    output = unpack_output(plan, program.memory, result.memory)
    differing = int((output != golden(design, layer, tensors)).sum())
    report = LayerReport(workload or str(layer), layer, board.name, choice, result, differing == 0, differing,
                         stall_seed is not None, estimate_resources(design))
    low, high = output_range(design, layer)
    scalars = {"input_zero_point": layer.input_zero_point, "output_zero_point": layer.output_zero_point, "lo": low, "hi": high}
    arrays = {**tensors.arrays(), "output": output, **{name: np.array(value, np.int64) for name, value in scalars.items()}}
    return report, arrays
