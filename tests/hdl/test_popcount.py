"""Population count: exhaustive when small, random and one-hot when large, with clear; latency and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from hdl.errors import InputError
from hdl.popcount import PopCount


def check(bits: int, words: list[int], clear: list[int]) -> None:
    dut = PopCount(bits=bits)
    latency = dut.latency_cycles
    seen: list[int] = []

    async def bench(ctx: Any) -> None:
        for cycle in range(len(words) + latency):
            ctx.set(dut.i_bits, words[cycle] if cycle < len(words) else 0)
            own = cycle - (latency - 1)  # the word whose count is about to enter the output register
            ctx.set(dut.i_clear, clear[own] if 0 <= own < len(words) else 0)
            seen.append((await ctx.tick().sample(dut.o_count))[-1])

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
    expected = [0 if gone else word.bit_count() for word, gone in zip(words, clear, strict=True)]
    assert seen[latency:] == expected


@pytest.mark.parametrize("bits", range(1, 10))
def test_every_word(bits: int) -> None:
    check(bits, list(range(1 << bits)), [0] * (1 << bits))


@pytest.mark.parametrize("bits", [13, 31, 32, 33, 64, 65, 127, 512])
def test_random_words(bits: int) -> None:
    rng = np.random.default_rng(bits)
    words = [0, (1 << bits) - 1, 1, 1 << (bits - 1), (1 << bits) - 2]
    words += [int.from_bytes(rng.bytes(-(-bits // 8)), "little") % (1 << bits) for _ in range(12)]
    words += [(1 << int(n)) - 1 for n in rng.integers(0, bits + 1, 6)]
    check(bits, words, [int(v) for v in rng.random(len(words)) < 0.3])


def test_latency_grows_with_the_logarithm() -> None:
    assert [PopCount.latency(n) for n in (1, 2, 3, 8, 64, 512)] == LATENCIES
    assert PopCount(bits=64).latency_cycles == PopCount.latency(64)


LATENCIES = [1, 1, 1, 3, 5, 8]


@pytest.mark.parametrize("bits", [0, -1, 513, 8.0, True])
def test_refuses_widths(bits: Any) -> None:
    with pytest.raises(InputError) as error:
        PopCount(bits=bits)
    assert str(error.value) == f"PopCount.bits: word width out of range, got {bits!r}; allowed: 1 to 512"
