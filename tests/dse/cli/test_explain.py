"""``nearmac explain``: text, JSON, errors."""

from __future__ import annotations

import json

from dse.cli.main import run

WORKLOAD = "conv K=4 C=4 OY=6 OX=6 FY=3 FX=3 P=1"


def test_text_and_json_say_the_same(capsys):
    arguments = ["explain", WORKLOAD, "--board", "papilio-pro", "--array", "2x2x1"]
    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert run([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert captured.err == "" and data["design"]["rows"] == 2
    assert f" = {data['cycles']} cycles  [predicted; what the simulation measures]" in text
    assert text.startswith(f"workload: {WORKLOAD}\nboard: papilio-pro\ndesign: 2x2x1 w8a8, dsp multipliers\nmapping: ts=1 ")
    assert [line for line in text.splitlines() if line and not line.startswith("  ")][4:7] == ["Layer", "Board and memory", "Design"]


def test_a_layer_of_a_network_has_its_precision(capsys):
    assert run(["explain", "lenet5", "--layer", "output", "--board", "papilio-pro", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["workload"], data["design"]["precision"], data["layer"]["K"]) == ("lenet5 --layer output", "w8a8", 10)


def test_a_network_needs_a_layer(capsys):
    assert run(["explain", "lenet5", "--board", "papilio-pro"]) == 2
    assert capsys.readouterr().err == "error: --layer: lenet5 has 5 layers; allowed: c1, c3, c5, f6, output; name one\n"


def test_a_machine_is_no_board(capsys):
    assert run(["explain", WORKLOAD, "--board", "dgx-1"]) == 2
    assert "dgx-1 is a reference machine: it has no FPGA to build a design on" in capsys.readouterr().err


def test_a_picture(capsys, tmp_path):
    picture = tmp_path / "cycles.svg"
    assert run(["explain", WORKLOAD, "--board", "papilio-pro", "--array", "2x2x1", "--plot", str(picture)]) == 0
    assert "vectors issued" in picture.read_text(encoding="utf-8")
    capsys.readouterr()
    assert run(["explain", WORKLOAD, "--board", "papilio-pro", "--plot", str(tmp_path / "nowhere" / "x.png")]) == 2
    assert capsys.readouterr().err.startswith("error: --plot: no such directory: ")
