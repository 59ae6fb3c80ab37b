"""The counts of DSP blocks and block RAMs against synthesis, on every family; one run each, over many products and memories."""

from __future__ import annotations

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from boards.primitives import Family
from hdl.bank import Bank
from hdl.family import block_ram, block_rams, distributed_rams, dsp_blocks
from hdl.multiply import DspMultiplier, chunk_bits
from hdl.ram import RamShape, least_depth, ram_shape
from hdl.synthesis import BLOCKS, synthesise, total

PRODUCTS = [(2, 3), (2, 9), (3, 5), (4, 5), (4, 17), (8, 9), (9, 10), (16, 17), (17, 19), (18, 25), (19, 24), (20, 28), (25, 25), (18, 32),
            (33, 35)]
MEMORIES = [(1, 4096), (4, 512), (5, 8192), (8, 2048), (9, 4096), (10, 1024), (18, 2048), (19, 512), (27, 16384), (32, 512), (36, 1024),
            (37, 4096), (55, 512), (57, 16384), (72, 512), (109, 1024), (128, 512)]
SHALLOW = [(5, 16), (16, 32), (27, 64), (32, 100)]
CHUNKED = [19, 26, 36, 48]  # accumulators that the output stage multiplies


class Product(wiring.Component):
    """A registered product."""

    def __init__(self, a_bits: int, b_bits: int) -> None:
        super().__init__({"a": In(signed(a_bits)), "b": In(signed(b_bits)), "product": Out(signed(a_bits + b_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        product = Signal.like(self.product)
        m.d.sync += product.eq(self.a * self.b)
        m.d.comb += self.product.eq(product)
        return m


class Parts(wiring.Component):
    """Components side by side, all with their own ports."""

    def __init__(self, parts: dict[str, wiring.Component]) -> None:
        self._parts = parts
        super().__init__({name: Out(part.signature) for name, part in parts.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, part in self._parts.items():
            m.submodules[name] = part
            wiring.connect(m, wiring.flipped(getattr(self, name)), part)
        return m


def bank(shape: RamShape) -> Bank:
    return Bank(shape=shape, word_bits=sum(shape.slice_bits))


@pytest.mark.parametrize("family", Family)
def test_counts_are_those_of_synthesis(family: Family) -> None:
    pytest.importorskip("pyosys")
    parts: dict[str, wiring.Component] = {f"product_{a}_{b}": Product(a, b) for a, b in PRODUCTS}
    expected = {f"product_{a}_{b}": (dsp_blocks(family, a, b), 0, 0) for a, b in PRODUCTS}
    memories = [(width, max(depth, least_depth(family))) for width, depth in MEMORIES]
    for width, depth in memories:
        shape = ram_shape(width, depth, family=family)
        parts[f"bank_{width}_{depth}"] = bank(shape)
        expected[f"bank_{width}_{depth}"] = (0, shape.blocks, 0)
    if family is not Family.ICE40:
        for width, entries in SHALLOW:
            shape = ram_shape(width, entries, family=family, distributed_depth=128)
            parts[f"shallow_{width}_{entries}"] = bank(shape)
            expected[f"shallow_{width}_{entries}"] = (0, 0, shape.cells)
            assert shape.cells == distributed_rams(family, width, shape.depth) > 0
        for bits in CHUNKED:
            parts[f"chunked_{bits}"] = multiplier = DspMultiplier(a_bits=bits, chunk=chunk_bits(WIDE[family]))
            expected[f"chunked_{bits}"] = (multiplier.dsp_count, 0, 0)
    cells = synthesise(Parts(parts), family=family, flatten=False, run=BLOCKS)
    got = {name: total(cells, name) for name in parts}
    assert {name: (part.dsps, part.block_rams, part.distributed_rams) for name, part in got.items()} == expected
    assert not any(part.half_block_rams for part in got.values())


WIDE = {Family.SPARTAN6: 18, Family.SERIES7: 25, Family.ULTRASCALE_PLUS: 27, Family.ECP5: 18, Family.GOWIN: 18}


def test_known_products() -> None:
    """A block of 25 x 18 bits takes 25 x 18, and no 19 x 24."""
    assert [dsp_blocks(Family.SERIES7, *sizes) for sizes in ((25, 18), (18, 25), (19, 24), (24, 19), (4, 4), (4, 5))] == [1, 1, 2, 2, 0, 1]
    assert [dsp_blocks(Family.ULTRASCALE_PLUS, 27, 18), dsp_blocks(Family.ULTRASCALE_PLUS, 28, 18)] == [1, 2]
    assert dsp_blocks(Family.SPARTAN6, 32, 32) == 4  # parts of 17 bits and a sign: four products


def test_known_block_rams() -> None:
    """Capacities of the vendors' guides."""
    assert [block_ram(family).bits for family in Family] == [18432, 18432, 18432, 18432, 4096, 18432]
    for family in Family:
        for depth, width in block_ram(family).widths:
            assert (block_rams(family, width, depth), block_rams(family, width + 1, depth)) in ((1, 2), (1, 3))
    assert block_rams(Family.SERIES7, 72, 512) == 2 and block_rams(Family.SERIES7, 9, 4096) == 2  # one RAMB36 each
