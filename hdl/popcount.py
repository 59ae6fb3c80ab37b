"""How many columns of two words of bits match: XNOR and population count, from compressors that synthesis leaves alone.

Yosys 0.70 takes a sum of bits apart and makes 2.0 to 2.3 look-up tables a column of it (6-input ones). The compressors here are modules
of their own, one of a kind, which keep their borders (:class:`Kept`), so that each stays what it is: three columns to two bits in two
look-up tables, six bits to three in three. With one carry chain at the end that is 1.2 to 1.33 a column. Where look-up tables have 4
inputs, pairs of columns and full adders take 2.9 a column, and nothing wider: of a function of six inputs synthesis would make four of
them (``docs/resources.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.errors import InputError

MAX_BITS = 512
LEVELS_PER_STAGE = 2  # of look-up tables between registers


@dataclass(frozen=True)
class Kind:
    """A compressor: ``low`` bits of one weight and ``high`` of the next become their sum. ``luts``: its 6-input look-up tables."""

    low: int
    high: int = 0

    @property
    def outputs(self) -> int:
        return (self.low + 2 * self.high).bit_length()

    @property
    def luts(self) -> int:
        return self.outputs


@dataclass(frozen=True)
class Structure:
    """``group``: columns whose matches are counted at once. ``main``: the compressor for most bits. ``others``: those for what it leaves
    over, and how many of each a weight may have: more never pays."""

    group: int
    main: Kind
    others: tuple[tuple[Kind, int], ...] = ()


STRUCTURES = {6: Structure(3, Kind(6), ((Kind(5, 1), 2), (Kind(3, 2), 1), (Kind(5), 1), (Kind(3), 2))),
              4: Structure(2, Kind(3))}
"""By the inputs of a look-up table."""


class MatchCounter(wiring.Component):
    """Number of columns in which two words have the same bit. One pair of words a cycle, :meth:`latency` cycles later.

    Parameters
    ----------
    bits: columns, 1..512. lut_inputs: of the family's look-up tables, 4 or 6.

    Members
    -------
    i_a, i_b: the words.
    i_clear: sets the output register to 0 instead: it belongs to the words given ``latency - 1`` cycles earlier.
    o_count: matching columns, 0..bits, registered.

    Raises
    ------
    InputError: ``bits`` out of range.
    """

    def __init__(self, *, bits: int, lut_inputs: int = 6):
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= MAX_BITS:
            raise InputError("word width out of range", where="MatchCounter.bits", value=bits, allowed=f"1 to {MAX_BITS}")
        self._bits, self._structure, self._lut_inputs = bits, STRUCTURES[lut_inputs], lut_inputs
        super().__init__({"i_a": In(bits), "i_b": In(bits), "i_clear": In(1), "o_count": Out(range(bits + 1))})

    @staticmethod
    def latency(bits: int, lut_inputs: int = 6) -> int:
        """Cycles from two words of ``bits`` bits to their count: a register after every second level of compressors, and the last."""
        return (len(compression(bits, lut_inputs).levels) + 1) // LEVELS_PER_STAGE + 1

    @property
    def latency_cycles(self) -> int:
        return self.latency(self._bits, self._lut_inputs)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        heap = self._matches(m)
        levels = compression(self._bits, self._lut_inputs).levels
        for number, level in enumerate(levels, start=1):
            if number % LEVELS_PER_STAGE == 0:
                heap = _registered(m, heap, f"stage{number // LEVELS_PER_STAGE}")
            heap = _compressed(m, heap, level, number)
        if (len(levels) + 1) % LEVELS_PER_STAGE == 0:
            heap = _registered(m, heap, "matched")
        rows = [Cat(bits[row] if row < len(bits) else Const(0, 1) for bits in heap) for row in range(2)]
        count = Signal.like(self.o_count, name="count", reset_less=True)
        m.d.sync += count.eq(Mux(self.i_clear, 0, rows[0] + rows[1]))
        m.d.comb += self.o_count.eq(count)
        return m

    def _matches(self, m: Module) -> list[list[Value]]:
        """The bits of each weight that say how many columns of each group match."""
        heap: list[list[Value]] = [[], []]
        size = self._structure.group
        whole = self._bits // size * size
        for start in range(0, whole, size):
            m.submodules[f"matches_{start}"] = group = MatchGroup(columns=size)
            m.d.comb += [group.i_a.eq(self.i_a[start:start + size]), group.i_b.eq(self.i_b[start:start + size])]
            heap[0].append(group.o_count[0])
            heap[1].append(group.o_count[1])
        rest = slice(whole, self._bits)
        heap[0] += [~(a ^ b) for a, b in zip(self.i_a[rest], self.i_b[rest], strict=True)]
        return heap


class Kept(wiring.Component):
    """Combinational logic that keeps its borders in synthesis, also where all others are dissolved.

    In Verilog, all components with the same ``module_name``, which must be alike, are instances of one module
    (:func:`hdl.verilog.component_verilog`).
    """

    module_name: str

    def elaborate(self, platform: object) -> Elaboratable:
        get_kept = getattr(platform, "get_kept", None)
        return self.logic() if get_kept is None else get_kept(self)

    def logic(self) -> Module:
        raise NotImplementedError


class MatchGroup(Kept):
    """How many of two or three pairs of bits are alike: two functions of four or six bits. Combinational.

    Members
    -------
    i_a, i_b: the bits. o_count: 0..3.
    """

    def __init__(self, *, columns: int) -> None:
        self.module_name = f"nearmac_matches_{columns}"
        super().__init__({"i_a": In(columns), "i_b": In(columns), "o_count": Out(2)})

    def logic(self) -> Module:
        m = Module()
        m.d.comb += self.o_count.eq(Cat(_full_adder(list(~(self.i_a ^ self.i_b)))))
        return m


class Compressor(Kept):
    """Sum of bits of one weight and of the next. Combinational.

    Members
    -------
    i_bits: those of the lower weight first. o_sum: in units of the lower weight.
    """

    def __init__(self, *, kind: Kind):
        self._kind, self.module_name = kind, f"nearmac_compressor_{kind.low}_{kind.high}"
        super().__init__({"i_bits": In(kind.low + kind.high), "o_sum": Out(kind.outputs)})

    def logic(self) -> Module:
        m = Module()
        heap = [list(self.i_bits[:self._kind.low]), list(self.i_bits[self._kind.low:]), [], []]
        for weight in range(self._kind.outputs):
            bits = heap[weight]
            while len(bits) > 1:  # in gates: an adder would become a carry chain
                total, carry = _full_adder(bits[:3])
                bits[:3] = []
                bits.append(total)
                heap[weight + 1].append(carry)
        m.d.comb += self.o_sum.eq(Cat(bits[0] for bits in heap[:self._kind.outputs]))
        return m


@dataclass(frozen=True)
class Compression:
    """How the matches of a word are added up.

    ``luts``: look-up tables of everything. ``levels``: the compressors of each level by weight, each list in the order
    in which they take bits.
    """

    luts: int
    levels: tuple[tuple[tuple[Kind, ...], ...], ...]


@lru_cache(maxsize=2 * MAX_BITS)
def compression(bits: int, lut_inputs: int = 6) -> Compression:
    """The compressors that need the fewest look-up tables to leave at most two bits a weight, and when each has its bits."""
    structure = STRUCTURES[lut_inputs]
    groups, rest = divmod(bits, structure.group)
    luts, weights = _fewest(structure, groups + rest, groups, 0, False)
    heights, todo, levels = [groups + rest, groups], [list(kinds) for kinds in weights], []
    while any(todo):
        level, arriving = [], [0] * (len(todo) + 2)
        heights += [0] * (len(arriving) - len(heights))
        for weight, kinds in enumerate(todo):
            level.append(tuple(_take(kinds, heights, weight)))
            for kind in level[-1]:
                for output in range(kind.outputs):
                    arriving[weight + output] += 1
        heights = [have + new for have, new in zip(heights, arriving, strict=True)]
        levels.append(tuple(level))
    return Compression(2 * groups + rest + luts, tuple(levels))


def _take(kinds: list[Kind], heights: list[int], weight: int) -> list[Kind]:
    """Moves the compressors out of ``kinds`` whose bits are there, and takes those bits away."""
    taken = []
    for kind in list(kinds):
        if heights[weight] >= kind.low and heights[weight + 1] >= kind.high:
            heights[weight] -= kind.low
            heights[weight + 1] -= kind.high
            kinds.remove(kind)
            taken.append(kind)
    return taken


@lru_cache(maxsize=1 << 16)
def _fewest(structure: Structure, here: int, following: int, after: int, chained: bool) -> tuple[int, tuple[tuple[Kind, ...], ...]]:
    """(look-up tables, compressors by weight) from this weight up; ``here``, ``following``, ``after``: bits at this and the next weights.

    ``chained``: the final adder's carry chain began below.
    """
    if not here + following + after:
        return 0, ()
    best: tuple[int, tuple[tuple[Kind, ...], ...]] | None = None
    for counts in product(*(range(most + 1) for _, most in structure.others)):
        few = [kind for (kind, _), count in zip(structure.others, counts, strict=True) for _ in range(count)]
        rest = here - sum(kind.low - 1 for kind in few)  # each leaves one bit of this weight
        for left in (1, 2):
            most, odd = divmod(rest - left, structure.main.low - 1)
            if here and (odd or most < 0) or not here and few:
                continue
            kinds = [structure.main] * max(0, most) + few
            high = following - sum(kind.high for kind in few)
            if high < 0:
                continue
            adds = chained or bool(here) and left == 2
            above, weights = _fewest(structure, high + len(kinds), after + sum(kind.outputs > 2 for kind in kinds), 0, adds)
            luts = sum(kind.luts for kind in kinds) + adds + above
            if best is None or luts < best[0]:
                best = luts, (tuple(kinds), *weights)
    assert best is not None  # threes, which every structure has, reach one or two bits from any height
    return best


def _compressed(m: Module, heap: list[list[Value]], level: tuple[tuple[Kind, ...], ...], number: int) -> list[list[Value]]:
    """The bits of each weight after one level: what waited longest is taken first."""
    heap = [list(bits) for bits in heap] + [[] for _ in range(len(level) + 2 - len(heap))]
    arriving: list[list[Value]] = [[] for _ in heap]
    for weight, kinds in enumerate(level):
        for unit, kind in enumerate(kinds):
            bits = [heap[weight].pop(0) for _ in range(kind.low)] + [heap[weight + 1].pop(0) for _ in range(kind.high)]
            m.submodules[f"sum_{number}_{weight}_{unit}"] = compressor = Compressor(kind=kind)
            m.d.comb += compressor.i_bits.eq(Cat(bits))
            for output in range(kind.outputs):
                arriving[weight + output].append(compressor.o_sum[output])
    heap = [old + new for old, new in zip(heap, arriving, strict=True)]
    while not heap[-1]:
        heap.pop()
    return heap


def _registered(m: Module, heap: list[list[Value]], name: str) -> list[list[Value]]:
    result: list[list[Value]] = []
    for weight, bits in enumerate(heap):
        register = Signal(len(bits), name=f"{name}_weight{weight}", reset_less=True)
        m.d.sync += register.eq(Cat(bits))
        result.append(list(register))
    return result


def _full_adder(bits: list[Value]) -> tuple[Value, Value]:
    """Sum and carry of one to three bits."""
    a, b, c = (bits + [Const(0, 1), Const(0, 1)])[:3]
    return a ^ b ^ c, (a & b) | (c & (a ^ b))
