"""Axes of a space: what each design option may be, and how a file writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dse.schedule.banks import BANKS
from dse.sweep.expression import Env, Expression
from hdl.design import (
    BUS_BITS,
    MAX_ACCUMULATOR_BITS,
    MAX_ARRAY,
    MAX_BANK_DEPTH,
    MAX_COLS,
    MAX_DISTRIBUTED_DEPTH,
    Accumulate,
    Multiplier,
    OutputMultiplier,
    parse_precision,
)
from hdl.errors import InputError, nearest

MAX_VALUES = 10_000
MAX_BANK_BYTES = 1 << 26  # what ``Design`` takes
SIZE_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
FORMS = "a value, a list, {range: [low, high, step]}, {powers_of_two: [low, high]} or an expression"

CHOICES: dict[str, tuple[str, ...]] = {"multiplier": tuple(Multiplier), "accumulate": tuple(Accumulate),
                                       "output_multiplier": tuple(OutputMultiplier)}
RANGES: dict[str, tuple[float, float]] = {
    "rows": (1, MAX_ARRAY), "cols": (1, MAX_COLS), "lanes": (1, MAX_ARRAY), "accumulator_bits": (8, MAX_ACCUMULATOR_BITS),
    "drains": (1, 4096), "distributed_depth": (0, MAX_DISTRIBUTED_DEPTH), "bus_bits": (BUS_BITS[0], BUS_BITS[-1]), "clock_mhz": (1, 1000),
    **{f"{kind}_bytes": (0 if kind == "psum" else 1, MAX_BANK_BYTES) for kind in BANKS},
    **{f"{kind}_depth": (0 if kind == "psum" else 1, MAX_BANK_DEPTH) for kind in BANKS}}
ARRAY_AXES = ("rows", "cols", "lanes", "precision", "accumulator_bits", "multiplier", "accumulate", "drains", "output_multiplier",
              "distributed_depth", "chaining", "bus_bits", "clock_mhz")
"""In the order of the enumeration: the last varies fastest, so that points which share layer searches are neighbours."""
BANK_AXES = tuple(f"{kind}_{unit}" for kind in BANKS for unit in ("bytes", "depth"))
AXES = (*ARRAY_AXES, *BANK_AXES)

Value = int | float | str


@dataclass(frozen=True)
class Axis:
    """The values of one design option, some of them perhaps computed from other axes. ``written``: as the file has it."""

    name: str
    terms: tuple[Value | Expression, ...]
    written: Any

    @property
    def names(self) -> frozenset[str]:
        """What its expressions need to know."""
        return frozenset().union(*(term.names for term in self.terms if isinstance(term, Expression)))

    def values(self, env: Env) -> list[Any]:
        """Distinct values where the other axes are ``env``, in the order written."""
        return list(dict.fromkeys(term.evaluate(env) if isinstance(term, Expression) else term for term in self.terms))


def parse_axis(name: str, written: Any, *, where: str) -> Axis:
    """``written`` as YAML gives it. Raises InputError at ``where`` (a file and the axis) for anything that is no value of ``name``."""
    if isinstance(written, Mapping):
        return Axis(name, tuple(_generated(name, written, where)), dict(written))
    entries = written if isinstance(written, list | tuple) else [written]
    if not entries:
        raise InputError("an axis without values", where=where, allowed=FORMS)
    _check_count(len(entries), where)
    places = [f"{where}[{at}]" for at in range(len(entries))] if entries is written else [where]
    terms = tuple(_term(name, entry, place) for entry, place in zip(entries, places, strict=True))
    return Axis(name, terms, list(written) if entries is written else written)


def parse_size(text: str, *, where: str) -> int | None:
    """``"8KiB"`` -> 8192, or ``None`` when the text is not a number with a unit."""
    match = re.fullmatch(r"([0-9]{1,12}) ?([A-Za-z]+)", text.strip())
    if not match:
        return None
    number, unit = match.groups()
    if unit not in SIZE_UNITS:
        near = nearest(unit, SIZE_UNITS) or {"K": "KiB", "M": "MiB"}.get(unit[0].upper(), "B")
        raise InputError("unknown unit", where=where, value=text, allowed="B, KiB (1024 bytes), MiB", suggestion=f"nearest: {number}{near}")
    return int(number) * SIZE_UNITS[unit]


def _term(name: str, entry: Any, where: str) -> Value | Expression:
    if name == "precision":
        parse_precision(entry, where=where)
        return str(entry)
    if name in CHOICES:
        if entry not in CHOICES[name]:
            near = nearest(str(entry).lower(), CHOICES[name])
            raise InputError("not a choice", where=where, value=entry, allowed=", ".join(CHOICES[name]),
                             suggestion=f"nearest: {near}" if near else None)
        return str(entry)
    if name == "chaining" and not isinstance(entry, str):
        if not isinstance(entry, bool):
            raise InputError("must be true or false", where=where, value=entry)
        return entry
    if isinstance(entry, str) and (not name.endswith("_bytes") or parse_size(entry, where=where) is None):
        return Expression(entry, where=where)
    return _number(name, entry, where)


def _number(name: str, entry: Any, where: str) -> int | float:
    """A literal within the axis' range."""
    if isinstance(entry, str) and name.endswith("_bytes"):
        entry = parse_size(entry, where=where) or entry
    fractional = name == "clock_mhz"
    low, high = RANGES[name]
    if isinstance(entry, bool) or not isinstance(entry, int | float if fractional else int):
        what = "must be a number" if fractional else "must be a whole number" + (" of bytes" if name.endswith("_bytes") else "")
        raise InputError(what, where=where, value=entry, allowed=FORMS)
    if name == "bus_bits" and entry not in BUS_BITS:
        near = min(BUS_BITS, key=lambda bits: abs(bits - entry))
        raise InputError("not a bus width", where=where, value=entry, allowed=", ".join(map(str, BUS_BITS)), suggestion=f"nearest: {near}")
    if not low <= entry <= high:  # true for nan too
        raise InputError("out of range", where=where, value=entry, allowed=f"{low} to {high}")
    return float(entry) if fractional else int(entry)


def _generated(name: str, written: Mapping[str, Any], where: str) -> list[int | float]:
    """The values of ``{range: ...}`` or ``{powers_of_two: ...}``, both ends included."""
    if list(written) not in (["range"], ["powers_of_two"]):
        key = next((key for key in written if key not in ("range", "powers_of_two")), None)
        near = nearest(key, ("range", "powers_of_two")) if key is not None else None
        raise InputError("unknown key" if key is not None else "must have one key", where=where, value=key or dict(written),
                         allowed="range or powers_of_two", suggestion=f"nearest: {near}" if near else None)
    if name in ("precision", "chaining") or name in CHOICES:
        raise InputError("has no order", where=where, value=dict(written), allowed="a choice, or a list of some")
    form, bounds = next(iter(written.items()))
    place = f"{where}.{form}"
    lengths, example = ((2, 3), "[low, high] or [low, high, step]") if form == "range" else ((2,), "[low, high]")
    if not isinstance(bounds, list | tuple) or len(bounds) not in lengths:
        raise InputError("must be a list of two" + (" or three" if form == "range" else ""), where=place, value=bounds, allowed=example)
    low, high = (_number(name, bound, f"{place}[{at}]") for at, bound in enumerate(bounds[:2]))
    if low > high:
        raise InputError("low is above high", where=place, value=list(bounds))
    if form == "powers_of_two":
        return _powers_of_two(low, high, place)
    step = _step(name, bounds[2] if len(bounds) == 3 else 1, f"{place}[2]")
    # Exact decimals: 0.1 + 0.2 is 0.3.
    start, span = Fraction(str(low)), Fraction(str(high)) - Fraction(str(low))
    count = int(span / step) + 1
    _check_count(count, place)
    values = [start + at * step for at in range(count)]
    if name == "bus_bits":
        return [int(value) for value in values if value in BUS_BITS]
    return [float(value) if name == "clock_mhz" else int(value) for value in values]


def _powers_of_two(low: int | float, high: int | float, where: str) -> list[int | float]:
    for at, bound in enumerate((low, high)):
        if bound < 1 or bound != int(bound) or int(bound) & (int(bound) - 1):
            power = max(1, 1 << (max(1, int(bound)) - 1).bit_length())
            raise InputError("not a power of two", where=f"{where}[{at}]", value=bound, suggestion=f"the next is {power}")
    kind = type(low)
    return [kind(1 << exponent) for exponent in range(int(low).bit_length() - 1, int(high).bit_length())]


def _step(name: str, entry: Any, where: str) -> Fraction:
    if isinstance(entry, str) and name.endswith("_bytes"):
        entry = parse_size(entry, where=where) or entry
    right = isinstance(entry, int | float if name == "clock_mhz" else int) and not isinstance(entry, bool)
    if not right or not 0 < entry < MAX_BANK_BYTES:
        raise InputError("not a step", where=where, value=entry, allowed="a number above 0")
    return Fraction(str(entry))


def _check_count(count: int, where: str) -> None:
    if count > MAX_VALUES:
        raise InputError(f"{count} values", where=where, allowed=f"at most {MAX_VALUES} on an axis")
