"""Adder and selection trees against Python, in order, at their stated latency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hdl.reduce import AdderTree, SelectTree, tree_levels

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]


def stream(dut: Any, apply: Any, output: Any, cycles: int) -> list[int]:
    """Outputs, one a cycle, of the inputs that ``apply(ctx, cycle)`` sets; the first is the first input's."""
    seen: list[int] = []

    async def bench(ctx: Any) -> None:
        for cycle in range(cycles + dut.latency_cycles):
            apply(ctx, min(cycle, cycles - 1))
            seen.append((await ctx.tick().sample(output))[-1])

    top = Module()
    top.submodules.dut = dut
    top.d.sync += Signal(name="clocked").eq(1)  # a tree of one term has no clock of its own
    sim = Simulator(top)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
    return seen[dut.latency_cycles:]


def test_tree_levels() -> None:
    assert [tree_levels(n) for n in (1, 2, 3, 4, 5, 8, 9, 512)] == [0, 1, 2, 2, 3, 3, 4, 9]


@pytest.mark.parametrize("sum_bits", [14, 8])
@pytest.mark.parametrize("count", SIZES)
def test_adder_tree(count: int, sum_bits: int) -> None:
    rng = np.random.default_rng(count)
    terms = rng.integers(-128, 128, (30, count))
    terms[0], terms[1] = -128, 127
    dut = AdderTree(count=count, term_bits=8, sum_bits=sum_bits)

    def apply(ctx: Any, cycle: int) -> None:
        for port, value in zip(dut.i_terms, terms[cycle], strict=True):
            ctx.set(port, int(value))

    half = 1 << (sum_bits - 1)
    expected = (terms.sum(axis=1) + half) % (2 * half) - half  # wraps at the output's width
    assert dut.latency_cycles == tree_levels(count)
    assert stream(dut, apply, dut.o_sum, len(terms)) == expected.tolist()


@pytest.mark.parametrize("count", [*SIZES, 64, 257])
def test_select_tree(count: int) -> None:
    rng = np.random.default_rng(count)
    table = rng.integers(0, 1 << 12, count)
    index = [*rng.integers(0, count, 30).tolist(), 0, count - 1]
    dut = SelectTree(count=count, bits=12)

    def apply(ctx: Any, cycle: int) -> None:
        if cycle == 0:
            for port, value in zip(dut.i_values, table, strict=True):
                ctx.set(port, int(value))
        ctx.set(dut.i_index, index[cycle])

    assert dut.latency_cycles == (1 if count <= 16 else 2 if count <= 256 else 3)
    assert stream(dut, apply, dut.o_value, len(index)) == table[index].tolist()
