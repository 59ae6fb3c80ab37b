"""Signed multipliers: Booth rows in LUTs, which synthesis cannot move into a DSP block, and wide products in DSP blocks.

A narrow DSP product needs nothing from here: ``a * b`` of registered operands is one DSP48A1.
"""

from __future__ import annotations

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.errors import InputError

DSP_OPERAND_BITS = 18  # the narrower operand of every DSP block but iCE40's, signed
MAX_OPERAND_BITS = 64


def booth_rows(a_bits: int, b_bits: int) -> int:
    """Adder rows of a LUT product: half the bits (rounded up) of the operand whose recoding gives the smaller array."""
    return -(-(a_bits if _recodes_first(a_bits, b_bits) else b_bits) // 2)


def signed_product_lut(m: Module, a: Value, b: Value) -> Value:
    """Exact signed product of ``a`` and ``b`` (taken as two's complement whatever their shape), ``len(a) + len(b)`` bits.

    Combinational, latency 0: a chain of ``booth_rows(len(a), len(b))`` adders, each 2 bits wider than the operand that is
    not recoded. The adders go into ``m``. Operands of 1 bit are 0 and -1.
    """
    return _booth_product(m, a, b, stages=0)


def booth_step(a: Value, digit: Value, partial: Value) -> Value:
    """``partial + d * a``, of ``len(a) + 2`` bits, with ``d`` in -2..2 from three bits ``digit`` of the other operand.

    ``partial`` is the sum of the earlier rows, shifted right by 2. One 6-input LUT a bit: selection and addition share it,
    because the carry chain takes ``partial`` itself (the first operand of the sum) as its data input.
    """
    bits, sign = len(a) + 2, a[-1]
    one = digit[0] ^ digit[1]
    two = (digit == 0b011) | (digit == 0b100)
    chosen = Mux(one, Cat(a, sign, sign), Mux(two, Cat(C(0, 1), a, sign), 0))
    # Minus is "invert and add one"; the one enters as the carry of an extra bit, which keeps this a single adder. Digit
    # 111 is zero and comes out as -1 + 1.
    negative = digit[2]
    return (Cat(C(1, 1), partial) + Cat(negative, Mux(negative, ~chosen, chosen)))[1:bits + 1]


class LutMultiplier(wiring.Component):
    """Signed product in LUTs, with 0 to ``booth_rows`` pipeline registers.

    A new pair of operands is taken every cycle; ``o_product`` follows ``stages`` cycles later. The rows are divided evenly:
    with ``stages == booth_rows(a_bits, b_bits)`` no path holds more than one adder. Registers are not reset.

    Parameters
    ----------
    a_bits, b_bits: operand widths, 2..64.
    stages: latency in cycles, 0..booth_rows; 0 is combinational.

    Members
    -------
    i_a, i_b: In, signed(a_bits), signed(b_bits).
    o_product: Out, signed(a_bits + b_bits).

    Raises
    ------
    InputError: a parameter is out of range.
    """

    def __init__(self, *, a_bits: int, b_bits: int, stages: int = 0) -> None:
        _check("a_bits", a_bits, 2, MAX_OPERAND_BITS)
        _check("b_bits", b_bits, 2, MAX_OPERAND_BITS)
        _check("stages", stages, 0, booth_rows(a_bits, b_bits))
        self.latency_cycles = stages
        super().__init__({"i_a": In(signed(a_bits)), "i_b": In(signed(b_bits)), "o_product": Out(signed(a_bits + b_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o_product.eq(_booth_product(m, self.i_a, self.i_b, stages=self.latency_cycles))
        return m


class DspMultiplier(wiring.Component):
    """Signed product of a wide and an 18-bit operand in a column of DSP blocks, sums included.

    A new pair of operands is taken every cycle; ``o_product`` follows ``latency_cycles = dsp_count + 1`` cycles later. The wide
    operand is cut into chunks of up to ``chunk`` bits and a signed top of one bit more: ``dsp_count = max(1, ceil((a_bits - 1) / chunk))``.
    Each block adds the upper part of the product below it. Registers are not reset.

    Parameters
    ----------
    a_bits: wide operand, 7..64 (narrower products would stay in LUTs).
    b_bits: other operand, 2..18.
    chunk: unsigned bits of the wide operand that a block takes: 17 for blocks of 18 x 18 bits, 24 and 26 for 25 and 27 x 18.

    Members
    -------
    i_a, i_b: In, signed(a_bits), signed(b_bits).
    o_product: Out, signed(a_bits + b_bits).

    Raises
    ------
    InputError: a parameter is out of range.
    """

    def __init__(self, *, a_bits: int, b_bits: int = DSP_OPERAND_BITS, chunk: int = DSP_OPERAND_BITS - 1) -> None:
        _check("a_bits", a_bits, 7, MAX_OPERAND_BITS)
        _check("b_bits", b_bits, 2, DSP_OPERAND_BITS)
        self.dsp_count = dsp_chunks(a_bits, chunk)
        self._chunk = min(chunk, -(-a_bits // self.dsp_count))  # even ones: no block is left with a bit or two, which would be logic
        self.latency_cycles = self.dsp_count + 1
        super().__init__({"i_a": In(signed(a_bits)), "i_b": In(signed(b_bits)), "o_product": Out(signed(a_bits + b_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low: Value = C(0, 0)  # product bits below this chunk's
        total: Value = C(0, 0)
        for chunk in range(self.dsp_count):
            start, top = chunk * self._chunk, chunk == self.dsp_count - 1
            a: Value = (self.i_a[start:] if top else Cat(self.i_a[start:start + self._chunk], C(0, 1))).as_signed()
            b: Value = self.i_b
            # Chunk n waits n - 1 cycles more, so that its product meets the sum of the chunks below.
            for delay in range(max(1, chunk)):
                a, b = _register(m, a, f"x{delay}_a{chunk}"), _register(m, b, f"x{delay}_b{chunk}")
            product = _register(m, a * b, f"m_product{chunk}")
            if chunk:
                low = _register(m, Cat(low, total[:self._chunk]), f"p_low{chunk}")
                # No wider than the product: what comes up from below is less than one unit of a, times b.
                total = _register(m, (product + total[self._chunk:].as_signed())[:len(product)].as_signed(), f"p_sum{chunk}")
            else:
                total = product
        m.d.comb += self.o_product.eq(Cat(low, total))
        return m


def chunk_bits(operand_bits: int) -> int:
    """Unsigned bits that fit a DSP block's signed operand."""
    return operand_bits - 1


def dsp_chunks(a_bits: int, chunk: int = DSP_OPERAND_BITS - 1) -> int:
    """DSP blocks of an ``a_bits`` x 18-bit signed product: ``chunk`` bits each, and one more in the top one."""
    return max(1, -(-(a_bits - 1) // chunk))


def _booth_product(m: Module, a: Value, b: Value, *, stages: int) -> Value:
    """The chain of Booth rows, cut by ``stages`` registers."""
    if _recodes_first(len(a), len(b)):
        a, b = b, a
    bits, rows = len(a) + len(b), -(-len(b) // 2)
    digits: Value = Cat(C(0, 1), b, b[-1])  # a zero below the lowest bit; the sign repeats above
    low: Value = C(0, 0)  # product bits that no later row changes
    total: Value = C(0, len(a) + 2)
    for row in range(rows):
        partial = Cat(total[2:], total[-1].replicate(2))
        low = Cat(low, total[:2]) if row else low
        total = Signal(len(a) + 2, name=f"booth_{row}")
        m.d.comb += total.eq(booth_step(a, digits[:3], partial))
        digits = digits[2:]
        if (row + 1) * stages // rows > row * stages // rows:
            total, low = _register(m, total, f"p{row}_total"), _register(m, low, f"p{row}_low")
            if row + 1 < rows:
                a, digits = _register(m, a, f"p{row}_a"), _register(m, digits, f"p{row}_digits")
    return Cat(low, total)[:bits].as_signed()


def _register(m: Module, value: Value, name: str) -> Value:
    register = Signal(value.shape(), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def _recodes_first(a_bits: int, b_bits: int) -> bool:
    """Whether recoding the first operand costs fewer adder bits, or as many in fewer rows."""
    first, second = -(-a_bits // 2), -(-b_bits // 2)
    return (first * (b_bits + 2), first) < (second * (a_bits + 2), second)


def _check(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError("out of range" if isinstance(value, int) else "must be a whole number",
                         where=f"multiplier.{name}", value=value, allowed=f"{low} to {high}")
