"""Boards of amaranth-boards: what the profiles say of them is so there, and their constraint files hold the pins."""

from __future__ import annotations

import re
import sys

import pytest

from boards import InputError, list_boards, load_board
from boards.loader import board_from_mapping
from hdl.pins import NAMES, constraint_file, load_platform

WITH_PINS = [name for name in list_boards() if load_board(name).amaranth]
# Our names of speed grades where the two differ: Lattice's iCE40 have the grade in the device's name; -1L is the low-power -1.
GRADES = {"icebreaker": "up", "ice40-up5k-evn": "up", "ice40-hx8k-evn": "hx"}


def message(call, *args) -> str:
    with pytest.raises(InputError) as caught:
        call(*args)
    return str(caught.value)


def mine(**more: str):
    return board_from_mapping({"name": "mine", "device": "xc6slx9", "memory": "none", **more}, where="mine.yaml")


def test_which_boards_have_pins():
    assert {load_board(name).device.family for name in WITH_PINS} == {"xc6s", "xc7", "ecp5", "ice40", "gowin"}
    assert {"atlys", "arty-a7-35", "genesys-2", "ulx3s-25f", "orangecrab-85f", "icebreaker", "tang-primer-20k"} <= set(WITH_PINS)


@pytest.mark.parametrize("name", WITH_PINS)
def test_the_profile_says_what_amaranth_boards_says(name):
    board = load_board(name)
    platform = load_platform(board)
    if board.device.family == "gowin":
        assert platform.part == "GW2A-LV18PG256C8/I7" and platform.family == "GW2A-18C"
        found = ("gw2a-18", "pg256", "C8/I7")
    else:
        grade = getattr(platform, "speed", None) or GRADES[name]
        grade = f"-{grade}" if board.device.family in ("xc6s", "xc7") else grade
        found = (platform.device.lower(), platform.package.lower(), grade)
    device = board.device.name
    assert found[0] in (device, f"{device}i")  # i: the industrial range of temperatures
    assert (board.package, board.speed_grade) == found[1:]
    assert board.clock_input_mhz is not None and board.clock_input_mhz.value == platform.default_clk_frequency / 1e6
    if board.memory and board.memory.kind in ("SDR", "DDR2", "DDR3"):
        resource = {"SDR": "sdram", "DDR2": "ddr2", "DDR3": "ddr3"}[board.memory.kind]
        found_there = [there for there, _ in platform.resources if there == resource]
        assert found_there or name in ("kc705", "tang-primer-20k")  # which have no memory there


@pytest.mark.parametrize("name", WITH_PINS)
def test_the_file_holds_the_pins_that_the_board_has(name):
    board = load_board(name)
    found, platform = constraint_file(board), load_platform(board)
    assert found.name in NAMES and found.resources[0] == platform.default_clk
    assert found.clock_mhz == board.clock_input_mhz.value
    if board.device.family == "gowin":
        assert "H11" in found.text and "T13" in found.text
        return
    (clock,) = (inner for inner in platform.resources[platform.default_clk, 0].ios if hasattr(inner, "names") or hasattr(inner, "p"))
    pins = clock.names if hasattr(clock, "names") else [*clock.p.names, *clock.n.names]
    assert pins and all(re.search(rf"\b{pin}\b", found.text) for pin in pins)
    lines = found.text.splitlines()
    assert len([line for line in lines if "uart_0__rx" in line]) > 0 or "uart" not in found.resources
    assert all(line == line.strip() and "Amaranth" not in line for line in lines) and found.text.endswith("\n")


@pytest.mark.parametrize(("name", "suffix", "lines"), [
    ("arty-a7-35", "xdc", ['set_property LOC E3 [get_ports "clk100_0__io"]',
                           'create_clock -name clk100_0__io -period 10.0 [get_nets "clk100_0__io"]',
                           'set_property LOC D10 [get_ports "uart_0__tx__io"]']),
    ("atlys", "ucf", ['NET "clk100_0__io" LOC=L15;', 'TIMESPEC "TSclk100_0__io"=PERIOD "PRDclk100_0__io" 10.0 ns HIGH 50%;']),
    ("ulx3s-25f", "lpf", ['LOCATE COMP "clk25_0__io" SITE "G2";', 'FREQUENCY PORT "clk25_0__io" 25000000.0 HZ;']),
    ("icebreaker", "pcf", ["set_io clk12_0__io 35", "set_frequency clk12_0__io 12.0", "set_io uart_0__rx__io 6"]),
    ("genesys-2", "xdc", ['set_property LOC AD12 [get_ports "clk_0__p"]', 'set_property LOC AD11 [get_ports "clk_0__n"]',
                          'set_property LOC R19 [get_ports "rst_0__io"]']),
])
def test_each_vendor_s_format(name, suffix, lines):
    found = constraint_file(load_board(name))
    assert found.name == f"board.{suffix}" and set(lines) <= set(found.text.splitlines())


def test_what_has_no_pins():
    assert message(constraint_file, load_board("papilio-pro")) == (
        "--constraints: no pins are known of this board, got 'papilio-pro'; allowed: boards that name theirs in amaranth-boards "
        "(`nearmac boards NAME`: pins)")
    for wrong in ("no_such_board:X", "atlys:NoSuchPlatform"):
        assert message(constraint_file, mine(amaranth=wrong)) == (
            f"--constraints: mine: amaranth: this amaranth-boards has no such board, got '{wrong}'")
    assert constraint_file(mine(amaranth="sk_xc6slx9:SK_XC6SLX9Platform")).name == "board.ucf"


def test_without_amaranth_boards(monkeypatch):
    monkeypatch.setitem(sys.modules, "amaranth_boards", None)
    assert message(constraint_file, load_board("atlys")) == (
        "--constraints: pins come from amaranth-boards, which is not installed; pip install 'nearmac[boards]'")
