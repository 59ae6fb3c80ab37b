"""The sequencer: runs the program that computes each tile's fields, and paces the phases."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out

from hdl.bank import Bank
from hdl.design import PROGRAM_DEPTH, PROGRAM_WORD_BITS, Design
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

    An instruction every two cycles, because its word and its operand come through one read port; each is at work for six. Counted from
    the cycle in which its address leaves: 1 the word arrives; 3 the operand's address leaves; 4 the operand arrives, and STORE writes;
    5 the accumulator takes the result. What follows a STEP immediately must not be addressed by what it changes (see
    :meth:`hdl.program.ProgramBuilder.table`).

    ``start`` begins with the configuration at word 1 and goes on through the tile routine; ``next`` runs the tile routine for the
    next tile. ``busy`` falls when it is done.

    Members
    -------
    load_enable, load_word, load_data: write port for the program, while idle.
    start, next: strobes, while not busy.
    busy: from the cycle after the strobe.
    exhausted: the last ``next`` found no further tile. ``wrong_version``: the header is not ours; nothing was run.
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
        running = Signal()
        fetching = Signal()  # this cycle an instruction's address leaves and an operand arrives; in the next it is the other way round
        pc, entry = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        d_instruction, x_instruction = Signal(INSTRUCTION), Signal(INSTRUCTION)  # its operand is fetched; it is executed
        d_valid, x_valid = Signal(), Signal()
        at_header, d_header = Signal(), Signal()  # the word that arrives, the word in d_instruction is the header
        first_last = [Signal(2, init=0b11, name=f"level_{n}") for n in range(LEVELS)]
        carry, level = Signal(), Signal(3)
        accumulator = Signal(PROGRAM_WORD_BITS)
        m.d.comb += [self.busy.eq(running), self.set_data.eq(accumulator)]

        ending = d_valid & (d_instruction.opcode == Opcode.END)
        with m.If(running):
            m.d.sync += fetching.eq(~fetching)
            with m.If(fetching):
                m.d.sync += [pc.eq(pc + 1), self.wrong_version.eq(d_header & (d_instruction.as_value() != HEADER))]
                with m.If(d_valid & (d_instruction.opcode == Opcode.ENTRY)):
                    m.d.sync += entry.eq(pc)
            with m.Else():
                m.d.sync += [
                    d_instruction.as_value().eq(ram.read_data), d_valid.eq(~at_header), d_header.eq(at_header), at_header.eq(0),
                    x_instruction.eq(d_instruction), x_valid.eq(d_valid),
                ]
                with m.If(ending):
                    m.d.sync += self.exhausted.eq(carry)
                with m.If(ending | self.wrong_version):
                    m.d.sync += [running.eq(0), d_valid.eq(0), x_valid.eq(0)]
        with m.Elif(self.start | self.next):
            m.d.sync += [running.eq(1), fetching.eq(1), pc.eq(Mux(self.start, 0, entry)), at_header.eq(self.start),
                         carry.eq(~self.start), self.exhausted.eq(0)]
            with m.If(self.start):
                m.d.sync += [level.eq(FIRST_TILE_LEVEL), self.wrong_version.eq(0)]

        m.d.comb += [
            ram.read_enable.eq(running),
            ram.read_word.eq(Mux(fetching, pc, d_instruction.address | self._offset(m, d_instruction, first_last, level))),
        ]
        self._execute(m, ram, x_instruction, x_valid & fetching, accumulator, first_last, carry, level)
        return m

    def _offset(self, m: Module, instruction: View, first_last: list[Signal], level: Signal) -> Value:
        """What is OR-ed into the operand's address."""
        classes, offset = Array(first_last), Signal(4)
        with m.Switch(instruction.mode):
            with m.Case(Mode.CLASS):
                m.d.comb += offset.eq(classes[instruction.level])
            with m.Case(Mode.PAIR):
                m.d.comb += offset.eq(Cat(classes[instruction.level_b], classes[instruction.level]))
            with m.Case(Mode.LEVEL):
                m.d.comb += offset.eq(level)
        return offset

    def _execute(self, m: Module, ram: Bank, instruction: View, arriving: Value, accumulator: Signal, first_last: list[Signal],
                 carry: Signal, level: Signal) -> None:
        """``arriving``: the operand of ``instruction`` arrives. In that cycle STORE writes, what replaces the accumulator clears it, and
        what is to be done is decided; in the next the accumulator takes the sum or the difference in bits.
        """
        opcode = instruction.opcode
        stepping, storing = opcode == Opcode.STEP, opcode == Opcode.STORE
        clears = arriving & ((opcode == Opcode.LOAD) | (opcode == Opcode.IMMEDIATE))
        is_zero = accumulator[:16] == 0
        down = stepping & carry & ~is_zero  # a step that moves counts down by one or, from 0, starts over
        immediate = instruction.as_value()[:IMMEDIATE_BITS]
        extended = Cat(immediate, immediate[-1].replicate(PROGRAM_WORD_BITS - IMMEDIATE_BITS))
        operand = Signal(PROGRAM_WORD_BITS)
        takes, steps, mixes, was_zero = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [
            operand.eq(Mux(opcode == Opcode.IMMEDIATE, extended, ram.read_data)),
            takes.eq(arriving & ~storing & (opcode != Opcode.ENTRY) & (opcode != Opcode.END) & ~(stepping & ~carry)),
            steps.eq(arriving & stepping), mixes.eq(opcode == Opcode.XOR), was_zero.eq(is_zero),
            self.set_field.eq(Mux(takes, instruction.field, 0)),
        ]
        with m.If(down):
            m.d.sync += operand.eq(~0)
        with m.If(clears):
            m.d.sync += accumulator.eq(0)
        with m.Elif(takes):
            m.d.sync += accumulator.eq(Mux(mixes, accumulator ^ operand, accumulator + operand))
        m.d.comb += [
            ram.write_enable.eq(self.load_enable | arriving & storing),
            ram.write_entry.eq(Mux(self.load_enable, self.load_word, instruction.address)),
            ram.write_data.eq(Mux(self.load_enable, self.load_data, accumulator)),
        ]
        # The result of a step against the operand, which it never exceeds, and against 0; but not by the sum, which comes late.
        flags = Cat(Mux(carry, was_zero, accumulator[:16] == operand[:16]),
                    Mux(carry & was_zero, operand[:16] == 0, accumulator[:16] == (carry & ~was_zero)))
        for number, signal in enumerate(first_last):
            with m.If(self.start):
                m.d.sync += signal.eq(0b11)
            with m.Elif(steps & (instruction.level == number)):
                m.d.sync += signal.eq(flags)
        with m.If(steps & carry):
            m.d.sync += [level.eq(instruction.level), carry.eq(was_zero)]


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
