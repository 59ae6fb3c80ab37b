"""Chains: layers that run one after another from one ``start``, the tensors between them staying on chip.

A layer's stores go to the input banks, where the next layer finds its whole input; consecutive inputs lie at opposite ends of the
banks. `docs/architecture.md` says how it works, `docs/timing.md` what it costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dse.schedule.compiler import NOWHERE, Program, Region, compile_program, memory_map
from dse.schedule.frame import Frame
from dse.schedule.packing import pack_memories, unpack_output
from dse.schedule.predict import ProgramLength, drain_bound_cycles, largest_bound, memory_stall_cycles, tile_costs
from dse.schedule.program_shape import Pattern, program_shape
from dse.schedule.tiling import IllegalTiling, TilePlan, Tiling
from hdl import timing as hardware
from hdl.compatibility import check_layer
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import Grouping
from sim.golden import LayerTensors
from sim.memory import MemoryTiming


@dataclass(frozen=True)
class ChainRun:
    """Layers that run from one ``start``: plans and programs, in order. Of the tensors only the first input and the last output travel."""

    plans: tuple[TilePlan, ...]
    programs: tuple[Program, ...]

    @property
    def design(self) -> Design:
        return self.plans[0].design

    @property
    def layers(self) -> tuple[Layer, ...]:
        return tuple(plan.layer for plan in self.plans)


@dataclass(frozen=True)
class ChainPrediction:
    """A run's cycles and beats, as :class:`dse.schedule.predict.Prediction` counts them. ``layers``: its parts; the cycles of a layer are
    those from the start of its program to that of the next, or to the last write beat."""

    cycles: int
    beats_read: int
    beats_written: int
    issue_cycles: int
    memory_bound_cycles: int
    drain_bound_cycles: int
    memory_stall_cycles: int
    layers: tuple[ChainPrediction, ...] = field(default=(), repr=False)

    @property
    def beats(self) -> int:
        return self.beats_read + self.beats_written

    @property
    def bound(self) -> tuple[str, int]:
        """(kind, cycles) of the resource that needs most."""
        return largest_bound(compute=self.issue_cycles, memory=self.memory_bound_cycles, drain=self.drain_bound_cycles)


# -- what may be chained ----------------------------------------------------------------------------------------------


def check_chain(design: Design, layers: Sequence[Layer]) -> None:
    """Raise InputError, naming layer and dimension, where a layer cannot be computed or does not read what the one before it writes."""
    if not design.chaining:
        raise InputError("the design has no way from the output banks to the input banks", where="design.chaining", value=False,
                         allowed="true")
    if not layers:
        raise InputError("no layers", where="layers")
    for layer in layers:
        check_layer(design, layer)
    pairs = [("B", "B"), ("C", "K"), ("IY", "OY"), ("IX", "OX")]
    if design.activation_bits > 1:
        pairs += [("input_zero_point", "output_zero_point"), ("activations_signed", "outputs_signed")]
    for number, (first, second) in enumerate(zip(layers, layers[1:], strict=False)):
        for read, written in pairs:
            value, wanted = getattr(second, read), getattr(first, written)
            if value != wanted:
                raise InputError(f"{second.name} does not read what {first.name} writes", where=f"layers[{number + 1}].{read}", value=value,
                                 allowed=f"{wanted}, the {written} before it")


def why_not_kept(design: Design, first: Layer, second: Layer) -> str | None:
    """Why the tensor between two layers that :func:`check_chain` accepts cannot stay on chip, whatever the banks; None: it can."""
    if first.B > 1:
        return "a batch of several images"
    group = Grouping.of(design, second)
    if any(group.channel_slot(channel, design.cols) != divmod(channel, design.cols) for channel in range(second.C)):
        return "the next layer's groups end inside words"
    if design.weight_bits == 1 and not design.is_xnor and first.K % design.cols and second.input_zero_point:
        return "the last word is padded with zeros, and 1-bit weights would count them"
    return None


# -- placing ----------------------------------------------------------------------------------------------------------


def place_chain(design: Design, layers: Sequence[Layer], tilings: Sequence[Tiling]) -> ChainRun:
    """Plans and programs of layers that follow each other on chip, by given tilings.

    Raises InputError where the layers do not fit each other or memory, and IllegalTiling where the hardware or the banks refuse a tiling.
    """
    check_chain(design, layers)
    for first, second in zip(layers, layers[1:], strict=False):
        why = why_not_kept(design, first, second)
        if why:
            raise IllegalTiling(f"the tensor from {first.name} to {second.name} cannot stay on chip: {why}")
    depth = design.bank_depth("input")
    plans: list[TilePlan] = []
    frame: Frame | None = None
    for number, (layer, tiling) in reversed(list(enumerate(zip(layers, tilings, strict=True)))):
        plan = TilePlan(design, layer, tiling, input_entry=0 if number else None, output_frame=frame)
        if not plan.fits:
            kind = next(kind for kind, (need, there) in plan.needs().items() if need > there)
            raise IllegalTiling(f"{layer.name} does not fit the {kind} banks")
        if number % 2:  # the input before begins at entry 0, and so does the next
            plan = TilePlan(design, layer, tiling, input_entry=depth - plan.input_slot, output_frame=frame)
        frame = plan.input_frame if number else None
        plans.append(plan)
    return _compile(tuple(reversed(plans)))


def _compile(plans: tuple[TilePlan, ...]) -> ChainRun:
    """Programs one behind the other, each with the place of the next."""
    regions, address = [], 0
    for plan in plans:
        beats = program_shape(plan.design, Pattern.of(plan)).beats(plan.design.bus_bits)
        regions.append(Region(address, beats))
        address = memory_map(plan, beats, address).beats
    programs = tuple(compile_program(plan, address=region.address, following=following)
                     for plan, region, following in zip(plans, regions, [*regions[1:], NOWHERE], strict=True))
    return ChainRun(plans, programs)


def pack_chain(run: ChainRun, tensors: Sequence[LayerTensors]) -> NDArray[np.uint8]:
    """The memory image before the run: the first input, every layer's program, weights and parameters; the output region is zero.

    ``tensors``: of every layer; only the first one's ``input`` is looked at.
    """
    return pack_memories(run.plans, run.programs, tensors)


def unpack_chain(run: ChainRun, image: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The last layer's output (B, K, OY, OX) of an image after the run."""
    return unpack_output(run.plans[-1], run.programs[-1].memory, image)


# -- predicting -------------------------------------------------------------------------------------------------------


def predict_chain(run: ChainRun, timing: MemoryTiming) -> ChainPrediction:
    """The run, to the cycle. Raises InputError for a latency below ``lanes`` cycles."""
    if timing.latency_cycles < run.design.lanes:
        raise InputError("the lanes' row limits settle one lane a cycle, during the memory's latency", where="latency_cycles",
                         value=timing.latency_cycles, allowed=f"at least {run.design.lanes} for {run.design.lanes} lanes")
    return _sum(predict_link(plan, ProgramLength(program.beats, program.first_instructions, program.tile_instructions), timing)
                for plan, program in zip(run.plans, run.programs, strict=True))


def _sum(parts: Iterable[ChainPrediction]) -> ChainPrediction:
    parts = tuple(parts)
    names = ("cycles", "beats_read", "beats_written", "issue_cycles", "memory_bound_cycles", "drain_bound_cycles", "memory_stall_cycles")
    sums: dict[str, int] = {name: sum(getattr(part, name) for part in parts) for name in names}
    return ChainPrediction(**sums, layers=parts)


def predict_link(plan: TilePlan, program: ProgramLength, timing: MemoryTiming) -> ChainPrediction:
    """One layer of a run: to the start of the next program if its output stays on chip, else to its last write beat."""
    costs = tile_costs(plan)
    tiles = len(costs.load_beats)
    load, store, compute, evaluate = (np.zeros(tiles + 2, np.int64) for _ in range(4))
    load[:tiles], compute[1:tiles + 1], store[2:] = costs.load_beats, costs.compute_cycles, costs.store_beats
    evaluate[:tiles] = hardware.EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * program.tile_instructions
    kept = store if plan.output_is_kept else np.zeros_like(store)
    travelling = load if plan.output_is_kept else load + store
    # A store on chip takes a cycle a beat; what is loaded in its phase begins with its last beat.
    memory = np.where(kept > 0, hardware.STORE_ON_CHIP_START_CYCLES + kept, 0)
    moved = -(-travelling * timing.den // timing.num)
    memory += np.where(travelling > 0, hardware.MEMORY_START_CYCLES + timing.latency_cycles + moved, 0)
    memory += np.where((kept > 0) | (travelling > 0), hardware.MEMORY_END_CYCLES, 0)
    phases = np.maximum(np.maximum(memory, compute), evaluate) + hardware.PHASE_CHANGE_CYCLES
    cycles = (hardware.START_CYCLES + timing.transfer_cycles(program.beats) + hardware.FETCH_END_CYCLES
              + hardware.FIRST_EVALUATION_CYCLES + hardware.INSTRUCTION_CYCLES * program.first_instructions + hardware.PHASE_CHANGE_CYCLES)
    if plan.output_is_kept:
        cycles += int(phases.sum())
    else:  # the run ends with the last write beat
        cycles += int(phases[:-1].sum()) + hardware.MEMORY_START_CYCLES + timing.transfer_cycles(int(store[-1])) + 1
    return ChainPrediction(cycles, int(load.sum()) + program.beats, 0 if plan.output_is_kept else int(store.sum()),
                           int(costs.issue_cycles.sum()), -(-int(travelling.sum()) * timing.den // timing.num), drain_bound_cycles(costs),
                           memory_stall_cycles(memory, compute, evaluate))
