"""Dataclasses of figures from the mappings of YAML files, and back: no checks here (:mod:`boards.validation` has them), so that the
built-in files, which the tests check, load quickly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from boards.figures import Figure

D = TypeVar("D")
Convert = Callable[[Any], Any]


def from_mapping(kind: type[D], data: dict[str, Any]) -> D:
    """A dataclass, its figures and what it holds from a mapping as YAML has it. What is an instance already is taken as it is."""
    hashable: Any = kind
    converts = _converts(hashable)
    return kind(**{key: converts[key](value) for key, value in data.items()})


def to_mapping(value: Any) -> dict[str, Any]:
    """Plain values, with every figure as ``{value, source, trust}``: the inverse of :func:`from_mapping`."""
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return to_mapping(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@cache
def hints(kind: type) -> dict[str, Any]:
    """Field -> its type, with the limits of ``Annotated``."""
    return get_type_hints(kind, include_extras=True)


@cache
def _converts(kind: Any) -> dict[str, Convert]:
    return {name: _convert(hint) for name, hint in get_type_hints(kind).items()}


def _convert(hint: Any) -> Convert:
    origin = get_origin(hint)
    if origin is tuple:
        return tuple
    if origin is dict:
        inner = _convert(get_args(hint)[1])
        return lambda value: {key: inner(item) for key, item in value.items()}
    options = get_args(hint)
    if NoneType in options:  # `memory: none` is text to YAML
        inner = _convert(next(option for option in options if option is not NoneType))
        return lambda value: None if value is None or value in ("none", "None") else inner(value)
    if not isinstance(hint, type):
        return lambda value: value
    if issubclass(hint, Figure):  # a bare value is a figure of which no more is known
        return lambda value: value if isinstance(value, hint) else from_mapping(hint, _figure(value))
    if is_dataclass(hint):
        return lambda value: value if isinstance(value, hint) else from_mapping(hint, value)
    return hint  # text, a number, an Enum


def _figure(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}
