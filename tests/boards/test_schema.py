"""Derived figures of a board: exact bandwidth, bus width, ceilings."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards import BUS_BITS, Board, InputError, Trust, board_from_mapping, list_boards, load_board, load_device
from boards.plain import to_mapping


def board(*, width_bits: int = 16, mt_s: float = 80, efficiency: float = 0.7, **more: object) -> Board:
    memory = {"kind": "SDR", "width_bits": width_bits, "mt_s": mt_s, "efficiency": efficiency, "latency_cycles": 12}
    return board_from_mapping({"name": "mine", "device": "xc6slx9", "memory": memory, **more}, where="mine.yaml")


def test_papilio_pro():
    pro = load_board("papilio-pro")
    assert (pro.device.name, pro.package, pro.speed_grade) == ("xc6slx9", "tqg144", "-2")
    assert pro.memory is not None
    assert (pro.memory.kind, pro.memory.width_bits.value, pro.memory.mt_s.value) == ("SDR", 16, 80)
    assert (pro.peak_mb_s, pro.offered_mb_s, pro.clock_mhz.value, pro.memory.efficiency.value) == (160, 112, 100, 0.7)
    assert pro.memory.latency_cycles.value == 12 and pro.memory.latency_cycles.trust is Trust.ASSUMPTION
    assert pro.memory.part_maximum_mb_s == 266
    assert pro.offered_beats_per_cycle(16, 100) == Fraction(112, 200) == Fraction(14, 25)
    assert pro.default_bus_bits(100) == 16
    assert pro.usable == {"luts": 4004, "carry_luts": 2002, "ram_luts": 1001, "ffs": 8008, "dsps": 16, "block_rams": 32,
                          "large_rams": 0}


def test_the_fraction_is_that_of_the_decimals():
    assert board().offered_beats_per_cycle(16, 100) == Fraction(16, 8) * 80 * Fraction(7, 10) / (2 * 100)
    assert board(mt_s=62.5, width_bits=8).offered_beats_per_cycle(16, 33.3) == Fraction("43.75") / (2 * Fraction("33.3"))


def test_no_more_than_a_beat_a_cycle():
    wide = board(width_bits=64, mt_s=800)
    assert wide.offered_beats_per_cycle(16, 100) == 1
    assert wide.offered_beats_per_cycle(256, 100) == 1 and wide.offered_bytes_per_cycle(100) > 32
    assert wide.default_bus_bits(100) == 256


def test_default_bus_at_the_edge():
    exact = board(width_bits=16, mt_s=200, efficiency=0.5)  # 200 MB/s: 2 bytes a cycle at 100 MHz
    assert exact.default_bus_bits(100) == 16 and exact.offered_beats_per_cycle(16, 100) == 1
    assert exact.default_bus_bits(99.9) == 32
    assert exact.default_bus_bits() == 16  # the board's own clock


@given(st.integers(4, 128), st.integers(1, 20000), st.integers(1, 100), st.integers(1, 1000))
def test_offered_never_exceeds_bus_or_peak(width_bits, mt_s, percent, clock_mhz):
    some = board(width_bits=width_bits, mt_s=mt_s, efficiency=percent / 100)
    bytes_per_cycle = Fraction(width_bits * mt_s * percent, 8 * 100 * clock_mhz)
    assert some.offered_bytes_per_cycle(clock_mhz) == bytes_per_cycle
    assert some.offered_mb_s <= some.peak_mb_s
    best = some.default_bus_bits(clock_mhz)
    for bits in BUS_BITS:
        offered = some.offered_beats_per_cycle(bits, clock_mhz)
        assert 0 < offered <= 1
        assert offered == min(1, bytes_per_cycle * 8 / bits)
        assert (bits < best) <= (bytes_per_cycle * 8 > bits)


def test_ceilings():
    mine = board(ceilings={"luts_percent": 50, "dsps_percent": 99.9})
    assert mine.usable == {"luts": 2860, "carry_luts": 1430, "ram_luts": 715, "ffs": 8008, "dsps": 15, "block_rams": 32,
                           "large_rams": 0}


def test_a_board_ceiling_goes_before_its_device_s_and_that_before_the_default():
    icebreaker = load_board("icebreaker")
    assert (icebreaker.ceiling("luts").value, icebreaker.ceiling("dsps").value) == (90, 100)
    assert icebreaker.ceiling("luts") == load_device("ice40up5k").ceilings.luts_percent
    mine = board_from_mapping({"name": "mine", "device": "ice40up5k", "memory": "none", "ceilings": {"luts_percent": 50}}, where="mine")
    assert {name: mine.ceiling(name).value for name in ("luts", "ffs", "block_rams")} == {"luts": 50, "ffs": 90, "block_rams": 100}
    assert mine.usable["luts"] == 2640 and mine.usable["ffs"] == 4752 and mine.usable["large_rams"] == 4


def test_primitives_of_a_device():
    vu9p = load_device("xcvu9p")
    assert (vu9p.lut_inputs, vu9p.dsp.a_bits, vu9p.dsp.b_bits, vu9p.block_ram.half, vu9p.block_ram_bits) == (6, 27, 18, "RAMB18", 36864)
    assert vu9p.large_ram is not None and vu9p.large_ram.bits * vu9p.capacity["large_rams"] == 960 * 4096 * 72
    hx8k = load_device("ice40hx8k")
    assert hx8k.large_ram is None and hx8k.capacity["large_rams"] == 0 and hx8k.distributed_ram is None
    assert hx8k.block_ram_read_bits_per_cycle == 32 * 16 and load_device("lfe5u-25f").lut_inputs == 4


@pytest.mark.parametrize("name", list_boards())
def test_a_board_is_its_mapping(name):
    found = load_board(name)
    assert board_from_mapping(json.loads(json.dumps(to_mapping(found))), where=name) == found


def test_without_memory():
    mimas = load_board("mimas")
    assert mimas.memory is None and mimas.peak_mb_s == mimas.offered_mb_s == 0
    with pytest.raises(InputError) as caught:
        mimas.offered_beats_per_cycle(16, 100)
    assert str(caught.value) == ("--board: board mimas has no external memory, got 'mimas'; choose a board with one "
                                 "(nearmac boards)")


@pytest.mark.parametrize("bus_bits", [0, 8, 17, 512, True, None, "16"])
def test_bus_width_is_checked(bus_bits):
    with pytest.raises(InputError, match=r"^bus_bits: not a bus width, got .*; allowed: 16, 32, 64, 128, 256$"):
        board().offered_beats_per_cycle(bus_bits, 100)


@pytest.mark.parametrize("clock_mhz", [0, -1, 1001, float("nan"), float("inf"), True, "100"])
def test_clock_is_checked(clock_mhz):
    with pytest.raises(InputError, match=r"^clock_mhz: clock out of range, got .*; allowed: 1 to 1000 \(MHz\)$"):
        board().default_bus_bits(clock_mhz)


def test_boards_are_values():
    pro = load_board("papilio-pro")
    assert pickle.loads(pickle.dumps(pro)) == copy.deepcopy(pro) == pro and hash(pro) == hash(load_board("papilio-pro"))
    with pytest.raises(FrozenInstanceError):
        pro.name = "other"  # type: ignore[misc]
    assert board_from_mapping(json.loads(json.dumps(to_mapping(pro))), where="pro") == pro
