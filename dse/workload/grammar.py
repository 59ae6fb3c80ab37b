"""A layer written in place: ``conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1`` or ``linear K=1000 C=4096``."""

from __future__ import annotations

import re
from typing import Any

from hdl.errors import InputError
from hdl.layer import KINDS, LIMITS, SHORTHANDS, TEXT_KEYS, Layer, nearest_key

MAX_TEXT = 4096
MAX_DIGITS = 18  # any longer number is out of every range
EXAMPLE = "for example: conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1"


def parse_layer(text: str) -> Layer:
    """The layer that ``text`` describes: an operator, then ``KEY=VALUE`` words in any order.

    Keys: ``B K C OY OX FY FX IY IX SY SX DY DX PT PL PB PR G``, ``S D P`` for all sides, ``name``, and of the quantisation
    ``signed out_signed`` (0 or 1), ``zp out_zp`` (zero points), ``lo hi`` (clamp). ``conv`` needs ``K C FY FX`` and ``OY`` or
    ``IY``, ``OX`` or ``IX``; ``linear`` needs ``K C``.

    Raises
    ------
    InputError: the offending word, its range, and the nearest valid key or operator.
    """
    if not isinstance(text, str):
        raise InputError("must be text", where="layer", value=text, suggestion=EXAMPLE)
    if len(text) > MAX_TEXT:
        raise InputError(f"text of {len(text)} characters", where="layer", allowed=f"at most {MAX_TEXT}", suggestion=EXAMPLE)
    words = text.split()
    if not words:
        raise InputError("empty text", where="layer", value=text, suggestion=EXAMPLE)
    kind, *settings = words
    if kind not in KINDS:
        near = nearest_key(kind, KINDS)
        raise InputError("unknown operator", where="layer", value=kind, allowed=", ".join(KINDS),
                         suggestion=f"nearest: {near}" if near else EXAMPLE)
    data: dict[str, Any] = {"kind": kind}
    for word in settings:
        field, value = _setting(word)
        if field in data:
            raise InputError("given twice", where=f"layer.{word.partition('=')[0]}", value=word)
        data[field] = value
    return Layer.from_dict(data)


def _setting(word: str) -> tuple[str, Any]:
    """``"zp=-3"`` -> (``"input_zero_point"``, -3)."""
    key, equals, text = word.partition("=")
    if not equals:
        raise InputError("not a KEY=VALUE word", where="layer", value=word, suggestion=EXAMPLE)
    known = [*LIMITS, *SHORTHANDS, *TEXT_KEYS]
    if key not in known:
        near = nearest_key(key, known)
        raise InputError("unknown key", where="layer", value=key, allowed=", ".join(known),
                         suggestion=f"nearest: {near}" if near else None)
    if key == "name":
        return key, text
    if key in ("signed", "out_signed"):
        if text not in ("0", "1"):
            raise InputError("not a choice", where=f"layer.{key}", value=text, allowed="0, 1")
        return TEXT_KEYS[key], text == "1"
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise InputError("not a whole number", where=f"layer.{key}", value=text, allowed=_range(key))
    if len(text) > MAX_DIGITS:
        raise InputError("out of range", where=f"layer.{key}", value=text, allowed=_range(key))
    return TEXT_KEYS.get(key, key), int(text)


def _range(key: str) -> str | None:
    """The allowed values of a dimension; those of zero points and clamps depend on the precision."""
    dimension = SHORTHANDS[key][0] if key in SHORTHANDS else key
    return "{} to {}".format(*LIMITS[dimension]) if dimension in LIMITS else None
