"""Operand registers, accumulators, and the units that make results: multiply-accumulate, of one row or two, and XNOR-popcount."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from boards.primitives import FAMILIES
from hdl.design import Accumulate, Design, Multiplier
from hdl.family import DSP_RULES
from hdl.multiply import signed_product_lut
from hdl.popcount import MatchCounter
from hdl.reduce import AdderTree, tree_levels


class WeightOperands(wiring.Component):
    """Decodes and registers one row's weight word. Latency 1 cycle, one word a cycle.

    Members
    -------
    i_word: ``cols`` weights, element ``c`` at bits ``[c * weight_bits, (c + 1) * weight_bits)``: two's complement, or for
        1-bit weights 1 for +1 and 0 for -1.
    i_columns: bit ``c`` = 0 makes element ``c`` zero (the register's synchronous reset: no LUTs).
    o_operands: signed operands.
    """

    def __init__(self, *, design: Design):
        self._design = design
        super().__init__({
            "i_word": In(unsigned(design.word_bits("weight"))),
            "i_columns": In(unsigned(design.cols)),
            "o_operands": Out(signed(design.weight_operand_bits)).array(design.cols),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for c, port in enumerate(self.o_operands):
            raw = self.i_word.word_select(c, self._design.weight_bits)
            operand = Signal(port.shape(), name=f"weight{c}", reset_less=True)
            m.d.sync += operand.eq(Mux(self.i_columns[c], _plus_minus_one(raw) if len(raw) == 1 else raw, 0))
            m.d.comb += port.eq(operand)
        return m


class PairOperands(wiring.Component):
    """Decodes two rows' weight words, and registers each column's two weights as one operand: ``low + high * 2**term_bits``.

    Latency 1 cycle, one word a row and cycle.

    Members
    -------
    i_words, i_columns: of the low row and the high row, as in :class:`WeightOperands`.
    o_operands: signed operands of ``pair_operand_bits``.
    """

    def __init__(self, *, design: Design):
        self._design = design
        super().__init__({
            "i_words": In(unsigned(design.word_bits("weight"))).array(2),
            "i_columns": In(unsigned(design.cols)).array(2),
            "o_operands": Out(signed(design.pair_operand_bits)).array(design.cols),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self._design
        for c, port in enumerate(self.o_operands):
            weights = []
            for word, columns in zip(self.i_words, self.i_columns, strict=True):
                raw = word.word_select(c, design.weight_bits)
                weights.append(Mux(columns[c], _plus_minus_one(raw) if len(raw) == 1 else raw, 0).as_signed())
            low, high = weights
            operand = Signal(port.shape(), name=f"weights{c}", reset_less=True)
            repeated = Cat(low, low[-1].replicate(design.term_bits - len(low)))
            m.d.sync += operand.eq(Cat(repeated, (high - low[-1])[:len(port) - design.term_bits]))  # the low one's sign borrows
            m.d.comb += port.eq(operand)
        return m


class ActivationOperands(wiring.Component):
    """Decodes and registers one lane's activation word: zero point subtracted. Latency 1 cycle, one word a cycle.

    Members
    -------
    i_word: ``cols`` activations, packed as in :class:`WeightOperands`; 1-bit ones are +1 (1) and -1 (0) and have no zero point.
    i_signed: activations of 2 bits and more are two's complement. Static.
    i_zero_point: subtracted from every activation; the difference fits. Static.
    i_padding: makes all operands zero (synchronous reset: no LUTs).
    o_operands: signed operands of ``activation_bits + 1`` bits.
    """

    def __init__(self, *, design: Design):
        self._design = design
        bits = design.activation_operand_bits
        super().__init__({
            "i_word": In(unsigned(design.word_bits("input"))),
            "i_signed": In(1),
            "i_zero_point": In(signed(bits)),
            "i_padding": In(1),
            "o_operands": Out(signed(bits)).array(design.cols),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for c, port in enumerate(self.o_operands):
            raw = self.i_word.word_select(c, self._design.activation_bits)
            value = (_plus_minus_one(raw) if len(raw) == 1
                     else Cat(raw, raw[-1] & self.i_signed).as_signed() - self.i_zero_point)
            operand = Signal(port.shape(), name=f"activation{c}", reset_less=True)
            m.d.sync += operand.eq(Mux(self.i_padding, 0, value))
            m.d.comb += port.eq(operand)
        return m


def _plus_minus_one(bit: Value) -> Value:
    """1 -> +1, 0 -> -1, in two bits."""
    return Cat(1, ~bit)


class Accumulator(wiring.Component):
    """Running sum and the captured result of the last reduction; both wrap at their width.

    A term is in the sum one cycle after ``i_enable``; the sum is in ``o_captured`` one cycle after ``i_capture``. One term a
    cycle. With ``first`` on a cleared multiplexer, enable and sum pack into a DSP block behind its product.

    Members
    -------
    i_term: what to add, in the cycle of ``i_enable``.
    i_enable, i_first: add; start again from zero.
    i_capture: copy the sum.
    o_captured: last copied sum.
    """

    def __init__(self, *, term: Shape, total: Shape):
        self._total = total
        super().__init__({
            "i_term": In(term), "i_enable": In(1), "i_first": In(1), "i_capture": In(1), "o_captured": Out(total),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = Signal(self._total, reset_less=True)
        captured = Signal(self._total, reset_less=True)
        with m.If(self.i_enable):
            m.d.sync += total.eq(self.i_term + Mux(self.i_first, 0, total))
        with m.If(self.i_capture):
            m.d.sync += captured.eq(total)
        m.d.comb += self.o_captured.eq(captured)
        return m


class SumUnit(wiring.Component):
    """Sums of one row's and lane's products over a reduction. One vector of products a cycle.

    ``accumulate: tree``: an adder tree with a register a level makes one term for one accumulator; ``per_column``: each product has its
    own accumulator. Products reach the accumulators' input after :meth:`latency` cycles.

    Parameters
    ----------
    design: the design point. term_bits: of a product.

    Members
    -------
    i_terms: ``cols`` products.
    i_enable, i_first, i_capture: see :class:`Accumulator`; for all of them.
    o_captured: sums of the last captured reduction: one (``tree``) or ``cols`` (``per_column``), signed(accumulator_bits).
    """

    def __init__(self, *, design: Design, term_bits: int):
        self._design, self._term_bits = design, term_bits
        super().__init__({
            "i_terms": In(signed(term_bits)).array(design.cols),
            "i_enable": In(1), "i_first": In(1), "i_capture": In(1),
            "o_captured": Out(signed(design.accumulator_bits)).array(self.count(design)),
        })

    @staticmethod
    def count(design: Design) -> int:
        """Captured sums."""
        return 1 if design.accumulate is Accumulate.TREE else design.cols

    @staticmethod
    def latency(design: Design) -> int:
        return tree_levels(design.cols) if design.accumulate is Accumulate.TREE else 0

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self._design
        terms: list[Value] = list(self.i_terms)
        term_bits = self._term_bits
        if design.accumulate is Accumulate.TREE and design.cols > 1:
            sum_bits = min(term_bits + tree_levels(design.cols), design.accumulator_bits)
            m.submodules.tree = tree = AdderTree(count=design.cols, term_bits=term_bits, sum_bits=sum_bits)
            m.d.comb += [port.eq(term) for port, term in zip(tree.i_terms, terms, strict=True)]
            terms, term_bits = [tree.o_sum], sum_bits
        for i, term in enumerate(terms):
            accumulator = Accumulator(term=signed(term_bits), total=signed(design.accumulator_bits))
            m.submodules[f"accumulator{i}"] = accumulator
            m.d.comb += [
                accumulator.i_term.eq(term), accumulator.i_enable.eq(self.i_enable), accumulator.i_first.eq(self.i_first),
                accumulator.i_capture.eq(self.i_capture), self.o_captured[i].eq(accumulator.o_captured),
            ]
        return m


class MacUnit(wiring.Component):
    """The products of one row and lane, and their sums over a reduction. One operand vector a cycle.

    Products are registered. Operands reach the accumulators' input after :meth:`term_latency` cycles: 1, or 2 in ``dsp_pair``, and those
    of :class:`SumUnit`.

    Members
    -------
    i_weights, i_activations: ``cols`` signed operands each.
    i_enable, i_first, i_capture: see :class:`Accumulator`; for all of them.
    o_captured: see :class:`SumUnit`.
    """

    def __init__(self, *, design: Design):
        self._design = design
        super().__init__({
            "i_weights": In(signed(design.weight_operand_bits)).array(design.cols),
            "i_activations": In(signed(design.activation_operand_bits)).array(design.cols),
            "i_enable": In(1), "i_first": In(1), "i_capture": In(1),
            "o_captured": Out(signed(design.accumulator_bits)).array(SumUnit.count(design)),
        })

    @staticmethod
    def term_latency(design: Design) -> int:
        """Cycles from operands to accumulator input."""
        return (2 if design.multiplier is Multiplier.DSP_PAIR else 1) + SumUnit.latency(design)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self._design
        # Where a product goes to an accumulator at once, both can be one DSP block: synthesis sees that only if no bit is cut off.
        alone = design.accumulate is Accumulate.PER_COLUMN or design.cols == 1
        # Synthesis keeps products under a width out of DSP blocks: what a cut would bring below it stays whole.
        too_narrow = design.multiplier is Multiplier.DSP and design.term_bits < DSP_RULES[design.family][-1].min_product
        bits = design.product_bits if alone or too_narrow else design.term_bits
        m.submodules.sums = sums = SumUnit(design=design, term_bits=bits)
        for c, (weight, activation) in enumerate(zip(self.i_weights, self.i_activations, strict=True)):
            # Yosys 0.70's ice40_dsp puts the sum of two registered products into one SB_MAC16 and loses the first product. It does not
            # touch a register that has a reset; where reset is free (DSP48), that costs nothing.
            loses = design.accumulate is Accumulate.TREE and c % 2 == 0
            product = Signal(signed(bits), name=f"product{c}", reset_less=not loses)
            exact = weight * activation if design.multiplier is Multiplier.DSP else signed_product_lut(m, weight, activation)
            m.d.sync += product.eq(exact)
            m.d.comb += sums.i_terms[c].eq(product)
        _connect_sums(m, self, sums, self.o_captured)
        return m


class PairUnit(wiring.Component):
    """Like two :class:`MacUnit` of neighbouring rows, whose products share DSP blocks. One operand vector a cycle.

    A block multiplies ``low + high * 2**t`` by the activation, ``t`` being ``term_bits``, and adds ``2**(t - 1)``. With that the lower
    ``t`` bits are never negative, so that nothing is borrowed from the upper product: both are exact. The lower one is right once its top
    bit is turned over.

    Members
    -------
    i_weights: ``cols`` operands of :class:`PairOperands`. i_activations: ``cols`` signed operands.
    i_enable, i_first, i_capture: see :class:`Accumulator`; for all of them.
    o_low, o_high: captured sums of the two rows, see :class:`SumUnit`.
    """

    def __init__(self, *, design: Design):
        self._design = design
        sums = Out(signed(design.accumulator_bits)).array(SumUnit.count(design))
        super().__init__({
            "i_weights": In(signed(design.pair_operand_bits)).array(design.cols),
            "i_activations": In(signed(design.activation_operand_bits)).array(design.cols),
            "i_enable": In(1), "i_first": In(1), "i_capture": In(1), "o_low": sums, "o_high": sums,
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self._design.term_bits
        m.submodules.low = low = SumUnit(design=self._design, term_bits=bits)
        m.submodules.high = high = SumUnit(design=self._design, term_bits=bits)
        for c, (weights, activation) in enumerate(zip(self.i_weights, self.i_activations, strict=True)):
            product = Signal(signed(len(weights) + len(activation)), name=f"m_product{c}", reset_less=True)
            both = Signal(2 * bits, name=f"p_both{c}", reset_less=True)
            m.d.sync += [product.eq(weights * activation), both.eq(product + (1 << bits - 1))]
            m.d.comb += [low.i_terms[c].eq(Cat(both[:bits - 1], ~both[bits - 1])), high.i_terms[c].eq(both[bits:])]
        _connect_sums(m, self, low, self.o_low)
        _connect_sums(m, self, high, self.o_high)
        return m


def _connect_sums(m: Module, unit: Any, sums: SumUnit, captured: Any) -> None:
    m.d.comb += [sums.i_enable.eq(unit.i_enable), sums.i_first.eq(unit.i_first), sums.i_capture.eq(unit.i_capture)]
    m.d.comb += [port.eq(value) for port, value in zip(captured, sums.o_captured, strict=True)]


class XnorUnit(wiring.Component):
    """Matching columns of one row and lane, counted over a reduction. One operand vector a cycle.

    The matches reach the accumulator's input after :meth:`term_latency` cycles, those of :class:`~hdl.popcount.MatchCounter`.

    Members
    -------
    i_weights, i_activations: one bit a column, from registers.
    i_clear: the vector given ``term_latency - 1`` cycles earlier counts nothing.
    i_enable, i_first, i_capture: see :class:`Accumulator`.
    o_captured: matches of the last captured reduction, unsigned(accumulator_bits - 1).
    """

    def __init__(self, *, design: Design):
        self._design = design
        super().__init__({
            "i_weights": In(unsigned(design.cols)), "i_activations": In(unsigned(design.cols)),
            "i_clear": In(1), "i_enable": In(1), "i_first": In(1), "i_capture": In(1),
            "o_captured": Out(unsigned(design.accumulator_bits - 1)),
        })

    @staticmethod
    def term_latency(design: Design) -> int:
        return MatchCounter.latency(design.cols, FAMILIES[design.family].lut_inputs)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counter = counter = MatchCounter(
            bits=self._design.cols, lut_inputs=FAMILIES[self._design.family].lut_inputs)
        m.submodules.accumulator = accumulator = Accumulator(term=counter.o_count.shape(), total=self.o_captured.shape())
        m.d.comb += [
            counter.i_a.eq(self.i_weights), counter.i_b.eq(self.i_activations), counter.i_clear.eq(self.i_clear),
            accumulator.i_term.eq(counter.o_count),
            accumulator.i_enable.eq(self.i_enable),
            accumulator.i_first.eq(self.i_first),
            accumulator.i_capture.eq(self.i_capture),
            self.o_captured.eq(accumulator.o_captured),
        ]
        return m
