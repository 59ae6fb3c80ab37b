"""``simulate NETWORK`` and ``--layer`` from end to end, on a network of a few hundred MACs."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

import dse.simulate_network
from dse.choose import board_timing
from dse.cli.main import run
from dse.schedule.chain import predict_chain
from dse.simulate_chain import ChainReport
from dse.workload.layer_file import dump_design
from hdl.design import Design

NETWORK = """
name: tiny
nodes:
  - {op: input, shape: [1, 2, 2, 4]}
  - {op: conv, name: conv1, K: 4, F: 3, P: 1}
  - {op: relu}
  - {op: max_pool, name: pool, F: 2, S: 2}
  - {op: conv, name: wide, K: 2, F: 1, weight_bits: 16}
  - {op: flatten}
  - {op: linear, name: fc, K: 3, repeat: 1}
  - {op: softmax}
"""
DESIGN = Design(rows=2, cols=2, input_bytes=2048, output_bytes=1024, accumulator_bits=24)


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("network")
    (path / "net.yaml").write_text(NETWORK)
    (path / "design.yaml").write_text(dump_design(DESIGN))
    return path


def arguments(directory: Path, *more: str) -> list[str]:
    return ["simulate", str(directory / "net.yaml"), "--board", "papilio-pro", "--design", str(directory / "design.yaml"), "--engine",
            "amaranth", *more]


@pytest.fixture(scope="module")
def recorded(directory) -> tuple[dict, dict]:
    """One run: its JSON, and what each layer's simulation returned."""
    real, results = dse.simulate_network.simulate, {}

    def recording(layer, *args, **options):
        results[layer.name] = real(layer, *args, **options)
        return results[layer.name]

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as text:
        patch.setattr(dse.simulate_network, "simulate", recording)
        assert run(arguments(directory, "--json", "--seed", "5")) == 0
    return json.loads(text.getvalue()), results


@pytest.fixture(scope="module")
def whole(recorded) -> dict:
    return recorded[0]


def test_json(whole, capsys, directory):
    conv, wide, linear = whole["layers"]
    assert whole["workload"] == "tiny" and whole["design"]["precision"] == "w8a8"
    assert wide == {"name": "wide", "op": "conv", "precision": "w16a8", "repeat": 1,
                    "refused": "w16a8 operands, the array has w8a8", "note": None}
    for layer, macs in ((conv, 4 * 8 * 18), (linear, 3 * 4)):
        assert layer["bit_exact"] and layer["cycles"] == layer["predicted_cycles"] > 0 and layer["macs"] == macs
        assert layer["refused"] is None and layer["bytes_read"] == layer["predicted_bytes_read"]
    totals = whole["totals"]
    assert totals["cycles"] == totals["predicted_cycles"] == conv["cycles"] + linear["cycles"]
    assert totals["macs"] == conv["macs"] + linear["macs"] and totals["network_macs"] == totals["macs"] + 2 * 4 * 2
    assert (totals["layers"], totals["simulated"], totals["refused"], totals["mismatches"]) == (3, 2, 1, 0)
    assert totals["excludes_host_operators"] is True and "host operators are not included" in whole["remark"]
    assert [node["op"] for node in whole["host_operators"]] == ["max_pool", "flatten", "softmax"]


def test_one_layer_is_the_same_layer(whole, capsys, directory):
    assert run(arguments(directory, "--layer", "conv1", "--json", "--seed", "5")) == 0
    data = json.loads(capsys.readouterr().out)
    conv = whole["layers"][0]
    assert data["layer"]["name"] == "conv1" and data["layer"]["lo"] == 0
    for key in ("cycles", "bytes_read", "bytes_written", "macs", "tiling"):
        assert data[key] == conv[key]


def test_tables(capsys, directory):
    assert run(arguments(directory, "--stall-seed", "3")) == 0
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "without stalls" in rows["conv1"] and " exact " in rows["conv1"]
    assert rows["wide"].split()[2:] == "- - - - - cannot run: w16a8 operands, the array has w8a8".split()
    assert [line.split(" cycles")[0].rsplit(" ", 1)[0] for line in err.splitlines()] == [
        "nearmac: conv1 (1 of 3):", "nearmac: wide (2 of 3): cannot run: w16a8 operands, the array has", "nearmac: fc (3 of 3):"]
    assert "2 simulated, 1 that the design cannot run" in out and "a second" not in rows["time"]
    assert rows["softmax1"].split() == ["softmax1", "softmax", "3x1x1", "15", "3", "3"]
    assert out.splitlines()[-1].startswith("Remark: cycles and times are those of the layers on the array")


def test_a_mismatch_ends_with_status_1(recorded, capsys, directory, monkeypatch):
    def wrong(layer, *args, **options):
        report, arrays = recorded[1][layer.name]
        return (replace(report, bit_exact=False, differing_outputs=2) if layer.name == "fc" else report), arrays

    monkeypatch.setattr(dse.simulate_network, "simulate", wrong)
    assert run(arguments(directory)) == 1
    captured = capsys.readouterr()
    rows = {line.split()[0]: line for line in captured.out.splitlines() if line.strip()}
    assert " equal " in rows["conv1"] and " exact " in rows["conv1"] and "MISMATCH: 2 differ" in rows["fc"]
    assert captured.err.splitlines()[-1] == "error: the simulation does not match the prediction or the golden model"


def test_emit_one_layer(capsys, directory, tmp_path):
    args = ["emit", str(directory / "net.yaml"), "--board", "papilio-pro", "--design", str(directory / "design.yaml"), "--out",
            str(tmp_path / "out")]
    assert run([*args, "--layer", "fc", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["layer"]["name"] == "fc"
    assert run([*args, "--layer", "wide"]) == 2
    assert capsys.readouterr().err.endswith("design.yaml: wide of tiny is w16a8, got 'w8a8'; allowed: at least 16 and 8 bits\n")
    assert run(args) == 2
    assert capsys.readouterr().err == "error: --layer: tiny has 3 layers; allowed: conv1, wide, fc; name one\n"


@pytest.mark.parametrize("more, message", [
    (["--vcd", "w.vcd"], "--vcd: is of one layer, got 'w.vcd'; name one with --layer"),
    (["--vcd-cycles", "0:9"], "--vcd-cycles: is of one layer"),
    (["--save-tensors", "t.npz"], "--save-tensors: is of one layer"),
    (["--input", "t.npz"], "--input: is of one layer"),
    (["--engine", "icarus"], "--engine: not a choice, got 'icarus'"),
    (["--seed", "-1"], "--seed: out of range"),
    (["--layer", "pool"], "--layer: max_pool is an operator of the host, not of the array, got 'pool'; allowed: conv1, wide, fc")])
def test_wrong_input(more, message, capsys, directory):
    assert run([*[word for word in arguments(directory) if word not in ("--engine", "amaranth")], *more]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}") and error.count("\n") == 1


def test_no_layer_runs(capsys, directory):
    args = ["simulate", "cnv", "--board", "papilio-pro", "--precision", "w1a1", "--array", "1x1x1", "--buffers",
            "input=1KiB,weight=1KiB,output=1KiB,psum=0B"]
    assert run(args) == 2
    assert "no tile fits" in capsys.readouterr().err


# -- chains -----------------------------------------------------------------------------------------------------------

LINE = """
name: line
nodes:
  - {op: input, shape: [1, 2, 3, 3]}
  - {op: conv, name: first, K: 4, F: 1}
  - {op: relu}
  - {op: conv, name: second, K: 3, F: 1}
  - {op: flatten}
  - {op: linear, name: fc, K: 2}
"""


@pytest.fixture(scope="module")
def line(tmp_path_factory) -> list[str]:
    path = tmp_path_factory.mktemp("line")
    (path / "line.yaml").write_text(LINE)
    (path / "design.yaml").write_text(dump_design(DESIGN.with_(chaining=True)))
    return [str(path / "line.yaml"), "--board", "papilio-pro", "--design", str(path / "design.yaml")]


def test_layers_joined_by_plus_are_a_chain(line, capsys):
    assert run(["simulate", *line, "--layer", "first+second", "--engine", "amaranth"]) == 0
    out, err = capsys.readouterr()
    text = [" ".join(row.split()) for row in out.splitlines()]
    chain = next(row for row in text if row.startswith("1 first, second "))
    cycles, equal, exact, moved, saved = chain.removeprefix("1 first, second ").split()[:5]
    assert (equal, exact) == ("equal", "exact") and int(saved) > 0
    assert err == f"nearmac: first+second (1 to 2 of 2): {cycles} cycles, as predicted, {saved} bytes saved\n"
    assert any(row.startswith("first 72 (") and row.endswith(" chain 1") for row in text)
    assert any(row.startswith(f"on chip 1 tensor in 1 chain: {saved} bytes and ") for row in text)
    assert f"cycles {cycles} simulated, {cycles} predicted" in text
    assert any(row.startswith("bytes ") and moved.isdigit() for row in text)


def test_a_mismatch_of_a_chain_ends_with_status_1(line, capsys, monkeypatch):
    class Result:
        cycles = beats_read = beats_written = 1
        engine, cycles_per_s, wall_s, counters = "none", 1.0, 1.0, None

    monkeypatch.setattr(dse.simulate_network, "simulate_chain",
                        lambda chain, board, alone, **_: ChainReport(chain, alone, predict_chain(chain, board_timing(board, chain.design)),
                                                                     Result(), 2, False))
    assert run(["simulate", *line, "--layer", "first+second"]) == 1
    out, err = capsys.readouterr()
    assert "MISMATCH: bytes" in out and "MISMATCH: 2 differ" in out and ": 1 cycles, MISMATCH, " in err


def test_emit_a_chain(line, tmp_path, capsys):
    assert run(["emit", *line, "--layer", "first+second", "--out", str(tmp_path / "out"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["workload"] == "line:first+second" and [layer["name"] for layer in data["layers"]] == ["first", "second"]
    assert "network.yaml" in data["files"] and data["saved_bytes"] > 0 and len(data["tilings"]) == 2


@pytest.mark.parametrize("more, message", [
    (["--layer", "second+fc", "--chaining"], "--layer: fc reads flatten1, not second, got 'second+fc'; name layers that follow each other, "
                                             "with nothing between them"),
    (["--layer", "first+second", "--array", "2x2x1"], "--layer: several layers run from one start on designs with chaining alone, got "
                                                      "'first+second'; give --chaining, or name one layer"),
    (["--layer", "first+second", "--chaining", "--array", "2x2x1", "--buffers", "input=1KiB"],
     "--layer: the tensor from first to second does not stay on chip, got 'first+second'; use larger input banks, or emit the layers one "
     "by one")])
def test_chains_that_cannot_be_emitted(more, message, tmp_path, capsys):
    (tmp_path / "line.yaml").write_text(LINE.replace("3, 3]", "60, 60]"))
    assert run(["emit", str(tmp_path / "line.yaml"), "--board", "papilio-pro", *more, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_chaining_is_part_of_a_design(line, capsys):
    assert run(["simulate", *line, "--chaining"]) == 2
    assert "given together with --chaining" in capsys.readouterr().err
