"""Design options: their parsing, and errors in terms of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from boards.errors import InputError, nearest
from boards.schema import Board
from dse.schedule.search import Choice
from dse.simulate import choose
from dse.workload.interop.scalesim_config import ScaleSimConfig, load_config
from dse.workload.layer_file import load_design
from dse.workload.network import Network
from hdl.design import (
    BUS_BITS,
    MAX_ACCUMULATOR_BITS,
    MAX_ARRAY,
    MAX_COLS,
    MAX_MULTIPLIER_COLS,
    Accumulate,
    Design,
    Multiplier,
    OutputMultiplier,
    parse_array,
    parse_precision,
)
from hdl.layer import Layer

BUFFERS = ("input", "weight", "output", "psum")
UNITS = {"B": 1, "KiB": 1024, "MiB": 1 << 20}
MAX_BUFFER_BYTES = 1 << 26  # what ``Design`` takes
MAX_SEED = (1 << 32) - 1
BUFFERS_EXAMPLE = "for example: input=8KiB,weight=16KiB,output=2KiB,psum=4KiB"


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
    chaining: bool | None = None
    design: str | None = None
    scalesim_config: str | None = None

    def parse(self) -> ParsedOptions:
        """Raises InputError for a value that no design could have."""
        if self.design is not None:
            others = [f"--{field.name.replace('_', '-')}" for field in fields(self)
                      if field.name != "design" and getattr(self, field.name) is not None]
            if others:
                raise InputError(f"given together with {', '.join(others)}", where="--design", value=self.design,
                                 suggestion="change the file, or leave --design out")
            if not self.design:
                raise InputError("empty", where="--design", value=self.design, allowed="the path of a design's .yaml")
            return ParsedOptions(path=self.design, design=load_design(self.design))
        weight_bits, activation_bits = parse_precision("w8a8" if self.precision is None else self.precision)
        fixed = self._fixed(is_xnor=weight_bits == activation_bits == 1)
        config = self._scalesim_config()
        if config is not None:
            fixed |= config.design_options()
        return ParsedOptions(weight_bits=weight_bits, activation_bits=activation_bits, has_precision=self.precision is not None,
                             fixed=fixed, scalesim=config)

    def _scalesim_config(self) -> ScaleSimConfig | None:
        """The configuration that gives the array and the banks; nothing else may."""
        if self.scalesim_config is None:
            return None
        others = [option for option, value in (("--array", self.array), ("--buffers", self.buffers)) if value is not None]
        if others:
            raise InputError(f"given together with {', '.join(others)}", where="--scalesim-config", value=self.scalesim_config,
                             suggestion="the configuration has both an array and SRAM sizes")
        return load_config(self.scalesim_config)

    def _fixed(self, is_xnor: bool) -> dict[str, Any]:
        """The ``Design`` fields that are given."""
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
        if self.chaining:
            fixed["chaining"] = True
        return fixed


@dataclass(frozen=True, kw_only=True)
class ParsedOptions:
    """A whole design and the file it is from, or the ``Design`` fields that are fixed, some of them by a SCALE-Sim configuration.

    ``has_precision``: the bits are not the default.
    """

    path: str | None = None
    design: Design | None = None
    weight_bits: int = 8
    activation_bits: int = 8
    has_precision: bool = False
    fixed: dict[str, Any] | None = None
    scalesim: ScaleSimConfig | None = None

    def choose(self, layer: Layer, board: Board) -> Choice:
        """Design and mapping for ``layer``; see :func:`dse.simulate.choose`."""
        with self.errors_by_option():
            return choose(layer, board, weight_bits=self.weight_bits, activation_bits=self.activation_bits, design=self.design,
                          options=self.fixed)

    def choose_for_network(self, network: Network, board: Board) -> Design:
        """One design for all layers; see :func:`dse.simulate_network.choose_network_design`."""
        from dse.simulate_network import choose_network_design

        if self.design is not None:
            return self.design
        bits = (self.weight_bits, self.activation_bits) if self.has_precision else (None, None)
        return choose_network_design(network, board, weight_bits=bits[0], activation_bits=bits[1], options=self.fixed)

    @contextmanager
    def errors_by_option(self) -> Iterator[None]:
        """Errors about the design name the option or file that said so."""
        try:
            yield
        except InputError as error:
            raise moved(error, self.place(error.where or "")) from None

    def place(self, where: str) -> str:
        """How the user calls what an error calls ``where``: an option, or a field of the design file."""
        name = where.removeprefix("design.")
        if self.path is not None:
            return f"{self.path}: {where}" if where.startswith("design.") else self.path if where == "--design" else where
        if self.scalesim and (where == "--design" or name in self.scalesim.design_options()):
            return self.scalesim.path
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
        raise InputError(f"{kind}: {'unknown unit' if unit else 'a size without a unit'}", where=where, value=text,
                         allowed="B, KiB (1024 bytes), MiB", suggestion=_nearest_size(number, unit))
    least = 0 if kind == "psum" else 1
    if not re.fullmatch(r"[+-]?[0-9]+", number):
        raise InputError(f"{kind}: not a whole number", where=where, value=text, suggestion=BUFFERS_EXAMPLE)
    size = int(number) * UNITS[unit] if len(number) < 20 else MAX_BUFFER_BYTES + 1
    if not least <= size <= MAX_BUFFER_BYTES:
        raise InputError(f"{kind}: out of range", where=where, value=text, allowed=f"{least} B to {MAX_BUFFER_BYTES >> 20} MiB")
    return size


def _nearest_size(number: str, unit: str) -> str:
    """The size in a unit that there is, if it is in range."""
    near = nearest(unit, UNITS) or {"K": "KiB", "M": "MiB"}.get(unit[:1].upper(), "B")
    in_range = re.fullmatch("[0-9]{1,9}", number) and int(number) * UNITS[near] <= MAX_BUFFER_BYTES
    return f"nearest: {number}{near}" if in_range and unit[:1].upper() not in "GTP" or not unit else f"at most {MAX_BUFFER_BYTES >> 20}MiB"


def _array(text: str, is_xnor: bool) -> tuple[int, int, int]:
    array = parse_array(text)
    most = (MAX_ARRAY, MAX_COLS if is_xnor else MAX_MULTIPLIER_COLS, MAX_ARRAY)
    if any(not 1 <= size <= limit for size, limit in zip(array, most, strict=True)):
        raise InputError("out of range", where="--array", value=text, allowed=f"1x1x1 to {most[0]}x{most[1]}x{most[2]}")
    return array
