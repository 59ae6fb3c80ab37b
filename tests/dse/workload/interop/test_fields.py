"""Typed values out of a YAML mapping: what is taken, and the message for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from boards.errors import InputError
from dse.workload.interop.fields import items, mapping, text, whole


def test_what_is_taken():
    assert whole(3, "x", 1, 3) == 3 and text("a", "x") == "a" and mapping({"a": 1}, "x", ("a", "b")) == {"a": 1} == mapping({"a": 1}, "x")
    assert items({"a": [1, 2]}, "a", int, "x") == [1, 2] and items({"a": None}, "a", int, "x") == items({}, "a", str, "x") == []


@pytest.mark.parametrize("call, arguments, what", [
    (whole, (4, "x", 1, 3), "x: out of range, got 4; allowed: 1 to 3"),
    (whole, (2.0, "x", 1, 3), "x: must be a whole number, got 2.0; allowed: 1 to 3"),
    (text, ("", "x"), "x: must be text of 1 to 1000 characters, got ''"),
    (text, (1, "x"), "x: must be text of 1 to 1000 characters, got 1"),
    (items, ({"a": [1, True]}, "a", int, "x"), "x.a: must be a list of whole numbers, got [1, True]"),
    (items, ({"a": "ab"}, "a", str, "x"), "x.a: must be a list of texts, got 'ab'"),
    (items, ({"a": [[], 1]}, "a", list, "x"), "x.a: must be a list of lists, got [[], 1]"),
    (items, ({"a": [1]}, "a", dict, "x"), "x.a: must be a list of mappings, got [1]"),
    (mapping, ([], "x", ("a", "b")), "x: must be a mapping, got []; allowed: a, b"),
    (mapping, ({"c": 1, "aa": 2}, "x", ("a", "b")), "x: unknown key, got 'c'; allowed: a, b")])
def test_what_is_not(call: Any, arguments: tuple[Any, ...], what: str):
    with pytest.raises(InputError) as caught:
        call(*arguments)
    assert str(caught.value) == what
