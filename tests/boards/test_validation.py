"""Pydantic's findings as one message: place, value, allowed range, next step."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards import InputError, board_from_mapping
from boards.validation import unit_of

MEMORY_KEYS = ("kind, part, size_mib, width_bits, mt_s, efficiency, latency_cycles, part_maximum_mt_s, source, trust")
BOARD_KEYS = ("name, title, device, package, speed_grade, source, trust, clock_mhz, clock_input_mhz, memory, ceilings, "
              "amaranth, notes")
DEVICE = {"name": "mine", "family": "xc6s", "luts": 5720, "ffs": 11440, "dsp_kind": "DSP48A1", "dsps": 16,
          "block_ram_kind": "RAMB16", "block_rams": 32, "carry_lut_share": 0.5, "ram_lut_share": 0.25}
BOARD = {"name": "mine", "device": DEVICE,
         "memory": {"kind": "SDR", "width_bits": 16, "mt_s": 80, "efficiency": 0.7, "latency_cycles": 12}}


def changed(path: str, value: object) -> dict:
    data = copy.deepcopy(BOARD)
    *parents, last = path.split(".")
    holder: dict = data
    for part in parents:
        holder = holder[part]
    holder[last] = value
    return data


def renamed(path: str, new: str) -> dict:
    data = copy.deepcopy(BOARD)
    *parents, last = path.split(".")
    holder: dict = data
    for part in parents:
        holder = holder[part]
    holder[new] = holder.pop(last)
    return data


def message(data: dict) -> str:
    with pytest.raises(InputError) as caught:
        board_from_mapping(data, where="my.yaml")
    return str(caught.value)


def test_the_base_is_valid():
    board = board_from_mapping(BOARD, where="my.yaml")
    assert board.device.luts.value == 5720 and board.device.luts.trust == "unverified"
    assert board.device.luts.source == "no source stated"


@pytest.mark.parametrize(("path", "value", "expected"), [
    ("memory.mt_s", "80 MT/s", "must be a number of MT/s, got '80 MT/s'; allowed: 0.1 to 20000 (MT/s); the unit is in the key, "
                               "write `mt_s: 80`"),
    ("memory.mt_s", "80", "must be a number of MT/s, got '80'; allowed: 0.1 to 20000 (MT/s); the unit is in the key, "
                          "write `mt_s: 80`"),
    ("memory.mt_s", "fast", "must be a number of MT/s, got 'fast'; allowed: 0.1 to 20000 (MT/s)"),
    ("memory.mt_s", True, "must be a number of MT/s, got True; allowed: 0.1 to 20000 (MT/s)"),
    ("memory.mt_s", 0, "out of range, got 0; allowed: 0.1 to 20000 (MT/s)"),
    ("memory.mt_s", 1e300, "out of range, got 1e+300; allowed: 0.1 to 20000 (MT/s)"),
    ("memory.mt_s", float("nan"), "must be a finite number, got nan; allowed: 0.1 to 20000 (MT/s)"),
    ("memory.mt_s", float("inf"), "must be a finite number, got inf; allowed: 0.1 to 20000 (MT/s)"),
    ("memory.efficiency", 70, "out of range, got 70; allowed: above 0 to 1"),
    ("memory.latency_cycles", 2, "out of range, got 2; allowed: 8 to 10000 (core cycles)"),
    ("memory.width_bits", 16.5, "must be a whole number of bits, got 16.5; allowed: 4 to 2048 (bits)"),
    ("memory.kind", "sdr", "not a valid choice, got 'sdr'; allowed: SRAM, PSRAM, SDR, LPDDR, LPDDR4, DDR2, DDR3, DDR4, SPRAM; nearest: "
                           "SDR"),
    ("memory", [], f"must be a mapping, got []; allowed: a mapping of {MEMORY_KEYS}"),
    ("device.luts", -1, "out of range, got -1; allowed: 1 to 10000000"),
    ("device.luts", 0, "out of range, got 0; allowed: 1 to 10000000"),
    ("device.luts", 10**30, f"out of range, got {10**30}; allowed: 1 to 10000000"),
    ("device.luts", True, "must be a whole number, got True; allowed: 1 to 10000000"),
    ("device.luts", None, "must be a whole number, got None; allowed: 1 to 10000000"),
    ("device.dsps", "16", "must be a whole number, got '16'; allowed: 0 to 100000; write `dsps: 16`"),
    ("device.family", "xc8", "not a valid choice, got 'xc8'; allowed: xc6s, xc7, xcup, ecp5, ice40, gowin; nearest: xc7"),
    ("device.dsp_kind", "DSP48", "not a valid choice, got 'DSP48'; allowed: DSP48A1, DSP48E1, DSP48E2, MULT18X18D, SB_MAC16, MULT18X18; "
                                 "nearest: DSP48E2"),
    ("ceilings", {"luts_percent": 0}, None),
    ("amaranth", "Atlys", "is not a valid name, got 'Atlys'; allowed: module:Class"),
    ("clock_mhz", "100MHz", "must be a number of MHz, got '100MHz'; allowed: 1 to 1000 (MHz); the unit is in the key, "
                            "write `clock_mhz: 100`"),
    ("name", "My Board", "is not a valid name, got 'My Board'; allowed: small letters, digits and . _ + -"),
    ("package", 144, 'must be text, got 144; write it in quotes: "..."'),
    ("notes", "one", "must be a list of texts, got 'one'"),
    ("device", 5, None),
])
def test_wrong_value(path, value, expected):
    text = message(changed(path, value))
    if path == "device":
        assert text.startswith("my.yaml: device: unknown device, got 5; allowed: gw2a-18, ice40hx8k, ")
        assert text.endswith("xczu9eg; or a mapping with the device's own figures")
    elif path == "ceilings":
        assert text == "my.yaml: ceilings.luts_percent: out of range, got 0; allowed: above 0 to 100 (percent)"
    else:
        assert text == f"my.yaml: {path}: {expected}"


@pytest.mark.parametrize(("path", "new", "expected"), [
    ("memory.width_bits", "width", "missing unit, got 16; allowed: {memory}; use `width_bits` (bits)"),
    ("memory.latency_cycles", "latency", "missing unit, got 12; allowed: {memory}; use `latency_cycles` (core cycles)"),
    ("memory.width_bits", "width_bytes", "wrong unit, got 16; allowed: {memory}; use `width_bits` (bits)"),
    ("memory.mt_s", "mts", "unknown key, got 80; allowed: {memory}; nearest valid key: `mt_s`"),
    ("memory.mt_s", "MT/s", "unknown key, got 80; allowed: {memory}; nearest valid key: `mt_s`"),
    ("memory.efficiency", "eficiency", "unknown key, got 0.7; allowed: {memory}; nearest valid key: `efficiency`"),
    ("memory.mt_s", "rate", "unknown key, got 80; allowed: {memory}"),
])
def test_wrong_key_is_told_before_the_key_that_it_leaves_missing(path, new, expected):
    text = message(renamed(path, new))
    place = f"{path.rpartition('.')[0]}.{new}"
    parts = expected.format(memory=MEMORY_KEYS)
    assert text == f"my.yaml: {place}: {parts}; 1 more problem in this file"


def test_other_keys():
    assert message(BOARD | {"clock": 100}) == (f"my.yaml: clock: missing unit, got 100; allowed: {BOARD_KEYS}; "
                                               "use `clock_mhz` (MHz)")
    assert message(BOARD | {"ceilings": {"luts": 70}}).endswith("use `luts_percent` (percent)")
    assert message(BOARD | {"a\0\n": 1}).startswith(r"my.yaml: 'a\x00\n': unknown key, got 1; ")
    assert message({key: value for key, value in BOARD.items() if key != "memory"}) == (
        f"my.yaml: missing key 'memory'; allowed: a mapping of {MEMORY_KEYS}; "
        "write `memory: none` for a board without external memory")


def test_inside_a_figure():
    assert message(changed("device.luts", {"value": 5, "sorce": "x"})) == (
        "my.yaml: device.luts.sorce: unknown key, got 'x'; allowed: value, source, trust; nearest valid key: `source`")
    assert message(changed("device.luts", {"source": "x"})) == (
        "my.yaml: device.luts: missing key 'value'; allowed: 1 to 10000000")
    assert message(changed("memory.mt_s", {"value": "80 MT/s"})) == (
        "my.yaml: memory.mt_s.value: must be a number of MT/s, got '80 MT/s'; allowed: 0.1 to 20000 (MT/s); "
        "the unit is in the key, write `mt_s: 80`")
    assert message(changed("memory.mt_s", {"value": 80, "trust": "reed"})) == (
        "my.yaml: memory.mt_s.trust: not a valid choice, got 'reed'; allowed: read, computed, unverified, assumption; "
        "nearest: read")
    assert message(changed("memory.mt_s", {"value": 80, "source": ""})) == (
        "my.yaml: memory.mt_s.source: is empty, got ''; allowed: 1 to 500 characters")


def test_units_of_keys():
    assert unit_of("part_maximum_mt_s") == "MT/s" and unit_of("clock_mhz") == "MHz" and unit_of("luts") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=8)
PATHS = [*(f"device.{key}" for key in DEVICE), *(f"memory.{key}" for key in BOARD["memory"]), *BOARD,
         "ceilings", "notes", "title", "speed_grade", "clock_mhz"]


@given(st.sampled_from(PATHS), JSON)
def test_any_value_is_valid_or_an_input_error(path, value):
    try:
        board_from_mapping(changed(path, value), where="my.yaml")
    except InputError as error:
        assert str(error).startswith(f"my.yaml: {path}")


@given(st.sampled_from(["", "device.", "memory."]), st.text(max_size=12), JSON)
def test_any_unknown_key_is_an_input_error(place, key, value):
    data = copy.deepcopy(BOARD)
    holder = data[place[:-1]] if place else data
    known = set(holder) | {"title", "package", "speed_grade", "source", "trust", "notes", "part", "ceilings"}
    if key in known or "." in key:
        return
    holder[key] = value
    assert message(data).startswith("my.yaml: ")


@given(st.dictionaries(st.sampled_from(["name", "device", "memory", "clock_mhz", "notes"]) | st.text(max_size=5), JSON))
def test_any_mapping_is_a_board_or_an_input_error(data):
    try:
        board_from_mapping(data, where="my.yaml")
    except InputError as error:
        assert str(error).startswith("my.yaml")
