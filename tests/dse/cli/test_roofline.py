"""``nearmac roofline``: tables, JSON, pictures, errors."""

from __future__ import annotations

import json

import pytest

from dse.cli.main import run

TINY = "linear K=2 C=3"


def data(capsys, *arguments: str) -> dict:
    assert run(["roofline", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def failing(capsys, *arguments: str) -> str:
    assert run(["roofline", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_boards_and_machines_at_two_precisions(capsys):
    found = data(capsys, "lenet5", "--board", "papilio-pro,mos-6502", "--precision", "w8a8,w1a1", "--roofs-only")
    assert [(roof["machine"], roof["precision"]) for roof in found["roofs"]] == [
        ("papilio-pro", "w8a8"), ("papilio-pro", "w1a1"), ("mos-6502", "w8a8"), ("mos-6502", "w1a1")]
    assert len(found["layers"]) == 20 and found["designs"] == [] and "Williams" in found["definition"]
    assert [(total["machine"], total["precision"]) for total in found["totals"]] == [
        ("papilio-pro", "w8a8"), ("mos-6502", "w8a8"), ("papilio-pro", "w1a1"), ("mos-6502", "w1a1")]
    for entry in found["layers"]:
        assert entry["attainable_gops"] <= entry["memory_roof_gops"] + 1e-12
    board = [entry for entry in found["layers"] if entry["machine"] == "papilio-pro" and entry["layer"] == "f6"]
    assert board[1]["ops_per_byte"] == pytest.approx(8 * board[0]["ops_per_byte"])


def test_without_boards_all_machines(capsys):
    found = data(capsys, TINY)
    assert [roof["machine"] for roof in found["roofs"]] == ["dgx-1", "gtx-1050-ti", "gtx-1080-ti", "mos-6502", "p100-pcie",
                                                            "p100-pcie-12gb", "p100-sxm2", "snowflake", "titan-x-pascal"]


def test_tables(capsys):
    assert run(["roofline", "lenet5", "--board", "papilio-pro,dgx-1"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert captured.err == "" and lines[0] == "Roofs for lenet5"
    assert "Attainable at w8a8" in lines and "Whole workload, each layer at its roof" in lines
    design = next(at for at, line in enumerate(lines) if line.startswith("papilio-pro: ") and "(chosen), array's peak" in line)
    names = [line.split()[0] for line in lines[design + 3:design + 8]]
    assert names == ["c1", "c3", "c5", "f6", "output"]
    assert "1 MAC = 2 ops" in captured.out


def test_simulated_beside_predicted_and_a_picture(capsys, tmp_path):
    picture = tmp_path / "roofs.svg"
    found = data(capsys, TINY, "--board", "papilio-pro", "--simulate", "--engine", "amaranth", "--plot", str(picture))
    layer = found["designs"][0]["layers"][0]
    assert layer["simulated"] == layer["predicted"] and layer["matches"] is True
    assert "design's layer, simulated" in picture.read_text(encoding="utf-8")


def test_the_best_of_a_sweep(capsys, tmp_path):
    space = tmp_path / "space.yaml"
    space.write_text("rows: [1, 2]\ncols: [1, 2]\nobjectives: [seconds, dsps]\n")
    out = str(tmp_path / "out")
    assert run(["sweep", TINY, "--board", "papilio-pro", "--space", str(space), "--out", out, "--json"]) == 0
    capsys.readouterr()
    found = data(capsys, TINY, "--board", "papilio-pro,mos-6502", "--points", out)
    best = [point for point in found["points"] if point["best"]]
    assert len(best) == 1 and found["designs"][0]["source"] == f"point {best[0]['index']} of {out}"
    assert found["designs"][0]["layers"][0]["predicted"]["cycles"] == best[0]["cycles"]
    assert run(["roofline", TINY, "--board", "papilio-pro", "--points", out]) == 0
    assert "Front of the sweep, whole workload" in capsys.readouterr().out
    assert failing(capsys, TINY, "--board", "atlys", "--points", out) == (
        f"error: --points: the sweep has no point of these boards and precisions, got {out!r}; allowed: papilio-pro w8a8\n")


@pytest.mark.parametrize("arguments, message", [
    ((TINY, "--board", "papilio-pro,"), "--board: an empty name, got 'papilio-pro,'; allowed: names with commas between them"),
    ((TINY, "--precision", "w8a8,w8a8"), "--precision: given twice, got 'w8a8'"),
    ((TINY, "--roofs-only", "--simulate"), "--simulate: given together with --roofs-only, got True"),
    ((TINY, "--plot", "x.gif"), "--plot: not a picture's name, got 'x.gif'; allowed: a name that ends in .svg, .png, .pdf"),
    (("lenet5", "--layer", "c1", "--points", "x"), "--points: of a whole workload, got 'x'; leave --layer out"),
    ((TINY, "--board", "pano-logic-g2"), "--board: board pano-logic-g2 has no external memory, got 'pano-logic-g2'"),
    (("lenet5", "--layer", "c2"), "--layer: no such layer in the workload, got 'c2'"),
])
def test_errors(capsys, arguments, message):
    assert message in failing(capsys, *arguments)


def test_one_layer_of_a_network(capsys):
    found = data(capsys, "lenet5", "--layer", "f6", "--board", "papilio-pro")
    assert found["workload"] == "lenet5 --layer f6" and [entry["layer"] for entry in found["layers"]] == ["f6"]
    assert [layer["layer"] for layer in found["designs"][0]["layers"]] == ["f6"]
