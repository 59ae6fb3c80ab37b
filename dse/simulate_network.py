"""Simulate every array layer of a network in turn on one design; what the host computes is listed, and in no figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from boards.errors import InputError
from boards.schema import Board
from dse.choose import board_timing, choose_design
from dse.estimate.resources import check_fits
from dse.schedule.search import Choice, best_tiling
from dse.simulate import LayerReport, simulate
from dse.workload.network import Network
from dse.workload.operators import ArrayOperator
from hdl.compatibility import accumulator_bits_needed
from hdl.design import MAX_ACCUMULATOR_BITS, Design
from hdl.layer import Layer
from sim.golden import MAX_ELEMENTS

EXCLUDES = "cycles and times are those of the layers on the array, in turn; host operators are not included"


@dataclass(frozen=True)
class LayerRun:
    """One layer of the network: its report, or why the design cannot run it. ``report`` is of one of the operator's repeats."""

    operator: ArrayOperator
    report: LayerReport | None = field(repr=False)
    refused: str = ""
    note: str = ""

    @property
    def cycles(self) -> int:
        """Of all repeats; 0 when it was refused."""
        return self.report.cycles * self.operator.repeat if self.report else 0

    def to_dict(self) -> dict[str, Any]:
        """What `nearmac simulate --json` has of the layer; ``refused`` alone where it did not run."""
        head = {"name": self.operator.name, "op": self.operator.op, "precision": self.operator.precision, "repeat": self.operator.repeat,
                "refused": self.refused or None, "note": self.note or None}
        if not self.report:
            return head
        whole = self.report.to_dict()
        return head | {key: value for key, value in whole.items() if key not in ("workload", "board", "design", "resources")}


@dataclass(frozen=True)
class NetworkReport:
    """What `nearmac simulate NETWORK` shows."""

    network: Network
    board: str
    design: Design
    runs: tuple[LayerRun, ...]

    @property
    def done(self) -> tuple[LayerRun, ...]:
        return tuple(run for run in self.runs if run.report)

    @property
    def matches(self) -> bool:
        """Every layer that ran is as predicted."""
        return all(run.report.matches for run in self.runs if run.report)

    def totals(self) -> dict[str, Any]:
        """Sums over the layers that ran, repeats included."""
        reports = [(run.report, run.operator.repeat) for run in self.runs if run.report]
        beat_bytes = self.design.bus_bits // 8
        cycles = sum(run.cycles for run in self.runs)
        macs = sum(run.operator.macs for run in self.done)
        seconds = cycles / (self.design.clock_mhz * 1e6)
        return {
            "layers": len(self.runs), "simulated": len(reports), "refused": len(self.runs) - len(reports),
            "mismatches": sum(not report.matches for report, _ in reports), "macs": macs, "network_macs": self.network.macs,
            "cycles": cycles, "predicted_cycles": sum(report.choice.prediction.cycles * repeat for report, repeat in reports),
            "bytes_read": sum(report.result.beats_read * repeat for report, repeat in reports) * beat_bytes,
            "bytes_written": sum(report.result.beats_written * repeat for report, repeat in reports) * beat_bytes,
            "utilization": macs / (cycles * self.design.macs_per_cycle) if cycles else 0.0,
            "seconds_on_device": seconds, "throughput_gops": 2 * macs / seconds / 1e9 if seconds else 0.0,
            "bit_exact": all(report.bit_exact for report, _ in reports), "excludes_host_operators": True}

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `nearmac simulate NETWORK --json`."""
        return {"workload": self.network.name, "board": self.board, "design": {**self.design.to_dict(), "precision": self.design.precision},
                "layers": [run.to_dict() for run in self.runs],
                "host_operators": [node.to_dict() for node in self.network.host_operators()],
                "totals": self.totals(), "remark": EXCLUDES}


def choose_network_design(network: Network, board: Board, *, weight_bits: int | None = None, activation_bits: int | None = None,
                          options: dict[str, Any] | None = None) -> Design:
    """One design for all layers: of those chosen for the layer with most MACs and for the one with the longest reduction (which needs
    the deepest banks), the one that runs the most MACs, and then takes the fewest cycles.

    The bits are by default those of the layer with most MACs; ``options``: ``Design`` fields the user fixed.
    """
    operators = network.array_operators
    heaviest = max(operators, key=lambda node: node.macs)
    weight_bits = heaviest.weight_bits if weight_bits is None else weight_bits
    activation_bits = heaviest.activation_bits if activation_bits is None else activation_bits
    able = [node for node in operators if node.weight_bits <= weight_bits and node.activation_bits <= activation_bits]
    if not able:
        raise InputError(f"no layer of {network.name} has so narrow operands", where="--precision",
                         value=f"w{weight_bits}a{activation_bits}", allowed=f"at least {heaviest.precision}")
    widest = max(accumulator_bits_needed(node.layer, weight_bits, activation_bits) for node in able)
    fixed = {"accumulator_bits": min(widest, MAX_ACCUMULATOR_BITS), **(options or {})}
    heaviest = max(able, key=lambda node: node.macs)
    longest = max(able, key=lambda node: (node.layer.reduction_length, node.macs))
    designs: list[Design] = []
    reason: InputError | None = None
    for node in (heaviest,) if longest is heaviest else (heaviest, longest):
        try:
            design = choose_design(board, node.layer, weight_bits, activation_bits, fixed=fixed).plan.design
        except InputError as error:
            reason = reason or error
            continue
        if design not in designs:
            designs.append(design)
    if not designs:
        assert reason is not None
        raise reason
    return designs[0] if len(designs) == 1 else min(designs, key=lambda design: _cost(design, able, board))


def simulate_network(network: Network, board: Board, design: Design, *, engine: str = "auto", seed: int = 0, stall_seed: int | None = None,
                     started: Callable[[str], None] | None = None,
                     counter: Callable[[str, int | None], Callable[[int], None] | None] | None = None,
                     finished: Callable[[str], None] | None = None, notify: Callable[[str], None] | None = None) -> NetworkReport:
    """Run every layer that ``design`` can run, on random tensors (each layer its own, by ``seed``), and compare as :func:`simulate` does.

    ``started`` hears what begins, ``finished`` the outcome of each layer; ``counter`` makes a layer's progress function from its text
    and predicted cycles.
    Raises InputError when ``design`` does not fit ``board`` or runs no layer at all, and what :func:`sim.engine.run` raises.
    """
    check_fits(design, board)
    mappings = _Mappings(design, board)
    runs: list[LayerRun] = []
    count = len(network.array_operators)
    for index, node in enumerate(network.array_operators):
        text = f"{node.name} ({index + 1} of {count})"
        if started:
            started(f"mapping {text}")
        choice = mappings.of(node)
        if isinstance(choice, str):
            runs.append(LayerRun(node, None, refused=choice))
            if finished:
                finished(f"{text}: cannot run: {choice}")
            continue
        progress = counter(f"simulating {text}", choice.prediction.cycles if stall_seed is None else None) if counter else None
        report, _ = simulate(node.layer, board, choice, workload=network.name, engine=engine, seed=(seed + index) % (1 << 32),
                             stall_seed=stall_seed, progress=progress, notify=notify)
        runs.append(LayerRun(node, report, note=_note(node, design)))
        if finished:
            finished(f"{text}: {report.cycles:,} cycles, {'as predicted' if report.matches else 'MISMATCH'}")
    if not any(run.report for run in runs):
        raise InputError(f"no layer of {network.name} runs on the design; the first: {runs[0].refused}", where="--design")
    return NetworkReport(network, board.name, design, tuple(runs))


class _Mappings:
    """The mapping of each layer on a design, searched once for layers that differ in nothing but their names."""

    def __init__(self, design: Design, board: Board) -> None:
        self.design, self.timing = design, board_timing(board, design)
        self.found: dict[Layer, Choice | str] = {}

    def of(self, node: ArrayOperator) -> Choice | str:
        """The mapping, or why there is none."""
        design = self.design
        if node.weight_bits > design.weight_bits or node.activation_bits > design.activation_bits:
            return f"{node.precision} operands, the array has {design.precision}"
        layer = node.layer
        too_large = max(layer.inputs, layer.weights, layer.outputs)
        if too_large > MAX_ELEMENTS:
            return f"a tensor of {too_large:,} elements, at most {MAX_ELEMENTS:,} can be simulated"
        key = replace(layer, name="layer")
        if key not in self.found:
            try:
                self.found[key] = best_tiling(design, layer, self.timing)
            except InputError as error:
                self.found[key] = f"{error.where}: {error.what}" if error.where else error.what
        return self.found[key]


def _cost(design: Design, operators: list[ArrayOperator], board: Board) -> tuple[int, int]:
    """MACs that it does not run, and cycles of those it does."""
    mappings = _Mappings(design, board)
    left = cycles = 0
    for node in operators:
        choice = mappings.of(node)
        if isinstance(choice, str):
            left += node.macs
        else:
            cycles += choice.prediction.cycles * node.repeat
    return left, cycles


def _note(node: ArrayOperator, design: Design) -> str:
    notes = [f"{node.repeat} times"] if node.repeat > 1 else []
    if node.output_bits > design.activation_bits:
        notes.append(f"{node.output_bits}-bit outputs written as {design.activation_bits}-bit")
    return ", ".join(notes)
