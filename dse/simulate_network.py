"""Simulate every array layer of a network in turn on one design, those whose tensors stay on chip together; what the host computes is
listed, and in no figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from boards.errors import InputError
from boards.schema import Board
from dse.choose import board_timing, choose_design
from dse.estimate.external_memory import excess
from dse.estimate.resources import check_fits, overshoot
from dse.schedule.chain_graph import collapse_chains
from dse.schedule.explore import CYCLE_TOLERANCE
from dse.schedule.search import Choice, best_tiling
from dse.simulate import LayerReport, simulate
from dse.simulate_chain import ChainReport, simulate_chain
from dse.workload.line import JOINT
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
class ChainOfLayers:
    """Layers of the network that run from one start."""

    operators: tuple[ArrayOperator, ...]
    report: ChainReport = field(repr=False)
    note: str = ""

    @property
    def cycles(self) -> int:
        return self.report.cycles

    def to_dicts(self) -> list[dict[str, Any]]:
        """Of each layer, what `nearmac simulate --json` has of it: its part of the prediction, and the chain."""
        beat = self.report.design.bus_bits // 8
        return [{"name": node.name, "op": node.op, "precision": node.precision, "repeat": 1, "refused": None, "note": self.note or None,
                 "macs": node.macs, "chain": self.report.name, "predicted_cycles": part.cycles,
                 "predicted_bytes_read": part.beats_read * beat, "predicted_bytes_written": part.beats_written * beat}
                for node, part in zip(self.operators, self.report.prediction.layers, strict=True)]


@dataclass(frozen=True)
class NetworkReport:
    """What `nearmac simulate NETWORK` shows."""

    network: Network
    board: str
    design: Design
    runs: tuple[LayerRun | ChainOfLayers, ...]

    @property
    def chains(self) -> tuple[ChainReport, ...]:
        return tuple(run.report for run in self.runs if isinstance(run, ChainOfLayers))

    @property
    def single(self) -> tuple[LayerRun, ...]:
        """The layers that run by themselves, or not at all."""
        return tuple(run for run in self.runs if isinstance(run, LayerRun))

    @property
    def matches(self) -> bool:
        """Every layer that ran is as predicted."""
        return all(run.report.matches for run in self.runs if run.report)

    def totals(self) -> dict[str, Any]:
        """Sums over the layers that ran, repeats included."""
        alone = [(run.report, run.operator.repeat) for run in self.single if run.report]
        results = [(report.result, repeat) for report, repeat in alone] + [(report.result, 1) for report in self.chains]
        predicted = sum(report.choice.prediction.cycles * repeat for report, repeat in alone)
        beat_bytes = self.design.bus_bits // 8
        cycles = sum(run.cycles for run in self.runs)
        macs = sum(run.operator.macs for run in self.single if run.report) + sum(report.macs for report in self.chains)
        seconds = cycles / (self.design.clock_mhz * 1e6)
        layers = len(self.network.array_operators)
        refused = sum(run.report is None for run in self.single)
        return {
            "layers": layers, "simulated": layers - refused, "refused": refused,
            "mismatches": sum(not run.report.matches for run in self.runs if run.report), "macs": macs, "network_macs": self.network.macs,
            "cycles": cycles, "predicted_cycles": predicted + sum(report.prediction.cycles for report in self.chains),
            "bytes_read": sum(result.beats_read * times for result, times in results) * beat_bytes,
            "bytes_written": sum(result.beats_written * times for result, times in results) * beat_bytes,
            "chains": len(self.chains), "kept_tensors": sum(len(report.chain.layers) - 1 for report in self.chains),
            "saved_cycles": sum(report.saved_cycles for report in self.chains),
            "saved_bytes": sum(report.saved_bytes for report in self.chains),
            "utilization": macs / (cycles * self.design.macs_per_cycle) if cycles else 0.0,
            "seconds_on_device": seconds, "throughput_gops": 2 * macs / seconds / 1e9 if seconds else 0.0,
            "bit_exact": all(run.report.bit_exact for run in self.runs if run.report), "excludes_host_operators": True}

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `nearmac simulate NETWORK --json`."""
        layers = [entry for run in self.runs for entry in ([run.to_dict()] if isinstance(run, LayerRun) else run.to_dicts())]
        return {"workload": self.network.name, "board": self.board, "design": {**self.design.to_dict(), "precision": self.design.precision},
                "layers": layers, "chains": [report.to_dict() for report in self.chains],
                "host_operators": [node.to_dict() for node in self.network.host_operators()],
                "totals": self.totals(), "remark": EXCLUDES}


def choose_network_design(network: Network, board: Board, *, weight_bits: int | None = None, activation_bits: int | None = None,
                          options: dict[str, Any] | None = None) -> Design:
    """One design for all layers: of those chosen for the layer with most MACs and for the one with the longest reduction (which needs
    the deepest banks), the one that runs the most MACs, and then takes the fewest cycles; within 1 %, moves the fewest bytes. With
    ``chaining`` among the ``options`` also those with deeper input banks, and chains count.

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
    if fixed.get("chaining") and "input_bytes" not in fixed:
        designs += [deeper for design in designs for deeper in _deeper_inputs(design, board)]
    if len(designs) == 1:
        return designs[0]
    costs = [_cost(design, network, able, board) for design in designs]
    left, fewest, _ = min(costs)
    # As everywhere: within 1 % of the fewest cycles, fewest bytes.
    near = [at for at, cost in enumerate(costs) if cost[0] == left and cost[1] <= fewest * (1 + CYCLE_TOLERANCE)]
    return designs[min(near, key=lambda at: (costs[at][2], costs[at][1]))]


def simulate_network(network: Network, board: Board, design: Design, *, engine: str = "auto", seed: int = 0, stall_seed: int | None = None,
                     started: Callable[[str], None] | None = None,
                     counter: Callable[[str, int | None], Callable[[int], None] | None] | None = None,
                     finished: Callable[[str], None] | None = None, notify: Callable[[str], None] | None = None) -> NetworkReport:
    """Run every layer that ``design`` can run, on random tensors (each layer its own, by ``seed``), and compare as :func:`simulate` does.

    Layers whose tensors stay on chip, where the design has ``chaining``, run from one start, each on what the one before it wrote.

    ``started`` hears what begins, ``finished`` the outcome of each layer; ``counter`` makes a layer's progress function from its text
    and predicted cycles.
    Raises InputError when ``design`` does not fit ``board`` or runs no layer at all, and what :func:`sim.engine.run` raises.
    """
    check_fits(design, board)
    mappings = _Mappings(design, board)
    runs: list[LayerRun | ChainOfLayers] = []
    order = {node.name: index for index, node in enumerate(network.array_operators)}

    def text(nodes: Sequence[ArrayOperator]) -> str:
        numbers = " to ".join(str(order[node.name] + 1) for node in dict.fromkeys((nodes[0], nodes[-1])))
        return f"{JOINT.join(node.name for node in nodes)} ({numbers} of {len(order)})"

    def progress(nodes: Sequence[ArrayOperator], cycles: int) -> Callable[[int], None] | None:
        return counter(f"simulating {text(nodes)}", cycles if stall_seed is None else None) if counter else None

    def hear(nodes: Sequence[ArrayOperator], outcome: str) -> None:
        if finished:
            finished(f"{text(nodes)}: {outcome}")

    for nodes, chain in _steps(network, mappings, lambda node: started(f"mapping {text([node])}") if started else None):
        node, own_seed = nodes[0], (seed + order[nodes[0].name]) % (1 << 32)
        if chain is not None:
            whole = simulate_chain(chain["run"], board, chain["alone"], engine=engine, seed=own_seed, stall_seed=stall_seed,
                                   progress=progress(nodes, chain["prediction"].cycles), notify=notify)
            runs.append(ChainOfLayers(nodes, whole, _note(nodes[-1], design)))
            hear(nodes, f"{whole.cycles:,} cycles, {'as predicted' if whole.matches else 'MISMATCH'}, {whole.saved_bytes:,} bytes saved")
            continue
        choice = mappings.of(node)
        if isinstance(choice, str):
            runs.append(LayerRun(node, None, refused=choice))
            hear(nodes, f"cannot run: {choice}")
            continue
        report, _ = simulate(node.layer, board, choice, workload=network.name, engine=engine, seed=own_seed, stall_seed=stall_seed,
                             progress=progress(nodes, choice.prediction.cycles), notify=notify)
        runs.append(LayerRun(node, report, note=_note(node, design)))
        hear(nodes, f"{report.cycles:,} cycles, {'as predicted' if report.matches else 'MISMATCH'}")
    if not any(run.report for run in runs):
        refused = next(run.refused for run in runs if isinstance(run, LayerRun))
        raise InputError(f"no layer of {network.name} runs on the design; the first: {refused}", where="--design")
    return NetworkReport(network, board.name, design, tuple(runs))


def _steps(network: Network, mappings: _Mappings, mapping: Callable[[ArrayOperator], None]
           ) -> Iterator[tuple[tuple[ArrayOperator, ...], dict[str, Any] | None]]:
    """(layers, their node of the collapsed graph) of all that runs from one start, in order; None for a layer by itself.

    ``mapping`` hears of each layer before it is searched.
    """
    chains: dict[str, dict[str, Any]] = {}
    if mappings.design.chaining:
        graph = collapse(network, mappings, mapping)
        chains = {values["operators"][0].name: values for _, values in graph.nodes(data=True) if "run" in values}
    inside = {node.name for values in chains.values() for node in values["operators"][1:]}
    for node in network.array_operators:
        if node.name in chains:
            yield chains[node.name]["operators"], chains[node.name]
        elif node.name not in inside:
            mapping(node)
            yield (node,), None


def collapse(network: Network, mappings: _Mappings, hear: Callable[[ArrayOperator], None] = lambda _: None) -> Any:
    """The network's graph with chains as single nodes; see :func:`dse.schedule.chain_graph.collapse_chains`."""
    def mapping(node: ArrayOperator) -> Choice | None:
        hear(node)
        choice = mappings.of(node)
        return None if isinstance(choice, str) else choice

    return collapse_chains(network.graph, mappings.design, mappings.timing, mapping=mapping)


class _Mappings:
    """The mapping of each layer on a design, searched once for layers that differ in nothing but their names."""

    def __init__(self, design: Design, board: Board) -> None:
        self.design, self.board, self.timing = design, board, board_timing(board, design)
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
        wrong = excess(layer, self.board, design.weight_bits, design.activation_bits)
        if wrong:
            return wrong
        key = replace(layer, name="layer")
        if key not in self.found:
            try:
                self.found[key] = best_tiling(design, layer, self.timing)
            except InputError as error:
                self.found[key] = f"{error.where}: {error.what}" if error.where else error.what
        return self.found[key]


def _cost(design: Design, network: Network, able: list[ArrayOperator], board: Board) -> tuple[int, int, int]:
    """MACs that it does not run; cycles and bytes of those it does, chains counted."""
    mappings = _Mappings(design, board)
    left = cycles = moved = 0
    for node in able:
        choice = mappings.of(node)
        if isinstance(choice, str):
            left += node.macs
        else:
            cycles += choice.prediction.cycles * node.repeat
            moved += choice.bytes * node.repeat
    if design.chaining:
        saved = collapse(network, mappings).graph
        cycles, moved = cycles - saved["saved_cycles"], moved - saved["saved_bytes"]
    return left, cycles, moved


def _deeper_inputs(design: Design, board: Board) -> Iterator[Design]:
    """The design with deeper input banks, as long as they fit: what no layer needs by itself may hold a tensor for the next one."""
    deeper = design
    with suppress(InputError):
        while not overshoot(deeper := deeper.with_(input_bytes=2 * deeper.input_bytes), board):
            yield deeper


def _note(node: ArrayOperator, design: Design) -> str:
    notes = [f"{node.repeat} times"] if node.repeat > 1 else []
    if node.output_bits > design.activation_bits:
        notes.append(f"{node.output_bits}-bit outputs written as {design.activation_bits}-bit")
    return ", ".join(notes)
