"""Values of a YAML mapping with the types that they must have; every error says where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boards.errors import InputError
from dse.workload.operators import MAX_ELEMENTS, check_whole, unknown

MAX_TEXT = 1000


def whole(value: Any, where: str, low: int, high: int = MAX_ELEMENTS) -> int:
    check_whole(where, value, low, high)
    return int(value)


def text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT:
        raise InputError(f"must be text of 1 to {MAX_TEXT} characters", where=where, value=value)
    return value


def items(data: Mapping[str, Any], key: str, kind: type, where: str) -> list[Any]:
    """The list ``data[key]``, whose items are of ``kind``; empty where it is missing or null."""
    given = data.get(key)
    if given is None:
        return []
    if not isinstance(given, list) or not all(type(value) is kind for value in given):
        what = {int: "whole numbers", str: "texts", list: "lists", dict: "mappings"}[kind]
        raise InputError(f"must be a list of {what}", where=f"{where}.{key}", value=given)
    return given


def mapping(value: Any, where: str, known: Sequence[str] = ()) -> Mapping[str, Any]:
    """``value`` as a mapping, with no keys but ``known`` where there are any."""
    if not isinstance(value, Mapping):
        raise InputError("must be a mapping", where=where, value=value, allowed=", ".join(known) or None)
    for key in value:
        if known and key not in known:
            raise unknown("unknown key", key, known, where=where)
    return value
