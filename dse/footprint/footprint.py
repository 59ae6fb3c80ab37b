"""How many bytes a workload takes, and when."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from boards.errors import InputError
from dse.footprint.buffers import Buffers, share
from dse.footprint.schedule import RECOMPUTE, Event, dropped, events, segments_of
from dse.footprint.steps import Step, steps_of
from dse.footprint.timeline import Interval, Usage, intervals, usage
from dse.workload.network import Network
from dse.workload.operators import UNKNOWN_SHAPE, packed_bytes, unknown

OPTIMIZERS = {"none": 0, "momentum": 1, "adam": 2}
"""Values that an optimiser keeps beside every trained value: none is plain gradient descent; momentum keeps a velocity; Adam two moments
(D. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015)."""
LOWERINGS = ("direct", "im2col")
MAX_BATCH = 1 << 40
WIDTH_PERCENT = 100
"""Channels as the network has them."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is counted, and how.

    Parameters
    ----------
    batch: times the workload's own batch, which is 1 in the zoo; 1 to 2**40.
    weight_bits, activation_bits: of every trained value, and of every tensor, 1 to 64; by default those of each operator.
    is_training: activations are kept for the backward pass, and there are gradients.
    optimizer: see :data:`OPTIMIZERS`. Gradients and optimiser state have the bits of the weights.
    recompute: see :data:`~dse.footprint.schedule.RECOMPUTE`.
    in_place: element-wise operators write over an operand where they can (:func:`~dse.footprint.buffers.share`).
    lowering: ``im2col``: while a convolution runs, its input lies there once more as a matrix, for the whole batch.
    is_unfused: normalisations and activations write tensors of their own, as in a framework that fuses nothing.

    Raises
    ------
    InputError: names the option.
    """

    batch: int = 1
    weight_bits: int | None = None
    activation_bits: int | None = None
    is_training: bool = False
    optimizer: str = "none"
    recompute: str = "none"
    in_place: bool = False
    lowering: str = "direct"
    is_unfused: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= MAX_BATCH:
            raise InputError("out of range", where="--batch", value=self.batch, allowed=f"1 to {MAX_BATCH}")
        for name, value, known in (("optimizer", self.optimizer, tuple(OPTIMIZERS)), ("recompute", self.recompute, RECOMPUTE),
                                   ("lowering", self.lowering, LOWERINGS)):
            if value not in known:
                raise unknown("unknown", value, known, where=f"--{name}")
        for name, value in (("optimizer", self.optimizer), ("recompute", self.recompute)):
            if value != "none" and not self.is_training:
                raise InputError("is of training", where=f"--{name}", value=value, suggestion="add --training")


class Model:
    """A network whose liveness is known, for any batch and width."""

    def __init__(self, network: Network, options: Options) -> None:
        self.network, self.options = network, options
        self.steps: list[Step] = steps_of(network, weight_bits=options.weight_bits, activation_bits=options.activation_bits,
                                          is_unfused=options.is_unfused)
        self.buffers: Buffers = share(self.steps, in_place=options.in_place, is_training=options.is_training)
        self.order: list[Event] = events(self.steps, self.buffers, is_training=options.is_training, recompute=options.recompute)
        self.live: list[Interval] = intervals(self.steps, self.buffers, self.order)
        self.dropped = dropped(self.steps, self.buffers, options.recompute, segments_of(self.steps)) if options.is_training else set()

    def output_bytes(self, index: int, batch: int, width_percent: int = WIDTH_PERCENT) -> int:
        """Of the tensor that a step writes."""
        step = self.steps[index]
        return packed_bytes(_widened(step.elements * batch, width_percent, int(step.widens)), step.bits)

    def lowered_bytes(self, index: int, batch: int, width_percent: int = WIDTH_PERCENT) -> int:
        """Of the matrix that a step's input is lowered to, 0 without lowering."""
        step = self.steps[index]
        if self.options.lowering == "direct":
            return 0
        return packed_bytes(_widened(step.lowered_elements * batch, width_percent, int(step.input_widens)), step.lowered_bits)

    def parameter_bytes(self, index: int, width_percent: int = WIDTH_PERCENT) -> int:
        """Of a step's trained values."""
        step = self.steps[index]
        values = (_widened(step.weights, width_percent, step.weight_power)
                  + _widened(step.parameters - step.weights, width_percent, int(step.widens)))
        return packed_bytes(values, step.weight_bits)

    def fixed_bytes(self, width_percent: int = WIDTH_PERCENT) -> int:
        """What is there all the time: trained values, their gradients, the optimiser's state."""
        copies = 1 + (1 + OPTIMIZERS[self.options.optimizer] if self.options.is_training else 0)
        return copies * sum(self.parameter_bytes(index, width_percent) for index in range(len(self.steps)))

    def usage(self, batch: int, width_percent: int = WIDTH_PERCENT) -> list[Usage]:
        """What is in use beside that, during each event."""
        return usage(self.steps, self.order, self.live, lambda index: self.output_bytes(index, batch, width_percent),
                     lambda index: self.lowered_bytes(index, batch, width_percent))

    def total_bytes(self, batch: int, width_percent: int = WIDTH_PERCENT) -> int:
        """All that is there at the same time, at most."""
        return self.fixed_bytes(width_percent) + max(used.total for used in self.usage(batch, width_percent))


@dataclass(frozen=True, kw_only=True)
class StepBytes:
    """A step's share. ``live_bytes``, ``backward_live_bytes``: activations, gradients and lowering buffer in use while it, or its backward
    step, runs; weights are not in them. ``storage``: ``kept``, ``freed``, ``recomputed``, ``view``, or the step that it writes over."""

    name: str
    op: str
    shape: tuple[int, ...]
    parameters: int
    parameter_bytes: int
    output_bytes: int
    live_bytes: int
    backward_live_bytes: int | None
    lowering_bytes: int
    inflation: float | None
    asymptotic_inflation: float | None
    storage: str


class Footprint:
    """The bytes of a workload with its options; 1 GB is 1e9 bytes, 1 MB is 1e6."""

    def __init__(self, network: Network, options: Options | None = None) -> None:
        self.model = Model(network, options or Options())
        self.network, self.options = network, self.model.options
        self.usage = self.model.usage(self.options.batch)

    # -- what is there all the time -----------------------------------------------------------------------------------

    @cached_property
    def weight_bytes(self) -> int:
        """Trained values: weights, biases, scale and offset of normalisations."""
        return sum(self.model.parameter_bytes(index) for index in range(len(self.model.steps)))

    @property
    def weight_gradient_bytes(self) -> int:
        return self.weight_bytes if self.options.is_training else 0

    @property
    def optimizer_bytes(self) -> int:
        return OPTIMIZERS[self.options.optimizer] * self.weight_bytes

    @property
    def fixed_bytes(self) -> int:
        return self.model.fixed_bytes()

    # -- activations --------------------------------------------------------------------------------------------------

    def _sum(self, roots: set[int]) -> int:
        return sum(self.model.output_bytes(root, self.options.batch) for root in roots)

    @cached_property
    def _buffers(self) -> set[int]:
        return {root for root in self.model.buffers.members if self.model.steps[root].kind != "input"}

    @property
    def activations(self) -> int:
        """Elements that are produced, views and what is written over another tensor excluded."""
        return self.options.batch * sum(self.model.steps[root].elements for root in self._buffers)

    @property
    def activation_bytes(self) -> int:
        """The sum of them all, without the network's inputs: what would be needed if nothing were ever freed."""
        return self._sum(self._buffers)

    @property
    def input_bytes(self) -> int:
        return self._sum(set(self.model.buffers.members) - self._buffers)

    @property
    def kept_bytes(self) -> int:
        """What of them, and of the inputs, the forward pass leaves for the backward pass; 0 without training."""
        return self._sum(set(self.model.buffers.members) - self.model.dropped) if self.options.is_training else 0

    @property
    def inference_peak_bytes(self) -> int:
        """The most activation bytes, inputs included, in use at a time in the forward pass when all is freed after its last reader."""
        freed = self.model if not self.options.is_training else Model(self.network, Options(**{
            **asdict(self.options), "is_training": False, "optimizer": "none", "recompute": "none"}))
        return max(used.activations for used in freed.usage(self.options.batch))

    @property
    def activation_gradient_bytes(self) -> int:
        """The most bytes of gradients of activations in use at a time."""
        return max(used.gradients for used in self.usage)

    @property
    def lowering_bytes(self) -> int:
        """The largest lowered matrix."""
        return max(used.lowering for used in self.usage)

    # -- together -----------------------------------------------------------------------------------------------------

    @cached_property
    def peak(self) -> int:
        """Index of the event at which most is in use, the first such."""
        totals = [used.total for used in self.usage]
        return totals.index(max(totals))

    @property
    def peak_event(self) -> str:
        """``forward conv1``."""
        event = self.model.order[self.peak]
        return f"{event.phase} {self.model.steps[event.step].name}"

    @property
    def total_bytes(self) -> int:
        """What must be there at the same time: the fixed part, and the most that is in use beside it. No allocator's gaps, no code."""
        return self.fixed_bytes + self.usage[self.peak].total

    @property
    def recomputed_operations(self) -> int:
        """Operations (1 MAC = 2 ops) that are done once more in the backward pass."""
        return self.options.batch * sum(self.model.steps[event.step].operations for event in self.model.order if event.phase == "recompute")

    @property
    def forward_operations(self) -> int:
        return self.options.batch * sum(step.operations for step in self.model.steps)

    @cached_property
    def layers(self) -> list[StepBytes]:
        """One for each step, inputs excluded."""
        model, batch = self.model, self.options.batch
        during = {(event.phase, event.step): used.total for event, used in zip(model.order, self.usage, strict=True)}
        rows = []
        for index, step in enumerate(model.steps):
            if step.kind == "input":
                continue
            live = during.get(("forward", index), 0)
            rows.append(StepBytes(
                name=step.name, op="+".join(step.ops), shape=step.shape, parameters=step.parameters,
                parameter_bytes=model.parameter_bytes(index), output_bytes=0 if step.is_view else model.output_bytes(index, batch),
                live_bytes=live, backward_live_bytes=during.get(("backward", index), 0) if self.options.is_training else None,
                lowering_bytes=model.lowered_bytes(index, batch), inflation=step.inflation,
                asymptotic_inflation=step.asymptotic_inflation if step.lowered_elements else None, storage=self._storage(index)))
        return rows

    def _storage(self, index: int) -> str:
        root = self.model.buffers.of[index]
        if self.model.steps[index].is_view:
            return "view"
        if root != index:
            before = [member for member in self.model.buffers.members[root] if member < index and not self.model.steps[member].is_view]
            return f"over {self.model.steps[before[-1]].name}"
        if not self.options.is_training:
            return "freed"
        return "recomputed" if root in self.model.dropped else "kept"

    @property
    def remarks(self) -> list[str]:
        """What the figures leave out."""
        strange = [node.name for node in self.network.nodes if node.output.shape == UNKNOWN_SHAPE]
        names = ", ".join(strange[:4]) + (", .." if len(strange) > 4 else "")
        return [f"of unknown size, counted as nothing: {names}"] if strange else []

    def to_dict(self) -> dict[str, Any]:
        """The object of ``nearmac memory WORKLOAD --json``, without the device."""
        used = self.usage[self.peak]
        return {
            "workload": self.network.name, "options": asdict(self.options),
            "parameters": sum(step.parameters for step in self.model.steps), "weights": sum(step.weights for step in self.model.steps),
            "activations": self.activations, "weight_bytes": self.weight_bytes, "activation_bytes": self.activation_bytes,
            "weight_and_activation_bytes": self.weight_bytes + self.activation_bytes, "input_bytes": self.input_bytes,
            "inference_peak_bytes": self.inference_peak_bytes, "kept_bytes": self.kept_bytes,
            "weight_gradient_bytes": self.weight_gradient_bytes, "activation_gradient_bytes": self.activation_gradient_bytes,
            "optimizer_bytes": self.optimizer_bytes, "lowering_bytes": self.lowering_bytes, "fixed_bytes": self.fixed_bytes,
            "peak": {"event": self.peak_event, "activation_bytes": used.activations, "gradient_bytes": used.gradients,
                     "lowering_bytes": used.lowering},
            "total_bytes": self.total_bytes, "forward_operations": self.forward_operations,
            "recomputed_operations": self.recomputed_operations,
            "layers": [{**asdict(row), "shape": list(row.shape)} for row in self.layers], "remarks": self.remarks}


def _widened(values: int, width_percent: int, power: int) -> int:
    """``values`` that grow with a power of the width, rounded up."""
    return -(-values * width_percent ** power // WIDTH_PERCENT ** power)
