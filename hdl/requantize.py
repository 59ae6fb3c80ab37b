"""The output stage: accumulators to activations, by a multiplier and a shift, or by a threshold for 1-bit activations.

Both stages have one interface: ``i_valid`` and ``i_acc`` with the channel's parameters in, ``o_valid`` and ``o_value`` out,
at most one result every ``initiation_interval`` cycles, each after exactly ``latency_cycles``; nothing stalls. ``Requantizer``
and ``Threshold`` describe them, compute the same in NumPy (``reference``) and build them (``create``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from amaranth.hdl import C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.design import MAX_ACCUMULATOR_BITS, MULTIPLIER_BITS, SHIFT_BITS, SHIFT_MAX, OutputMultiplier
from hdl.errors import InputError, nearest
from hdl.multiply import DSP_OPERAND_BITS, DspMultiplier, LutMultiplier, booth_rows, booth_step, dsp_chunks

MIN_ACCUMULATOR_BITS = 8
OPERAND_BITS = MULTIPLIER_BITS + 1  # the multiplier as a signed number
SERIAL_STEPS = -(-OPERAND_BITS // 2)  # two multiplier bits a step
COARSE_SHIFT = 16  # done when the product is taken over; the rest of the shift, 0 to 15, follows
SERIAL_SHIFT_CYCLES = (COARSE_SHIFT - 1) // 2  # two bits a cycle; the odd one is left to the final addition
PARALLEL_SHIFT_CYCLES = 2
FINISH_CYCLES = 2  # addition, clamp


@dataclass(frozen=True, kw_only=True)
class Requantizer:
    """Requantisation to more than one bit.

    ``clamp(((acc * multiplier + 2**(shift - 1)) >> shift) + zero_point, lo, hi)``, exact for every input: ``>>`` is arithmetic
    (so: round half up), and there is no rounding term at shift 0.

    Parameters
    ----------
    accumulator_bits: signed accumulator, 8..48.
    activation_bits: result, 2, 4, 8 or 16.
    multiplier: ``dsp`` and ``lut`` give a result every cycle, ``serial`` one every 10 (two multiplier bits a cycle).
    chunk_bits: bits of the accumulator that one DSP block multiplies (``dsp``): 17, or 24 or 26 where blocks are wider.

    Raises
    ------
    InputError: a parameter is out of range.
    """

    accumulator_bits: int
    activation_bits: int
    multiplier: OutputMultiplier = OutputMultiplier.SERIAL
    chunk_bits: int = DSP_OPERAND_BITS - 1

    def __post_init__(self) -> None:
        _check_accumulator(self.accumulator_bits, "requantizer")
        if isinstance(self.activation_bits, bool) or self.activation_bits not in (2, 4, 8, 16):
            raise InputError("not a choice", where="requantizer.activation_bits", value=self.activation_bits,
                             allowed="2, 4, 8, 16 (1-bit activations use Threshold)")
        try:
            object.__setattr__(self, "multiplier", OutputMultiplier(self.multiplier))
        except ValueError:
            near = nearest(self.multiplier, list(OutputMultiplier))
            raise InputError("not a choice", where="requantizer.multiplier", value=self.multiplier,
                             allowed=", ".join(OutputMultiplier), suggestion=f"nearest: {near}" if near else None) from None

    @property
    def initiation_interval(self) -> int:
        """Least cycles from one accumulator to the next."""
        return SERIAL_STEPS + 1 if self.multiplier is OutputMultiplier.SERIAL else 1

    @property
    def product_latency_cycles(self) -> int:
        """Cycles from ``i_valid`` until the product can be shifted."""
        return {OutputMultiplier.DSP: dsp_chunks(self.accumulator_bits, self.chunk_bits) + 1,
                OutputMultiplier.LUT: booth_rows(self.accumulator_bits, OPERAND_BITS),
                OutputMultiplier.SERIAL: SERIAL_STEPS + 1}[self.multiplier]

    @property
    def latency_cycles(self) -> int:
        """Cycles from ``i_valid`` to ``o_valid``."""
        shift = SERIAL_SHIFT_CYCLES + 1 if self.multiplier is OutputMultiplier.SERIAL else PARALLEL_SHIFT_CYCLES
        return self.product_latency_cycles + shift + FINISH_CYCLES

    @property
    def dsp_count(self) -> int:
        """DSP blocks: ``max(1, ceil((accumulator_bits - 1) / chunk_bits))`` for ``dsp``, otherwise none."""
        return dsp_chunks(self.accumulator_bits, self.chunk_bits) if self.multiplier is OutputMultiplier.DSP else 0

    @property
    def window_bits(self) -> int:
        """Bits of ``(2 * product) >> shift`` that decide the result; outside their range it is certain to be clamped.

        ``zero_point``, ``lo`` and ``hi`` have ``activation_bits + 1`` bits, so a rounded product that does not fit in
        ``activation_bits + 2`` bits ends at a bound whatever they are; one bit more is for the rounding.
        """
        return self.activation_bits + 3

    def reference(self, acc: Any, multiplier: Any, shift: Any, zero_point: int, lo: int, hi: int) -> Any:
        """The result as int64, of the broadcast shape of ``acc``, ``multiplier`` and ``shift`` (an ``int`` for scalars).

        Exact although the product has up to 65 bits: it is held as ``upper * 2**24 + lower``. ``lo <= hi``.

        Raises
        ------
        InputError: a value is outside the range of its member of ``RequantizeStage``.
        """
        bound, limit = 1 << (self.accumulator_bits - 1), 1 << self.activation_bits
        acc, multiplier, shift = (_integers(value, name, low, high) for value, name, low, high in (
            (acc, "acc", -bound, bound - 1), (multiplier, "multiplier", 0, (1 << MULTIPLIER_BITS) - 1),
            (shift, "shift", 0, SHIFT_MAX)))
        for value, name in ((zero_point, "zero_point"), (lo, "lo"), (hi, "hi")):
            _integers(value, name, -limit, limit - 1)
        lower = (acc & 0xFFFFFF) * multiplier
        upper = (acc >> 24) * multiplier + (lower >> 24)
        # (2 * product) >> shift, clipped where it is far beyond every bound, so that the left shift cannot overflow.
        left, right = np.clip(25 - shift, 0, None), np.clip(shift - 25, 0, None)
        below = (lower & 0xFFFFFF) * 2 >> np.minimum(shift, 25)
        doubled = np.where(shift > 25, upper >> right, (np.clip(upper, -(1 << 32), 1 << 32) << left) + below)
        result = np.clip((doubled + 1 >> 1) + zero_point, lo, hi)
        return int(result) if result.ndim == 0 else result

    def create(self) -> RequantizeStage:
        return RequantizeStage(self)


class RequantizeStage(wiring.Component):
    """Hardware of a ``Requantizer``: one result per ``initiation_interval`` cycles, ``latency_cycles`` after its accumulator.

    No path holds more than a row of LUTs and one adder of ``accumulator_bits + 2`` bits. Reset drops what is under way.

    Members
    -------
    i_valid: In(1), at most every ``initiation_interval`` cycles (not checked); the other ``i_`` members count in that cycle only.
    i_acc: In(signed(accumulator_bits)).
    i_multiplier: In(17), unsigned.
    i_shift: In(6), 0..47 (not checked).
    zero_point, lo, hi: In(signed(activation_bits + 1)), ``lo <= hi``; constant from ``i_valid`` to ``o_valid``.
    o_valid: Out(1).
    o_value: Out(activation_bits), the low bits of the result, with ``o_valid``.
    """

    def __init__(self, requantizer: Requantizer) -> None:
        self.requantizer = requantizer
        static = signed(requantizer.activation_bits + 1)
        super().__init__({
            "i_valid": In(1), "i_acc": In(signed(requantizer.accumulator_bits)), "i_multiplier": In(MULTIPLIER_BITS),
            "i_shift": In(SHIFT_BITS), "zero_point": In(static), "lo": In(static), "hi": In(static),
            "o_valid": Out(1), "o_value": Out(requantizer.activation_bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # valid[n]: an accumulator came n cycles ago. A chain of flip-flops, not counters: it costs no LUT.
        latency = self.requantizer.latency_cycles
        valid = Signal(latency)
        m.d.sync += valid.eq(Cat(self.i_valid, valid))
        m.d.comb += self.o_valid.eq(valid[-1])
        taken = Cat(self.i_valid, valid)
        if self.requantizer.multiplier is OutputMultiplier.SERIAL:
            self._shift_serially(m, taken)
        else:
            self._shift_at_once(m)
        return m

    def _widen(self, product: Value) -> Value:
        """Twice the product, with the sign repeated up to the width of the first window."""
        missing = self.requantizer.window_bits + COARSE_SHIFT - 1 - (len(product) + 1)
        return Cat(C(0, 1), product, product[-1].replicate(max(0, missing)))

    def _coarse(self, doubled: Value, shift: Value) -> tuple[list[Value], Value]:
        """Windows at shifts of 0, 16 and 32, and whether the chosen one holds the whole value."""
        bits = self.requantizer.window_bits + COARSE_SHIFT - 1
        return [_window(doubled, n * COARSE_SHIFT, bits) for n in range(3)], _fits(doubled, shift, COARSE_SHIFT, bits, 3)

    def _finish(self, m: Module, window: Value, shift: Value, fits: Value, negative: Value) -> None:
        """The last bits of the shift, rounding and zero point in one addition, then the clamp. 2 cycles."""
        bits = self.requantizer.window_bits
        choices = 1 << len(shift)
        value = Signal(signed(bits), name="s_value")
        m.d.comb += value.eq(_select(shift, [_window(window, n, bits) for n in range(choices)]))
        s_sum, s_fits, s_negative = (Signal(shape, name=name, reset_less=True) for shape, name in (
            (signed(bits), "s_sum"), (1, "s_fits"), (1, "s_negative")))
        # (value + 1) >> 1 is (value >> 1) with bit 0 as the carry.
        total = (Cat(value[0], self.zero_point).as_signed() + Cat(C(1, 1), value[1:]).as_signed()) >> 1
        m.d.sync += [s_sum.eq(total), s_fits.eq(fits & _fits(window, shift, 1, bits, choices)), s_negative.eq(negative)]
        c_value = Signal(self.requantizer.activation_bits, name="c_value", reset_less=True)
        low, high = Signal(name="c_low"), Signal(name="c_high")
        m.d.comb += [low.eq(Mux(s_fits, s_sum < self.lo, s_negative)), high.eq(Mux(s_fits, s_sum > self.hi, ~s_negative)),
                     self.o_value.eq(c_value)]
        m.d.sync += c_value.eq(Mux(low, self.lo, Mux(high, self.hi, s_sum)))

    def _shift_at_once(self, m: Module) -> None:
        """``dsp`` and ``lut``: product, shift by 16s, shift by 4s, then the rest with the addition."""
        unit = self.requantizer
        m.submodules.product = product = (
            DspMultiplier(a_bits=unit.accumulator_bits, b_bits=OPERAND_BITS, chunk=unit.chunk_bits)
            if unit.multiplier is OutputMultiplier.DSP else
            LutMultiplier(a_bits=unit.accumulator_bits, b_bits=OPERAND_BITS, stages=unit.product_latency_cycles))
        m.d.comb += [product.i_a.eq(self.i_acc), product.i_b.eq(self.i_multiplier)]
        shift: Value = self.i_shift
        for cycle in range(unit.product_latency_cycles):
            shift = _register(m, shift, f"x{cycle}_shift")
        doubled, negative = self._widen(product.o_product), product.o_product[-1]
        windows, fits = self._coarse(doubled, shift[4:])
        window = _register(m, _select(shift[4:], windows), "f0_window")
        fits, negative, shift = (_register(m, fits, "f0_fits"), _register(m, negative, "f0_negative"),
                                 _register(m, shift[:4], "f0_shift"))
        bits = unit.window_bits + 3
        fits = _register(m, fits & _fits(window, shift[2:], 4, bits, 4), "f1_fits")
        window = _register(m, _select(shift[2:], [_window(window, 4 * n, bits) for n in range(4)]), "f1_window")
        self._finish(m, window, _register(m, shift[:2], "f1_shift"), fits, _register(m, negative, "f1_negative"))

    def _shift_serially(self, m: Module, taken: Value) -> None:
        """``serial``: nine Booth steps; the low product bits move into the register that the multiplier leaves.

        The product is taken over with its coarse shift in the cycle in which the next accumulator may come, and shifts on by
        two bits a cycle while that one is multiplied.
        """
        acc = Signal.like(self.i_acc, reset_less=True)
        shift = Signal(SHIFT_BITS, reset_less=True)
        partial = Signal(len(acc) + 2, reset_less=True)
        digits = Signal(OPERAND_BITS + 1, reset_less=True)
        m.d.sync += [
            partial.eq(booth_step(acc, digits[:3], Cat(partial[2:], partial[-1].replicate(2)))),
            digits.eq(Cat(digits[2:], partial[:2])),
        ]
        with m.If(self.i_valid):
            m.d.sync += [acc.eq(self.i_acc), shift.eq(self.i_shift), partial.eq(0), digits.eq(Cat(C(0, 1), self.i_multiplier))]
        # After the last step: 16 product bits on top of the zeros that the first step moved in, at digits[1:3].
        windows, fits = self._coarse(self._widen(Cat(digits[3:], partial[:-1])), shift[4:])
        load = taken[SERIAL_STEPS + 1]
        window = Signal(len(windows[0]), name="f_window", reset_less=True)
        f_fits, f_negative, f_odd = (Signal(name=name, reset_less=True) for name in ("f_fits", "f_negative", "f_odd"))
        left = Signal(3, name="f_left", reset_less=True)  # shifts by two still to do
        with m.If(load):
            m.d.sync += [window.eq(_select(shift[4:], windows)), f_fits.eq(fits), f_negative.eq(partial[-1]),
                         f_odd.eq(shift[0]), left.eq(shift[1:4])]
        with m.Elif(left != 0):
            m.d.sync += [window.eq(_window(window, 2, len(window))), left.eq(left - 1)]
        self._finish(m, window, f_odd, f_fits, f_negative)


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Comparison with a threshold, for 1-bit activations: ``(acc >= threshold) ^ flip``. No multiplier.

    Parameters
    ----------
    accumulator_bits: signed accumulator, 8..48.
    """

    accumulator_bits: int

    activation_bits = 1
    initiation_interval = 1
    latency_cycles = 1
    dsp_count = 0

    def __post_init__(self) -> None:
        _check_accumulator(self.accumulator_bits, "threshold")

    def reference(self, acc: Any, threshold: Any, flip: Any) -> Any:
        """0 or 1 (1 stands for +1) as int64, of the broadcast shape of the arguments (an ``int`` for scalars).

        Raises
        ------
        InputError: a value is outside the range of its member of ``ThresholdStage``.
        """
        bound = 1 << (self.accumulator_bits - 1)
        acc, threshold, flip = (_integers(acc, "acc", -bound, bound - 1),
                                _integers(threshold, "threshold", -2 * bound, 2 * bound - 1), _integers(flip, "flip", 0, 1))
        result = (acc >= threshold).astype(np.int64) ^ flip
        return int(result) if result.ndim == 0 else result

    def create(self) -> ThresholdStage:
        return ThresholdStage(self)


class ThresholdStage(wiring.Component):
    """Hardware of a ``Threshold``: one result a cycle, 1 cycle after its accumulator.

    Members
    -------
    i_valid: In(1).
    i_acc: In(signed(accumulator_bits)).
    i_threshold: In(signed(accumulator_bits + 1)): one bit more, so that always and never can be said.
    i_flip: In(1).
    o_valid: Out(1).
    o_value: Out(1), with ``o_valid``.
    """

    def __init__(self, threshold: Threshold) -> None:
        bits = threshold.accumulator_bits
        super().__init__({"i_valid": In(1), "i_acc": In(signed(bits)), "i_threshold": In(signed(bits + 1)), "i_flip": In(1),
                          "o_valid": Out(1), "o_value": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        value = Signal(reset_less=True)
        m.d.sync += [self.o_valid.eq(self.i_valid), value.eq((self.i_acc >= self.i_threshold) ^ self.i_flip)]
        m.d.comb += self.o_value.eq(value)
        return m


def _window(value: Value, shift: int, bits: int) -> Value:
    """``bits`` bits of the signed ``value`` from bit ``shift`` on, the sign repeated above its top."""
    kept = value[min(shift, len(value) - 1):shift + bits]
    return Cat(kept, value[-1].replicate(bits - len(kept)))


def _fits(value: Value, shift: Value, step: int, bits: int, choices: int) -> Value:
    """Whether ``value >> (shift * step)`` fits in ``bits`` signed bits, for ``shift`` below ``choices``."""
    same: Value = C(1, 1)
    options: list[Value] = []
    for choice in reversed(range(choices)):
        start = choice * step + bits - 1
        # A group's lowest bit is the top one of the group below; the last group goes on to the sign.
        group = value[start:None if choice == choices - 1 else start + step + 1]
        same = same & (group.all() | ~group.any())
        options.insert(0, same)
    return _select(shift, options)


def _select(index: Value, options: list[Value]) -> Value:
    """``options[index]`` as a tree of two-way choices; an index past the end takes one of the options."""
    if len(options) == 1:
        return options[0]
    half = 1 << ((len(options) - 1).bit_length() - 1)
    below = half.bit_length() - 1
    return Mux(index[below], _select(index[:below], options[half:]), _select(index[:below], options[:half]))


def _register(m: Module, value: Value, name: str) -> Value:
    register = Signal(len(value), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def _check_accumulator(bits: object, where: str) -> None:
    if isinstance(bits, bool) or not isinstance(bits, int) or not MIN_ACCUMULATOR_BITS <= bits <= MAX_ACCUMULATOR_BITS:
        raise InputError("out of range" if isinstance(bits, int) else "must be a whole number",
                         where=f"{where}.accumulator_bits", value=bits,
                         allowed=f"{MIN_ACCUMULATOR_BITS} to {MAX_ACCUMULATOR_BITS}")


def _integers(value: Any, name: str, low: int, high: int) -> Any:
    """``value`` as an int64 array, refused where it is out of range or not made of integers."""
    array = np.asarray(value)
    if array.dtype.kind not in "biu":
        raise InputError("must be whole numbers", where=name, value=value)
    if array.size and not (low <= int(array.min()) and int(array.max()) <= high):
        extreme = int(array.min()) if int(array.min()) < low else int(array.max())
        raise InputError("out of range", where=name, value=extreme, allowed=f"{low} to {high}")
    return array.astype(np.int64)
