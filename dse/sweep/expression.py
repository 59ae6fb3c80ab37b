"""Expressions over the axes of a space: arithmetic, comparisons and nothing else, on numbers or on arrays of them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hdl.errors import InputError

MAX_TEXT = 300
MAX_INT = 1 << 62
ALLOWED = "numbers, names, + - * // %, comparisons, and or not, min(..) max(..), A if C else B"

Env = Mapping[str, Any]
Evaluator = Callable[[Env], Any]

_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
               ast.Mod: operator.mod}
_COMPARISONS = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
                ast.GtE: operator.ge}
_EXTREMES = {"min": np.minimum, "max": np.maximum}


class Expression:
    """``text``, parsed once. ``names``: what it needs to know. Raises InputError, which names ``where``, for anything not allowed.

    Names stand for numbers, texts, or arrays of n of them; then the result is an array too, as if each row were evaluated by itself:
    what a condition or an ``and`` leaves out is not evaluated.
    """

    def __init__(self, text: str, *, where: str) -> None:
        self.text, self.where = text, where
        if len(text) > MAX_TEXT:
            raise InputError("the expression is too long", where=where, allowed=f"at most {MAX_TEXT} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError("not an expression", where=where, value=text, allowed=ALLOWED) from None
        # min and max are the only functions, and no axis has their names.
        self.names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) - set(_EXTREMES)
        self._evaluator = self._compile(tree.body)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def evaluate(self, env: Env) -> Any:
        """The value. Raises InputError for a division by zero, and for texts where numbers must be."""
        try:
            return self._evaluator(env)
        except ZeroDivisionError:
            raise self._wrong("divides by zero") from None
        except (TypeError, OverflowError, np.exceptions.DTypePromotionError) as error:
            raise self._wrong("cannot be computed: " + ("numbers too large" if isinstance(error, OverflowError) else
                                                        "text where a number must be")) from None

    def _wrong(self, what: str) -> InputError:
        return InputError(what, where=self.where, value=self.text)

    def _compile(self, node: ast.expr) -> Evaluator:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return lambda env: value
            case ast.Name(id=name) if name not in _EXTREMES:
                return lambda env: env[name]
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                return _arithmetic(_ARITHMETIC[type(op)], self._compile(node.left), self._compile(node.right),
                                   divides=isinstance(op, ast.FloorDiv | ast.Mod))
            case ast.UnaryOp(op=ast.USub()):
                inner = self._compile(node.operand)
                return lambda env: 0 - inner(env)
            case ast.UnaryOp(op=ast.Not()):
                inner = self._compile(node.operand)
                return lambda env: _not(inner(env))
            case ast.BoolOp():
                return _junction([self._compile(value) for value in node.values], stop_at=isinstance(node.op, ast.Or))
            case ast.IfExp():
                return _conditional(self._compile(node.test), self._compile(node.body), self._compile(node.orelse))
            case ast.Compare() if all(type(op) in _COMPARISONS for op in node.ops):
                sides = [self._compile(side) for side in (node.left, *node.comparators)]
                return _comparison([_COMPARISONS[type(op)] for op in node.ops], sides)
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _EXTREMES and len(node.args) >= 2:
                return _extreme(name, [self._compile(argument) for argument in node.args])
        text = ast.unparse(node)
        hint = "whole numbers divide with //" if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else None
        raise InputError("not allowed in an expression", where=self.where, value=text, allowed=ALLOWED, suggestion=hint)


def _arithmetic(function: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator, *, divides: bool) -> Evaluator:
    def evaluate(env: Env) -> Any:
        a, b = (side.astype(np.int64) if _is_array(side) and side.dtype == bool else side  # truths count, as Python's do
                for side in (left(env), right(env)))
        if isinstance(a, str) or isinstance(b, str):
            raise TypeError  # Python would repeat or join texts
        if divides and np.any(np.equal(b, 0)):
            raise ZeroDivisionError
        if (_is_array(a) or _is_array(b)) and np.max(np.abs(function(np.asarray(a, float), b)), initial=0) > MAX_INT:
            raise OverflowError  # arrays would wrap around
        return function(a, b)
    return evaluate


def _comparison(functions: list[Callable[[Any, Any], Any]], sides: list[Evaluator]) -> Evaluator:
    def evaluate(env: Env) -> Any:
        values = [side(env) for side in sides]
        results = [function(a, b) for function, a, b in zip(functions, values, values[1:], strict=False)]
        total = results[0]
        for result in results[1:]:
            total = np.logical_and(total, result) if _is_array(total) or _is_array(result) else total and result
        return total
    return evaluate


def _extreme(name: str, arguments: list[Evaluator]) -> Evaluator:
    def evaluate(env: Env) -> Any:
        values = [argument(env) for argument in arguments]
        if any(isinstance(value, str) for value in values):
            raise TypeError
        if not any(_is_array(value) for value in values):
            return min(values) if name == "min" else max(values)
        total = values[0]
        for value in values[1:]:
            total = _EXTREMES[name](total, value)
        return total
    return evaluate


def _junction(parts: list[Evaluator], *, stop_at: bool) -> Evaluator:
    """``and`` (stops at False) or ``or`` (at True), as truth values."""
    if len(parts) == 1:
        return lambda env: _truth(parts[0](env))
    rest = _junction(parts[1:], stop_at=stop_at)
    return _conditional(parts[0], lambda env: True, rest) if stop_at else _conditional(parts[0], rest, lambda env: False)


def _conditional(test: Evaluator, body: Evaluator, otherwise: Evaluator) -> Evaluator:
    def evaluate(env: Env) -> Any:
        chosen = _truth(test(env))
        if not _is_array(chosen):
            return body(env) if chosen else otherwise(env)
        if chosen.all():
            return body(env)
        if not chosen.any():
            return otherwise(env)
        yes, no = body(_rows(env, chosen)), otherwise(_rows(env, ~chosen))
        result = np.empty(len(chosen), np.result_type(np.asarray(yes), np.asarray(no)))
        result[chosen], result[~chosen] = yes, no
        return result
    return evaluate


def _rows(env: Env, mask: np.ndarray) -> dict[str, Any]:
    return {name: value[mask] if _is_array(value) else value for name, value in env.items()}


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _truth(value: Any) -> Any:
    return value.astype(bool) if _is_array(value) else bool(value)


def _not(value: Any) -> Any:
    return ~_truth(value) if _is_array(value) else not value
