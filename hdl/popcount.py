"""Population count: how many bits of a word are set."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.errors import InputError

MAX_BITS = 512
FINAL_ROWS = 3  # bits of equal weight that the final adder takes: a full adder and a carry chain


class PopCount(wiring.Component):
    """Count of the set bits of a word, by registered compressors and a final adder.

    The first stage takes three bits at a time (so that three XNORs in front of it still fit a 6-input LUT), later ones up
    to six bits of equal weight; every stage ends in a register, which keeps synthesis from rebuilding the compressors into
    something larger. Latency :meth:`latency` cycles (compressor stages + 1), one word a cycle.

    Parameters
    ----------
    bits: width of the word, 1..512.

    Members
    -------
    i_bits: the word.
    i_clear: sets the output register to 0 instead of the count: it belongs to the word given ``latency - 1`` cycles earlier.
    o_count: set bits, 0..bits, registered.

    Raises
    ------
    InputError: ``bits`` out of range.
    """

    def __init__(self, *, bits: int):
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= MAX_BITS:
            raise InputError("word width out of range", where="PopCount.bits", value=bits, allowed=f"1 to {MAX_BITS}")
        self._bits = bits
        super().__init__({"i_bits": In(bits), "i_clear": In(1), "o_count": Out(range(bits + 1))})

    @staticmethod
    def latency(bits: int) -> int:
        """Cycles from a word of ``bits`` bits to its count."""
        return len(_plan(bits)) + 1

    @property
    def latency_cycles(self) -> int:
        return self.latency(self._bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        heap: list[list[Value]] = [list(self.i_bits)]
        for number, stage in enumerate(_plan(self._bits)):
            following: list[list[Value]] = [[] for _ in range(len(heap) + 2)]
            for weight, sizes in enumerate(stage):
                bits = iter(heap[weight])
                for unit, size in enumerate(sizes):
                    inputs = [next(bits) for _ in range(size)]
                    count = Signal(range(size + 1), name=f"stage{number}_weight{weight}_unit{unit}", reset_less=True)
                    m.d.sync += count.eq(_small_count(inputs))
                    for i in range(len(count)):
                        following[weight + i].append(count[i])
            heap = [bits for bits in following if bits]
        rows = [Cat(bits[row] if row < len(bits) else Const(0, 1) for bits in heap) for row in range(FINAL_ROWS)]
        count = Signal.like(self.o_count, name="count", reset_less=True)
        m.d.sync += count.eq(Mux(self.i_clear, 0, sum(rows, Const(0, 0))))
        m.d.comb += self.o_count.eq(count)
        return m


def _small_count(bits: list[Value]) -> Value:
    """Sum of at most six bits, in gates: an adder would become a carry chain, and each bit of this is one 6-input LUT."""
    if len(bits) == 1:
        return bits[0]
    if len(bits) <= 3:
        return Cat(_full_adder(bits))
    low, low_carry = _full_adder(bits[:3])
    high, high_carry = _full_adder(bits[3:])
    return Cat(low ^ high, _full_adder([low_carry, high_carry, low & high]))


def _full_adder(bits: list[Value]) -> tuple[Value, Value]:
    """Sum and carry of one to three bits."""
    a, b, c = (bits + [Const(0, 1), Const(0, 1)])[:3]
    return a ^ b ^ c, (a & b) | (c & (a ^ b))


def _sizes(height: int, widest: int) -> list[int]:
    """How one stage splits ``height`` bits of equal weight over compressors (1: just a register)."""
    sizes = [widest] * (height // widest)
    rest = height % widest
    # 5 bits to 3 save two bits for three LUTs; 4 to 3 would save one for three, 3 to 2 saves it for two
    return sizes + {0: [], 1: [1], 2: [1, 1], 3: [3], 4: [3, 1], 5: [5]}[rest]


def _plan(bits: int) -> list[list[list[int]]]:
    """Compressor sizes by stage and weight, down to what the final adder takes."""
    heights, stages, widest = [bits], [], 3
    while max(heights) > FINAL_ROWS:
        stage = [_sizes(height, widest) for height in heights]
        following = [0] * (len(heights) + 2)
        for weight, sizes in enumerate(stage):
            for size in sizes:
                for i in range(size.bit_length()):
                    following[weight + i] += 1
        heights = [height for height in following if height]
        stages.append(stage)
        widest = 6
    return stages
