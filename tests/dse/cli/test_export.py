"""``nearmac export`` from end to end: files, notes, JSON, messages."""

from __future__ import annotations

import json

import pytest

from dse.cli.main import run
from dse.workload.layer_file import load_layer
from dse.workload.load import load_file
from dse.workload.zoo import load_network
from hdl.layer import Layer


def export(capsys, *arguments: str) -> tuple[str, str]:
    assert run(["export", *arguments]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def error(capsys, *arguments: str) -> str:
    assert run(["export", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: ") and captured.err.count("\n") == 1
    return captured.err.removeprefix("error: ").rstrip("\n")


def test_a_network(capsys, tmp_path):
    path = tmp_path / "net.csv"
    out, err = export(capsys, "lenet5", "--format", "scalesim", "--out", str(path))
    assert [line.split() for line in out.splitlines()] == [
        ["Export"], ["workload", "lenet5"], ["format", "scalesim"], ["layers", "5"], ["written", str(path)]]
    assert err == "nearmac: tanh1, s2, tanh2, s4 and 3 more: host operators are left out\n"
    assert path.read_text().splitlines()[1] == "c1, 32, 32, 5, 5, 1, 6, 1,"
    # A name in a directory that is there.
    out, _ = export(capsys, "lenet5", "--format", "zigzag", "--out", str(tmp_path), "--precision", "w4a2")
    found = load_file(str(tmp_path / "lenet5.yaml"))
    assert found.precision == "w4a2" and found.macs == load_network("lenet5").macs


def test_a_layer(capsys, tmp_path):
    path = tmp_path / "layer.yaml"
    export(capsys, "cnv", "--layer", "conv0", "--format", "zigzag", "--out", str(path))
    assert load_file(str(path)).array_operators[0].precision == "w1a8"  # its own, not the network's
    export(capsys, "linear K=2 C=3 zp=4", "--format", "yaml", "--out", str(path))
    assert load_layer(path) == Layer.linear(K=2, C=3, input_zero_point=4)
    export(capsys, "conv K=2 C=3 OY=4 OX=5 FY=3 FX=3 P=1", "--format", "timeloop", "--out", str(path))
    assert load_file(str(path)).array_operators[0].layer == Layer.conv(name="layer", K=2, C=3, OY=4, OX=5, FY=3, FX=3)


def test_several_files_and_json(capsys, tmp_path):
    folder = tmp_path / "a" / "b"
    out, err = export(capsys, "lenet5", "--format", "timeloop", "--out", str(folder), "--json")
    data = json.loads(out)
    assert data["files"] == [str(folder / f"{name}.yaml") for name in ("c1", "c3", "c5", "f6", "output")]
    assert (data["workload"], data["format"], data["layers"]) == ("lenet5", "timeloop", 5)
    assert err == "".join(f"nearmac: {note}\n" for note in data["notes"])
    assert sorted(path.name for path in folder.iterdir()) == ["c1.yaml", "c3.yaml", "c5.yaml", "f6.yaml", "output.yaml"]
    assert error(capsys, "lenet5", "--format", "timeloop", "--out", str(folder)) == (
        f"--out: 5 files need a new or empty directory, got {str(folder)!r}")
    out, _ = export(capsys, str(folder / "c3.yaml"), "--format", "timeloop", "--out", str(tmp_path / "again.yaml"))
    assert "layers    1" in out


@pytest.mark.parametrize("arguments, message", [
    (["lenet5", "--format", "zigzags", "--out", "x"],
     "--format: not a format, got 'zigzags'; allowed: yaml, scalesim, zigzag, timeloop; nearest: zigzag"),
    (["lenet5", "--format", "yaml", "--out", ""], "--out: empty, got ''; allowed: a file or a directory"),
    (["lenet5", "--format", "yaml", "--out", "none/x.yaml"], "--out: no such directory: "),
    (["lenet5", "--format", "timeloop", "--out", "file"], "--out: cannot be written: File exists, got 'file'"),
    (["lenet5", "--layer", "c2", "--format", "yaml", "--out", "x"], "--layer: no such layer in the workload, got 'c2'"),
    (["linear K=1 C=1", "--layer", "c2", "--format", "yaml", "--out", "x"], "--layer: no such layer in the workload, got 'c2'; allowed: "
                                                                            "layer"),
    (["conv K=1 C=1 OY=3 OX=3 FY=3 FX=3 D=2", "--format", "scalesim", "--out", "x"], "layer.DY: SCALE-Sim has no dilation, got 2; "
                                                                                     "allowed: 1"),
    (["lenet5", "--precision", "w3a3", "--format", "yaml", "--out", "x"], "--precision: not a precision")])
def test_what_is_wrong(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert error(capsys, *arguments).startswith(message)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
