"""The array: rows x cols x lanes multiply-accumulates a cycle, captured results, and the way out of them."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out

from hdl.design import Accumulate, Design, Multiplier
from hdl.mac import Accumulator, ActivationOperands, MacUnit, PairOperands, PairUnit, SumUnit, WeightOperands, XnorUnit
from hdl.reduce import AdderTree, SelectTree, tree_levels


def capture_cycles(design: Design) -> int:
    """Cycles from ``i_valid & i_last`` to ``o_captured``."""
    return _term_cycles(design) + 2


def readout_cycles(design: Design) -> int:
    """Cycles from ``drain_step`` to ``o_results``."""
    adding = tree_levels(design.cols) if design.accumulate is Accumulate.PER_COLUMN else 0
    return SelectTree.latency(design.drain_steps) + adding + (1 if design.is_xnor else 0)


def result_index(design: Design, drain: int, step: int) -> tuple[int, int]:
    """(lane, row) of the result that ``drain`` reads at ``step``."""
    if design.drains <= design.lanes:
        return drain * design.lanes_per_drain + step // design.rows, step % design.rows
    parts = design.drains_per_lane
    return drain // parts, step * parts + drain % parts


def _term_cycles(design: Design) -> int:
    """Cycles from operands at the ports to terms at the accumulators: the operand register, and the unit's own."""
    return 1 + (XnorUnit if design.is_xnor else MacUnit).term_latency(design)


class MacArray(wiring.Component):
    """``rows * lanes`` dot products of ``cols`` elements a cycle, summed over a reduction of any length.

    One operand vector a cycle, back to back or with gaps. Results of a reduction are captured :attr:`capture_cycles` after
    its last vector and stay until the next capture; they are read in any order, :attr:`readout_cycles` after ``drain_step``,
    while the next reduction runs. With ``n = ceil(log2(cols))`` and ``r = max(1, ceil(log16(drain_steps)))``:

    ==================  =====================  ================
    design              capture_cycles         readout_cycles
    ==================  =====================  ================
    ``tree``            4 + n                  r
    ``per_column``      4                      r + n
    XNOR                3 + popcount latency   r + 1
    ==================  =====================  ================

    ``dsp_pair`` takes a cycle more to capture.

    Sums wrap at ``accumulator_bits``, so a result is exact whenever it fits, whatever its partial sums did.

    Parameters
    ----------
    design: the design point.

    Members
    -------
    weights: a word a row; element ``c`` at bits ``[c * weight_bits, (c + 1) * weight_bits)``. With ``i_valid``.
    activations: a word a lane, packed alike. With ``i_valid``.
    i_valid: an operand vector is on ``weights`` and ``activations``.
    i_first, i_last: it begins, ends a reduction (both: a reduction of one vector). With ``i_valid``.
    i_padding: bit ``l`` = 1: the vector contributes nothing in lane ``l``. With ``i_valid``.
    i_columns: (not XNOR) bit ``c`` of row ``r`` = 0: that column contributes nothing in that row. With ``i_valid``.
    zero_point, signed_activations: (not XNOR) see :class:`~hdl.mac.ActivationOperands`. Static.
    i_count: (XNOR) channels in this word, 0..cols; the other columns hold weight bit 1 and activation bit 0. With ``i_valid``.
    o_captured: strobe: the results of a reduction can be read with a ``drain_step`` from this cycle on, until the next.
    drain_step: which result each drain reads; see :func:`result_index`.
    o_results: one result a drain.
    """

    def __init__(self, *, design: Design):
        self._design = design
        members = {
            "weights": In(design.word_bits("weight")).array(design.rows),
            "activations": In(design.word_bits("input")).array(design.lanes),
            "i_valid": In(1),
            "i_first": In(1),
            "i_last": In(1),
            "i_padding": In(unsigned(design.lanes)),
            "o_captured": Out(1),
            "drain_step": In(range(max(2, design.drain_steps))),
            "o_results": Out(ArrayLayout(signed(design.accumulator_bits), design.drains)),
        }
        if design.is_xnor:
            members["i_count"] = In(range(design.cols + 1))
        else:
            members["i_columns"] = In(design.cols).array(design.rows)
            members["zero_point"] = In(signed(design.activation_operand_bits))
            members["signed_activations"] = In(1)
        super().__init__(members)

    @property
    def design(self) -> Design:
        return self._design

    @property
    def capture_cycles(self) -> int:
        return capture_cycles(self._design)

    @property
    def readout_cycles(self) -> int:
        return readout_cycles(self._design)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        term_cycles = _term_cycles(self._design)
        enable = _delayed(m, self.i_valid, term_cycles, name="valid", reset_less=False)
        first = _delayed(m, self.i_first, term_cycles, name="first")
        last = _delayed(m, self.i_last, term_cycles, name="last")
        capture = Signal()
        captured = Signal()
        m.d.sync += [capture.eq(enable & last), captured.eq(capture)]
        m.d.comb += self.o_captured.eq(captured)
        control = {"i_enable": enable, "i_first": first, "i_capture": capture}
        if self._design.is_xnor:
            self._elaborate_xnor(m, control, term_cycles)
        else:
            self._elaborate_mac(m, control)
        return m

    def _elaborate_mac(self, m: Module, control: dict[str, Value]) -> None:
        design = self._design
        activations = []
        for l in range(design.lanes):  # noqa: E741
            m.submodules[f"activations{l}"] = lane = ActivationOperands(design=design)
            m.d.comb += [lane.i_word.eq(self.activations[l]), lane.i_padding.eq(self.i_padding[l]),
                         lane.i_signed.eq(self.signed_activations), lane.i_zero_point.eq(self.zero_point)]
            activations.append(lane.o_operands)
        results: dict[tuple[int, int], list[Value]] = {}
        paired = design.multiplier is Multiplier.DSP_PAIR
        for r in range(0, design.rows, 2 if paired else 1):
            m.submodules[f"weights{r}"] = row = PairOperands(design=design) if paired else WeightOperands(design=design)
            if isinstance(row, PairOperands):
                m.d.comb += [port.eq(self.weights[r + i]) for i, port in enumerate(row.i_words)]
                m.d.comb += [port.eq(self.i_columns[r + i]) for i, port in enumerate(row.i_columns)]
            else:
                m.d.comb += [row.i_word.eq(self.weights[r]), row.i_columns.eq(self.i_columns[r])]
            for l in range(design.lanes):  # noqa: E741
                m.submodules[f"unit{l}_{r}"] = unit = PairUnit(design=design) if paired else MacUnit(design=design)
                _connect(m, unit, control)
                m.d.comb += [port.eq(value) for port, value in zip(unit.i_weights, row.o_operands, strict=True)]
                m.d.comb += [port.eq(value) for port, value in zip(unit.i_activations, activations[l], strict=True)]
                if isinstance(unit, PairUnit):
                    results[l, r], results[l, r + 1] = list(unit.o_low), list(unit.o_high)
                else:
                    results[l, r] = list(unit.o_captured)
        sums = SumUnit.count(design)
        for d in range(design.drains):
            m.submodules[f"tree{d}"] = tree = AdderTree(count=sums, term_bits=design.accumulator_bits,
                                                        sum_bits=design.accumulator_bits)
            for i, term in enumerate(tree.i_terms):
                m.d.comb += term.eq(self._select(m, f"select{d}_{i}", d, {key: value[i] for key, value in results.items()}))
            m.d.comb += self.o_results[d].eq(tree.o_sum)

    def _elaborate_xnor(self, m: Module, control: dict[str, Value], term_cycles: int) -> None:
        design = self._design
        weights, activations, counts = [], [], []
        padding = _delayed(m, self.i_padding, term_cycles - 1, name="padding")
        count = _delayed(m, self.i_count, term_cycles - 1, name="count")
        for r in range(design.rows):
            weights.append(_delayed(m, self.weights[r], 1, name=f"weights{r}"))
        for l in range(design.lanes):  # noqa: E741
            activations.append(_delayed(m, self.activations[l], 1, name=f"activations{l}"))
            # each unpadded vector's channels, once a lane: products = 2 * matches - channels
            lane_count = Signal.like(count, name=f"lane{l}_count", reset_less=True)
            m.d.sync += lane_count.eq(Mux(padding[l], 0, count))
            m.submodules[f"count{l}"] = channels = Accumulator(term=lane_count.shape(), total=unsigned(design.accumulator_bits))
            _connect(m, channels, control)
            m.d.comb += channels.i_term.eq(lane_count)
            counts.append(channels.o_captured)
        results: dict[tuple[int, int], Value] = {}
        for l in range(design.lanes):  # noqa: E741
            for r in range(design.rows):
                m.submodules[f"unit{l}_{r}"] = unit = XnorUnit(design=design)
                _connect(m, unit, control)
                m.d.comb += [unit.i_weights.eq(weights[r]), unit.i_activations.eq(activations[l]),
                             unit.i_clear.eq(padding[l])]
                results[l, r] = unit.o_captured
        for d in range(design.drains):
            matches = self._select(m, f"select{d}", d, results)
            total = self._select(m, f"select_count{d}", d, {(lane, row): counts[lane] for lane, row in results})
            result = Signal(signed(design.accumulator_bits), name=f"result{d}", reset_less=True)
            m.d.sync += result.eq(Cat(0, matches) - total)
            m.d.comb += self.o_results[d].eq(result)

    def _select(self, m: Module, name: str, drain: int, results: dict[tuple[int, int], Value]) -> Value:
        """The result that ``drain`` reads, one of its ``drain_steps``, registered."""
        steps = self._design.drain_steps
        choices = [results[result_index(self._design, drain, step)] for step in range(steps)]
        m.submodules[name] = select = SelectTree(count=steps, bits=len(choices[0]))
        m.d.comb += select.i_index.eq(self.drain_step)
        m.d.comb += [port.eq(value) for port, value in zip(select.i_values, choices, strict=True)]
        return select.o_value


def _connect(m: Module, unit: wiring.Component, control: dict[str, Value]) -> None:
    m.d.comb += [getattr(unit, name).eq(value) for name, value in control.items()]


def _delayed(m: Module, value: Value, cycles: int, *, name: str, reset_less: bool = True) -> Value:
    """``value`` behind ``cycles`` registers."""
    for i in range(cycles):
        stage = Signal(len(value), name=f"{name}_d{i + 1}", reset_less=reset_less)
        m.d.sync += stage.eq(value)
        value = stage
    return value
