"""The design options that commands share: their declarations, their parsing, and errors in terms of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boards.errors import InputError, nearest

if TYPE_CHECKING:
    from boards.schema import Board
    from dse.schedule.search import Choice
    from hdl.design import Design
    from hdl.layer import Layer

BUFFERS = ("input", "weight", "output", "psum")
UNITS = {"B": 1, "KiB": 1024, "MiB": 1 << 20}
MAX_BUFFER_BYTES = 1 << 26  # what ``Design`` takes
MAX_SEED = (1 << 32) - 1
BUFFERS_EXAMPLE = "for example: input=8KiB,weight=16KiB,output=2KiB,psum=4KiB"

Workload = Annotated[str, typer.Argument(metavar="WORKLOAD", show_default=False, help=(
    'A layer in place, such as "conv K=16 C=8 OY=14 OX=14 FY=3 FX=3 P=1" or "linear K=10 C=64", or the path of a layer .yaml.'))]
BoardName = Annotated[str, typer.Option("--board", metavar="NAME", help="A board of `nearmac boards`, or the path of your own .yaml.",
                                        show_default=False)]
LayerName = Annotated[str | None, typer.Option("--layer", metavar="NAME", help="The layer of the workload.", show_default=False)]
Array = Annotated[str | None, typer.Option("--array", metavar="ROWSxCOLSxLANES", show_default=False, help=(
    "Output channels x input channels x bands of output rows computed in parallel."))]
Precision = Annotated[str | None, typer.Option("--precision", metavar="wNaM", help=(
    "Weight and activation bits, each 1, 2, 4, 8 or 16. Default: w8a8."), show_default=False)]
Buffers = Annotated[str | None, typer.Option("--buffers", metavar="KIND=SIZE,..", show_default=False, help=(
    "Total bytes of the input, weight, output and psum banks: input=8KiB,weight=16KiB; psum=0B leaves those out."))]
MultiplierName = Annotated[str | None, typer.Option("--multiplier", metavar="dsp|lut", help="What the array's products are made of.",
                                                    show_default=False)]
AccumulateName = Annotated[str | None, typer.Option("--accumulate", metavar="tree|per_column", show_default=False, help=(
    "Sum the columns' products at once, or keep a sum in every column."))]
Drains = Annotated[int | None, typer.Option("--drains", metavar="N", help="Parallel result paths.", show_default=False)]
OutputMultiplierName = Annotated[str | None, typer.Option("--output-multiplier", metavar="dsp|lut|serial", show_default=False, help=(
    "Multiplier of the output stage; serial takes 18 cycles a result."))]
AccumulatorBits = Annotated[int | None, typer.Option("--accumulator-bits", metavar="N", show_default=False, help=(
    "Accumulator width, 8 to 48. Default: what the layer needs."))]
ClockMHz = Annotated[float | None, typer.Option("--clock-mhz", metavar="F", help="Core clock. Default: the board's.",
                                                show_default=False)]
BusBits = Annotated[int | None, typer.Option("--bus-bits", metavar="N", show_default=False, help=(
    "External memory channel: 16, 32, 64, 128 or 256. Default: the narrowest that takes all the memory offers."))]
DesignFile = Annotated[str | None, typer.Option("--design", metavar="FILE", help=(
    "A whole design from a .yaml, instead of the options above."), show_default=False)]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the random tensors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """Design options as they were typed; ``None`` is to be chosen. Field ``x_y`` is the option ``--x-y``."""

    array: str | None = None
    precision: str | None = None
    buffers: str | None = None
    multiplier: str | None = None
    accumulate: str | None = None
    drains: int | None = None
    output_multiplier: str | None = None
    accumulator_bits: int | None = None
    clock_mhz: float | None = None
    bus_bits: int | None = None
    design: str | None = None

    def parse(self) -> ParsedOptions:
        """Raises InputError for a value that no design could have."""
        from dse.workload.layer_file import load_design

        if self.design is not None:
            others = [f"--{field.name.replace('_', '-')}" for field in fields(self)
                      if field.name != "design" and getattr(self, field.name) is not None]
            if others:
                raise InputError(f"given together with {', '.join(others)}", where="--design", value=self.design,
                                 suggestion="change the file, or leave --design out")
            return ParsedOptions(path=self.design, design=load_design(self.design))
        from hdl.design import parse_precision

        weight_bits, activation_bits = parse_precision("w8a8" if self.precision is None else self.precision)
        return ParsedOptions(weight_bits=weight_bits, activation_bits=activation_bits,
                             fixed=self._fixed(is_xnor=weight_bits == activation_bits == 1))

    def _fixed(self, is_xnor: bool) -> dict[str, Any]:
        """The ``Design`` fields that are given."""
        from hdl.design import BUS_BITS, MAX_ACCUMULATOR_BITS, Accumulate, Multiplier, OutputMultiplier

        fixed: dict[str, Any] = {}
        if self.array is not None:
            fixed |= dict(zip(("rows", "cols", "lanes"), _array(self.array, is_xnor), strict=True))
        if self.buffers is not None:
            fixed |= {f"{kind}_bytes": size for kind, size in parse_buffers(self.buffers).items()}
        for name, enum in (("multiplier", Multiplier), ("accumulate", Accumulate), ("output_multiplier", OutputMultiplier)):
            if getattr(self, name) is not None:
                fixed[name] = enum(one_of(getattr(self, name), tuple(enum), where=option_of(name)))
        for name, low, high in (("drains", 1, 4096), ("accumulator_bits", 8, MAX_ACCUMULATOR_BITS), ("clock_mhz", 1, 1000)):
            value = getattr(self, name)
            if value is not None:
                if not low <= value <= high:  # true for nan too
                    raise InputError("out of range", where=option_of(name), value=value, allowed=f"{low} to {high}")
                fixed[name] = value
        if self.bus_bits is not None:
            if self.bus_bits not in BUS_BITS:
                near = min(BUS_BITS, key=lambda bits: abs(bits - (self.bus_bits or 0)))
                raise InputError("not a bus width", where="--bus-bits", value=self.bus_bits, allowed=", ".join(map(str, BUS_BITS)),
                                 suggestion=f"nearest: {near}")
            fixed["bus_bits"] = self.bus_bits
        return fixed


@dataclass(frozen=True, kw_only=True)
class ParsedOptions:
    """A whole design and the file it is from, or the ``Design`` fields that are fixed."""

    path: str | None = None
    design: Design | None = None
    weight_bits: int = 8
    activation_bits: int = 8
    fixed: dict[str, Any] | None = None

    def choose(self, layer: Layer, board: Board) -> Choice:
        """Design and mapping for ``layer``; see :func:`dse.simulate.choose`."""
        from dse.simulate import choose

        with self.errors_by_option():
            return choose(layer, board, weight_bits=self.weight_bits, activation_bits=self.activation_bits, design=self.design,
                          options=self.fixed)

    @contextmanager
    def errors_by_option(self) -> Iterator[None]:
        """Errors about the design name the option or file that said so."""
        try:
            yield
        except InputError as error:
            raise moved(error, self._where(error.where or "")) from None

    def _where(self, where: str) -> str:
        name = where.removeprefix("design.")
        if self.path is not None:
            return f"{self.path}: {where}" if where.startswith("design.") else self.path if where == "--design" else where
        if where == "--design":
            return "--array" if "rows" in (self.fixed or {}) else "--board"
        return option_of(name) if name in (self.fixed or {}) or name.endswith("_bits") and name in OPTIONS else where


OPTIONS = {"rows": "--array", "cols": "--array", "lanes": "--array", "weight_bits": "--precision", "activation_bits": "--precision",
           **{f"{kind}_bytes": "--buffers" for kind in BUFFERS}}


def option_of(field: str) -> str:
    """The option that sets a field of ``Design``."""
    return OPTIONS.get(field, f"--{field.replace('_', '-')}")


def moved(error: InputError, where: str) -> InputError:
    """The same error, about ``where``."""
    value = {"value": error.value} if error.has_value else {}
    return InputError(error.what, where=where, allowed=error.allowed, suggestion=error.suggestion, **value)


def one_of(text: str, choices: tuple[str, ...], *, where: str) -> str:
    """``text``, when it is a choice."""
    if text not in choices:
        near = nearest(text.lower(), choices)
        raise InputError("not a choice", where=where, value=text, allowed=", ".join(choices),
                         suggestion=f"nearest: {near}" if near else None)
    return text


def check_seed(seed: int | None, *, where: str = "--seed") -> None:
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise InputError("out of range", where=where, value=seed, allowed=f"0 to {MAX_SEED}")


def parse_buffers(text: str, *, where: str = "--buffers") -> dict[str, int]:
    """``"input=8KiB,psum=0B"`` -> bytes by kind. Units are B, KiB (1024 bytes) and MiB."""
    sizes: dict[str, int] = {}
    for word in text.split(","):
        kind, equals, size = word.strip().partition("=")
        if not equals:
            raise InputError("not a KIND=SIZE word", where=where, value=word, suggestion=BUFFERS_EXAMPLE)
        one_of(kind, BUFFERS, where=where)
        if kind in sizes:
            raise InputError(f"{kind} is given twice", where=where, value=text)
        sizes[kind] = _size(size, kind, where)
    return sizes


def _size(text: str, kind: str, where: str) -> int:
    match = re.fullmatch(r"([+-]?[0-9][0-9.]*) ?([A-Za-z]*)", text)
    if not match:
        raise InputError(f"{kind}: not a size", where=where, value=text, allowed="a whole number of B, KiB or MiB",
                         suggestion=BUFFERS_EXAMPLE)
    number, unit = match.groups()
    if unit not in UNITS:
        near = nearest(unit, UNITS) or {"K": "KiB", "M": "MiB"}.get(unit[:1].upper(), "B")
        raise InputError(f"{kind}: {'unknown unit' if unit else 'a size without a unit'}", where=where, value=text,
                         allowed="B, KiB (1024 bytes), MiB", suggestion=f"nearest: {number}{near}")
    least = 0 if kind == "psum" else 1
    if not re.fullmatch(r"[+-]?[0-9]+", number):
        raise InputError(f"{kind}: not a whole number", where=where, value=text, suggestion=BUFFERS_EXAMPLE)
    size = int(number) * UNITS[unit] if len(number) < 20 else MAX_BUFFER_BYTES + 1
    if not least <= size <= MAX_BUFFER_BYTES:
        raise InputError(f"{kind}: out of range", where=where, value=text, allowed=f"{least} B to {MAX_BUFFER_BYTES >> 20} MiB")
    return size


def _array(text: str, is_xnor: bool) -> tuple[int, int, int]:
    from hdl.design import MAX_ARRAY, MAX_COLS, MAX_MULTIPLIER_COLS, parse_array

    array = parse_array(text)
    most = (MAX_ARRAY, MAX_COLS if is_xnor else MAX_MULTIPLIER_COLS, MAX_ARRAY)
    if any(not 1 <= size <= limit for size, limit in zip(array, most, strict=True)):
        raise InputError("out of range", where="--array", value=text, allowed=f"1x1x1 to {most[0]}x{most[1]}x{most[2]}")
    return array
