"""The keep unit: beats become entries of the input banks, at the right place in the right lanes; or they pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from amaranth.sim import Simulator

from hdl.design import Design
from hdl.errors import InputError
from hdl.keep import KeepUnit
from hdl.program import fields

DESIGN = Design(rows=2, cols=4, chaining=True)  # a word of 32 bits is two beats


@dataclass
class Write:
    """An entry written in one lane."""

    lane: int
    entry: int
    data: int


def kept(design: Design, beats: list[int], fields: dict[str, int], pauses: int = 0) -> list[Write]:
    """What the unit writes for a tile's beats; with ``pauses`` cycles without a beat between two."""
    unit = KeepUnit(design=design)
    writes: list[Write] = []

    async def bench(ctx: Any) -> None:
        for name, value in fields.items():
            stage = unit.config if name in unit.config.shape().members else unit.store
            ctx.set(stage[name], value)
        ctx.set(unit.config.store_on_chip, 1)
        for _ in range(design.lanes):  # the lanes' bands settle
            await ctx.tick()
        ctx.set(unit.start, 1)
        await ctx.tick()
        ctx.set(unit.start, 0)
        for at, beat in enumerate(beats):
            for _ in range(pauses):
                assert ctx.get(unit.input_enable) == 0
                await ctx.tick()
            ctx.set(unit.beats.payload, beat)
            ctx.set(unit.beats.valid, 1)
            ctx.set(unit.last, at == len(beats) - 1)
            assert ctx.get(unit.beats.ready) and ctx.get(unit.busy) and not ctx.get(unit.write_data.valid)
            assert ctx.get(unit.done) == (at == len(beats) - 1)
            writes.extend(Write(lane, ctx.get(unit.input_entry[lane]), ctx.get(unit.input_data))
                          for lane in range(design.lanes) if ctx.get(unit.input_enable) >> lane & 1)
            await ctx.tick()
            ctx.set(unit.beats.valid, 0)
        assert not ctx.get(unit.busy)

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return writes


# Two rows of two pixels; a pixel is three beats: a word and the first half of one. Eight entries a row, two a pixel.
FIELDS = {"output_address": 5, "output_beats": 3, "output_bursts_last": 1, "output_pixel_beats": 2, "output_row_beats": 8}
BEATS = list(range(0x101, 0x10D))


def test_beats_become_entries_and_the_last_word_of_a_pixel_is_filled_with_zeros() -> None:
    expected = [Write(0, 5, 0x0102_0101), Write(0, 6, 0x0103), Write(0, 7, 0x0105_0104), Write(0, 8, 0x0106),
                Write(0, 13, 0x0108_0107), Write(0, 14, 0x0109), Write(0, 15, 0x010B_010A), Write(0, 16, 0x010C)]
    assert kept(DESIGN, BEATS, FIELDS) == expected
    assert kept(DESIGN, BEATS, FIELDS, pauses=2) == expected


def test_a_row_goes_to_every_lane_that_has_it() -> None:
    fields = {**FIELDS, "next_row_first": 3, "next_span_last": 3, "next_band_rows": 4, "next_band_entries": 32, "output_address": 50}
    writes = kept(DESIGN.with_(lanes=2, input_bytes=32768), BEATS, fields)
    # Row 3 is lane 0's last; row 4 is lane 1's first, which lies one band of entries lower.
    assert [(write.lane, write.entry) for write in writes] == [(0, 50), (0, 51), (0, 52), (0, 53), *((1, 58 - 32 + at) for at in range(4))]


def test_a_beat_of_several_words_is_an_entry() -> None:
    design = DESIGN.with_(bus_bits=64)
    fields = {"output_address": 0, "output_beats": 1, "output_bursts_last": 1, "output_pixel_beats": 3, "output_row_beats": 9}
    assert kept(design, [7, 8, 9, 10], fields) == [Write(0, 0, 7), Write(0, 3, 8), Write(0, 9, 9), Write(0, 12, 10)]


def test_beats_pass_when_the_program_stores_to_memory() -> None:
    unit = KeepUnit(design=DESIGN)

    async def bench(ctx: Any) -> None:
        ctx.set(unit.beats.payload, 0x1234)
        ctx.set(unit.beats.valid, 1)
        for ready in (0, 1):
            ctx.set(unit.write_data.ready, ready)
            assert ctx.get(unit.beats.ready) == ready and ctx.get(unit.write_data.valid)
            assert ctx.get(unit.write_data.payload) == 0x1234 and not ctx.get(unit.input_enable)
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_program_can_name_every_field() -> None:
    """The field of an instruction has 7 bits, and 0 names none."""
    options = {"rows": 64, "lanes": 2, "multiplier": "lut", "weight_bytes": 1 << 20, "input_bytes": 1 << 20, "psum_bytes": 1 << 17}
    for design in (Design(cols=127, chaining=True, **options), Design(cols=128, **options)):
        assert max(field.index + -(-field.bits // 32) for field in fields(design).values()) <= 127
    with pytest.raises(InputError) as caught:
        Design(cols=128, chaining=True, **options)
    assert str(caught.value) == "design.cols: out of range, got 128; allowed: 1 to 127"


def test_only_designs_with_chaining_have_its_fields() -> None:
    plain, chaining = (fields(DESIGN.with_(chaining=flag, lanes=2)) for flag in (False, True))
    assert set(chaining) - set(plain) == {"next_program_address", "next_program_beats", "store_on_chip", "next_span_last",
                                          "next_band_rows", "next_band_entries", "next_row_first"}
    with pytest.raises(InputError, match="^design.chaining: must be true or false, got 'yes'$"):
        Design(rows=1, cols=1, chaining="yes")  # type: ignore[arg-type]
