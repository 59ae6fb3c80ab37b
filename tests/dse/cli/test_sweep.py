"""``nearmac sweep`` from end to end: tables, JSON, files that other commands take, messages and exit statuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import dse.sweep.chunks
import dse.sweep.layers
import dse.sweep.verify
from dse.cli.main import run
from dse.cli.sweep_tables import front_table, fronts
from dse.schedule.explore import LayerSpace
from tests.dse.sweep.example import contents

ROOT = Path(__file__).parents[3]
LAYER = "conv K=4 C=4 OY=5 OX=4 FY=3 FX=3 P=1 name=small"
SPACE = """
rows: [1, 2]
cols: [2]
input_bytes: [8192]
weight_bytes: [4096, 8192]
output_bytes: [2048]
psum_bytes: [0]
"""


@pytest.fixture(scope="module")
def space(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("space") / "space.yaml"
    path.write_text(SPACE)
    return path


@pytest.fixture(scope="module")
def done(space, tmp_path_factory) -> dict:
    """One sweep that several tests look at."""
    out = tmp_path_factory.mktemp("swept") / "out"
    command = [sys.executable, "-m", "dse.cli.main", *arguments(space, out), "--json"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return {"out": out, "data": json.loads(finished.stdout)}


def arguments(space: Path, out: Path, *more: str, workload: str = LAYER, board: str = "papilio-pro,atlys") -> list[str]:
    return ["sweep", workload, "--board", board, "--space", str(space), "--out", str(out), *more]


def members(group: int) -> list[str]:
    """Command lines of the processes of a group that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, _, process_group = (path / "stat").read_text().rsplit(")", 1)[1].split()[:3]
            if int(process_group) == group and state != "Z":
                found.append((path / "cmdline").read_text())
        except OSError:  # gone meanwhile
            continue
    return found


def test_json_says_what_the_files_say(done):
    data, out = done["data"], done["out"]
    rows = pq.read_table(out / "points.parquet").to_pylist()
    assert (data["points"], data["feasible"]) == (len(rows), sum(row["feasible"] for row in rows)) == (8, 8)
    assert data["front"] == [row for row in rows if row["index"] in {entry["index"] for entry in data["front"]}]
    assert data["workload"] == "small" and data["errors"] == 0 and data["objectives"] == ["seconds", "external_bytes", "luts"]
    assert {row["board"] for row in data["front"]} == {"papilio-pro", "atlys"}


def test_a_design_of_the_front_is_accepted_and_does_what_the_sweep_predicted(done, tmp_path, capsys):
    for row in done["data"]["front"]:
        design = done["out"] / "designs" / f"{row['index']:06d}-{row['board']}.yaml"
        if row is done["data"]["front"][0]:
            given = [LAYER, "--board", row["board"], "--design", str(design)]
            assert run(["simulate", *given, "--engine", "amaranth", "--json"]) == 0
            measured = json.loads(capsys.readouterr().out)
            assert (measured["cycles"], measured["bytes_read"] + measured["bytes_written"]) == (row["cycles"], row["external_bytes"])
            assert measured["design"]["input_bytes"] == row["input_bytes"]
            assert run(["emit", *given, "--out", str(tmp_path / "emitted")]) == 0


def test_the_tables(done, space, capsys):
    assert run(arguments(space, done["out"], "--resume")) == 0
    captured = capsys.readouterr()
    assert captured.err == f"nearmac: {done['out']} holds this sweep already, complete; nothing was computed\n"
    text = " ".join(captured.out.split())
    front = done["data"]["front"]
    assert "workload small: 1 array layer, 2,880 MACs points 8, 8 feasible infeasible by none" in text
    for board in ("papilio-pro", "atlys"):
        assert f"Pareto front of {board}, w8a8 at 100 MHz: {sum(row['board'] == board for row in front)} points " in text
    assert all(unit in text for unit in ("MB/s", "KiB", "MHz", "18Kb", "(est.)", "ms"))
    for row in front:
        assert re.search(rf" {row['index']} {row['rows']}x{row['cols']}x{row['lanes']} .* {row['bound']} ", text)
    assert "Layers of the fastest point" in text and "MB/s for the" in text and "array never to wait" in text
    fastest = min(front, key=lambda row: (row["seconds"], row["index"]))
    assert f"small 1 {fastest['cycles']:,} 100.0%" in text


def test_long_fronts_are_shown_from_end_to_end():
    rows = [{"board": board, "precision": "w8a8", "seconds": 1.0 + at, "index": at} for at in range(50) for board in ("a", "b")]
    groups = fronts(rows, ["b", "a"])
    assert [(group[0]["board"], len(group)) for group in groups] == [("b", 50), ("a", 50)]
    full = {"rows": 1, "cols": 2, "lanes": 3, "clock_mhz": 50.0, "fps": 1.0, "external_bytes": 5, "external_mb_s": 1.0, "dsps": 1,
            "block_rams": 2, "luts": 3, "bound": "drain", "chaining": False, "kept_tensors": 0,
            **{f"{kind}_bytes": 0 for kind in ("input", "weight", "output", "psum")}}
    table = front_table([{**row, **full} for row in groups[0]], 10)
    assert table.title == "Pareto front of b, w8a8 at 50 MHz: 50 points, 10 of them here, all in pareto.csv"
    points = list(table.columns[0].cells)
    assert len(points) == 10 and (points[0], points[-1]) == ("0", "49")


def test_the_host_operators_of_a_network_are_excluded_and_named(space, tmp_path, capsys):
    assert run(arguments(space, tmp_path / "out", workload="digits-cnn", board="atlys")) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "not included latency excludes the operators that stay on the host: 1 softmax" in text


def test_a_network_runs_at_its_own_precision(space, tmp_path, capsys):
    narrow = tmp_path / "narrow.yaml"
    narrow.write_text(SPACE.replace("[4096, 8192]", "[65536]").replace("[8192]", "[16384]").replace("[1, 2]", "[1]"))
    assert run([*arguments(narrow, tmp_path / "out", workload="cnv", board="atlys"), "--json"]) == 0
    assert {row["precision"] for row in pq.read_table(tmp_path / "out" / "points.parquet").to_pylist()} == {"w1a8"}
    capsys.readouterr()
    assert run([*arguments(narrow, tmp_path / "two", board="atlys"), "--precision", "w8a8,w1a1", "--json"]) == 0
    assert {row["precision"] for row in json.loads(capsys.readouterr().out)["front"]} == {"w8a8", "w1a1"}


def test_none_feasible_is_told_and_no_failure(tmp_path, capsys):
    space = tmp_path / "space.yaml"
    space.write_text(SPACE + "constraints: {min_fps: 1.0e+9}\n")
    assert run(arguments(space, tmp_path / "out")) == 0
    out = capsys.readouterr().out
    assert "points         8, 0 feasible\ninfeasible by  min_fps 8\n" in out
    assert "None of the 8 points is feasible. Removed by:\n  min_fps: 8 points\nThe nearest point, " in out


def test_a_point_that_fails_ends_with_status_1(space, tmp_path, capsys, monkeypatch):
    def fail(*_):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(dse.sweep.chunks, "evaluate_family", fail)
    assert run(arguments(space, tmp_path / "out")) == 1
    captured = capsys.readouterr()
    assert captured.err == (f"error: the evaluation of 8 points failed; the column reason of {tmp_path / 'out' / 'points.parquet'} "
                            "says how\n")
    assert "infeasible by  error 8" in captured.out


def test_verify(done, space, capsys, monkeypatch):
    monkeypatch.setattr(dse.sweep.verify, "simulate", lambda *args, simulate=dse.sweep.verify.simulate, **options:
                        simulate(*args, **{**options, "engine": "amaranth"}))
    assert run(arguments(space, done["out"], "--resume", "--verify", "1")) == 0
    captured = capsys.readouterr()
    line = r"point \d+ on .*, small: [0-9,]+ cycles and [0-9,]+ bytes as predicted, bits exact \(amaranth\)"
    assert re.search(rf"^verified: {line}$", captured.out, re.MULTILINE)
    assert re.search(rf"^nearmac: verified {line}$", captured.err, re.MULTILINE)  # at once

    class Off(LayerSpace):
        def best(self, *args):
            right = super().best(*args)
            return replace(right, cycles=right.cycles + 1)

    monkeypatch.setattr(dse.sweep.layers, "LayerSpace", Off)
    assert run(arguments(space, done["out"], "--resume", "--verify", "1")) == 1
    captured = capsys.readouterr()
    assert "MISMATCH" in captured.out
    assert captured.err.endswith("error: the simulation of 1 points does not match the prediction or the golden model\n")


@pytest.mark.parametrize("change, text", [
    (["--board", "papilo-pro"], "nearest: papilio-pro"),
    (["--board", "atlys,,mojo-v3"], "--board: a board without a name; name one or several of `nearmac boards`, with commas between them"),
    (["--precision", "w8a8,w3a8"], "--precision: not a precision, got 'w3a8'"),
    (["--precision", "w8a8,w8a8"], "--precision: given twice, got 'w8a8'"),
    (["--workers", "0"], "--workers: out of range, got 0; allowed: 1 to 1024"),
    (["--space", "nowhere.yaml"], "nowhere.yaml: "),
    (["--scheduler", "tcp://127.0.0.1:9"], "--scheduler: no scheduler answers ("),
])
def test_wrong_input_is_one_message(change, text, space, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dse.sweep.distributed.CONNECT_S", 0.3)
    assert run([*arguments(space, tmp_path / "out"), *change]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and text in captured.err and captured.err.count("\n") == 1


def test_without_a_board(space, tmp_path, capsys):
    assert run(["sweep", LAYER, "--space", str(space), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == ("error: --board: no board; name one or several of `nearmac boards`, with commas between them\n")
    named = tmp_path / "named.yaml"
    named.write_text(SPACE + "board: atlys\n")
    assert run(["sweep", LAYER, "--space", str(named), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert {row["board"] for row in json.loads(capsys.readouterr().out)["front"]} == {"atlys"}


def test_an_interrupt_keeps_what_is_finished_and_leaves_no_process(tmp_path):
    """Ctrl-C reaches every process of the group; afterwards --resume gives what an undisturbed run gives."""
    space, out = tmp_path / "space.yaml", tmp_path / "out"
    space.write_text(SPACE.replace("[1, 2]", "[1, 2, 3, 4]").replace("cols: [2]", "cols: [1, 2, 3, 4]")
                     + "clock_mhz: [50, 60, 70, 80]\n")
    given = [sys.executable, "-m", "dse.cli.main", *arguments(space, out)]
    process = subprocess.Popen([*given, "--workers", "2"], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    end = time.monotonic() + 60
    while not list(out.glob(".chunks/*.parquet")) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert stdout == ""
    assert re.fullmatch(r"nearmac: [1-9]\d* of 256 points are kept in .*/out; the same command with --resume goes on\n"
                        r"interrupted\n", stderr)
    end = time.monotonic() + 20
    while members(process.pid) and time.monotonic() < end:  # the tracker of multiprocessing ends a moment after its driver
        time.sleep(0.02)
    assert members(process.pid) == []
    assert run([*given[3:], "--resume", "--json"]) == 0
    assert run([*arguments(space, tmp_path / "undisturbed"), "--json"]) == 0
    assert contents(out) == contents(tmp_path / "undisturbed")


def test_help_imports_nothing_heavy():
    code = ("import sys, dse.cli.main; status = dse.cli.main.run(['sweep', '--help']); "
            "print([name for name in ('numpy', 'pyarrow', 'amaranth', 'boards', 'rich', 'networkx') if name in sys.modules], status)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[] 0"
    assert "--scheduler" in done.stdout
