"""Default core clocks."""

from __future__ import annotations

import pytest

from boards import Trust, load_board
from boards.clocks import BLOCK_RAM_MHZ, DATA_SHEETS, DEFAULTS_MHZ, XILINX, default_clock
from boards.loader import board_from_mapping
from boards.primitives import Family


def test_every_family_has_defaults():
    assert set(DEFAULTS_MHZ) == set(Family)
    assert set(BLOCK_RAM_MHZ) == set(DATA_SHEETS) == set(XILINX)


@pytest.mark.parametrize("family", XILINX)
def test_defaults_keep_well_under_the_block_ram_s_limit(family):
    assert set(DEFAULTS_MHZ[family]) == set(BLOCK_RAM_MHZ[family])
    for grade, mhz in DEFAULTS_MHZ[family].items():
        assert 0.25 <= mhz / BLOCK_RAM_MHZ[family][grade] <= 0.36


@pytest.mark.parametrize("family", [Family.SERIES7, Family.ULTRASCALE_PLUS])
def test_a_faster_grade_is_not_slower(family):
    clocks = [DEFAULTS_MHZ[family][grade] for grade in ("-1", "-2", "-3")]
    assert clocks == sorted(clocks)


def test_the_source_says_what_the_default_is_measured_by():
    assert default_clock(Family.SPARTAN6, "-2").source == (
        "default for xc6s -2: 36 % of the block RAM's limit of 280 MHz (DS162, unverified); not placed and routed")
    assert default_clock(Family.SERIES7, None).source == (
        "default for xc7 -1, for want of a known speed grade: 26 % of the block RAM's limit of 388.2 MHz (DS181, Artix-7, unverified); "
        "not placed and routed")
    assert default_clock(Family.ECP5, "6").source == (
        "default for ecp5 6: prototype arrays of 4 x 4 MACs routed at 63 MHz (nextpnr 0.11, LFE5U-25F-6); not placed and routed")
    assert all(default_clock(family, grade).trust is Trust.ASSUMPTION for family, grades in DEFAULTS_MHZ.items() for grade in grades)


@pytest.mark.parametrize(("board", "mhz"), [("papilio-pro", 100), ("arty-a7-35", 100), ("genesys-2", 125), ("zcu104", 200),
                                            ("ulx3s-25f", 50), ("icebreaker", 24), ("tang-primer-20k", 50), ("saturn-lx9", 100)])
def test_boards_without_a_clock_get_the_default(board, mhz):
    assert load_board(board).clock_mhz.value == mhz


def test_a_clock_in_the_file_goes_first():
    mine = {"name": "mine", "device": "xc6slx9", "speed_grade": -2, "memory": "none"}
    assert board_from_mapping(mine, where="mine").clock_mhz == default_clock(Family.SPARTAN6, "-2")
    assert board_from_mapping({**mine, "clock_mhz": 62.5}, where="mine").clock_mhz.value == 62.5
