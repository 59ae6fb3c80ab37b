"""Explanations: the printed text is parsed, and every formula in it evaluated by Python itself, in exact fractions."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from boards import load_board
from dse.explain.derivation import FUNCTIONS, evaluate
from dse.explain.explain import FACTORS, derive, explain
from dse.explain.phases import PARTS
from dse.fidelity.points import random_points
from dse.schedule.compiler import compile_program
from dse.schedule.graph import graph_cycles, tile_graph
from dse.schedule.predict import predict
from dse.schedule.search import Choice
from dse.schedule.tiling import IllegalTiling, TilePlan
from dse.simulate import choose, simulate
from dse.workload.load import load_workload

SMALL = "conv K=6 C=5 OY=9 OX=7 FY=3 FX=3 P=1"
CASES = [
    (SMALL, "papilio-pro", {}),
    (SMALL, "papilio-pro", {"rows": 2, "cols": 2, "lanes": 2, "input_bytes": 512, "weight_bytes": 512, "psum_bytes": 2048}),
    ("conv K=32 C=32 OY=5 OX=9 FY=3 FX=3 S=2 P=1 G=32", "atlys", {"rows": 4, "cols": 4}),
    ("conv K=12 C=24 OY=11 OX=6 FY=1 FX=1 B=2", "arty-a7-35", {"rows": 4, "cols": 6, "lanes": 2}),
    ("linear K=10 C=300", "icebreaker", {"rows": 2, "cols": 2, "lanes": 1}),
]
LITERALS = {"0", "1", "2", "3", "6", "8", "9", "10", "1000"}
"""Bits in a byte, ops in a MAC, decimal prefixes, and the ends of loops. Any other number must have a name."""


def by_python(text: str, names: dict[str, Fraction]) -> Fraction:
    """A formula as Python evaluates it when every number is an exact fraction."""
    functions = {
        "F": Fraction, "ceil": math.ceil, "floor": math.floor, "max": max, "min": min, "sqrt": math.sqrt,
        "gcd": lambda a, b: math.gcd(int(a), int(b)), "pow2": lambda n: next(1 << k for k in range(64) if 1 << k >= n)}
    exact = re.sub(r"(?<![\w.])\d+(\.\d+)?", lambda number: f"F('{number[0]}')", text)
    return eval(exact, {"__builtins__": {}}, {**functions, **names})


def parsed(text: str) -> dict[str, Fraction]:
    """Name -> value, of all lines; each formula is evaluated in names, with those before it alone, and in numbers."""
    names: dict[str, Fraction] = {}
    formulas = 0
    for line in text.splitlines():
        if not line.startswith("  "):
            continue
        body = line.strip().split("  [")[0]
        *sides, last = re.split(r" (?:=|~) ", body)
        value, rounded = last.split(" ")[0], f" ~ {last}" in body
        name, *expressions = sides
        assert name not in names and len(expressions) <= 2
        exact = None
        for at, expression in enumerate(expressions):
            assert " = " not in expression
            result = by_python(expression, names if at == 0 else {})
            assert exact is None or result == exact, line
            exact = result
            if at == 0:
                assert set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", expression)) <= LITERALS, line
        if rounded:
            assert exact is not None and f"{float(exact):.6g}" == value, line
        else:
            assert exact is None or exact == Fraction(value), line
        names[name] = Fraction(value) if exact is None else exact
        formulas += bool(expressions)
    assert formulas > 80
    return names


@pytest.fixture(scope="module")
def explanations():
    found = []
    for workload, name, options in CASES:
        board = load_board(name)
        found.append(explain(choose(load_workload(workload), board, options=options), board))
    return found


@pytest.mark.parametrize("at", range(len(CASES)))
def test_every_printed_formula_evaluates_to_the_printed_number(explanations, at):
    found = explanations[at]
    values, prediction = parsed(found.text), found.choice.prediction
    beat = found.design.bus_bits // 8
    assert values["cycles"] == prediction.cycles == sum(values[name] for name in PARTS)
    assert (values["bytes_read"], values["bytes_written"]) == (prediction.beats_read * beat, prediction.beats_written * beat)
    assert [values[f"{name}_bound"] for name in ("compute", "memory", "drain")] == [
        prediction.compute_bound_cycles, prediction.memory_bound_cycles, prediction.drain_bound_cycles]
    assert values["frames_per_s"] == Fraction(str(found.design.clock_mhz)) * 10**6 / prediction.cycles
    assert math.prod(values[name] for name in FACTORS) == Fraction(found.layer.macs, prediction.cycles * found.design.macs_per_cycle)
    assert values["roof_gops"] >= values["gops"]
    assert values["cycles"] == graph_cycles(tile_graph(found.choice.plan, found.choice.program, timing_of(found)))


def timing_of(found):
    from dse.choose import board_timing

    return board_timing(load_board(found.board), found.design)


def test_the_explained_cycles_are_those_of_the_simulation():
    board = load_board("papilio-pro")
    found = explain(choose(load_workload("conv K=3 C=2 OY=3 OX=2 FY=2 FX=2 P=1"), board, options={"rows": 2, "cols": 1, "lanes": 1}), board)
    report, _ = simulate(found.layer, board, found.choice, engine="amaranth")
    values = parsed(found.text)
    assert report.matches and report.cycles == values["cycles"]
    assert (report.result.beats_read, report.result.beats_written) == (values["read_beats"], values["written_beats"])
    assert report.result.issue_cycles == values["vectors_part"]


def test_random_mappings_are_explained_to_the_cycle():
    """Every precision, geometry, order and residency; ``derive`` itself compares each total with the prediction."""
    seen = set()
    for point in random_points(0, 16, 2):
        for resident in (False, True):
            try:
                plan = TilePlan(point.design, point.layer, replace(point.tiling, resident=resident))
            except IllegalTiling:
                continue
            program = compile_program(plan)
            prediction = predict(plan, program, point.timing)
            d = derive(Choice(plan, program, prediction, 1), point.timing)
            assert d["cycles"] == prediction.cycles == sum(d[name] for name in PARTS)
            for step in d.steps:
                if step.numbers is not None:
                    assert evaluate(step.numbers) == step.value, step.text
            seen.add((plan.tiling.order, resident))
    assert len(seen) == 4


def test_what_is_folded_where():
    """16 channels on 3 words of 6 columns, 10 on 3 blocks of 4 rows, 9 rows on 2 lanes of 5: what is left empty."""
    board = load_board("atlys")
    options = {"rows": 4, "cols": 6, "lanes": 2}
    found = explain(choose(load_workload("conv K=10 C=16 OY=9 OX=5 FY=3 FX=3 P=1"), board, options=options), board)
    values = parsed(found.text)
    assert values["words"] == 3 and values["columns_used"] == Fraction(16, 18)
    assert (found.choice.plan.tiling.tk, found.choice.plan.tiling.ty) == (10, 9)
    assert (values["rows_used"], values["lanes_used"]) == (Fraction(10, 12), Fraction(9, 10))


def test_assumptions_have_their_sources(explanations):
    found = explanations[0]
    memory = load_board("papilio-pro").memory
    assert f"latency_cycles = 12 cycles  [assumption: {memory.latency_cycles.source}]" in found.text
    assert all(step.note for step in found.steps if step.expression is None)
    assert set(FUNCTIONS) == {"ceil", "floor", "max", "min", "gcd", "pow2", "sqrt"}


def test_json_has_the_same(explanations):
    found = explanations[0]
    data = found.to_dict()
    assert data["cycles"] == sum(part["cycles"] for part in data["parts"].values())
    assert [step["name"] for step in data["steps"]] == [step.name for step in found.steps]
    assert data["bound"]["kind"] in ("compute", "memory", "drain") and data["board"] == "papilio-pro"
