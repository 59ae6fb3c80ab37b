from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.sweep.axis import MAX_VALUES, RANGES, parse_axis, parse_size
from hdl.design import Design


def values(name: str, written, **env):
    return parse_axis(name, written, where="f.yaml: axis").values(env)


@pytest.mark.parametrize(("name", "written", "expected"), [
    ("rows", 4, [4]), ("rows", [4, 2, 4], [4, 2]), ("rows", {"range": [2, 8, 3]}, [2, 5, 8]), ("rows", {"range": [2, 4]}, [2, 3, 4]),
    ("rows", {"powers_of_two": [1, 64]}, [1, 2, 4, 8, 16, 32, 64]), ("rows", [1, "cols * 2", "min(cols, 3)"], [1, 10, 3]),
    ("input_bytes", "8KiB", [8192]), ("input_bytes", ["512 B", "cols * 1024", 7], [512, 5120, 7]),
    ("input_bytes", {"range": ["1KiB", "3KiB", "512B"]}, [1024, 1536, 2048, 2560, 3072]),
    ("weight_bytes", {"powers_of_two": ["1KiB", 4096]}, [1024, 2048, 4096]), ("psum_bytes", [0, "1MiB"], [0, 1 << 20]),
    ("psum_depth", [0, 512], [0, 512]), ("clock_mhz", {"range": [0.1 + 1, 1.4, 0.1]}, [1.1, 1.2, 1.3, 1.4]), ("clock_mhz", 80, [80.0]),
    ("bus_bits", {"range": [16, 64, 16]}, [16, 32, 64]), ("bus_bits", {"powers_of_two": [16, 256]}, [16, 32, 64, 128, 256]),
    ("precision", ["w8a8", "w1a1"], ["w8a8", "w1a1"]), ("multiplier", "dsp", ["dsp"]), ("output_multiplier", ["serial", "lut"],
                                                                                      ["serial", "lut"])])
def test_forms(name, written, expected):
    found = values(name, written, cols=5)
    assert found == expected and [type(value) for value in found] == [type(value) for value in expected]


@pytest.mark.parametrize(("name", "written", "message"), [
    ("rows", [1, 65], "f.yaml: axis[1]: out of range, got 65; allowed: 1 to 64"),
    ("rows", True, "f.yaml: axis: must be a whole number, got True; allowed: a value, a list, {range: [low, high, step]}, "
                   "{powers_of_two: [low, high]} or an expression"),
    ("rows", 2.5, "f.yaml: axis: must be a whole number, got 2.5; allowed: a value, a list, {range: [low, high, step]}, "
                  "{powers_of_two: [low, high]} or an expression"),
    ("rows", [], "f.yaml: axis: an axis without values; allowed: a value, a list, {range: [low, high, step]}, "
                 "{powers_of_two: [low, high]} or an expression"),
    ("rows", {"ranges": [1, 2]}, "f.yaml: axis: unknown key, got 'ranges'; allowed: range or powers_of_two; nearest: range"),
    ("rows", {}, "f.yaml: axis: must have one key, got {}; allowed: range or powers_of_two"),
    ("rows", {"range": [1]}, "f.yaml: axis.range: must be a list of two or three, got [1]; allowed: [low, high] or [low, high, step]"),
    ("rows", {"range": [4, 2]}, "f.yaml: axis.range: low is above high, got [4, 2]"),
    ("rows", {"range": [4, 8, 0]}, "f.yaml: axis.range[2]: not a step, got 0; allowed: a number above 0"),
    ("rows", {"powers_of_two": [3, 8]}, "f.yaml: axis.powers_of_two[0]: not a power of two, got 3; the next is 4"),
    ("rows", {"powers_of_two": [1, 128]}, "f.yaml: axis.powers_of_two[1]: out of range, got 128; allowed: 1 to 64"),
    ("bus_bits", [32, 48], "f.yaml: axis[1]: not a bus width, got 48; allowed: 16, 32, 64, 128, 256; nearest: 32"),
    ("precision", ["w8a8", "w8a9"], "f.yaml: axis[1]: not a precision, got 'w8a9'; allowed: wNaM with N and M of 1, 2, 4, 8, 16; "
                                    "nearest: w8a8"),
    ("multiplier", "DSP", "f.yaml: axis: not a choice, got 'DSP'; allowed: dsp, dsp_pair, lut; nearest: dsp"),
    ("multiplier", {"range": [1, 2]}, "f.yaml: axis: has no order, got {'range': [1, 2]}; allowed: a choice, or a list of some"),
    ("input_bytes", "8KB", "f.yaml: axis: unknown unit, got '8KB'; allowed: B, KiB (1024 bytes), MiB; nearest: 8KiB"),
    ("input_bytes", 0, "f.yaml: axis: out of range, got 0; allowed: 1 to 67108864"),
    ("clock_mhz", float("nan"), "f.yaml: axis: out of range, got nan; allowed: 1 to 1000"),
    ("input_bytes", {"range": [1, 1 << 20]}, "f.yaml: axis.range: 1048576 values; allowed: at most 10000 on an axis"),
])
def test_messages(name, written, message):
    with pytest.raises(InputError) as caught:
        parse_axis(name, written, where="f.yaml: axis")
    assert str(caught.value) == message


def test_long_lists_are_refused():
    with pytest.raises(InputError, match=f"{MAX_VALUES + 1} values"):
        parse_axis("rows", [1] * (MAX_VALUES + 1), where="x")


def test_sizes_without_a_unit_are_expressions():
    assert parse_size("8192", where="x") is None and parse_size("rows", where="x") is None


@pytest.mark.parametrize("name", ["rows", "lanes", "accumulator_bits", "input_bytes", "psum_bytes"])
def test_ranges_are_those_of_designs(name):
    """One step outside, Design refuses too; the ends themselves depend on the other options."""
    low, high = RANGES[name]
    for outside in (low - 1, high + 1):
        with pytest.raises(InputError, match="out of range"):
            Design(**{"rows": 2, "cols": 2, name: int(outside)})
