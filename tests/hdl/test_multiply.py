"""Signed products against Python integers, exhaustively where that is possible; what synthesis makes of them."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import ClockDomain, Module, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hdl.errors import InputError
from hdl.multiply import DspMultiplier, LutMultiplier, booth_rows, dsp_chunks, signed_product_lut
from hdl.synthesis import synthesise


def products(component, pairs, latency):
    """A pair a cycle; the products that come out ``latency`` cycles later."""
    results = []

    async def bench(ctx):
        for cycle in range(len(pairs) + latency):
            if cycle < len(pairs):
                ctx.set(component.i_a, pairs[cycle][0])
                ctx.set(component.i_b, pairs[cycle][1])
            if cycle >= latency:
                results.append(ctx.get(component.o_product))
            await ctx.tick()

    m = Module()
    m.domains.sync = ClockDomain()  # a combinational component has no clock of its own
    m.submodules.component = component
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return results


def sample(rng, a_bits, b_bits, count):
    def edges(bits):
        top = 1 << (bits - 1)
        return sorted(n for n in {0, 1, -1, top - 1, -top, 1 - top, top // 3, -top // 3} if -top <= n < top)
    pairs = [(a, b) for a in edges(a_bits) for b in edges(b_bits)]
    return pairs + [(rng.randrange(-1 << a_bits - 1, 1 << a_bits - 1), rng.randrange(-1 << b_bits - 1, 1 << b_bits - 1))
                    for _ in range(count)]


@pytest.mark.parametrize("a_bits", range(2, 6))
@pytest.mark.parametrize("b_bits", range(2, 6))
def test_lut_is_exact_for_every_pair(a_bits, b_bits):
    pairs = [(a, b) for a in range(-1 << a_bits - 1, 1 << a_bits - 1) for b in range(-1 << b_bits - 1, 1 << b_bits - 1)]
    for stages in {0, 1, booth_rows(a_bits, b_bits)}:
        component = LutMultiplier(a_bits=a_bits, b_bits=b_bits, stages=stages)
        assert products(component, pairs, stages) == [a * b for a, b in pairs]


@pytest.mark.parametrize(("a_bits", "b_bits"), [(2, 17), (17, 2), (9, 8), (8, 9), (7, 11), (17, 16), (48, 18)])
def test_lut_is_exact_at_every_depth(a_bits, b_bits):
    rng = random.Random(a_bits * 100 + b_bits)
    pairs = sample(rng, a_bits, b_bits, 60)
    rows = booth_rows(a_bits, b_bits)
    for stages in range(rows + 1) if rows < 6 else (0, 2, rows - 1, rows):
        component = LutMultiplier(a_bits=a_bits, b_bits=b_bits, stages=stages)
        assert component.latency_cycles == stages
        assert products(component, pairs, stages) == [a * b for a, b in pairs]


class Combinational(wiring.Component):
    def __init__(self, a_shape, b_shape):
        bits = a_shape.width + b_shape.width
        super().__init__({"i_a": In(a_shape), "i_b": In(b_shape), "o_product": Out(signed(bits))})

    def elaborate(self, platform):
        m = Module()
        product = signed_product_lut(m, self.i_a, self.i_b)
        assert product.shape() == self.o_product.shape()
        m.d.comb += self.o_product.eq(product)
        return m


def test_function_takes_two_complement_whatever_the_shape():
    pairs = [(a, b) for a in range(16) for b in range(4)]
    as_signed = [((a ^ 8) - 8) * ((b ^ 2) - 2) for a, b in pairs]
    assert products(Combinational(unsigned(4), unsigned(2)), pairs, 0) == as_signed


def test_function_with_one_bit():
    pairs = [(a, b) for a in range(-4, 4) for b in (-1, 0)]
    assert products(Combinational(signed(3), signed(1)), pairs, 0) == [a * b for a, b in pairs]


@pytest.mark.parametrize(("a_bits", "b_bits"), [(7, 2), (8, 18), (18, 18), (19, 18), (34, 3), (35, 18), (36, 18), (48, 18),
                                                (52, 17), (64, 18)])
def test_dsp_is_exact(a_bits, b_bits):
    component = DspMultiplier(a_bits=a_bits, b_bits=b_bits)
    pairs = sample(random.Random(a_bits), a_bits, b_bits, 200)
    assert products(component, pairs, component.latency_cycles) == [a * b for a, b in pairs]
    assert component.latency_cycles == component.dsp_count + 1


def test_chunks():
    assert [dsp_chunks(bits) for bits in (8, 18, 19, 35, 36, 52, 53)] == [1, 1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize(("make", "message"), [
    (lambda: LutMultiplier(a_bits=1, b_bits=8), "multiplier.a_bits: out of range, got 1; allowed: 2 to 64"),
    (lambda: LutMultiplier(a_bits=8, b_bits="8"), "multiplier.b_bits: must be a whole number, got '8'; allowed: 2 to 64"),
    (lambda: LutMultiplier(a_bits=9, b_bits=8, stages=5), "multiplier.stages: out of range, got 5; allowed: 0 to 4"),
    (lambda: DspMultiplier(a_bits=32, b_bits=19), "multiplier.b_bits: out of range, got 19; allowed: 2 to 18"),
    (lambda: DspMultiplier(a_bits=6), "multiplier.a_bits: out of range, got 6; allowed: 7 to 64"),
])
def test_construction_errors(make, message):
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == message


def test_lut_product_takes_one_lut_a_row_bit():
    pytest.importorskip("pyosys")
    cells = synthesise(LutMultiplier(a_bits=9, b_bits=8, stages=1))[""]
    assert cells.dsps == 0
    assert cells.luts <= booth_rows(9, 8) * (9 + 3)


def test_dsp_product_takes_nothing_but_dsps():
    pytest.importorskip("pyosys")
    cells = synthesise(DspMultiplier(a_bits=35), run="begin:map_memory")[""]
    assert cells.dsps == 2
    # The blocks add the partial products and hold the registers; what is left is the delay of the low bits.
    assert not {kind for kind in cells.by_type if kind.lstrip("$") in ("add", "alu", "macc", "mul")}
