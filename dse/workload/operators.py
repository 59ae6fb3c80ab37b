"""Operators of a network: inputs, layers that the array computes, and operators that stay on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from typing import Any

from boards.errors import InputError, nearest
from hdl.layer import Layer

ELEMENT_BITS = (1, 2, 4, 8, 16)  # as ``hdl.design.ELEMENT_BITS``, without its imports
MAX_TENSOR_BITS = 64  # of an element that only the host sees
MAX_ELEMENTS = 1 << 48
MAX_RANK = 8
MAX_REPEAT = 1 << 20
MAX_NAME = 200
MAX_NOTE = 300

NORMALISATIONS = {"batch_norm": 2, "scale": 1, "offset": 1}
"""What the output stage's multiplier and bias do, and its trained values a channel."""
CLAMPS = ("relu", "relu6", "clip", "sign")
"""Activations that the output stage computes: clamps of the requantised sum, or (``sign``) its threshold."""
UNKNOWN_SHAPE = (0,)
"""Of what a host operator produces, where only its data decide (non-maximum suppression, loops): counted as no elements."""
DIMENSIONS = ("B", "K", "C", "OY", "OX", "FY", "FX", "IY", "IX", "SY", "SX", "DY", "DX")


@dataclass(frozen=True)
class Tensor:
    """What an edge carries: the shape, (B, C, H, W) for all that the array reads or writes, and bits an element.

    Tensors between host operators may have the shape ``UNKNOWN_SHAPE``.
    """

    shape: tuple[int, ...]
    bits: int

    def __post_init__(self) -> None:
        shape = self.shape
        if not isinstance(shape, tuple) or not 1 <= len(shape) <= MAX_RANK:
            raise InputError("not a shape", where="shape", value=shape, allowed=f"1 to {MAX_RANK} sizes, such as [1, 3, 224, 224]")
        for size in shape if shape != UNKNOWN_SHAPE else ():
            check_whole("shape", size, 1, MAX_ELEMENTS)
        if prod(shape) > MAX_ELEMENTS:
            raise InputError("too many elements", where="shape", value=shape, allowed=f"at most {MAX_ELEMENTS}")
        check_whole("bits", self.bits, 1, MAX_TENSOR_BITS)

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes when elements are packed without gaps."""
        return packed_bytes(self.elements, self.bits)


@dataclass(frozen=True)
class Window:
    """What a pooling operator looks at: filter, stride, pads."""

    FY: int
    FX: int
    SY: int = 1
    SX: int = 1
    PT: int = 0
    PL: int = 0
    PB: int = 0
    PR: int = 0


@dataclass(frozen=True, kw_only=True)
class InputOperator:
    """A tensor that comes from outside. ``state``: it is the hidden state of a recurrent layer, which its gates produce."""

    name: str
    output: Tensor
    is_state: bool = False
    kind: str = "input"
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ArrayOperator:
    """A convolution or linear layer, with what follows it in the output stage.

    Parameters
    ----------
    layer: one application; its name is the operator's.
    inputs: the name of the operator it reads; where another operator computes its weights (attention), that one's name after it.
    weight_bits, activation_bits: of weights and of input elements, 1, 2, 4, 8 or 16.
    output_bits: of output elements. An array has one activation width and writes its outputs in that one: where ``output_bits`` is
        less, they are values of so many bits in wider elements; where it is more, the array cannot write them in full.
    bias: whether the layer has trained biases.
    folded: the normalisation and activation that the output stage computes after the layer, in order. They are part of the layer:
        no time, bytes or ops of their own.
    repeat: times the layer runs, with the same weights, on inputs that come one after the other (recurrent layers).
    """

    layer: Layer
    inputs: tuple[str, ...]
    weight_bits: int = 8
    activation_bits: int = 8
    output_bits: int = 8
    bias: bool = True
    folded: tuple[str, ...] = ()
    repeat: int = 1

    def __post_init__(self) -> None:
        for field in ("weight_bits", "activation_bits", "output_bits"):
            check_bits(field, getattr(self, field))
        check_whole("repeat", self.repeat, 1, MAX_REPEAT)
        check_flag("bias", self.bias)
        for done, op in enumerate(self.folded):
            if not can_fold(self.folded[:done], op):
                raise InputError("the output stage computes a normalisation, then an activation", where="folded", value=self.folded,
                                 allowed=", ".join((*NORMALISATIONS, *CLAMPS)))

    @property
    def name(self) -> str:
        return self.layer.name

    @property
    def kind(self) -> str:
        """``conv`` or ``linear``."""
        return self.layer.kind

    @property
    def op(self) -> str:
        return self.layer.kind

    @property
    def precision(self) -> str:
        return f"w{self.weight_bits}a{self.activation_bits}"

    @cached_property
    def output(self) -> Tensor:
        """All repeats, one after the other in B."""
        layer = self.layer
        return Tensor((layer.B * self.repeat, layer.K, layer.OY, layer.OX), self.output_bits)

    @property
    def has_computed_weights(self) -> bool:
        """Its weights are what another operator produces, not trained values."""
        return len(self.inputs) > 1

    @property
    def macs(self) -> int:
        """Of all repeats, padded taps included."""
        return self.layer.macs * self.repeat

    @property
    def weights(self) -> int:
        """Elements of the weight tensor, once, whatever ``repeat``."""
        return self.layer.weights

    @property
    def parameters(self) -> int:
        """Trained values: weights, biases, and scale and offset of a folded batch normalisation (not its running statistics)."""
        norms = sum(NORMALISATIONS.get(op, 0) for op in self.folded)
        return (0 if self.has_computed_weights else self.weights) + self.layer.K * (int(self.bias) + norms)

    @property
    def activations(self) -> int:
        """Output elements of all repeats."""
        return self.layer.outputs * self.repeat

    @property
    def weight_bytes(self) -> int:
        return packed_bytes(self.weights, self.weight_bits)

    @property
    def input_bytes(self) -> int:
        """Of all repeats, padding excluded."""
        return self.repeat * packed_bytes(self.layer.inputs, self.activation_bits)

    @property
    def output_bytes(self) -> int:
        """Of all repeats."""
        return self.repeat * packed_bytes(self.layer.outputs, self.output_bits)

    @property
    def operand_bytes(self) -> int:
        """Every operand once a run of the layer; each repeat reads the weights again."""
        return self.repeat * self.weight_bytes + self.input_bytes + self.output_bytes

    @property
    def ops_per_byte(self) -> float:
        """2 * MACs / operand bytes: operations for each byte that has to move when nothing stays on chip between layers."""
        return 2 * self.macs / self.operand_bytes

    def to_dict(self) -> dict[str, Any]:
        layer = self.layer
        return {"name": self.name, "op": self.op, "kind": self.kind, **{name: getattr(layer, name) for name in DIMENSIONS},
                "pads": list(layer.pads), "G": layer.G, "precision": self.precision, "macs": self.macs, "weights": self.weights,
                "activations": self.activations, "inputs": list(self.inputs), "bias": self.bias, "folded": list(self.folded),
                "repeat": self.repeat, "output_bits": self.output_bits, "parameters": self.parameters,
                "weight_bytes": self.weight_bytes, "input_bytes": self.input_bytes, "output_bytes": self.output_bytes,
                "ops_per_byte": self.ops_per_byte}


@dataclass(frozen=True, kw_only=True)
class HostOperator:
    """An operator that the array does not compute: counted and listed, in no cycle count.

    Parameters
    ----------
    op: what it is: ``max_pool``, ``add``, ``softmax``, ...
    operands: what ``inputs`` carry, in the same order.
    ops: operations in all: an addition, multiplication, comparison or exponential is one.
    parameters: trained values.
    is_view: only the shape changes; nothing is read, written or kept.
    folded: activations done in the same pass, whose ``ops`` are included.
    read_elements: elements that it reads of its one operand, where that is not all of it (slices).
    note: why the host computes it, where the array might be expected to.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    operands: tuple[Tensor, ...]
    output: Tensor
    ops: int = 0
    parameters: int = 0
    is_view: bool = False
    folded: tuple[str, ...] = ()
    window: Window | None = None
    read_elements: int | None = None
    note: str = ""
    kind: str = "host"

    def __post_init__(self) -> None:
        for field in ("ops", "parameters"):
            check_whole(field, getattr(self, field), 0, 1 << 60)
        if self.read_elements is not None:
            check_whole("read_elements", self.read_elements, 1, self.operands[0].elements)
            if len(self.operands) > 1:
                raise InputError("only of a single operand", where="read_elements", value=self.read_elements)
        if not isinstance(self.note, str) or not (self.note.isprintable() and len(self.note) <= MAX_NOTE):
            raise InputError("must be a line of text", where="note", value=self.note, allowed=f"at most {MAX_NOTE} characters")
        check_flag("is_view", self.is_view)
        if self.is_view and self.output.elements != self.operands[0].elements:
            raise InputError("a view has as many elements as its input", where="shape", value=self.output.shape,
                             allowed=f"{self.operands[0].elements} elements")

    @property
    def bytes_read(self) -> int:
        """Of its tensors, without its parameters."""
        if self.read_elements is not None:
            return packed_bytes(self.read_elements, self.operands[0].bits)
        return 0 if self.is_view else sum(operand.size_bytes for operand in self.operands)

    @property
    def bytes_written(self) -> int:
        return 0 if self.is_view else self.output.size_bytes

    @property
    def activations(self) -> int:
        """Output elements, none for a view."""
        return 0 if self.is_view else self.output.elements

    def to_dict(self) -> dict[str, Any]:
        """The keys of an array layer, ``None`` where they mean nothing here, and its own."""
        source, shape = self.operands[0].shape, self.output.shape
        given = dict(asdict(self.window)) if self.window else {}
        if len(shape) == len(source) == 4:
            given |= {"B": shape[0], "K": shape[1], "OY": shape[2], "OX": shape[3], "C": source[1], "IY": source[2], "IX": source[3]}
        pads = [given[name] for name in ("PT", "PL", "PB", "PR")] if self.window else None
        return {"name": self.name, "op": self.op, "kind": self.kind, **{name: given.get(name) for name in DIMENSIONS}, "pads": pads,
                "G": None, "precision": None, "macs": 0, "weights": 0, "activations": self.activations,
                "inputs": list(self.inputs), "folded": list(self.folded),
                "output_shape": None if shape == UNKNOWN_SHAPE else list(shape), "output_bits": self.output.bits, "note": self.note,
                "parameters": self.parameters, "ops": self.ops, "bytes_read": self.bytes_read, "bytes_written": self.bytes_written}


Operator = InputOperator | ArrayOperator | HostOperator


def can_fold(folded: Sequence[str], op: str) -> bool:
    """Whether the output stage, which computes ``folded`` already, can compute ``op`` after it.

    Its multiplier and the bias are a normalisation (a negative scale turns the channel's weights round), its clamp or threshold is
    an activation; nothing comes after that.
    """
    if any(done in CLAMPS for done in folded):
        return False
    return op in CLAMPS or op in NORMALISATIONS


def packed_bytes(elements: int, bits: int) -> int:
    return -(-elements * bits // 8)


def check_whole(field: str, value: object, low: int, high: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not low <= value <= high:  # type: ignore[operator]
        raise InputError("out of range" if whole else "must be a whole number", where=field, value=value, allowed=f"{low} to {high}")


def check_bits(field: str, value: object) -> None:
    if isinstance(value, bool) or value not in ELEMENT_BITS:
        raise InputError("not a width that the array has", where=field, value=value, allowed=", ".join(map(str, ELEMENT_BITS)))


def check_flag(field: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputError("must be true or false", where=field, value=value)


def check_name(name: object) -> None:
    """The rule of layer names, for every operator."""
    if not isinstance(name, str):
        raise InputError("must be a string", where="name", value=name)
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or " " in name:
        raise InputError("not a name", where="name", value=name, allowed=f"1 to {MAX_NAME} printable characters without spaces")


def unknown(what: str, value: object, known: Sequence[str], *, where: str | None) -> InputError:
    """The error for a name that is not there."""
    near = nearest(value, known)
    return InputError(what, where=where, value=value, allowed=", ".join(known) if len(known) <= 30 else None,
                      suggestion=f"nearest: {near}" if near else None)
