"""The evaluator runs a program as docs/program.md says, in the time that docs/timing.md says, and refuses one of another version."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.sim import Simulator

from hdl.design import Design
from hdl.program import HEADER, Mode, Opcode, ProgramBuilder, encode
from hdl.sequencer import Evaluator
from hdl.timing import EVALUATION_CYCLES, FIRST_EVALUATION_CYCLES, INSTRUCTION_CYCLES

DESIGN = Design(rows=2, cols=2)
LEFT, RELOAD, ADDRESS, MASK, CLASSES, LEVELS = 20, 21, 22, 23, 24, 32
CODE = [
    encode(Opcode.IMMEDIATE, immediate=-5, field=0),
    encode(Opcode.ENTRY),
    encode(Opcode.LOAD, address=LEFT),
    encode(Opcode.STEP, address=RELOAD, level=2),
    encode(Opcode.STORE, address=LEFT),
    encode(Opcode.LOAD, address=CLASSES, mode=Mode.CLASS, level=2, field=1),
    encode(Opcode.LOAD, address=ADDRESS),
    encode(Opcode.ADD, address=LEVELS, mode=Mode.LEVEL),
    encode(Opcode.STORE, address=ADDRESS),
    encode(Opcode.LOAD, address=ADDRESS, field=2),
    encode(Opcode.XOR, address=MASK, field=3),
    encode(Opcode.END),
]
FIRST, ROUTINE = len(CODE), len(CODE) - 2


def program(tiles: int, header: int = HEADER) -> list[int]:
    words = [header, *CODE] + [0] * 64
    words[LEFT] = words[RELOAD] = tiles - 1
    words[ADDRESS], words[MASK] = 0x7FFF0000, 0xFFFF0001
    words[CLASSES:CLASSES + 4] = [100, 101, 110, 111]  # middle, first, last, only
    words[LEVELS + 2], words[LEVELS + 7] = 0x10001, 3
    return words


def run(bench: Any) -> None:
    dut = Evaluator(design=DESIGN)
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)

    async def process(ctx: Any) -> None:
        await bench(ctx, dut)

    simulator.add_testbench(process)
    simulator.run()


async def load(ctx: Any, dut: Evaluator, words: list[int]) -> None:
    ctx.set(dut.load_enable, 1)
    for number, word in enumerate(words):
        ctx.set(dut.load_word, number)
        ctx.set(dut.load_data, word)
        await ctx.tick()
    ctx.set(dut.load_enable, 0)


async def evaluate(ctx: Any, dut: Evaluator, strobe: Any) -> tuple[int, list[tuple[int, int]]]:
    """Cycles that it is busy, and the fields that it sets."""
    ctx.set(strobe, 1)
    await ctx.tick()
    ctx.set(strobe, 0)
    cycles, fields = 0, []
    while ctx.get(dut.busy) or ctx.get(dut.set_field):
        cycles += ctx.get(dut.busy)
        assert cycles < 200, "it does not end"
        if ctx.get(dut.set_field):
            fields.append((ctx.get(dut.set_field) - 1, ctx.get(dut.set_data)))
        await ctx.tick()
    return cycles, fields


def expected(tiles: int) -> list[list[tuple[int, int]]]:
    address, result = 0x7FFF0000, []
    for tile in range(tiles + 1):
        at = tile % tiles  # after the last tile the loop starts over
        address += 3 if tile == 0 else 0x10001
        kind = 100 + (at == 0) + 10 * (at == tiles - 1)
        result.append([(1, kind), (2, address & 0xFFFFFFFF), (3, (address ^ 0xFFFF0001) & 0xFFFFFFFF)])
    return result


@pytest.mark.parametrize("tiles", [1, 2, 3, 5])
def test_tiles(tiles: int) -> None:
    async def bench(ctx: Any, dut: Evaluator) -> None:
        await load(ctx, dut, program(tiles))
        fields = []
        for tile in range(tiles + 1):
            cycles, found = await evaluate(ctx, dut, dut.next if tile else dut.start)
            fields.append(found)
            assert ctx.get(dut.exhausted) == (tile == tiles)
            # A phase is over in the cycle after the last that is busy; predictions count the cycle of the strobe, which begins one.
            assert cycles == (EVALUATION_CYCLES + INSTRUCTION_CYCLES * ROUTINE - 1 if tile else
                              FIRST_EVALUATION_CYCLES + INSTRUCTION_CYCLES * FIRST)
        assert fields[0].pop(0) == (0, -5 & 0xFFFFFFFF)
        assert fields == expected(tiles)

    run(bench)


def test_another_version_runs_nothing_and_does_not_stand_in_the_way() -> None:
    async def bench(ctx: Any, dut: Evaluator) -> None:
        await load(ctx, dut, program(2, header=HEADER + 1))
        cycles, fields = await evaluate(ctx, dut, dut.start)
        assert (ctx.get(dut.wrong_version), fields) == (1, []) and cycles < 8
        await load(ctx, dut, program(2))
        _, fields = await evaluate(ctx, dut, dut.start)
        assert ctx.get(dut.wrong_version) == 0
        assert fields[1:] == expected(2)[0]

    run(bench)


def test_no_class_right_after_a_step() -> None:
    builder = ProgramBuilder(DESIGN)
    builder.entry()
    builder.step(0, 3)
    with pytest.raises(AssertionError, match="^table late would be read by the classes before the step$"):
        builder.table(Opcode.LOAD, Mode.CLASS, (1, 2, 3, 4), key="late")
