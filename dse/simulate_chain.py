"""Simulate layers that run from one start, the tensors between them on chip; compare with prediction and golden model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from boards.schema import Board
from dse.choose import board_timing
from dse.fidelity.chains import chain_tensors
from dse.fidelity.check import STALL_ALLOWANCE
from dse.schedule.chain import ChainPrediction, ChainRun, pack_chain, predict_chain, unpack_chain
from dse.schedule.search import Choice
from dse.workload.line import JOINT
from hdl.accelerator import Accelerator
from hdl.design import Design
from sim.engine import SimulationResult, run
from sim.golden import golden


@dataclass(frozen=True)
class ChainReport:
    """A chain's run: what was measured, the prediction, and what its layers take one by one (``alone``)."""

    chain: ChainRun = field(repr=False)
    alone: tuple[Choice, ...] = field(repr=False)
    prediction: ChainPrediction
    result: SimulationResult = field(repr=False)
    differing_outputs: int
    stalled: bool

    @property
    def name(self) -> str:
        """``"a+b+c"``"""
        return JOINT.join(layer.name for layer in self.chain.layers)

    @property
    def design(self) -> Design:
        return self.chain.design

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.chain.layers)

    @property
    def cycles(self) -> int:
        return self.result.cycles

    @property
    def bytes(self) -> int:
        """External bytes, both ways."""
        return (self.result.beats_read + self.result.beats_written) * self.design.bus_bits // 8

    @property
    def saved_bytes(self) -> int:
        """Bytes that the layers move one by one, less those of the chain."""
        return sum(choice.bytes for choice in self.alone) - self.bytes

    @property
    def saved_cycles(self) -> int:
        """Predicted cycles of the layers one by one, less the predicted ones of the chain; negative where bytes cost some."""
        return sum(choice.prediction.cycles for choice in self.alone) - self.prediction.cycles

    @property
    def bit_exact(self) -> bool:
        return not self.differing_outputs

    @property
    def matches(self) -> bool:
        """Bits, bytes and (without random stalls) cycles are as predicted."""
        prediction, result = self.prediction, self.result
        return (self.bit_exact and (self.stalled or result.cycles == prediction.cycles)
                and (result.beats_read, result.beats_written) == (prediction.beats_read, prediction.beats_written))

    def to_dict(self) -> dict[str, Any]:
        """One of the ``chains`` of `nearmac simulate NETWORK --json`."""
        beat, prediction, result = self.design.bus_bits // 8, self.prediction, self.result
        kind, bound_cycles = prediction.bound
        return {
            "name": self.name, "layers": [layer.name for layer in self.chain.layers],
            "tilings": [str(plan.tiling) for plan in self.chain.plans], "engine": result.engine, "macs": self.macs,
            "cycles": result.cycles, "predicted_cycles": prediction.cycles,
            "bytes_read": result.beats_read * beat, "bytes_written": result.beats_written * beat,
            "predicted_bytes_read": prediction.beats_read * beat, "predicted_bytes_written": prediction.beats_written * beat,
            "bit_exact": self.bit_exact, "differing_outputs": self.differing_outputs, "random_stalls": self.stalled,
            "saved_cycles": self.saved_cycles, "saved_bytes": self.saved_bytes,
            "kept_tensors": len(self.chain.layers) - 1, "bound": {"kind": kind, "cycles": bound_cycles},
            "utilization": self.macs / (result.cycles * self.design.macs_per_cycle),
            "simulated_cycles_per_s": result.cycles_per_s, "wall_s": result.wall_s}


def simulate_chain(chain: ChainRun, board: Board, alone: Sequence[Choice], *, engine: str = "auto", seed: int = 0,
                   stall_seed: int | None = None, progress: Callable[[int], None] | None = None,
                   notify: Callable[[str], None] | None = None) -> ChainReport:
    """Run the chain on random tensors by ``seed``: each layer reads what the one before it writes, and the last output is compared.

    ``alone``: the mapping of each layer by itself. Raises what :func:`sim.engine.run` raises.
    """
    design = chain.design
    timing = board_timing(board, design)
    prediction = predict_chain(chain, timing)
    tensors = chain_tensors(design, chain.layers, seed)
    limit = (prediction.cycles + 10_000) * (STALL_ALLOWANCE if stall_seed is not None else 2)
    result = run(Accelerator, design, pack_chain(chain, tensors), 0, chain.programs[0].beats, timing, engine=engine, max_cycles=limit,
                 stall_seed=stall_seed, progress=progress, notify=notify)
    wrong = int((unpack_chain(chain, result.memory) != golden(design, chain.layers[-1], tensors[-1])).sum())
    return ChainReport(chain, tuple(alone), prediction, result, wrong, stall_seed is not None)
