"""Pipelined trees: the sum of many signed terms, and the choice of one value out of many."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

SELECT_INDEX_BITS = 4  # a register stage chooses one of 16: two levels of 6-input LUTs


def tree_levels(count: int) -> int:
    """Levels of a binary tree with ``count`` >= 1 leaves: ceil(log2(count))."""
    return (count - 1).bit_length()


class AdderTree(wiring.Component):
    """Sum of ``count`` signed terms, one register after every level of two-input adders.

    Latency :attr:`latency_cycles` = ceil(log2(count)) cycles (0 for one term: a wire), one sum a cycle.

    Parameters
    ----------
    count: terms, >= 1.
    term_bits: bits of a term, signed.
    sum_bits: bits of the sum. A narrower one than ``term_bits + ceil(log2(count))`` wraps, which is still right whenever
        the true sum fits.

    Members
    -------
    i_terms: ``count`` signed terms.
    o_sum: their sum, signed(sum_bits).
    """

    def __init__(self, *, count: int, term_bits: int, sum_bits: int):
        self._count, self._term_bits, self._sum_bits = count, term_bits, sum_bits
        super().__init__({
            "i_terms": In(signed(term_bits)).array(count),
            "o_sum": Out(signed(sum_bits)),
        })

    @property
    def latency_cycles(self) -> int:
        return tree_levels(self._count)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level: list[Value] = list(self.i_terms)
        for depth in range(1, self.latency_cycles + 1):
            bits = min(self._term_bits + depth, self._sum_bits)
            sums: list[Value] = []
            for i in range(0, len(level), 2):
                total = Signal(signed(bits), name=f"level{depth}_sum{i // 2}", reset_less=True)
                m.d.sync += total.eq(level[i] + level[i + 1] if i + 1 < len(level) else level[i])
                sums.append(total)
            level = sums
        m.d.comb += self.o_sum.eq(level[0])
        return m


class SelectTree(wiring.Component):
    """One of ``count`` values, by index, with a register after every choice of one out of 16.

    Latency :attr:`latency_cycles` = max(1, ceil(log16(count))) cycles, one value a cycle.

    Parameters
    ----------
    count: values, >= 1.
    bits: bits of a value, >= 1.

    Members
    -------
    i_values: the values; they are read in the first cycle.
    i_index: which one, 0..count-1; above that the output is meaningless.
    o_value: the chosen value, ``latency_cycles`` later.
    """

    def __init__(self, *, count: int, bits: int):
        self._count, self._bits = count, bits
        super().__init__({
            "i_values": In(unsigned(bits)).array(count),
            "i_index": In(range(max(2, count))),
            "o_value": Out(unsigned(bits)),
        })

    @staticmethod
    def latency(count: int) -> int:
        """Cycles from index to value for ``count`` values."""
        return max(1, -(-tree_levels(count) // SELECT_INDEX_BITS))

    @property
    def latency_cycles(self) -> int:
        return self.latency(self._count)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        values: list[Value] = list(self.i_values)
        index: Value = self.i_index
        for stage in range(self.latency_cycles):
            chosen: list[Value] = []
            for i in range(0, len(values), 1 << SELECT_INDEX_BITS):
                value = Signal(self._bits, name=f"stage{stage}_value{len(chosen)}", reset_less=True)
                m.d.sync += value.eq(_choose(values[i:i + (1 << SELECT_INDEX_BITS)], index))
                chosen.append(value)
            values = chosen
            if len(values) > 1:
                rest = Signal(len(index) - SELECT_INDEX_BITS, name=f"stage{stage}_index", reset_less=True)
                m.d.sync += rest.eq(index[SELECT_INDEX_BITS:])
                index = rest
        m.d.comb += self.o_value.eq(values[0])
        return m


def _choose(values: list[Value], index: Value) -> Value:
    """Binary multiplexer tree: a switch would become one-hot logic, twice the LUTs."""
    bit = 0
    while len(values) > 1:
        values = [Mux(index[bit], values[i + 1], values[i]) if i + 1 < len(values) else values[i]
                  for i in range(0, len(values), 2)]
        bit += 1
    return values[0]
