"""A derivation: facts with their sources and formulas over them, each evaluated exactly from its own text.

A formula may use names that stand before it and nothing else, so a number that nobody stated cannot enter.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Number = int | Fraction | float
"""``float`` only where a formula has a square root."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_DIGITS = 12  # a decimal of so many significant digits is printed whole; longer ones as fractions inside formulas


def _whole(round_: Callable[[Any], int]) -> Callable[[Number], int]:
    return lambda value: int(round_(value))


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "ceil": _whole(math.ceil), "floor": _whole(math.floor), "max": max, "min": min, "gcd": lambda a, b: math.gcd(int(a), int(b)),
    "pow2": lambda value: 1 << (math.ceil(value) - 1).bit_length(), "sqrt": lambda value: math.sqrt(value)}
"""What formulas may call. ``pow2``: the least power of two that is no smaller."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Pow: lambda a, b: a ** b,
    ast.Div: lambda a, b: a / b if isinstance(a, float) or isinstance(b, float) else Fraction(a) / Fraction(b)}


def evaluate(expression: str, names: Mapping[str, Number] | None = None) -> Number:
    """The exact value of a formula: whole numbers, decimals, names, ``+ - * / **`` and :data:`FUNCTIONS`.

    Raises KeyError for a name that ``names`` does not have, and ValueError for anything else that is no formula.
    """
    values = names or {}

    def value(node: ast.expr) -> Number:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as number):
                return number if isinstance(number, int) else Fraction(repr(number))
            case ast.Name(id=name):
                return values[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                return _OPERATORS[type(operator)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](*map(value, arguments))
        raise ValueError(f"no formula: {expression}")

    return _simplest(value(ast.parse(expression, mode="eval").body))


def _simplest(value: Number) -> Number:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def exact_text(value: Number) -> str:
    """A text that evaluates to exactly ``value``: ``12``, ``0.56``, ``(1/3)``."""
    value = _simplest(value)
    if isinstance(value, int):
        text = str(value)
    else:
        decimal = _decimal(Fraction(value))
        text = decimal or f"({Fraction(value).numerator}/{Fraction(value).denominator})"
    return f"({text})" if text.startswith("-") else text


def shown(value: Number) -> tuple[str, str]:
    """(``"="`` or ``"~"`` where it is rounded to six digits, the text of the value)."""
    value = _simplest(value)
    if isinstance(value, int):
        return "=", str(value)
    decimal = None if isinstance(value, float) else _decimal(value)
    return ("=", decimal) if decimal else ("~", f"{float(value):.6g}")


def _decimal(value: Fraction) -> str | None:
    """The decimal that equals ``value``, if it is short."""
    text = f"{float(value):.{_DIGITS}g}"
    return text if "e" not in text and Fraction(text) == value else None


@dataclass(frozen=True)
class Step:
    """One line. A fact has a ``note`` that says where it is from, and no ``expression``.

    ``expression``: in names; ``numbers``: the same in their values; ``value``: exact.
    """

    section: str
    name: str
    value: Number
    unit: str = ""
    note: str = ""
    expression: str | None = None
    numbers: str | None = None

    @property
    def text(self) -> str:
        """``name = expression = numbers = value unit  [note]``, with ``~`` before a rounded value."""
        sign, value = shown(self.value)
        parts = [self.name, *(text for text in dict.fromkeys((self.expression, self.numbers)) if text is not None)]
        if len(parts) > 1 and parts[-1] == value:
            parts.pop()
        note = f"  [{self.note}]" if self.note else ""
        return f"{' = '.join(parts)} {sign} {value}{' ' + self.unit if self.unit else ''}{note}"

    def to_dict(self) -> dict[str, Any]:
        """``value`` is a float where it is not whole; ``exact`` then has the fraction."""
        whole = isinstance(self.value, int)
        exact = None if isinstance(self.value, float) else str(self.value)
        return {"section": self.section, "name": self.name, "expression": self.expression, "numbers": self.numbers,
                "value": self.value if whole else float(self.value), "exact": exact, "unit": self.unit, "note": self.note}


class Derivation:
    """Steps in order. A name is defined once."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.values: dict[str, Number] = {}
        self._section = ""

    def section(self, title: str) -> None:
        """What follows stands under this title."""
        self._section = title

    def given(self, name: str, value: Number, unit: str = "", note: str = "") -> None:
        """A fact: a choice, a figure or a count; ``note`` says where it is from."""
        self._add(Step(self._section, name, _simplest(value), unit, note))

    def let(self, name: str, expression: str, unit: str = "", note: str = "") -> Number:
        """What a formula over earlier names comes to."""
        value = evaluate(expression, self.values)
        numbers = _WORD.sub(lambda word: word[0] if word[0] in FUNCTIONS else exact_text(self.values[word[0]]), expression)
        self._add(Step(self._section, name, value, unit, note, expression, numbers))
        return value

    def check(self, name: str, expected: Number) -> None:
        """``name`` is what the prediction has: two ways to one number."""
        assert self.values[name] == expected, f"explanation and prediction differ: {name} {self.values[name]}, {expected}"

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> Number:
        return self.values[name]

    def _add(self, step: Step) -> None:
        assert step.name not in self.values, f"defined twice: {step.name}"
        self.values[step.name] = step.value
        self.steps.append(step)
