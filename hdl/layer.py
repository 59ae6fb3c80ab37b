"""One layer of a network: loop dimensions, geometry and quantisation, frozen and validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from hdl.errors import InputError, nearest

KINDS = ("conv", "linear")
MAX_KERNEL = 64  # filter loop counters have 6 bits
MAX_STRIDE = 64  # strides and dilations: the same 6 bits, as value - 1
MAX_PAD = 63
MAX_EXTENT = 4095  # heights, widths and batches count in 12 bits
MAX_CHANNELS = 65536  # channel counters have 16 bits, as value - 1
MAX_MACS = (1 << 50) - 1  # a 48-bit cycle counter holds it on any array of 4 MACs a cycle; a month at 100 MHz
MAX_NAME = 200

LIMITS: dict[str, tuple[int, int]] = {
    "B": (1, MAX_EXTENT), "K": (1, MAX_CHANNELS), "C": (1, MAX_CHANNELS),
    "OY": (1, MAX_EXTENT), "OX": (1, MAX_EXTENT), "FY": (1, MAX_KERNEL), "FX": (1, MAX_KERNEL),
    "IY": (1, MAX_EXTENT), "IX": (1, MAX_EXTENT), "SY": (1, MAX_STRIDE), "SX": (1, MAX_STRIDE),
    "DY": (1, MAX_STRIDE), "DX": (1, MAX_STRIDE), "PT": (0, MAX_PAD), "PL": (0, MAX_PAD),
    "PB": (0, MAX_PAD), "PR": (0, MAX_PAD), "G": (1, MAX_CHANNELS)}
SHORTHANDS = {"S": ("SY", "SX"), "D": ("DY", "DX"), "P": ("PT", "PL", "PB", "PR")}
# How the quantisation fields are called where a layer is written in place.
TEXT_KEYS = {"name": "name", "signed": "activations_signed", "out_signed": "outputs_signed", "zp": "input_zero_point",
             "out_zp": "output_zero_point", "lo": "lo", "hi": "hi"}
QUANTISED_RANGE = (-(1 << 15), (1 << 16) - 1)  # of 16-bit elements, signed or not; ``check_layer`` knows the real type


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A convolution or a linear layer.

    The dataclass constructor takes every dimension as it is and checks that they agree; :meth:`conv`, :meth:`linear` and
    :meth:`from_dict` also derive ``OY OX`` from ``IY IX`` or the other way round.

    Parameters
    ----------
    name: printable, without spaces, up to 200 characters.
    kind: ``conv`` or ``linear`` (every spatial dimension 1, no pads).
    B, K, C, G: batch 1..4095; output channels, input channels 1..65536; groups, which divide K and C.
    OY, OX, IY, IX: output and input height and width, 1..4095; ``OY = (IY + PT + PB - ((FY-1)*DY + 1)) // SY + 1``.
    FY, FX, SY, SX, DY, DX: filter, stride, dilation, 1..64.
    PT, PL, PB, PR: pads top, left, bottom, right, 0..63.
    activations_signed, outputs_signed: two's complement or unsigned elements; without effect on 1-bit elements.
    input_zero_point, output_zero_point: the integer that stands for 0.
    lo, hi: clamp of the outputs; ``None`` is the end of the output type's range.

    Raises
    ------
    InputError: names the field (``layer.K``), its value and its range.
    """

    name: str = "layer"
    kind: str = "conv"
    B: int = 1
    K: int = 1
    C: int = 1
    OY: int = 1
    OX: int = 1
    FY: int = 1
    FX: int = 1
    IY: int = 1
    IX: int = 1
    SY: int = 1
    SX: int = 1
    DY: int = 1
    DX: int = 1
    PT: int = 0
    PL: int = 0
    PB: int = 0
    PR: int = 0
    G: int = 1
    activations_signed: bool = True
    outputs_signed: bool = True
    input_zero_point: int = 0
    output_zero_point: int = 0
    lo: int | None = None
    hi: int | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_kind(self.kind)
        for dimension in LIMITS:
            _check_dimension(dimension, getattr(self, dimension))
        if self.kind == "linear":
            self._check_linear()
        for axis in "YX":
            _check_axis(axis, {dimension: getattr(self, dimension) for dimension in LIMITS})
        for channels in ("K", "C"):
            if getattr(self, channels) % self.G:
                raise InputError(f"must divide K={self.K} and C={self.C}", where="layer.G", value=self.G,
                                 suggestion=f"{channels} leaves {getattr(self, channels) % self.G}")
        if self.macs > MAX_MACS:
            raise InputError("layer too large", where="layer", value=f"{self.macs} MACs", allowed="under 2**50 MACs")
        self._check_quantisation()

    # -- what it costs ------------------------------------------------------------------------------------------------

    @property
    def macs(self) -> int:
        """Multiply-accumulates, padded taps included."""
        return self.K * self.reduction_length * self.OY * self.OX * self.B

    @property
    def reduction_length(self) -> int:
        """Products that are summed into one output."""
        return (self.C // self.G) * self.FY * self.FX

    @property
    def weights(self) -> int:
        """Elements of the weight tensor (K, C/G, FY, FX)."""
        return self.K * self.reduction_length

    @property
    def inputs(self) -> int:
        """Elements of the input tensor (B, C, IY, IX), without padding."""
        return self.B * self.C * self.IY * self.IX

    @property
    def outputs(self) -> int:
        """Elements of the output tensor (B, K, OY, OX)."""
        return self.B * self.K * self.OY * self.OX

    @property
    def effective_fy(self) -> int:
        """Height that the dilated filter covers."""
        return (self.FY - 1) * self.DY + 1

    @property
    def effective_fx(self) -> int:
        """Width that the dilated filter covers."""
        return (self.FX - 1) * self.DX + 1

    @property
    def pads(self) -> tuple[int, int, int, int]:
        """Top, left, bottom, right."""
        return self.PT, self.PL, self.PB, self.PR

    # -- construction -------------------------------------------------------------------------------------------------

    @classmethod
    def conv(cls, **values: Any) -> Layer:
        """A convolution from ``K C FY FX`` and ``OY`` or ``IY``, ``OX`` or ``IX``; also takes ``S P D`` for all sides."""
        return cls.from_dict({"kind": "conv", **values})

    @classmethod
    def linear(cls, **values: Any) -> Layer:
        """A linear layer from ``K`` and ``C``."""
        return cls.from_dict({"kind": "linear", **values})

    def to_dict(self) -> dict[str, Any]:
        """Every field, as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "layer") -> Layer:
        """Inverse of :meth:`to_dict` that also derives outputs from inputs, or inputs from outputs.

        ``where`` is how errors call this layer. Unknown, missing and contradictory keys are refused by name.
        """
        if not isinstance(data, Mapping):
            raise InputError("must be a mapping of layer dimensions", where=where, value=data)
        try:
            return cls(**_complete(dict(data)))
        except InputError as error:
            location = where + (error.where or "layer").removeprefix("layer")
            raise InputError(error.what, where=location, allowed=error.allowed, suggestion=error.suggestion,
                             **({"value": error.value} if error.has_value else {})) from None

    def __str__(self) -> str:
        """The layer in the in-place grammar, ``conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 P=1``; parses back to an equal layer."""
        words = [self.kind, f"K={self.K}", f"C={self.C}"]
        if self.kind == "conv":
            # Outputs name the layer unless floor dropped input rows or columns: then only inputs do.
            exact = all(_implied_input(axis, asdict(self)) == getattr(self, f"I{axis}") for axis in "YX")
            sizes = ("OY", "OX") if exact else ("IY", "IX")
            words += [f"{size}={getattr(self, size)}" for size in (*sizes, "FY", "FX")]
            for short, long in SHORTHANDS.items():
                default = LIMITS[long[0]][0]
                values = {dimension: getattr(self, dimension) for dimension in long}
                if len(set(values.values())) == 1:
                    values = {short: values[long[0]]}
                words += [f"{dimension}={value}" for dimension, value in values.items() if value != default]
        words += [f"{dimension}={getattr(self, dimension)}" for dimension in ("G", "B") if getattr(self, dimension) != 1]
        defaults = {field.name: field.default for field in fields(self)}
        for key, field in TEXT_KEYS.items():
            value = getattr(self, field)
            if value != defaults[field]:
                words.append(f"{key}={int(value) if isinstance(value, bool) else value}")
        return " ".join(words)

    # -- checks -------------------------------------------------------------------------------------------------------

    def _check_linear(self) -> None:
        for dimension, (least, _) in LIMITS.items():
            if dimension not in ("B", "K", "C", "G") and getattr(self, dimension) != least:
                raise InputError("a linear layer has no extent, stride, dilation or padding", where=f"layer.{dimension}",
                                 value=getattr(self, dimension), allowed=str(least), suggestion="use conv")

    def _check_quantisation(self) -> None:
        for name in ("activations_signed", "outputs_signed"):
            if not isinstance(getattr(self, name), bool):
                raise InputError("must be true or false", where=f"layer.{name}", value=getattr(self, name))
        for name in ("input_zero_point", "output_zero_point", "lo", "hi"):
            value = getattr(self, name)
            if value is not None or name.endswith("zero_point"):
                _check_integer(name, value, *QUANTISED_RANGE)
        if self.lo is not None and self.hi is not None and self.lo > self.hi:
            raise InputError(f"above hi={self.hi}", where="layer.lo", value=self.lo, allowed=f"at most {self.hi}")


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise InputError("must be a string", where="layer.name", value=name)
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or " " in name:
        raise InputError("not a layer name", where="layer.name", value=name,
                         allowed=f"1 to {MAX_NAME} printable characters without spaces")


def _check_kind(kind: object) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        near = nearest_key(kind, KINDS)
        raise InputError("not a kind of layer", where="layer.kind", value=kind, allowed=", ".join(KINDS),
                         suggestion=f"nearest: {near}" if near else None)


def _check_integer(name: str, value: object, low: int, high: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not low <= value <= high:  # type: ignore[operator]
        raise InputError("out of range" if whole else "must be a whole number", where=f"layer.{name}", value=value,
                         allowed=f"{low} to {high}")


def _check_dimension(name: str, value: object) -> None:
    _check_integer(name, value, *LIMITS[name])


def _axis(axis: str, dims: Mapping[str, Any]) -> tuple[int, int, int, tuple[str, str]]:
    """Effective filter size, stride, total padding and the names of the two pads of axis ``Y`` or ``X``."""
    pads = ("PT", "PB") if axis == "Y" else ("PL", "PR")
    effective = (dims[f"F{axis}"] - 1) * dims[f"D{axis}"] + 1
    return effective, dims[f"S{axis}"], dims[pads[0]] + dims[pads[1]], pads


def _implied_output(axis: str, dims: Mapping[str, Any]) -> int:
    effective, stride, padding, _ = _axis(axis, dims)
    padded = dims[f"I{axis}"] + padding
    if padded < effective:
        raise InputError(f"filter covers {effective}, more than the padded input of {padded}", where=f"layer.F{axis}",
                         value=dims[f"F{axis}"], suggestion=f"use a larger I{axis}, more padding or less dilation")
    return (padded - effective) // stride + 1


def _implied_input(axis: str, dims: Mapping[str, Any]) -> int:
    effective, stride, padding, _ = _axis(axis, dims)
    return (dims[f"O{axis}"] - 1) * stride + effective - padding


def _check_axis(axis: str, dims: Mapping[str, Any]) -> None:
    effective, stride, padding, _ = _axis(axis, dims)
    computed = _implied_output(axis, dims)
    if computed != dims[f"O{axis}"]:
        formula = f"(I{axis}={dims[f'I{axis}']} + pads {padding} - filter {effective}) // stride {stride} + 1 = {computed}"
        raise InputError(f"does not agree with {formula}", where=f"layer.O{axis}", value=dims[f"O{axis}"],
                         allowed=str(computed), suggestion=f"give one of O{axis} and I{axis}")


def _complete(data: dict[Any, Any]) -> dict[str, Any]:
    """Constructor arguments from user keys: shorthands expanded, missing sizes derived."""
    known = [field.name for field in fields(Layer)] + list(SHORTHANDS)
    for key in data:
        if key not in known:
            near = TEXT_KEYS.get(key) or nearest_key(key, known)  # the in-place grammar has shorter names
            raise InputError("unknown key", where="layer", value=key, allowed=", ".join(known),
                             suggestion=f"nearest: {near}" if near else None)
    for short, long in SHORTHANDS.items():
        if short in data:
            for dimension in long:
                if dimension in data:
                    raise InputError(f"given together with {dimension}", where=f"layer.{short}", value=data[short],
                                     suggestion=f"give {short} or {' '.join(long)}")
            low, high = LIMITS[long[0]]
            _check_integer(short, data[short], low, high)
            value = data.pop(short)
            data |= dict.fromkeys(long, value)
    for dimension in LIMITS:
        if dimension in data:
            _check_dimension(dimension, data[dimension])
    kind = data.get("kind", "conv")
    _check_kind(kind)
    for dimension in ("K", "C") if kind == "linear" else ("K", "C", "FY", "FX"):
        if dimension not in data:
            needs = "K and C" if kind == "linear" else "K, C, FY, FX, and OY OX or IY IX"
            raise InputError("missing", where=f"layer.{dimension}", suggestion=f"{kind} needs {needs}")
    if kind == "conv":
        for axis in "YX":
            _derive(axis, data)
    return data


def _derive(axis: str, data: dict[str, Any]) -> None:
    """Add the missing one of output and input size."""
    output, given = f"O{axis}", f"I{axis}"
    dims = {dimension: low for dimension, (low, _) in LIMITS.items()} | data
    if given in data:
        data.setdefault(output, _implied_output(axis, dims))
    elif output in data:
        size = _implied_input(axis, dims)
        if not 1 <= size <= MAX_EXTENT:
            raise InputError(f"implies an input size {given}={size} out of range", where=f"layer.{output}", value=data[output],
                             allowed=f"{given} of 1 to {MAX_EXTENT}")
        data[given] = size
    else:
        raise InputError(f"missing, and so is {given}", where=f"layer.{output}", suggestion=f"give {output} or {given}")


def nearest_key(key: object, known: Sequence[str]) -> str | None:
    """The known key that differs in case only, or else is spelled most like ``key``."""
    same = [name for name in known if name.lower() == str(key).lower()]
    return same[0] if same else nearest(key, known)
