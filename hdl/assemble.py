"""Packs a lane's output elements into beats and writes them to its output bank."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.design import Design
from hdl.program import entry_bits


class Assembler(wiring.Component):
    """Elements come in channel order, pixel after pixel, ``drains_per_lane`` at a time; a beat is written when it is full, when
    its word ends, or when the pixel does. Unused elements of a beat are zero.

    Latency: the beat is on the ``write`` members one cycle after its last element. Throughput: one step of elements a cycle.

    Members
    -------
    start: strobe: a tile begins; ``first_entry`` is where its first beat goes, the others follow on.
    i_valid, i_elements, i_pixel_end: a step of elements; the last of its pixel.
    write_enable, write_entry, write_data: to the output bank.
    """

    def __init__(self, *, design: Design) -> None:
        self._design = design
        entry = entry_bits(design, "output")
        super().__init__({
            "start": In(1), "first_entry": In(entry),
            "i_valid": In(1), "i_elements": In(design.drains_per_lane * design.activation_bits), "i_pixel_end": In(1),
            "write_enable": Out(1), "write_entry": Out(entry), "write_data": Out(design.bus_bits),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self._design
        step, bits = design.drains_per_lane, design.activation_bits
        step_bits = step * bits
        positions = design.bus_bits // step_bits  # steps in a beat
        steps_in_word = design.cols // step
        steps_in_slot = design.word_slot_bits("output") // step_bits
        slots = max(1, positions // steps_in_slot)

        number = Signal(range(max(2, steps_in_word)))  # of the step within its word
        word_end = number == steps_in_word - 1
        slot = Signal(range(slots)) if slots > 1 else Const(0, 0)
        if slots > 1:
            position = Cat(number[:(steps_in_slot - 1).bit_length()], slot)
            beat_end = word_end & (slot == slots - 1)
        else:
            position = number[:(positions - 1).bit_length()] if positions > 1 else Const(0, 0)
            beat_end = word_end | (position == positions - 1) if positions > 1 else Const(1)

        fresh = Signal(init=1)  # the next element opens a beat
        complete = Signal()
        m.d.comb += complete.eq(beat_end | self.i_pixel_end)
        m.d.sync += self.write_enable.eq(self.i_valid & complete)
        with m.If(self.i_valid):
            m.d.sync += [fresh.eq(complete), number.eq(number + 1)]
            with m.If(word_end | self.i_pixel_end):
                m.d.sync += number.eq(0)
                if slots > 1:
                    m.d.sync += slot.eq(slot + 1)
            if slots > 1:
                with m.If(complete):
                    m.d.sync += slot.eq(0)
            for at in range(positions):
                part = self.write_data[at * step_bits:(at + 1) * step_bits]
                with m.If((position == at) if positions > 1 else Const(1)):
                    m.d.sync += part.eq(self.i_elements)
                with m.Elif(fresh):
                    m.d.sync += part.eq(0)
        with m.If(self.start):
            m.d.sync += self.write_entry.eq(self.first_entry)
        with m.Elif(self.write_enable):
            m.d.sync += self.write_entry.eq(self.write_entry + 1)
        return m
