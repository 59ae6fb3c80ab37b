"""The message of an input error."""

from __future__ import annotations

from boards.errors import InputError, nearest


def test_parts_in_order():
    error = InputError("out of range", where="f.yaml: a.b", value="x", allowed="1 to 2", suggestion="write 1")
    assert str(error) == "f.yaml: a.b: out of range, got 'x'; allowed: 1 to 2; write 1"
    assert str(InputError("is empty")) == "is empty"
    assert str(InputError("is wrong", value=None)) == "is wrong, got None"
    assert len(str(InputError("is long", value="x" * 10_000))) < 200


def test_nearest():
    assert nearest("papilio", ["atlys", "papilio-pro"]) == "papilio-pro"
    assert nearest(5, ["atlys"]) is None
