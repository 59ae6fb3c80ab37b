"""Roofs of boards and machines: their definition, what they are made of, and that no design lies above."""

from __future__ import annotations

from random import Random

import pytest

from boards import InputError, list_boards, list_machines, load_board, load_machine
from dse.estimate.resources import overshoot
from dse.fidelity.points import PRECISIONS, random_design
from dse.roofline.roof import Roof, amount, load_target, machine_format, most_macs, peak_of, roof_of


def test_definition():
    """Williams et al. 2009: a 16 Gop/s machine with 10 GB/s has its ridge at 1.6 ops a byte."""
    roof = Roof("paper", "w8a8", 8, 8, 16.0, 10_000.0, "", clock_mhz=1000.0)
    assert roof.ridge_ops_per_byte == 1.6
    assert [roof.attainable_gops(x) for x in (0.5, 1.6, 100)] == [5.0, 16.0, 16.0]
    assert [roof.bound(x) for x in (0.5, 1.6, 100)] == ["memory", "compute", "compute"]
    assert (roof.bytes_per_cycle, roof.ops_per_cycle) == (10.0, 16.0)


@pytest.mark.parametrize("name, bits, gops, mb_s, ridge", [
    ("alveo-u200", (8, 8), 2 * 5855 * 2 * 0.2, 25_600, 2 * 5855 * 2 * 200 / 25_600),
    ("mos-6502", (8, 8), 0.0005, 1, 0.5),
    ("dgx-1", (8, 8), 8 * 21_200, 8 * 732_000, 21_200 / 732),
    ("gtx-1080-ti", (8, 8), 11_300, 484_000, 11_300 / 484),
    ("titan-x-pascal", (8, 8), 44_000, 480_000, 44_000 / 480),
    ("p100-sxm2", (16, 16), 10_600, 732_000, 10_600 / 732),  # 16-bit operands need fp32
])
def test_roofs_by_hand(name, bits, gops, mb_s, ridge):
    roof = roof_of(load_target(name), *bits)
    assert (roof.peak_gops, roof.mb_s, roof.ridge_ops_per_byte) == pytest.approx((gops, mb_s, ridge))


@pytest.mark.parametrize("name, bits, dsp_gops, mb_s", [
    ("papilio-pro", (16, 16), 3.2, 112),  # 16 DSP blocks x 2 ops x 100 MHz; 160 MB/s at 70 %
    ("arty-a7-35", (8, 8), 36.0, 1280),  # 90 DSP blocks of 2 products
])
def test_look_up_tables_may_allow_more_than_dsp_blocks(name, bits, dsp_gops, mb_s):
    roof = roof_of(load_target(name), *bits)
    assert roof.mb_s == pytest.approx(mb_s) and roof.is_estimate and "look-up tables at" in roof.limit
    assert dsp_gops < roof.peak_gops < 2 * dsp_gops


def test_bytes_and_ops_a_cycle():
    """An LX9 reads 32 x 36 bits a cycle on chip and 1.12 bytes outside; a 6502 moves one byte a cycle."""
    lx9, old = roof_of(load_board("papilio-pro"), 16, 16), roof_of(load_machine("mos-6502"), 8, 8)
    assert (lx9.on_chip_bytes_per_cycle, lx9.bytes_per_cycle) == pytest.approx((144, 1.12))
    assert lx9.ops_per_cycle == pytest.approx(lx9.peak_gops * 10) and lx9.ops_per_cycle % 2 == 0  # at 100 MHz
    assert (old.bytes_per_cycle, old.ops_per_cycle) == (1, 0.5)
    assert roof_of(load_machine("dgx-1"), 8, 8).link_mb_s == 8 * 80_000


def test_number_formats():
    """The narrowest that is exact: 8 bits fit fp16's 11, 16 do not."""
    assert machine_format(load_machine("p100-pcie"), 8) == ("fp16", 16)
    assert machine_format(load_machine("p100-pcie"), 16) == ("fp32", 32)
    assert machine_format(load_machine("titan-x-pascal"), 8) == ("int8", 8)
    with pytest.raises(InputError) as caught:
        machine_format(load_machine("mos-6502"), 16)
    assert str(caught.value) == ("--board: mos-6502 has no number format that holds 16 bits, got 'mos-6502'; allowed: operands of at most "
                                 "8 bits")


def test_no_design_that_fits_is_above_its_boards_roof():
    """Random designs, each on the smallest board of its family that holds it."""
    random, seen = Random(5), 0
    boards = [board for name in list_boards() if (board := load_board(name)).memory and board.device.family == "xc6s"]
    for at in range(300):
        design = random_design(random, *PRECISIONS[at % len(PRECISIONS)])
        for board in boards:
            if not overshoot(design, board):
                seen += 1
                most, _, _ = most_macs(board, design.weight_bits, design.activation_bits)
                assert design.macs_per_cycle <= most, (design, board.name)
    assert seen > 1000


def test_every_board_with_memory_and_every_machine_has_a_roof():
    for name in (*list_boards(), *list_machines()):
        target = load_target(name)
        if getattr(target, "memory", True) is None:
            with pytest.raises(InputError, match="has no external memory"):
                roof_of(target, 8, 8)
        else:
            roof = roof_of(target, 8, 8)
            assert roof.peak_gops > 0 and roof.mb_s > 0 and roof.limit and roof.is_estimate == ("estimate" in roof.limit)


def test_a_higher_clock_lifts_compute_alone():
    board = load_board("papilio-pro")
    slow, fast = roof_of(board, 8, 8), roof_of(board, 8, 8, clock_mhz=200)
    assert fast.peak_gops == 2 * slow.peak_gops and fast.mb_s == pytest.approx(slow.mb_s)


def test_unknown_targets():
    with pytest.raises(InputError, match="^--board: unknown board or machine, got 'papilio'; allowed: .*papilio-pro.*; dgx-1, .*nearest: "):
        load_target("papilio")


def test_peak_of_a_design_and_amounts():
    assert peak_of(random_design(Random(1), 8, 8).with_(clock_mhz=250)) > 0
    assert [amount(x) for x in (0.0005, 8.2, 99.94, 169_600.4)] == ["0.0005", "8.2", "99.9", "169,600"]
