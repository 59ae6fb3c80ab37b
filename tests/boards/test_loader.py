"""Boards and devices by name and by file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import boards
from boards import InputError, list_boards, load_board, load_device

PAPILIO = (Path(boards.__file__).parent / "profiles" / "papilio-pro.yaml").read_text()
LX9 = yaml.safe_load((Path(boards.__file__).parent / "devices" / "xc6slx9.yaml").read_text())


def message(call, *args) -> str:
    with pytest.raises(InputError) as caught:
        call(*args)
    return str(caught.value)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_of_ones_own(here):
    (here / "my.yaml").write_text("name: my\ndevice: xc6slx45\nmemory: none\n")
    for name in ("./my.yaml", "my.yaml", here / "my.yaml", str(here / "my.yaml")):
        assert load_board(name).device == load_device("xc6slx45")


def test_a_device_of_ones_own(here):
    device = LX9 | {"name": "mine", "luts": 6000}
    (here / "my.yaml").write_text(yaml.safe_dump({"name": "my", "device": device, "memory": "none"}))
    board = load_board("./my.yaml")
    assert board.device.name == "mine" and board.device.luts.value == 6000 and board.device.ffs == load_device("xc6slx9").ffs


def test_a_copy_of_a_built_in_file_is_the_board(here):
    (here / "copy.yml").write_text(PAPILIO)
    assert load_board("copy.yml") == load_board("papilio-pro")


def test_a_name_goes_before_a_file_in_the_directory(here):
    (here / "atlys").write_text("name: other")
    assert load_board("atlys").device.name == "xc6slx45"


def test_speed_grade_without_quotes(here):
    (here / "my.yaml").write_text("name: my\ndevice: xc6slx9\nspeed_grade: -2\nmemory: none\n")
    assert load_board("my.yaml").speed_grade == "-2"


def test_unknown_names():
    every = ", ".join(list_boards())
    assert message(load_board, "papilio") == f"--board: unknown board, got 'papilio'; allowed: {every}; nearest: papilio-pro"
    assert message(load_board, "Papilio Pro").endswith("; nearest: papilio-pro")
    assert message(load_board, "zzz") == (f"--board: unknown board, got 'zzz'; allowed: {every}; "
                                          "or the path of a YAML file: ./my.yaml")
    assert message(load_device, "XC6SLX8").endswith("; nearest: xc6slx9")
    for value in ("", None, 5):
        assert message(load_board, value) == (f"--board: not a board, got {value!r}; allowed: a board's name or the path of a "
                                              "YAML file; list them with `nearmac boards`")


def test_files_that_are_not_there(here):
    assert message(load_board, "./papilio_pro.yaml") == "papilio_pro.yaml: no such file; nearest: papilio-pro (a built-in board)"
    assert message(load_board, "zzz.yaml") == "zzz.yaml: no such file"
    (here / "d.yaml").mkdir()
    assert message(load_board, "d.yaml") == "d.yaml: is a directory, not a file"


def test_errors_name_the_file(here):
    (here / "my.yaml").write_text(PAPILIO.replace("value: 80,", "value: 80 MT/s,"))
    assert message(load_board, "my.yaml") == ("my.yaml: memory.mt_s.value: must be a number of MT/s, got '80 MT/s'; "
                                              "allowed: 0.1 to 20000 (MT/s); the unit is in the key, write `mt_s: 80`")
    (here / "my.yaml").write_text(PAPILIO.replace("device: xc6slx9", "device: xc6slx8"))
    assert message(load_board, "my.yaml").startswith("my.yaml: device: unknown device, got 'xc6slx8'; allowed: gw2a-18, ice40hx8k, ")
    (here / "my.yaml").write_text(PAPILIO + "title: again\n")
    assert message(load_board, "my.yaml") == f"my.yaml:{PAPILIO.count(chr(10)) + 1}: not valid YAML: duplicate key 'title'"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(PAPILIO) - 1), st.integers(0, 40),
       st.text(max_size=6) | st.sampled_from(["&a ", "*a", "!!set ", "-", "{"]))
def test_a_damaged_file_is_a_board_or_an_input_error(tmp_path, start, length, inserted):
    path = tmp_path / "my.yaml"
    path.write_text(PAPILIO[:start] + inserted + PAPILIO[start + length:], errors="replace")
    try:
        load_board(path)
    except InputError as error:
        assert str(error).startswith(str(path))
