"""The choices that a design has, and how text names an array and a precision."""

from __future__ import annotations

import re
from enum import StrEnum

from hdl.errors import InputError, nearest

ELEMENT_BITS = (1, 2, 4, 8, 16)
BUS_BITS = (16, 32, 64, 128, 256)


class Dataflow(StrEnum):
    """Which operand stays in the array while it is used."""

    OUTPUT_STATIONARY = "output_stationary"


class Multiplier(StrEnum):
    """What the array's products are made of: a DSP block each, one for the products of two neighbouring rows, or look-up tables."""

    DSP = "dsp"
    DSP_PAIR = "dsp_pair"
    LUT = "lut"


class Accumulate(StrEnum):
    """``tree``: the columns' products are summed into one accumulator a row and lane; ``per_column``: every column keeps
    its own sum and they are added on the way out."""

    TREE = "tree"
    PER_COLUMN = "per_column"


class OutputMultiplier(StrEnum):
    """The output stage's multiplier: one result a cycle in DSPs or LUTs, or shift-and-add with an interval of 10 cycles."""

    DSP = "dsp"
    LUT = "lut"
    SERIAL = "serial"


def parse_precision(text: str, *, where: str = "--precision") -> tuple[int, int]:
    """``"w8a4"`` -> (weight bits, activation bits)."""
    match = re.fullmatch(r"w([0-9]+)a([0-9]+)", text) if isinstance(text, str) else None
    bits = tuple(int(part) for part in match.groups()) if match else ()
    if len(bits) != 2 or any(b not in ELEMENT_BITS for b in bits):
        choices = [f"w{w}a{a}" for w in ELEMENT_BITS for a in ELEMENT_BITS]
        near = nearest(text, choices)
        raise InputError("not a precision", where=where, value=text, allowed="wNaM with N and M of 1, 2, 4, 8, 16",
                         suggestion=f"nearest: {near}" if near else "for example w8a8")
    return bits[0], bits[1]


def parse_array(text: str, *, where: str = "--array") -> tuple[int, int, int]:
    """``"4x4x1"`` -> (rows, cols, lanes)."""
    match = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})x([0-9]{1,4})", text) if isinstance(text, str) else None
    if not match:
        raise InputError("not an array", where=where, value=text, allowed="ROWSxCOLSxLANES",
                         suggestion="for example 4x4x1")
    rows, cols, lanes = (int(part) for part in match.groups())
    return rows, cols, lanes
