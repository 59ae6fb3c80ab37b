"""Files of SCALE-Sim on the command line: remarks, its count beside ours, its configuration as a design and as a space."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dse.cli.main import run

TOPOLOGY = "Layer, M, N, K,\nup, 1, 2, 4,\ndown, 1, 3, 2,\n"
CONFIG = """[architecture_presets]
ArrayHeight: 2
ArrayWidth: 1
IfmapSramSzkB: 2
FilterSramSzkB: 2
OfmapSramSzkB: 1
Dataflow: ws
[run_presets]
InterfaceBandwidth: USER
"""
# ws: folds * (rows streamed + 2 * height + width - 2) - 1; the reduction lies along the height.
CYCLES = {"up": (4 // 2) * 2 * (1 + 4 + 1 - 2) - 1, "down": (2 // 2) * 3 * (1 + 4 + 1 - 2) - 1}
STALLS = "s.cfg: InterfaceBandwidth USER is not modelled; the count is without stalls (CALC)\n"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch) -> Path:
    (tmp_path / "net.csv").write_text(TOPOLOGY)
    (tmp_path / "s.cfg").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_networks(capsys, files):
    assert run(["networks", "net.csv", "--scalesim-config", "s.cfg"]) == 0
    captured = capsys.readouterr()
    table = captured.out.partition("Cycles of SCALE-Sim on its 2x1 ws: its formula, without memory stalls\n")[2]
    assert [line.split() for line in table.splitlines()] == [
        ["layer", "SCALE-Sim", "cycles"], ["up", "15"], ["down", "11"], ["total", "26"]]
    assert captured.err == f"nearmac: {STALLS}"
    (files / "net.csv").write_text("a, 5, 5, 3, 3, 2, 2, 1\n")
    assert run(["networks", "net.csv", "--json", "--scalesim-config", "s.cfg"]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert captured.err.endswith("nearmac: net.csv: no header: SCALE-Sim itself would skip the first row, a\n")
    assert data["remarks"] == ["net.csv: no header: SCALE-Sim itself would skip the first row, a"]
    count = 9 * 2 * (9 + 3) - 1
    assert data["scale_sim"] == {"height": 2, "width": 1, "dataflow": "ws", "input_kib": 2, "weight_kib": 2, "output_kib": 1,
                                 "cycles": count, "layers": [{"name": "a", "cycles": count, "refused": None}]}


def test_layers_that_scalesim_does_not_have(capsys, files):
    (files / "net.yaml").write_text("nodes:\n- {op: input, shape: [1, 1, 5, 5]}\n- {op: conv, name: d, K: 1, F: 3, D: 2}\n"
                                    "- {op: conv, name: e, K: 1, F: 1}\n")
    assert run(["networks", "net.yaml", "--scalesim-config", "s.cfg"]) == 0
    table = capsys.readouterr().out.partition("memory stalls\n")[2]
    assert [line.split() for line in table.splitlines()][1:] == [
        ["d", "none:", "SCALE-Sim", "has", "no", "dilation"], ["e", "3"], ["total", "of", "1", "3"]]
    assert run(["networks", "net.yaml", "--scalesim-config", "s.cfg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scale_sim"]["cycles"] is None


def test_simulate_starts_from_the_configuration(capsys):
    """The array, the banks, and SCALE-Sim's cycles beside those that the hardware took."""
    arguments = ["simulate", "net.csv", "--board", "papilio-pro", "--engine", "amaranth", "--scalesim-config", "s.cfg", "--json"]
    assert run(arguments) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    design = data["design"]
    assert (design["rows"], design["cols"], design["lanes"]) == (1, 2, 1)
    assert (design["input_bytes"], design["weight_bytes"], design["output_bytes"]) == (2048, 2048, 1024)
    assert {entry["name"]: entry["cycles"] for entry in data["scale_sim"]["layers"]} == CYCLES
    assert data["scale_sim"]["cycles"] == sum(CYCLES.values()) and data["totals"]["bit_exact"] and STALLS in captured.err


def test_simulate_one_layer(capsys):
    assert run(["simulate", "net.csv", "--layer", "down", "--board", "papilio-pro", "--engine", "amaranth",
                "--scalesim-config", "s.cfg"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ours = next(line.split()[1] for line in lines if line.startswith("cycles"))
    assert lines[-1].split()[:3] == ["down", "11", ours] and lines[-1].split()[3] == f"{int(ours.replace(',', '')) / 11:.3g}"
    assert any(line.startswith("array ") and "1x2x1" in line for line in lines)


def test_sweep_looks_at_arrays_of_the_same_size(capsys):
    assert run(["sweep", "net.csv", "--board", "papilio-pro", "--scalesim-config", "s.cfg", "--out", "swept", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["feasible"] > 0 and data["scale_sim"]["cycles"] == sum(CYCLES.values())
    assert {(row["rows"], row["cols"], row["lanes"]) for row in data["front"]} <= {(1, 1, 2), (1, 2, 1), (2, 1, 1)}
    assert run(["sweep", "linear K=3 C=2 name=one", "--board", "papilio-pro", "--scalesim-config", "s.cfg", "--out", "one"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()][-1] == ["one", "11"]


@pytest.mark.parametrize("arguments, message", [
    (["networks", "--scalesim-config", "s.cfg"], "--scalesim-config: is of one network, got 's.cfg'; name a network"),
    (["networks", "net.csv", "--scalesim-config", "none.cfg"], "none.cfg: no such file"),
    (["simulate", "net.csv", "--board", "papilio-pro", "--scalesim-config", "s.cfg", "--array", "1x1x1"],
     "--scalesim-config: given together with --array, got 's.cfg'; the configuration has both an array and SRAM sizes"),
    (["simulate", "net.csv", "--board", "papilio-pro", "--scalesim-config", "s.cfg", "--design", "d.yaml"],
     "--design: given together with --scalesim-config, got 'd.yaml'; change the file, or leave --design out"),
    (["sweep", "net.csv", "--board", "papilio-pro", "--scalesim-config", "s.cfg", "--space", "x.yaml", "--out", "o"],
     "--scalesim-config: given together with --space, got 's.cfg'; give one of them"),
    (["simulate", "net.csv", "--board", "papilio-pro", "--scalesim-config", "large.cfg"],
     "large.cfg: the design does not fit papilio-pro: dsps: 1024 of 16 usable (1008 too many)"),
    (["simulate", "net.csv", "--board", "papilio-pro", "--scalesim-config", "os.cfg", "--precision", "w8a8"],
     "os.cfg: ArrayHeight: in os this side becomes lanes of a design, got 128; allowed: at most 64; start from a smaller array")])
def test_what_is_wrong(arguments, message, capsys, files):
    large = CONFIG.replace("ArrayHeight: 2", "ArrayHeight: 32").replace("ArrayWidth: 1", "ArrayWidth: 32")
    (files / "large.cfg").write_text(large)
    (files / "os.cfg").write_text(large.replace("ArrayHeight: 32", "ArrayHeight: 128").replace("ws", "os"))
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1].startswith(f"error: {message}")
