from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import InputError
from dse.sweep.expression import Expression

NAMES = ("a", "b", "c")


def value(text: str, **env):
    return Expression(text, where="x").evaluate(env)


@pytest.mark.parametrize(("text", "expected"), [
    ("2 + 3 * 4", 14), ("(2 + 3) * 4", 20), ("-7 // 2", -4), ("-7 % 4", 1), ("min(4, 2, 9)", 2), ("max(4, 2)", 4), ("1 < 2 <= 2", True),
    ("1 < 2 < 2", False), ("not 3", False), ("3 and 0", False), ("0 or 2", True), ("1 if 2 > 3 else 5", 5), ("'lut' == 'dsp'", False),
    ("1 if 0 else 2 // 1", 2), ("5 if 1 or 1 // 0 else 6", 5)])
def test_values(text, expected):
    assert value(text) == expected


@st.composite
def expressions(draw, depth: int = 3) -> str:
    """Text that Python itself can evaluate; divisors may be zero."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*NAMES, "0", "1", "3", "12"]))
    parts = st.deferred(lambda: expressions(depth - 1))
    form = draw(st.sampled_from(["({} {op} {})", "({} {cmp} {} {cmp} {})", "({} if {} else {})", "(not {})", "(bool({}) and bool({}))",
                                 "(bool({}) or bool({}))", "min({}, {})", "max({}, {})", "(-{})"]))
    return form.format(*(draw(parts) for _ in range(3)), op=draw(st.sampled_from(["+", "-", "*", "//", "%"])),
                       cmp=draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="])))


@given(expressions(), st.lists(st.tuples(*[st.integers(-9, 9)] * 3), min_size=1, max_size=8))
def test_arrays_are_what_python_says_of_each_row(text, rows):
    """Rows that divide by zero make the whole evaluation fail, and nothing else does."""
    ours = Expression(text.replace("bool", ""), where="x")
    expected: list[object] = []
    for row in rows:
        try:
            expected.append(eval(text, {"__builtins__": {}}, {**dict(zip(NAMES, row, strict=True)), "min": min, "max": max, "bool": bool}))
        except ZeroDivisionError:
            expected.append(None)
    columns = {name: np.array([row[at] for row in rows]) for at, name in enumerate(NAMES)}
    if None in expected:
        with pytest.raises(InputError, match="^x: divides by zero"):
            ours.evaluate(columns)
    else:
        assert np.broadcast_to(ours.evaluate(columns), (len(rows),)).tolist() == expected
    for row, wanted in zip(rows, expected, strict=True):
        if wanted is not None:
            assert ours.evaluate(dict(zip(NAMES, row, strict=True))) == wanted


@pytest.mark.parametrize(("text", "message"), [
    ("rows * (", "x: not an expression, got 'rows * ('; allowed: numbers, names, + - * // %, comparisons, and or not, min(..) max(..), "
                 "A if C else B"),
    ("rows / 2", "x: not allowed in an expression, got 'rows / 2'; allowed: numbers, names, + - * // %, comparisons, and or not, "
                 "min(..) max(..), A if C else B; whole numbers divide with //"),
])
def test_messages(text, message):
    with pytest.raises(InputError) as caught:
        Expression(text, where="x")
    assert str(caught.value) == message


@pytest.mark.parametrize("text", [
    "__import__('os')", "rows.bit_length()", "(1).real", "[1][0]", "{1: 2}", "lambda: 1", "f'{rows}'", "[r for r in (1,)]", "rows ** 9",
    "9 << 9", "rows in (1, 2)", "rows is rows", "min", "min(1)", "min(*rows)", "min(1, default=2)", "(rows := 2)", "1j", "None", "b'x'",
    "...", "max(rows for rows in rows)", "~rows", "", "a; b", "(" * 250, "9" * 301])
def test_nothing_else_is_allowed(text):
    with pytest.raises(InputError, match=r"^x: (not allowed in an expression|not an expression|the expression is too long)"):
        Expression(text, where="x")


@pytest.mark.parametrize(("text", "what"), [
    ("a * 'x'", "text where a number must be"), ("min('x', 'y')", "text where a number must be"),
    ("a < 'x'", "text where a number must be"), ("a // (a - a)", "divides by zero")])
def test_what_cannot_be_computed(text, what):
    for a in (3, np.array([3, 4])):
        if text != "a < 'x'" or isinstance(a, int):
            with pytest.raises(InputError, match=what):
                value(text, a=a)


def test_arrays_do_not_wrap_around():
    with pytest.raises(InputError, match="numbers too large"):
        value("a * a * a", a=np.array([1 << 26]))
    assert value("a * a * a", a=1 << 26) == 1 << 78


def test_names():
    assert Expression("min(rows, cols) * 2 if lanes else rows", where="x").names == {"rows", "cols", "lanes"}
