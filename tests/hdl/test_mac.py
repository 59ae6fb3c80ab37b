"""Operand decoding for every precision, accumulators, and one unit of each kind at its stated latency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.hdl import signed
from amaranth.sim import Simulator

from hdl.design import ELEMENT_BITS, Design
from hdl.mac import Accumulator, ActivationOperands, MacUnit, PairOperands, PairUnit, WeightOperands, XnorUnit


def simulate(dut: Any, bench: Any) -> None:
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


def make(**options: Any) -> Design:
    return Design(**{"rows": 1, "cols": 3, "multiplier": "lut", "accumulator_bits": 40, **options})


def decode(code: int, bits: int, is_signed: bool) -> int:
    if bits == 1:
        return 1 if code else -1
    return code - (1 << bits) if is_signed and code >> (bits - 1) else code


def codes(bits: int) -> list[int]:
    return sorted({0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1})


@pytest.mark.parametrize("bits", ELEMENT_BITS)
def test_weight_operands(bits: int) -> None:
    dut = WeightOperands(design=make(weight_bits=bits, activation_bits=2))

    async def bench(ctx: Any) -> None:
        for code in codes(bits):
            for mask in range(8):
                ctx.set(dut.i_word, sum(code << (c * bits) for c in range(3)))
                ctx.set(dut.i_columns, mask)
                await ctx.tick()
                assert [ctx.get(port) for port in dut.o_operands] == [
                    decode(code, bits, True) if mask >> c & 1 else 0 for c in range(3)]

    simulate(dut, bench)


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("bits", ELEMENT_BITS)
def test_activation_operands(bits: int, is_signed: bool) -> None:
    dut = ActivationOperands(design=make(activation_bits=bits, weight_bits=2))

    async def bench(ctx: Any) -> None:
        ctx.set(dut.i_signed, int(is_signed))
        for zero_code in codes(bits):
            zero_point = decode(zero_code, bits, is_signed)
            ctx.set(dut.i_zero_point, zero_point)
            for code in codes(bits):
                for padding in (0, 1):
                    ctx.set(dut.i_word, code << bits | code)
                    ctx.set(dut.i_padding, padding)
                    await ctx.tick()
                    value, low = decode(code, bits, is_signed), decode(0, bits, is_signed)
                    expected = [value, value, low] if bits == 1 else [v - zero_point for v in (value, value, low)]
                    assert [ctx.get(port) for port in dut.o_operands] == ([0, 0, 0] if padding else expected)

    simulate(dut, bench)


def test_accumulator_starts_again_holds_and_captures() -> None:
    dut = Accumulator(term=signed(4), total=signed(8))
    script = [  # term, enable, first, capture -> captured after this cycle
        (5, 1, 1, 0, 0), (-8, 1, 0, 0, 0), (7, 0, 0, 1, -3), (7, 0, 1, 0, -3),
        (1, 1, 0, 0, -3), (2, 1, 1, 1, -2), (0, 0, 0, 1, 2)]

    async def bench(ctx: Any) -> None:
        for term, enable, first, capture, captured in script:
            for port, value in ((dut.i_term, term), (dut.i_enable, enable), (dut.i_first, first), (dut.i_capture, capture)):
                ctx.set(port, value)
            await ctx.tick()
            assert ctx.get(dut.o_captured) == captured

    simulate(dut, bench)


@pytest.mark.parametrize("multiplier", ["dsp", "lut"])
@pytest.mark.parametrize("accumulate", ["tree", "per_column"])
def test_mac_unit(accumulate: str, multiplier: str) -> None:
    design = make(accumulate=accumulate, multiplier=multiplier)
    dut = MacUnit(design=design)
    rng = np.random.default_rng(3)
    weights, activations = rng.integers(-128, 128, (6, 3)), rng.integers(-255, 256, (6, 3))
    weights[0], activations[0] = -128, (255, -255, -255)
    latency = MacUnit.term_latency(design)
    assert latency == (3 if accumulate == "tree" else 1)

    async def bench(ctx: Any) -> None:
        for cycle in range(6 + latency + 1):
            for c in range(3):
                ctx.set(dut.i_weights[c], int(weights[cycle % 6, c]))
                ctx.set(dut.i_activations[c], int(activations[cycle % 6, c]))
            ctx.set(dut.i_enable, int(latency <= cycle < latency + 6))
            ctx.set(dut.i_first, int(cycle == latency))
            ctx.set(dut.i_capture, int(cycle == latency + 6))
            await ctx.tick()
        sums = (weights * activations).sum(axis=0).tolist()
        assert [ctx.get(port) for port in dut.o_captured] == ([sum(sums)] if accumulate == "tree" else sums)

    simulate(dut, bench)


PAIRED = [(2, 2), (4, 4), (4, 8), (1, 4), (8, 1), (8, 8)]


def weights_of(bits: int) -> list[int]:
    return [-1, 1, 0] if bits == 1 else list(range(-(1 << bits - 1), 1 << bits - 1))


def activations_of(bits: int) -> list[int]:
    """Activations less a zero point, 1-bit ones masked or not."""
    return [-1, 0, 1] if bits == 1 else list(range(1 - (1 << bits), 1 << bits))


@pytest.mark.parametrize(("weight_bits", "activation_bits"), PAIRED)
def test_two_products_in_one_block_are_exact(weight_bits: int, activation_bits: int) -> None:
    """All operands of the narrow precisions; the extremes and random ones of the wide. The block's operand fits its width."""
    design = make(rows=2, cols=1, weight_bits=weight_bits, activation_bits=activation_bits, multiplier="dsp_pair", family="xcup")
    dut, rng = PairUnit(design=design), np.random.default_rng(9)
    weights, activations = weights_of(weight_bits), activations_of(activation_bits)
    cases = np.stack(np.meshgrid(weights, weights, activations), axis=-1).reshape(-1, 3)
    if len(cases) > 4000:
        ends = np.stack(np.meshgrid(weights[:2] + weights[-2:], weights[:2] + weights[-2:], activations[:2] + activations[-2:]), axis=-1)
        cases = np.concatenate([ends.reshape(-1, 3), cases[rng.integers(0, len(cases), 1500)]])
    operands = cases[:, 0] + (cases[:, 1] << design.term_bits)
    assert abs(operands * 2 + 1).max() < 1 << design.pair_operand_bits
    latency = MacUnit.term_latency(design) + 2
    assert latency == 4

    async def bench(ctx: Any) -> None:
        for port in (dut.i_enable, dut.i_first, dut.i_capture):
            ctx.set(port, 1)
        for cycle in range(len(cases) + latency):
            ctx.set(dut.i_weights[0], int(operands[min(cycle, len(cases) - 1)]))
            ctx.set(dut.i_activations[0], int(cases[min(cycle, len(cases) - 1), 2]))
            *_, low, high = await ctx.tick().sample(dut.o_low[0], dut.o_high[0])
            if cycle >= latency:
                weight_low, weight_high, activation = cases[cycle - latency].tolist()
                assert (low, high) == (weight_low * activation, weight_high * activation)

    simulate(dut, bench)


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_pair_operands(bits: int) -> None:
    design = make(rows=2, cols=2, weight_bits=bits, activation_bits=4, multiplier="dsp_pair", family="xcup")
    dut = PairOperands(design=design)

    async def bench(ctx: Any) -> None:
        for low in codes(bits):
            for high in codes(bits):
                for mask in range(4):
                    ctx.set(dut.i_words[0], low << bits | low)
                    ctx.set(dut.i_words[1], high << bits)
                    for row in range(2):
                        ctx.set(dut.i_columns[row], 0b11 if mask >> row & 1 else 0b01)
                    await ctx.tick()
                    values = [[decode(code, bits, True) for code in column] for column in ((low, 0), (low, high))]
                    values[1] = [value if mask >> row & 1 else 0 for row, value in enumerate(values[1])]
                    assert [ctx.get(port) for port in dut.o_operands] == [v[0] + (v[1] << design.term_bits) for v in values]

    simulate(dut, bench)


def test_xnor_unit_counts_matches_that_are_not_cleared() -> None:
    design = make(cols=9, weight_bits=1, activation_bits=1)
    dut = XnorUnit(design=design)
    rng = np.random.default_rng(4)
    weights, activations = rng.integers(0, 512, 6), rng.integers(0, 512, 6)
    clear = [0, 1, 0, 0, 1, 0]
    latency = XnorUnit.term_latency(design)

    async def bench(ctx: Any) -> None:
        for cycle in range(6 + latency + 1):
            ctx.set(dut.i_weights, int(weights[cycle % 6]))
            ctx.set(dut.i_activations, int(activations[cycle % 6]))
            ctx.set(dut.i_clear, clear[(cycle - latency + 1) % 6])
            ctx.set(dut.i_enable, int(latency <= cycle < latency + 6))
            ctx.set(dut.i_first, int(cycle == latency))
            ctx.set(dut.i_capture, int(cycle == latency + 6))
            await ctx.tick()
        matches = [(~int(w ^ a) & 511).bit_count() for w, a in zip(weights, activations, strict=True)]
        assert ctx.get(dut.o_captured) == sum(n for n, gone in zip(matches, clear, strict=True) if not gone)

    simulate(dut, bench)
