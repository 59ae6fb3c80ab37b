"""The way out of the array: captured results, partial sums, output stage, words."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import In, Out

from hdl.array import capture_cycles, readout_cycles
from hdl.assemble import Assembler
from hdl.bank import Bank
from hdl.design import MULTIPLIER_BITS, SHIFT_BITS, Design
from hdl.issue import group_layout
from hdl.program import Stage, entry_bits
from hdl.requantize import Requantizer, Threshold
from hdl.sequencer import stage_layout
from hdl.timing import READ_CYCLES


def output_unit(design: Design) -> Requantizer | Threshold:
    """The output stage of a design."""
    if design.has_threshold_output:
        return Threshold(accumulator_bits=design.accumulator_bits)
    return Requantizer(accumulator_bits=design.accumulator_bits, activation_bits=design.activation_bits,
                       multiplier=design.output_multiplier, chunk_bits=design.output_chunk_bits)


def drain_interval(design: Design) -> int:
    """Cycles between two results on one drain."""
    return output_unit(design).initiation_interval


def drain_cycles(design: Design) -> int:
    """Cycles that a pixel group occupies its drains."""
    return design.drain_steps * drain_interval(design)


def addend_cycles(design: Design) -> int:
    """From the cycle that reads a result to the cycle that adds bias or partial sum: they take two, the result may take more."""
    return max(READ_CYCLES + 1, readout_cycles(design))


def tail_cycles(design: Design) -> int:
    """From the cycle that issues a tile's last vector to the cycle in which its last output beat is being written."""
    return READ_CYCLES + capture_cycles(design) + drain_cycles(design) - drain_interval(design) + addend_cycles(design) + 1 \
        + output_unit(design).latency_cycles + 1


def parameter_layout(design: Design) -> StructLayout:
    """Output-stage parameters of one channel, as they lie in memory from bit 0."""
    if design.has_threshold_output:
        return StructLayout({"threshold": signed(design.accumulator_bits + 1), "flip": unsigned(1)})
    return StructLayout({"bias": signed(design.accumulator_bits), "multiplier": unsigned(MULTIPLIER_BITS),
                         "shift": unsigned(SHIFT_BITS)})


class DrainWalker(wiring.Component):
    """Walks the captured results of a group: each lane of a drain's share, each step of its rows.

    Members
    -------
    start: strobe: a tile begins. captured, group: a group's results can be read from the next cycle on.
    step: which result each drain reads in this cycle; step_valid: its first cycle.
    parameter_entry: of the step's channels. lane: of the drain's share. row: first row of the step.
    rows: channels that the group has. group_end: the group's last step.
    """

    def __init__(self, *, design: Design) -> None:
        self._design = design
        super().__init__({
            "tile": In(stage_layout(design, Stage.COMPUTE)),
            "start": In(1), "captured": In(1), "i_group": In(group_layout(design)),
            "step": Out(range(max(2, design.drain_steps))), "step_valid": Out(1), "group_end": Out(1),
            "parameter_entry": Out(entry_bits(design, "parameter")),
            "lane": Out(range(max(2, design.lanes_per_drain))), "row": Out(range(max(2, design.rows))),
            "rows": Out(design.rows.bit_length()), "group": Out(group_layout(design)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self._design
        interval, parts = drain_interval(design), design.drains_per_lane
        running, group = Signal(), self.group
        group_entry = Signal.like(self.parameter_entry)  # of the group's first channel

        step_end: Value = Const(1)
        if interval > 1:
            tick = Signal(range(interval))
            step_end = tick == interval - 1
            with m.If(running):
                m.d.sync += tick.eq(Mux(step_end, 0, tick + 1))
            m.d.comb += self.step_valid.eq(running & (tick == 0))
        else:
            m.d.comb += self.step_valid.eq(running)
        rows_end = self.row == design.rows - parts
        lanes_end = self.lane == design.lanes_per_drain - 1
        m.d.comb += [
            self.rows.eq(Mux(group.final_block, self.tile.rows_final, design.rows)),
            self.group_end.eq(rows_end & lanes_end),
        ]
        following = Signal.like(self.parameter_entry)
        m.d.comb += following.eq(self.parameter_entry + (self.row < self.rows))
        with m.If(running & step_end):
            m.d.sync += [self.step.eq(self.step + 1), self.row.eq(self.row + parts), self.parameter_entry.eq(following)]
            with m.If(rows_end):
                m.d.sync += [self.row.eq(0), self.lane.eq(self.lane + 1), self.parameter_entry.eq(group_entry)]
                with m.If(lanes_end):
                    entry = Mux(group.pixel_end, self.tile.parameter_word, following)
                    m.d.sync += [running.eq(0), self.step.eq(0), self.lane.eq(0), self.parameter_entry.eq(entry),
                                 group_entry.eq(entry)]
        with m.If(self.captured):
            m.d.sync += [running.eq(1), group.eq(self.i_group)]
        with m.If(self.start):
            m.d.sync += [self.parameter_entry.eq(self.tile.parameter_word), group_entry.eq(self.tile.parameter_word)]
        return m


class DrainUnit(wiring.Component):
    """Moves captured results to the output banks: one result a drain every :func:`drain_interval` cycles.

    A result is read from the array, bias or partial sum is added, then it goes back to the psum RAM or through the output stage
    into its lane's word. :func:`tail_cycles` says when the last beat of a tile is written.

    Members
    -------
    start: strobe: a tile begins. i_last, i_group: the array takes the last vector of a group.
    drain_step, i_results: to and from the array.
    parameter_write_enable (a bit a part), parameter_write_entry, parameter_write_data: load port.
    write_enable (a bit a lane), write_entry, write_data: to the output banks.
    done: strobe with the tile's last write.
    """

    def __init__(self, *, design: Design) -> None:
        self._design = design
        entry, lanes = entry_bits(design, "output"), design.lanes
        super().__init__({
            "config": In(stage_layout(design, Stage.CONFIG)),
            "tile": In(stage_layout(design, Stage.COMPUTE)),
            "start": In(1), "i_last": In(1), "i_group": In(group_layout(design)),
            "drain_step": Out(range(max(2, design.drain_steps))),
            "i_results": In(ArrayLayout(signed(design.accumulator_bits), design.drains)),
            "parameter_write_enable": In(design.drains_per_lane),
            "parameter_write_entry": In(entry_bits(design, "parameter")),
            "parameter_write_data": In(design.parameter_bits),
            "write_enable": Out(lanes),
            "write_entry": Out(ArrayLayout(unsigned(entry), lanes)),
            "write_data": Out(ArrayLayout(unsigned(design.bus_bits), lanes)),
            "done": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self._design
        parts, share = design.drains_per_lane, design.lanes_per_drain
        m.submodules.walker = walker = DrainWalker(design=design)
        # The first result is read in the very cycle of its capture, so that the last is read before the next capture.
        waiting = capture_cycles(design) - 1
        m.d.comb += [
            walker.tile.eq(self.tile), walker.start.eq(self.start), walker.captured.eq(_delay(m, self.i_last, waiting, "last")),
            walker.i_group.eq(_delay(m, self.i_group.as_value(), waiting, "group")),
            self.drain_step.eq(walker.step),
        ]
        # A token accompanies each step down the pipeline: which lanes and parts take its elements.
        token_shape = StructLayout({"valid": unsigned(design.drains), "lane": unsigned(len(walker.lane)), "pixel_end": unsigned(1),
                                    "step": unsigned(1), "tile_end": unsigned(1)})
        token = Signal(token_shape)
        valid = []
        for drain in range(design.drains):
            lanes = walker.group.lanes.word_select(drain // parts, share)
            exists = lanes.bit_select(walker.lane, 1) if share > 1 else lanes
            valid.append(walker.step_valid & exists & (walker.row + drain % parts < walker.rows))
        m.d.comb += [
            token.valid.eq(Cat(valid)), token.lane.eq(walker.lane), token.step.eq(walker.step_valid),
            token.pixel_end.eq(walker.group.pixel_end & (walker.row + parts >= walker.rows)),
            token.tile_end.eq(walker.step_valid & walker.group.tile_end & walker.group_end),
        ]
        adding = addend_cycles(design)
        reading = adding - READ_CYCLES - 1
        entry = _delay(m, walker.parameter_entry, reading, "parameter_entry")
        read = Signal(token_shape)
        m.d.comb += read.eq(_delay(m, token.as_value(), adding, "read"))
        summed = Signal(token_shape)
        m.d.sync += summed.eq(read)

        banks, parameters = [], []
        for part in range(parts):
            bank = Bank(shape=design.bank_shape("parameter"), word_bits=design.parameter_bits)
            m.submodules[f"parameters_{part}"] = bank
            m.d.comb += [
                bank.write_enable.eq(self.parameter_write_enable[part]), bank.write_entry.eq(self.parameter_write_entry),
                bank.write_data.eq(self.parameter_write_data), bank.read_enable.eq(1), bank.read_word.eq(entry),
            ]
            banks.append(bank)
            parameters.append(Signal(parameter_layout(design), name=f"parameter_{part}"))
            m.d.comb += parameters[-1].eq(bank.read_data)

        psum_index = None
        if design.psum_bytes:
            index = Signal(entry_bits(design, "psum"))
            with m.If(self.start):
                m.d.sync += index.eq(0)
            with m.Elif(walker.step_valid):
                m.d.sync += index.eq(index + 1)
            psum_index = _delay(m, index, reading, "psum_index")
        results, held = [self.i_results[drain] for drain in range(design.drains)], parameters
        if drain_interval(design) == 1:  # otherwise a step's results and parameters stay for longer than it takes to add them
            results = [_delay(m, result, adding - readout_cycles(design), f"result_{drain}").as_signed()
                       for drain, result in enumerate(results)]
            held = [Signal.like(parameter, name=f"held_{part}") for part, parameter in enumerate(parameters)]
            m.d.sync += [later.eq(now) for later, now in zip(held, parameters, strict=True)]

        latency = output_unit(design).latency_cycles
        emitted = Signal(token_shape)
        final = summed.valid if not design.psum_bytes else Mux(self.tile.final_channels, summed.valid, 0)
        m.d.comb += emitted.eq(_delay(m, summed.as_value(), latency, "emitted"))
        values, strobes = [], []
        for drain in range(design.drains):
            total = self._total(m, drain, results[drain], parameters[drain % parts], psum_index, summed)
            value, strobe = self._output(m, drain, total, held[drain % parts], final[drain])
            values.append(value)
            strobes.append(strobe)
        m.d.sync += self.done.eq(emitted.tile_end)

        for lane in range(design.lanes):
            assembler = Assembler(design=design)
            m.submodules[f"assembler_{lane}"] = assembler
            first = lane * parts if parts > 1 else lane // share
            mine = emitted.lane == lane % share if share > 1 else Const(1)
            # Parts past the group's last channel are zero; the first part of a step is valid whenever any is.
            elements = [Mux(strobes[first + part], values[first + part], 0) for part in range(parts)]
            m.d.comb += [
                assembler.start.eq(self.start), assembler.first_entry.eq(self.tile.output_entry),
                assembler.i_valid.eq(strobes[first] & mine), assembler.i_elements.eq(Cat(elements)),
                assembler.i_pixel_end.eq(emitted.pixel_end),
                self.write_enable[lane].eq(assembler.write_enable), self.write_entry[lane].eq(assembler.write_entry),
                self.write_data[lane].eq(assembler.write_data),
            ]
        return m

    def _total(self, m: Module, drain: int, result: Value, parameter: Any, psum_index: Value | None, summed: Any) -> Signal:
        """Result plus bias, or plus the partial sum of the channel tiles before; in the cycle of ``summed``."""
        design = self._design
        bias: Value = Const(0) if design.has_threshold_output else parameter.bias
        chosen = bias
        total = Signal(signed(design.accumulator_bits), name=f"total_{drain}")
        if psum_index is not None:
            bank = Bank(shape=design.bank_shape("psum"), word_bits=design.accumulator_bits)
            m.submodules[f"psum_{drain}"] = bank
            m.d.comb += [
                bank.read_enable.eq(1), bank.read_word.eq(psum_index),
                bank.write_enable.eq(summed.step & ~self.tile.final_channels),
                bank.write_entry.eq(_delay(m, psum_index, READ_CYCLES + 2, f"psum_index_{drain}")), bank.write_data.eq(total),
            ]
            chosen = Mux(self.tile.first_channels, bias, bank.read_data.as_signed())
        addend = Signal(signed(design.accumulator_bits), name=f"addend_{drain}")
        m.d.sync += [addend.eq(chosen), total.eq(result + addend)]
        return total

    def _output(self, m: Module, drain: int, total: Signal, parameter: Any, valid: Value) -> tuple[Value, Value]:
        unit = output_unit(self._design)
        stage = unit.create()
        m.submodules[f"output_{drain}"] = stage
        m.d.comb += [stage.i_valid.eq(valid), stage.i_acc.eq(total)]
        if self._design.has_threshold_output:
            threshold, flip = Signal.like(stage.i_threshold), Signal()
            m.d.sync += [threshold.eq(parameter.threshold), flip.eq(parameter.flip)]
            m.d.comb += [stage.i_threshold.eq(threshold), stage.i_flip.eq(flip)]
        else:
            multiplier, shift = Signal(MULTIPLIER_BITS), Signal(SHIFT_BITS)
            m.d.sync += [multiplier.eq(parameter.multiplier), shift.eq(parameter.shift)]
            m.d.comb += [
                stage.i_multiplier.eq(multiplier), stage.i_shift.eq(shift), stage.zero_point.eq(self.config.output_zero_point),
                stage.lo.eq(self.config.low), stage.hi.eq(self.config.high),
            ]
        return stage.o_value, stage.o_valid


def _delay(m: Module, value: Value, cycles: int, name: str) -> Value:
    for number in range(cycles):
        later = Signal(len(value), name=f"{name}_{number + 1}")
        m.d.sync += later.eq(value)
        value = later
    return value
