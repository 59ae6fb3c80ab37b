"""Formulas: their values, their texts, and what is no formula."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dse.explain.derivation import Derivation, evaluate, exact_text, shown


@pytest.mark.parametrize("text, value", [
    ("2 + 3*4", 14), ("7/2", Fraction(7, 2)), ("ceil(7/2)", 4), ("floor(-7/2)", -4), ("max(1, 2, 3) - min(4, 5)", -1), ("gcd(12, 18)", 6),
    ("pow2(1)", 1), ("pow2(5)", 8), ("pow2(8)", 8), ("0.1 + 0.2", Fraction(3, 10)), ("2**10", 1024), ("-(3)", -3), ("sqrt(2)", 2 ** 0.5),
    ("floor(1000/sqrt(3))", 577), ("n*n", 49)])
def test_value(text, value):
    found = evaluate(text, {"n": 7})
    assert found == value and isinstance(found, type(value))


@pytest.mark.parametrize("text", ["'a'", "True", "open(1)", "[1]", "a.b", "1 if 2 else 3", "max(1, key=2)", "1 // 2"])
def test_what_is_no_formula(text):
    with pytest.raises(ValueError, match="no formula"):
        evaluate(text, {"a": 1})


def test_unknown_names_are_refused():
    with pytest.raises(KeyError, match="nothing"):
        Derivation().let("x", "nothing + 1")


@pytest.mark.parametrize("value, exact, seen", [
    (12, "12", ("=", "12")), (-4, "(-4)", ("=", "-4")), (Fraction(14, 25), "0.56", ("=", "0.56")),
    (Fraction(1, 3), "(1/3)", ("~", "0.333333")),
    (Fraction(-1, 4), "(-0.25)", ("=", "-0.25")), (Fraction(10**15 + 1, 10), f"({10**15 + 1}/10)", ("~", "1e+14"))])
def test_texts(value, exact, seen):
    assert (exact_text(value), shown(value)) == (exact, seen)
    assert evaluate(exact) == value


def test_steps_say_name_formula_numbers_value_unit_and_note():
    d = Derivation()
    d.section("Words")
    d.given("cols", 3, "", "the design")
    d.given("rate", Fraction(1, 3), "beats/cycle")
    d.let("time", "ceil(cols*2/rate)", "cycles", "at that rate")
    d.let("ratio", "rate/cols")
    d.let("same", "cols")
    assert [step.text for step in d.steps] == [
        "cols = 3  [the design]", "rate ~ 0.333333 beats/cycle", "time = ceil(cols*2/rate) = ceil(3*2/(1/3)) = 18 cycles  [at that rate]",
        "ratio = rate/cols = (1/3)/3 ~ 0.111111", "same = cols = 3"]
    assert d.steps[3].to_dict() == {"section": "Words", "name": "ratio", "expression": "rate/cols", "numbers": "(1/3)/3", "value": 1 / 9,
                                    "exact": "1/9", "unit": "", "note": ""}


def test_a_difference_from_the_prediction_is_a_bug():
    d = Derivation()
    d.given("cycles", 3)
    with pytest.raises(AssertionError, match="explanation and prediction differ: cycles 3, 4"):
        d.check("cycles", 4)
    with pytest.raises(AssertionError, match="defined twice: cycles"):
        d.given("cycles", 3)
