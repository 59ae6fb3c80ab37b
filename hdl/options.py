"""Checks of single options, each with one clear message."""

from __future__ import annotations

from enum import StrEnum

from hdl.errors import InputError, nearest


def enum_option(name: str, enum: type[StrEnum], value: object) -> StrEnum:
    try:
        return enum(str(value))
    except ValueError:
        near = nearest(value, list(enum))
        raise InputError("not a choice", where=f"design.{name}", value=value, allowed=", ".join(enum),
                         suggestion=f"nearest: {near}" if near else None) from None


def integer_option(name: str, value: object, low: int, high: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not low <= value <= high:  # type: ignore[operator]
        raise InputError("out of range" if whole else "must be a whole number",
                         where=f"design.{name}", value=value, allowed=f"{low} to {high}")


def choice_option(name: str, value: object, choices: tuple[int, ...]) -> None:
    if isinstance(value, bool) or value not in choices:
        ints = [c for c in choices if isinstance(value, int | float)]
        near = min(ints, key=lambda c: abs(c - value)) if ints else None  # type: ignore[operator]
        raise InputError("not a choice", where=f"design.{name}", value=value, allowed=", ".join(map(str, choices)),
                         suggestion=f"nearest: {near}" if near else None)
