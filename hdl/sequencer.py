"""The sequencer: runs the program that computes each tile's fields, and paces the phases."""

from __future__ import annotations

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

from hdl.bank import Bank
from hdl.design import PROGRAM_DEPTH, PROGRAM_WORD_BITS, Design
from hdl.loop import choose
from hdl.program import FIRST_TILE_LEVEL, HEADER, IMMEDIATE_BITS, LEVELS, Mode, Opcode, Stage, fields

ADDRESS_BITS = (PROGRAM_DEPTH - 1).bit_length()
INSTRUCTION = StructLayout({
    "address": unsigned(9), "mode": unsigned(2), "level": unsigned(3), "level_b": unsigned(3), "unused": unsigned(3),
    "field": unsigned(7), "opcode": unsigned(3), "top": unsigned(2),
})


def stage_layout(design: Design, stage: Stage) -> StructLayout:
    """The fields of one stage, as a structure."""
    return StructLayout({field.name: unsigned(field.bits) for field in fields(design).values() if field.stage is stage})


class Evaluator(wiring.Component):
    """Accumulator machine that computes the fields of one tile after another.

    Each instruction takes two cycles: its word is read, then its operand. ``start`` begins with the configuration at word 1 and
    goes on through the tile routine; ``next`` runs the tile routine for the next tile. ``busy`` falls when it is done.

    Members
    -------
    load_enable, load_word, load_data: write port for the program, while idle.
    start, next: strobes, while not busy.
    busy: from the cycle after the strobe.
    exhausted: the last ``next`` found no further tile. ``wrong_version``: the header is not ours.
    set_field, set_data: a field's new value; ``set_field`` is an index of :func:`hdl.program.fields` plus 1, or 0 for none.
    """

    def __init__(self, *, design: Design) -> None:
        self._shape = design.bank_shape("program")
        super().__init__({
            "load_enable": In(1), "load_word": In(ADDRESS_BITS), "load_data": In(PROGRAM_WORD_BITS),
            "start": In(1), "next": In(1), "busy": Out(1), "exhausted": Out(1), "wrong_version": Out(1),
            "set_field": Out(7), "set_data": Out(PROGRAM_WORD_BITS),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ram = ram = Bank(shape=self._shape, word_bits=PROGRAM_WORD_BITS)
        read = ram.read_data

        pc, entry = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        accumulator = Signal(PROGRAM_WORD_BITS)
        running = Signal()
        at_operand = Signal()  # this cycle the operand of `instruction` arrives, and the next instruction's address leaves
        instruction = Signal(INSTRUCTION)
        valid = Signal()  # `instruction` is real (not the first cycle of a run)
        checking = Signal()  # the word that arrives is the header
        first_last = [Signal(2, init=0b11, name=f"level_{n}") for n in range(LEVELS)]
        carry, level = Signal(), Signal(3)
        arrived = Signal(INSTRUCTION)
        m.d.comb += arrived.as_value().eq(read)

        m.d.comb += [ram.read_enable.eq(running), self.busy.eq(running)]
        classes = Array(first_last)
        with m.If(at_operand):
            m.d.comb += ram.read_word.eq(pc)
        with m.Else():
            offset = Signal(4)
            with m.Switch(arrived.mode):
                with m.Case(Mode.CLASS):
                    m.d.comb += offset.eq(classes[arrived.level])
                with m.Case(Mode.PAIR):
                    m.d.comb += offset.eq(Cat(classes[arrived.level_b], classes[arrived.level]))
                with m.Case(Mode.LEVEL):
                    m.d.comb += offset.eq(level)
            m.d.comb += ram.read_word.eq(arrived.address | offset)

        # One operand, chosen in two steps, and one of three results: the sum, the difference in bits, the operand itself.
        opcode = instruction.opcode
        is_zero = accumulator[:16] == 0
        stepping, stepped_down = opcode == Opcode.STEP, carry & ~is_zero
        immediate = instruction.as_value()[:IMMEDIATE_BITS]
        options = [read, C(0, PROGRAM_WORD_BITS), Cat(immediate, immediate[-1].replicate(PROGRAM_WORD_BITS - IMMEDIATE_BITS)),
                   C(-1, PROGRAM_WORD_BITS)]
        # A step that moves counts down by one or starts over; one that does not adds 0.
        ones, zero = stepping & stepped_down, stepping & ~carry
        operand = choose(Cat(ones | zero, (opcode == Opcode.IMMEDIATE) | ones), options)
        adds = (opcode == Opcode.ADD) | ones | zero
        mixed = accumulator ^ operand
        result = Signal(PROGRAM_WORD_BITS)
        m.d.comb += result.eq(Mux(adds, accumulator + operand, Mux(opcode == Opcode.XOR, mixed, operand)))

        active = running & at_operand & valid
        takes = Signal()
        m.d.comb += takes.eq(active & (opcode != Opcode.STORE) & (opcode != Opcode.ENTRY) & (opcode != Opcode.END))
        m.d.sync += self.set_field.eq(0)
        m.d.comb += self.set_data.eq(accumulator)
        with m.If(takes):
            m.d.sync += [accumulator.eq(result), self.set_field.eq(instruction.field)]
        # The result of a step against the operand, which it never exceeds, and against 0; but not by the sum, which comes late.
        flags = Cat(Mux(carry, is_zero, accumulator[:16] == read[:16]),
                    Mux(carry & is_zero, read[:16] == 0, accumulator[:16] == stepped_down))
        for number, signal in enumerate(first_last):
            with m.If(self.start):
                m.d.sync += signal.eq(0b11)
            with m.Elif(active & stepping & (instruction.level == number)):
                m.d.sync += signal.eq(flags)
        with m.If(active & stepping & carry):
            m.d.sync += [level.eq(instruction.level), carry.eq(is_zero)]

        m.d.comb += [
            ram.write_enable.eq(self.load_enable | active & (opcode == Opcode.STORE)),
            ram.write_entry.eq(Mux(self.load_enable, self.load_word, instruction.address)),
            ram.write_data.eq(Mux(self.load_enable, self.load_data, accumulator)),
        ]

        with m.If(running):
            m.d.sync += at_operand.eq(~at_operand)
            with m.If(at_operand):
                m.d.sync += pc.eq(pc + 1)
                with m.If(valid & (opcode == Opcode.ENTRY)):
                    m.d.sync += entry.eq(pc)
                with m.If(valid & (opcode == Opcode.END)):
                    m.d.sync += [running.eq(0), valid.eq(0), self.exhausted.eq(carry)]
            with m.Else():
                m.d.sync += [instruction.as_value().eq(read), valid.eq(~checking), checking.eq(0)]
                with m.If(checking):
                    m.d.sync += self.wrong_version.eq(read != HEADER)
        with m.Elif(self.start):
            m.d.sync += [running.eq(1), at_operand.eq(1), pc.eq(0), checking.eq(1), carry.eq(0), level.eq(FIRST_TILE_LEVEL),
                         self.exhausted.eq(0)]
        with m.Elif(self.next):
            m.d.sync += [running.eq(1), at_operand.eq(1), pc.eq(entry), carry.eq(1)]
        return m


class FieldFile(wiring.Component):
    """The fields: set one after another, then handed on from phase to phase.

    A field of stage LOAD is in ``load`` during the phase after its evaluation, one of stage COMPUTE in ``compute`` one phase
    later, one of stage STORE in ``store`` another phase later. All of it is registers: no logic but the write enables.

    Members
    -------
    set_field, set_data: see :class:`Evaluator`.
    advance: strobe: a phase begins with the next cycle.
    config, load, compute, store: structures of :func:`stage_layout`.
    """

    def __init__(self, *, design: Design) -> None:
        self._design = design
        super().__init__({
            "set_field": In(7), "set_data": In(PROGRAM_WORD_BITS), "advance": In(1),
            **{stage.name.lower(): Out(stage_layout(design, stage)) for stage in Stage},
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for field in fields(self._design).values():
            value = Signal(field.bits, name=field.name)
            for chunk in range(-(-field.bits // 32)):
                with m.If(self.set_field == field.index + chunk + 1):
                    m.d.sync += value[32 * chunk:32 * (chunk + 1)].eq(self.set_data)
            for age in range(field.stage):
                held = Signal(field.bits, name=f"{field.name}_{age + 1}")
                with m.If(self.advance):
                    m.d.sync += held.eq(value)
                value = held
            m.d.comb += getattr(self, field.stage.name.lower())[field.name].eq(value)
        return m
