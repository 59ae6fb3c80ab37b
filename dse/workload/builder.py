"""Builds a network operator by operator: names, shapes and bit widths are tracked, and checked at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from boards.errors import InputError
from dse.workload.folding import fold
from dse.workload.network import Network, check_edges
from dse.workload.operators import (
    NORMALISATIONS,
    ArrayOperator,
    HostOperator,
    InputOperator,
    Operator,
    Tensor,
    Window,
    check_bits,
    check_flag,
    check_name,
    check_whole,
    unknown,
)
from dse.workload.pooling import pooled, pooling_window
from hdl.layer import Layer

OPS_PER_ELEMENT = {
    "batch_norm": 2, "scale": 1, "offset": 1,  # multiply, add
    "relu": 1, "relu6": 2, "clip": 2, "sign": 1,  # comparisons
    "sigmoid": 4,  # negate, exponential, add, divide
    "tanh": 5,  # as (e - 1) / (e + 1) with e = exp(2 x)
    "softmax": 5,  # maximum, subtract, exponential, sum, divide
}
"""Operations a output element of what the host computes: an addition, multiplication, comparison or exponential is one."""


class NetworkBuilder:
    """Makes a :class:`Network`. Every method adds one operator and returns its name, which later ones take as their source.

        b = NetworkBuilder("tiny")
        x = b.input((1, 3, 32, 32))
        x = b.relu(b.batch_norm(b.conv(x, "conv1", K=16, F=3, P=1, bias=False)))
        x = b.linear(b.flatten(x), "fc", K=10)
        network = b.build()

    Operators without a name get one by their kind (``add1``). :meth:`build` folds what the output stage can compute into the layer
    before it.

    Parameters
    ----------
    name: of the network.
    weight_bits, activation_bits: of every operator that does not say otherwise.
    where: how errors call the network; by default its name.
    """

    def __init__(self, name: str, *, weight_bits: int = 8, activation_bits: int = 8, title: str = "", where: str | None = None) -> None:
        self.name, self.title, self.where = name, title, where or name
        self.weight_bits, self.activation_bits = weight_bits, activation_bits
        self.remarks: list[str] = []  # of the network
        self._nodes: dict[str, Operator] = {}
        self._kept: set[str] = set()
        self._foldable: set[str] = set()
        self._counts: Counter[str] = Counter()
        with self._errors("", "network"):
            check_name(name)
            check_bits("weight_bits", weight_bits)
            check_bits("activation_bits", activation_bits)

    # -- inputs and array layers ------------------------------------------------------------------------------------------

    def input(self, shape: Sequence[int], name: str = "input", *, bits: int | None = None, is_state: bool = False) -> str:
        """A tensor from outside: ``shape`` (B, C, H, W), ``bits`` an element."""
        with self._errors(name):
            check_flag("is_state", is_state)
            output = Tensor(tuple(shape), self.activation_bits if bits is None else bits)
            return self._add(InputOperator(name=name, output=output, is_state=is_state))

    def conv(self, source: str, name: str | None = None, *, bias: bool = True, weight_bits: int | None = None,
             activation_bits: int | None = None, output_bits: int | None = None, folded: Sequence[str] = (), repeat: int = 1,
             weights: str | None = None, **dimensions: Any) -> str:
        """A convolution of ``source``: ``K``, ``F`` (or ``FY FX``), and ``S P D G`` or the single ``SY SX PT PL PB PR DY DX``.

        Its input elements have the bits of ``source`` unless ``activation_bits`` says more. Other keys of :class:`Layer` may be given
        too (``lo``, ``hi``, zero points); B, C and the sizes follow from ``source``. ``weights``: the operator that computes its
        weights, if they are no trained ones.
        """
        options = {"bias": bias, "weight_bits": weight_bits, "activation_bits": activation_bits, "output_bits": output_bits,
                   "folded": folded, "repeat": repeat, "weights": weights}
        return self._layer("conv", source, name, dimensions, options)

    def linear(self, source: str, name: str | None = None, *, bias: bool = True, weight_bits: int | None = None,
               activation_bits: int | None = None, output_bits: int | None = None, folded: Sequence[str] = (), repeat: int = 1,
               weights: str | None = None, **dimensions: Any) -> str:
        """A linear layer of ``K`` outputs; ``source`` has the shape (B, C, 1, 1). Options as for :meth:`conv`.

        ``repeat``: one after the other, with the same weights: ``source`` holds ``repeat`` times B vectors, or the first state of a
        recurrent product (B vectors).
        """
        options = {"bias": bias, "weight_bits": weight_bits, "activation_bits": activation_bits, "output_bits": output_bits,
                   "folded": folded, "repeat": repeat, "weights": weights}
        return self._layer("linear", source, name, dimensions, options)

    # -- host operators ---------------------------------------------------------------------------------------------------

    def max_pool(self, source: str, name: str | None = None, *, ceil: bool = False, **window: int) -> str:
        """Maximum over ``F`` (``FY FX``) at stride ``S``, pads ``P``; ``ceil``: sizes round up, as frameworks call it."""
        return self._pool("max_pool", source, name, ceil, window)

    def average_pool(self, source: str, name: str | None = None, *, ceil: bool = False, **window: int) -> str:
        """Mean; keys as for :meth:`max_pool`."""
        return self._pool("average_pool", source, name, ceil, window)

    def global_average_pool(self, source: str, name: str | None = None) -> str:
        """Mean of each channel."""
        name = self._named("global_average_pool", name)
        batch, channels, _, _ = self._shape4(source, name)
        return self.host("global_average_pool", source, name=name, shape=(batch, channels, 1, 1), ops=self.tensor(source).elements)

    def add(self, *sources: str, name: str | None = None) -> str:
        """Element-wise sum of two or more tensors of the same shape, or with sizes of 1 that are repeated."""
        return self._elementwise("add", sources, name)

    def multiply(self, *sources: str, name: str | None = None) -> str:
        """Element-wise product; shapes as for :meth:`add`."""
        return self._elementwise("multiply", sources, name)

    def concat(self, *sources: str, name: str | None = None) -> str:
        """Tensors behind one another along C."""
        name = self._named("concat", name)
        shapes = [self._shape4(source, name) for source in sources]
        rests = {(shape[0], *shape[2:]) for shape in shapes}
        if len(rests) != 1:
            raise InputError("shapes differ in more than channels", where=self._at(name), value=shapes)
        batch, height, width = rests.pop()
        return self.host("concat", *sources, name=name, shape=(batch, sum(shape[1] for shape in shapes), height, width))

    def flatten(self, source: str, name: str | None = None) -> str:
        """(B, C, H, W) seen as (B, C*H*W, 1, 1): nothing moves, as the weights of the next layer can be stored in any order."""
        name = self._named("flatten", name)
        tensor = self.tensor(source, name)
        return self.host("flatten", source, name=name, shape=(tensor.shape[0], prod(tensor.shape[1:]), 1, 1), is_view=True)

    def batch_norm(self, source: str, name: str | None = None) -> str:
        """Scale and offset of each channel, two trained values; folds into a layer before it."""
        channels = self._shape4(source, name or "batch_norm")[1]
        return self._per_element("batch_norm", source, name, parameters=2 * channels)

    def relu(self, source: str, name: str | None = None) -> str:
        """max(x, 0); folds into a layer or addition before it."""
        return self._per_element("relu", source, name)

    def scale(self, source: str, name: str | None = None) -> str:
        """Product with one trained value a channel; folds into a layer before it."""
        return self._per_element("scale", source, name, parameters=self._shape4(source, name or "scale")[1])

    def offset(self, source: str, name: str | None = None) -> str:
        """Sum with one trained value a channel; folds into a layer before it."""
        return self._per_element("offset", source, name, parameters=self._shape4(source, name or "offset")[1])

    def activation(self, op: str, source: str, name: str | None = None) -> str:
        """``relu relu6 clip sign`` (fold), ``sigmoid tanh softmax`` (host); ``sign`` makes 1-bit elements."""
        known = [known for known in OPS_PER_ELEMENT if known not in NORMALISATIONS]
        if op not in known:
            raise unknown("unknown activation", op, known, where=self._at(name or "activation"))
        return self._per_element(op, source, name, bits=1 if op == "sign" else None)

    def softmax(self, source: str, name: str | None = None) -> str:
        return self._per_element("softmax", source, name)

    def local_response_norm(self, source: str, name: str | None = None, *, size: int = 5) -> str:
        """Across ``size`` channels: squares, their sum, scale, offset, power (exp and log), division."""
        with self._errors(name or "local_response_norm"):
            check_whole("size", size, 1, 1 << 16)
        elements = self.tensor(source, name).elements
        return self.host("local_response_norm", source, name=name, ops=elements * (size + 6))

    def host(self, op: str, *sources: str, name: str | None = None, shape: Sequence[int] | None = None, bits: int | None = None,
             ops: int = 0, parameters: int = 0, is_view: bool = False, folded: Sequence[str] = (),
             window: Window | None = None, read_elements: int | None = None, note: str = "") -> str:
        """Any other operator, never folded: ``shape`` and ``bits`` of its output are by default those of its first source.

        The rest: :class:`HostOperator`.
        """
        name = self._named(op, name)
        operands = tuple(self.tensor(source, name) for source in sources)
        if not operands:
            raise InputError("reads nothing", where=self._at(name), suggestion="name its inputs")
        with self._errors(name):
            output = Tensor(operands[0].shape if shape is None else tuple(shape), operands[0].bits if bits is None else bits)
            return self._add(HostOperator(name=name, op=op, inputs=sources, operands=operands, output=output, ops=ops,
                                          parameters=parameters, is_view=is_view, folded=tuple(folded), window=window,
                                          read_elements=read_elements, note=note))

    # -- the end ----------------------------------------------------------------------------------------------------------

    def tensor(self, source: str, reader: str | None = None) -> Tensor:
        """What ``source`` produces. Raises InputError, about ``reader``, where it is not there."""
        if source not in self._nodes:
            raise unknown("no such operator before this one", source, list(self._nodes), where=self._at(reader, "inputs"))
        return self._nodes[source].output

    def is_layer(self, source: str) -> bool:
        """Whether the array computes ``source``."""
        return isinstance(self._nodes.get(source), ArrayOperator)

    def has_layers(self) -> bool:
        """Whether the array computes anything so far."""
        return any(self.is_layer(name) for name in self._nodes)

    def keep(self, source: str) -> str:
        """Someone outside needs this very tensor: what follows it is not folded into it."""
        self.tensor(source)
        self._kept.add(source)
        return source

    def build(self) -> Network:
        """The network, with normalisations and activations folded into the layers before them. Raises InputError."""
        try:
            return Network(name=self.name, title=self.title, nodes=fold(tuple(self._nodes.values()), self._foldable, self._kept),
                           weight_bits=self.weight_bits, activation_bits=self.activation_bits, remarks=tuple(self.remarks))
        except InputError as error:
            raise _moved(error, (error.where or "").replace(self.name, self.where, 1)) from None

    # -- inside -----------------------------------------------------------------------------------------------------------

    def _layer(self, kind: str, source: str, name: str | None, dimensions: dict[str, Any], options: dict[str, Any]) -> str:
        name = self._named(kind, name)
        batch, channels, height, width = self._shape4(source, name)
        for key in ("B", "C", "IY", "IX", "OY", "OX", "kind", "name"):
            if key in dimensions:
                raise InputError("follows from the input", where=self._at(name, key), value=dimensions[key], suggestion="leave it out")
        if "F" in dimensions:
            size = dimensions.pop("F")
            dimensions = {"FY": size, "FX": size, **dimensions}
        repeat = options["repeat"]
        if kind == "linear" and (height, width) != (1, 1):
            raise InputError("a linear layer reads (B, C, 1, 1)", where=self._at(name, "inputs"), value=self.tensor(source).shape,
                             suggestion="flatten it first")
        with self._errors(name):
            from_state = isinstance(self._nodes[source], InputOperator) and self._nodes[source].is_state  # type: ignore[union-attr]
            if isinstance(repeat, int) and repeat > 1 and not from_state:
                if batch % repeat:
                    raise InputError(f"{batch} inputs are not so many equal steps", where="repeat", value=repeat)
                batch //= repeat
            sizes = {"B": batch, "C": channels, **({"IY": height, "IX": width} if kind == "conv" else {})}
        layer = Layer.from_dict({"kind": kind, "name": name, **sizes, **dimensions}, where=self._at(name))
        weights = options["weights"]
        sources = (source,) if weights is None else (source, weights)
        operands = [self.tensor(read, name) for read in sources]
        widths = {"weight_bits": self.weight_bits, "activation_bits": self.tensor(source).bits, "output_bits": self.activation_bits}
        options = {**options, "folded": tuple(options["folded"]),
                   **{key: width for key, width in widths.items() if options[key] is None}}
        del options["weights"]
        with self._errors(name):
            node = ArrayOperator(layer=layer, inputs=sources, **options)
            check_edges(node, operands, "")
            return self._add(node)

    def _pool(self, op: str, source: str, name: str | None, ceil: bool, window: dict[str, int]) -> str:
        name = self._named(op, name)
        batch, channels, height, width = self._shape4(source, name)
        with self._errors(name):
            check_flag("ceil", ceil)
            looks = pooling_window(window)
            shape = (batch, channels, pooled("Y", height, looks, ceil), pooled("X", width, looks, ceil))
        return self.host(op, source, name=name, shape=shape, ops=prod(shape) * looks.FY * looks.FX, window=looks)

    def _elementwise(self, op: str, sources: Sequence[str], name: str | None) -> str:
        name = self._named(op, name)
        shapes = [self.tensor(source, name).shape for source in sources]
        if len(shapes) < 2:
            raise InputError(f"{op} takes two tensors or more", where=self._at(name, "inputs"), value=list(sources))
        ranks = {len(shape) for shape in shapes}
        shape = tuple(max(sizes) for sizes in zip(*shapes, strict=True)) if len(ranks) == 1 else ()
        if len(ranks) != 1 or any(size not in (1, most) for given in shapes for size, most in zip(given, shape, strict=True)):
            raise InputError("shapes do not agree", where=self._at(name), value=shapes, allowed="equal sizes, or 1")
        return self.host(op, *sources, name=name, shape=shape, ops=prod(shape) * (len(sources) - 1))

    def _per_element(self, op: str, source: str, name: str | None, *, bits: int | None = None, parameters: int = 0) -> str:
        name = self._named(op, name)
        ops = self.tensor(source, name).elements * OPS_PER_ELEMENT[op]
        self._foldable.add(self.host(op, source, name=name, bits=bits, ops=ops, parameters=parameters))
        return name

    def _shape4(self, source: str, reader: str) -> tuple[int, int, int, int]:
        shape = self.tensor(source, reader).shape
        if len(shape) != 4:
            raise InputError("reads a tensor (B, C, H, W)", where=self._at(reader, "inputs"), value=shape)
        return shape

    def _named(self, op: str, name: str | None) -> str:
        if name is not None:
            return name
        self._counts[op] += 1
        while f"{op}{self._counts[op]}" in self._nodes:
            self._counts[op] += 1
        return f"{op}{self._counts[op]}"

    def _add(self, node: Operator) -> str:
        check_name(node.name)
        if node.name in self._nodes:
            raise InputError("an earlier operator has this name", where="name", value=node.name)
        self._nodes[node.name] = node
        return node.name

    def _at(self, name: object, field: str = "") -> str:
        return f"{self.where}: {name}" + (f".{field}" if field else "")

    @contextmanager
    def _errors(self, name: object, place: str = "") -> Iterator[None]:
        """Errors name network and operator."""
        try:
            yield
        except InputError as error:
            raise _moved(error, self._at(name or place, error.where or "")) from None


def _moved(error: InputError, where: str) -> InputError:
    return InputError(error.what, where=where, allowed=error.allowed, suggestion=error.suggestion,
                      **({"value": error.value} if error.has_value else {}))
