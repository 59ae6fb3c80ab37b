"""Matching columns: exhaustive when small, random and nearly alike when large, with clear; compressors, latency and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from hdl.errors import InputError
from hdl.popcount import STRUCTURES, Compressor, Kind, MatchCounter, compression


def check(bits: int, pairs: list[tuple[int, int]], clear: list[int], lut_inputs: int = 6) -> None:
    dut = MatchCounter(bits=bits, lut_inputs=lut_inputs)
    latency = dut.latency_cycles
    seen: list[int] = []

    async def bench(ctx: Any) -> None:
        for cycle in range(len(pairs) + latency):
            a, b = pairs[cycle] if cycle < len(pairs) else (0, 0)
            ctx.set(dut.i_a, a)
            ctx.set(dut.i_b, b)
            own = cycle - (latency - 1)  # the words whose count is about to enter the output register
            ctx.set(dut.i_clear, clear[own] if 0 <= own < len(pairs) else 0)
            seen.append((await ctx.tick().sample(dut.o_count))[-1])

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
    expected = [0 if gone else bits - (a ^ b).bit_count() for (a, b), gone in zip(pairs, clear, strict=True)]
    assert seen[latency:] == expected


@pytest.mark.parametrize("lut_inputs", [4, 6])
@pytest.mark.parametrize("bits", range(1, 5))
def test_every_pair_of_words(bits: int, lut_inputs: int) -> None:
    check(bits, [(a, b) for a in range(1 << bits) for b in range(1 << bits)], [0] * (1 << 2 * bits), lut_inputs)


@pytest.mark.parametrize(("bits", "lut_inputs"), [*((bits, 6) for bits in (6, 7, 9, 31, 33, 64, 96, 127, 128, 192, 512)),
                                                  (7, 4), (32, 4), (65, 4), (128, 4)])
def test_random_words(bits: int, lut_inputs: int) -> None:
    rng = np.random.default_rng(bits)
    full = (1 << bits) - 1
    words = [0, full, 1, 1 << (bits - 1), full - 1]
    words += [int.from_bytes(rng.bytes(-(-bits // 8)), "little") & full for _ in range(12)]
    alike = [0, *((1 << int(n)) - 1 for n in rng.integers(0, bits + 1, 6))]  # which columns differ
    pairs = [(word, word ^ int(rng.choice(np.array(alike, object))) if at % 2 else full ^ word if at % 4 else 0)
             for at, word in enumerate(words)]
    check(bits, pairs, [int(v) for v in rng.random(len(pairs)) < 0.3], lut_inputs)


KINDS = sorted({kind for structure in STRUCTURES.values() for kind in (structure.main, *dict(structure.others))},
               key=lambda kind: (kind.low, kind.high))


@pytest.mark.parametrize("kind", KINDS)
def test_compressors_add_up(kind: Kind) -> None:
    dut = Compressor(kind=kind)

    async def bench(ctx: Any) -> None:
        for word in range(1 << kind.low + kind.high):
            ctx.set(dut.i_bits, word)
            low, high = word & (1 << kind.low) - 1, word >> kind.low
            assert ctx.get(dut.o_sum) == low.bit_count() + 2 * high.bit_count()

    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("lut_inputs", [4, 6])
@pytest.mark.parametrize("bits", [1, 2, 3, 8, 64, 128, 511, 512])
def test_compression_keeps_the_sum(bits: int, lut_inputs: int) -> None:
    """What compressors take and leave, followed by hand: at most two bits a weight are left, and they can hold the count."""
    groups, rest = divmod(bits, STRUCTURES[lut_inputs].group)
    heights = [groups + rest, groups] + [0] * 12
    for level in compression(bits, lut_inputs).levels:
        arriving = [0] * len(heights)
        for weight, kinds in enumerate(level):
            for kind in kinds:
                heights[weight] -= kind.low
                heights[weight + 1] -= kind.high
                for output in range(kind.outputs):
                    arriving[weight + output] += 1
        assert min(heights) >= 0
        heights = [have + new for have, new in zip(heights, arriving, strict=True)]
    assert max(heights) <= 2
    assert sum(height << weight for weight, height in enumerate(heights)) >= bits


def test_look_up_tables_a_column() -> None:
    """The bound of the task for these widths; what synthesis makes of them is in test_synthesis.py."""
    assert all(compression(bits).luts <= 1.31 * bits for bits in range(64, 193, 16))


def test_latency_grows_with_the_logarithm() -> None:
    assert [MatchCounter.latency(n) for n in (1, 2, 3, 8, 64, 512)] == LATENCIES
    assert MatchCounter(bits=64).latency_cycles == MatchCounter.latency(64)


LATENCIES = [1, 1, 1, 2, 3, 6]


@pytest.mark.parametrize("bits", [0, -1, 513, 8.0, True])
def test_refuses_widths(bits: Any) -> None:
    with pytest.raises(InputError) as error:
        MatchCounter(bits=bits)
    assert str(error.value) == f"MatchCounter.bits: word width out of range, got {bits!r}; allowed: 1 to 512"
