"""The command line from end to end: results, files, messages and exit statuses."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from amaranth.back.verilog import YosysError

import dse.cli.simulation
from dse.cli.main import run
from dse.workload.grammar import parse_layer
from dse.workload.layer_file import dump_design, dump_layer, load_design
from hdl.design import Design, OutputMultiplier
from hdl.requantize import Requantizer
from sim.errors import SimulationError, ToolError

LAYER = "conv K=3 C=4 OY=3 OX=3 FY=2 FX=2 S=2 PT=1 PL=1 zp=3 out_zp=-5 name=tiny"
LINEAR = "linear K=2 C=4"
DESIGN = Design(rows=2, cols=2, input_bytes=2048, output_bytes=1024, accumulator_bits=24)
BINARY = Design(rows=2, cols=4, weight_bits=1, activation_bits=1, accumulator_bits=12, multiplier="lut")
BOARD = ["--board", "papilio-pro"]
SCALARS = ("input_zero_point", "output_zero_point", "lo", "hi")


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cli")
    (path / "design.yaml").write_text(dump_design(DESIGN))
    (path / "binary.yaml").write_text(dump_design(BINARY))
    (path / "layer.yaml").write_text(dump_layer(parse_layer(LAYER)))
    return path


def arguments(directory: Path, *more: str, workload: str = LAYER, design: str = "design.yaml", engine: str = "amaranth") -> list[str]:
    return ["simulate", workload, *BOARD, "--design", str(directory / design), "--engine", engine, *more]


@pytest.fixture(scope="module")
def reference(directory) -> dict:
    """One run whose JSON, tensors and waveforms several tests look at."""
    command = [sys.executable, "-m", "dse.cli.main", *arguments(
        directory, "--json", "--save-tensors", str(directory / "t.npz"), "--vcd", str(directory / "w.vcd"), "--vcd-cycles", "5:9")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {"data": json.loads(done.stdout), "stderr": done.stderr}


def simulate_json(capsys, *args: str, status: int = 0) -> dict:
    assert run([*args, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def convolution(layer, tensors) -> np.ndarray:
    """Loops over outputs and taps: nothing shared with the golden model."""
    x, w = tensors["input"].astype(object), tensors["weight"].astype(object)
    outputs = np.zeros((layer.B, layer.K, layer.OY, layer.OX), object)
    for b, k, oy, ox in np.ndindex(outputs.shape):
        total = int(tensors["bias"][k])
        for c, fy, fx in np.ndindex(layer.C, layer.FY, layer.FX):
            iy, ix = oy * layer.SY + fy - layer.PT, ox * layer.SX + fx - layer.PL
            if 0 <= iy < layer.IY and 0 <= ix < layer.IX:
                total += (x[b, c, iy, ix] - int(tensors["input_zero_point"])) * w[k, c, fy, fx]
        if "threshold" in tensors:
            above = (total >= tensors["threshold"][k]) != bool(tensors["flip"][k])
            outputs[b, k, oy, ox] = 1 if above else -1
        else:
            shift = int(tensors["shift"][k])
            scaled = total * int(tensors["multiplier"][k]) + (1 << shift - 1 if shift else 0) >> shift
            outputs[b, k, oy, ox] = min(max(scaled + int(tensors["output_zero_point"]), int(tensors["lo"])), int(tensors["hi"]))
    return outputs.astype(np.int64)


# -- simulate ---------------------------------------------------------------------------------------------------------


def test_json_has_what_the_contract_says(reference):
    data = reference["data"]
    for key in ("workload layer board design engine macs cycles predicted_cycles bytes_read bytes_written predicted_bytes_read "
                "predicted_bytes_written bit_exact utilization issue_fraction seconds_on_device throughput_gops external_mb_s bound "
                "compulsory_bytes lower_bound_bytes simulated_cycles_per_s wall_s").split():
        assert key in data, key
    assert {"rows", "cols", "lanes", "precision", "clock_mhz", "bus_bits", "input_bytes"} <= data["design"].keys()
    assert data["bound"].keys() == {"kind", "cycles"} and data["bound"]["kind"] in ("compute", "memory", "drain")
    assert data["workload"] == LAYER and data["board"] == "papilio-pro" and data["engine"] == "amaranth"
    assert data["macs"] == 3 * 4 * 2 * 2 * 3 * 3
    assert data["bit_exact"] is True
    for name in ("cycles", "bytes_read", "bytes_written"):
        assert data[name] == data[f"predicted_{name}"] > 0
    seconds = data["cycles"] / 100e6
    assert data["seconds_on_device"] == pytest.approx(seconds)
    assert data["throughput_gops"] == pytest.approx(2 * data["macs"] / seconds / 1e9)
    assert data["utilization"] == pytest.approx(data["macs"] / (data["cycles"] * 4))


def test_saved_tensors_convolve_to_the_saved_output(reference, directory):
    with np.load(directory / "t.npz") as tensors:
        layer = parse_layer(LAYER)
        assert set(tensors) == {"input", "weight", "bias", "multiplier", "shift", "output", *SCALARS}
        assert {name: tensors[name].shape for name in SCALARS} == dict.fromkeys(SCALARS, ())
        assert (int(tensors["input_zero_point"]), int(tensors["output_zero_point"])) == (3, -5)
        assert len(np.unique(tensors["output"])) > 3
        np.testing.assert_array_equal(tensors["output"], convolution(layer, tensors))


def test_binary_tensors_hold_plus_and_minus_one(capsys, directory):
    workload, path = "conv K=3 C=5 OY=2 OX=2 FY=2 FX=2 PT=1", directory / "binary.npz"
    simulate_json(capsys, *arguments(directory, "--save-tensors", str(path), workload=workload, design="binary.yaml"))
    with np.load(path) as tensors:
        for name in ("input", "weight", "output"):
            assert set(np.unique(tensors[name])) <= {-1, 1}
        np.testing.assert_array_equal(tensors["output"], convolution(parse_layer(workload), tensors))


def test_waveforms_hold_the_window_and_say_what_they_leave_out(reference, directory):
    text = (directory / "w.vcd").read_text()
    assert "$enddefinitions" in text
    times = [int(line[1:]) for line in text.splitlines() if line.startswith("#")]
    assert times and times == sorted(times)
    cycles = reference["data"]["cycles"]
    assert reference["stderr"].startswith(f"nearmac: {directory / 'w.vcd'}: holds cycles 5 to 8 of 0 to ")
    assert int(reference["stderr"].split("of 0 to ")[1].split(";")[0]) >= cycles - 1


def test_input_round_trip_with_stalls_from_a_layer_file(capsys, reference, directory):
    out = directory / "again.npz"
    args = arguments(directory, "--input", str(directory / "t.npz"), "--save-tensors", str(out), "--stall-seed", "7", "--seed", "9",
                     "--layer", "tiny", workload=str(directory / "layer.yaml"))
    data = simulate_json(capsys, *args)
    assert data["random_stalls"] and data["cycles"] > data["predicted_cycles"]
    assert data["bytes_read"] == reference["data"]["bytes_read"]
    assert out.read_bytes() == (directory / "t.npz").read_bytes()


def test_table_on_stdout_with_verilator(capsys, reference, directory):
    assert run(arguments(directory, engine="verilator")) == 0
    captured = capsys.readouterr()
    cycles = f"{reference['data']['cycles']:,}"  # the other engine's
    for line in (f"cycles           {cycles} simulated = predicted", "engine           verilator", "estimate, ",
                 "all 27 outputs as the golden model has them", "MB/s of 112 MB/s offered", "(1 MAC = 2 ops; 432 MACs)"):
        assert line in captured.out
    assert captured.err == ""


def test_chosen_design_can_be_given_back(capsys, tmp_path):
    """`emit` writes the design that was chosen; `simulate --design` takes it and finds the same mapping."""
    out = tmp_path / "emitted"
    args = [LINEAR, *BOARD, "--array", "2x2x1", "--buffers", "input=2KiB,psum=0B", "--json"]
    assert run(["emit", *args, "--out", str(out)]) == 0
    emitted = json.loads(capsys.readouterr().out)
    assert sorted(path.name for path in out.iterdir()) == sorted(emitted["files"])
    design = load_design(out / "design.yaml")
    assert (design.array, design.input_bytes, design.psum_bytes) == ("2x2x1", 2048, 0)
    data = simulate_json(capsys, "simulate", str(out / "layer.yaml"), *BOARD, "--design", str(out / "design.yaml"), "--engine",
                         "amaranth")
    assert data["cycles"] == emitted["predicted_cycles"] and data["design"] == emitted["design"]
    assert data["tiling"] == emitted["tiling"]


# -- exit statuses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "status", "message"), [
    (ToolError(["g++", "-c"], 1, "no space"), 3, "error: external tool failed with status 1: g++ -c\nno space"),
    (SimulationError("not done after 9 cycles"), 1, "error: not done after 9 cycles"),
    (MemoryError(), 2, "error: out of memory: use a smaller layer"),
    (KeyboardInterrupt(), 130, "interrupted"),
    (OSError(28, "No space left on device"), 2, "error: output: No space left on device"),
])
def test_failures_of_a_run(monkeypatch, capsys, directory, error, status, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(dse.cli.simulation, "simulate", fail)
    out = directory / "none.npz"
    assert run(arguments(directory, "--json", "--save-tensors", str(out))) == status
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == message + "\n"
    assert not out.exists() and not list(directory.glob(".nearmac-*"))


def test_unexpected_errors_keep_their_traceback(monkeypatch, directory):
    monkeypatch.setattr(dse.cli.simulation, "simulate", lambda *_, **__: {}["bug"])
    with pytest.raises(KeyError, match="bug"):
        run(arguments(directory))


def test_mismatch_is_status_1_and_shown(monkeypatch, capsys, directory):
    import dse.simulate

    original = dse.simulate.golden
    monkeypatch.setattr(dse.simulate, "golden", lambda *args: original(*args) + 1)
    assert run(arguments(directory, workload=LINEAR)) == 1
    captured = capsys.readouterr()
    assert "MISMATCH: 2 of 2 outputs differ from the golden model" in captured.out
    assert captured.err == "error: the simulation does not match the prediction or the golden model\n"


def test_full_disk_leaves_no_file(monkeypatch, capsys, directory, tmp_path):
    def full(file, **_):
        file.write(b"part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dse.cli.tensors.np.savez", full)
    out = tmp_path / "t.npz"
    assert run(arguments(directory, "--save-tensors", str(out), workload=LINEAR)) == 2
    assert capsys.readouterr().err == f"error: --save-tensors: cannot be written: No space left on device, got {str(out)!r}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_stdout_is_one_message():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "dse.cli.main", "boards", "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "error: output: No space left on device\n")


@pytest.mark.parametrize(("redirection", "arguments", "status", "out", "err"), [
    ("2>/dev/full", "boards papilio", 2, "", ""),
    ("2>&-", "boards papilio", 2, "", ""),
    (">&-", "boards --json", 0, "", ""),
    (">&- 2>&-", "boards papilio", 2, "", ""),
    ("<&-", "--version", 0, "nearmac ", ""),
])
def test_streams_that_cannot_be_written(redirection, arguments, status, out, err):
    command = f"exec {shlex.quote(sys.executable)} -m dse.cli.main {arguments} {redirection}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, err)
    assert done.stdout.startswith(out) and bool(done.stdout) == bool(out)


def test_failing_yosys_is_status_3(monkeypatch, capsys, directory, tmp_path):
    def fail(*_, **__):
        raise YosysError("\n".join(f"line {number}" for number in range(9)))

    monkeypatch.setattr("hdl.verilog.verilog.convert", fail)
    args = ["emit", LINEAR, *BOARD, "--design", str(directory / "design.yaml"), "--out", str(tmp_path / "out")]
    assert run(args) == 3
    captured = capsys.readouterr()
    lines = "\n".join(f"line {number}" for number in range(4, 9))
    assert (captured.out, captured.err) == ("", f"error: external tool failed with status 1: yosys write_verilog\n{lines}\n")
    assert list(tmp_path.iterdir()) == []


def test_reader_that_leaves_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "dse.cli.main", "boards"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode in (1, 141) and done.stderr == ""


@pytest.mark.parametrize(("number", "status", "message"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")])
def test_signals_end_a_run_without_traceback(directory, tmp_path, number, status, message):
    out, wide = tmp_path / "t.npz", directory / "long.yaml"
    wide.write_text(dump_design(DESIGN.with_(accumulator_bits=32)))
    workload = "conv K=64 C=64 OY=64 OX=64 FY=3 FX=3"  # hours of Amaranth's simulator
    command = [sys.executable, "-m", "dse.cli.main",
               *arguments(directory, "--json", "--save-tensors", str(out), workload=workload, design=wide.name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while not list(tmp_path.iterdir()) and time.monotonic() < deadline:  # the run has begun when its file is there
                time.sleep(0.1)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, stdout, stderr) == (status, "", message)
    assert list(tmp_path.iterdir()) == []


# -- wrong input ------------------------------------------------------------------------------------------------------

WRONG = {
    "no command": ([], "Missing command; see `nearmac --help`"),
    "no workload": (["simulate", *BOARD], "Missing argument 'WORKLOAD'; see `nearmac simulate --help`"),
    "not a number": (["simulate", LINEAR, *BOARD, "--drains", "x"], "Invalid value for '--drains'"),
    "unknown option": (["simulate", LINEAR, "--bord", "x"], "--bord"),
    "unknown board": (["simulate", LINEAR, "--board", "papilio"],
                      "--board: unknown board, got 'papilio'; allowed: alveo-u200, alveo-u250, "),
    "no board file": (["simulate", LINEAR, "--board", "./none.yaml"], "none.yaml: no such file"),
    "no memory": (["simulate", LINEAR, "--board", "mimas"], "--board: board mimas has no external memory, got 'mimas'; choose a board"),
    "empty workload": (["simulate", " ", *BOARD], "WORKLOAD: empty, got ' '; allowed: a layer in place"),
    "unknown word": (["simulate", "resnet", *BOARD], "WORKLOAD: unknown workload, got 'resnet'; allowed: a layer in place"),
    "near word": (["simulate", "konv", *BOARD], "or of a SCALE-Sim .csv; nearest: conv\n"),
    "near operator": (["simulate", "lineal K=1 C=2", *BOARD],
                      "layer: unknown operator, got 'lineal'; allowed: conv, linear; nearest: linear"),
    "onnx": (["simulate", "net.onnx", *BOARD], "WORKLOAD: no such file, got 'net.onnx'"),
    "csv": (["emit", "net.csv", *BOARD, "--out", "x"], "net.csv: no such file"),
    "no layer file": (["simulate", "none.yaml", *BOARD], "none.yaml: no such file"),
    "layer": (["simulate", LINEAR, "--layer", "laier", *BOARD],
              "--layer: no such layer in the workload, got 'laier'; allowed: layer; nearest: layer"),
    "zero layer": (["simulate", "linear K=0 C=1", *BOARD], "layer.K: out of range, got 0; allowed: 1 to 65536"),
    "huge layer": (["simulate", f"linear K={'9' * 30} C=1", *BOARD], "layer.K: out of range"),
    "large tensor": (["simulate", "linear K=65536 C=4096", *BOARD],
                     "layer: weight tensor too large to simulate, got '268435456 elements'; allowed: at most 134217728"),
    "array": (["simulate", LINEAR, *BOARD, "--array", "4x4"],
              "--array: not an array, got '4x4'; allowed: ROWSxCOLSxLANES; for example 4x4x1"),
    "zero array": (["simulate", LINEAR, *BOARD, "--array", "0x4x1"],
                   "--array: out of range, got '0x4x1'; allowed: 1x1x1 to 64x128x64"),
    "huge array": (["simulate", LINEAR, *BOARD, "--array", "9999x1x1"], "--array: out of range, got '9999x1x1'"),
    "large array": (["simulate", LINEAR, *BOARD, "--array", "8x8x1"],
                    "--array: the design does not fit papilio-pro: dsps: 64 of 16 usable (48 too many)"),
    "precision": (["simulate", LINEAR, *BOARD, "--precision", "w3a8"], "--precision: not a precision, got 'w3a8'"),
    "buffer word": (["simulate", LINEAR, *BOARD, "--buffers", "8KiB"], "--buffers: not a KIND=SIZE word, got '8KiB'"),
    "buffer kind": (["simulate", LINEAR, *BOARD, "--buffers", "inputs=8KiB"],
                    "--buffers: not a choice, got 'inputs'; allowed: input, weight, output, psum; nearest: input"),
    "buffer unit": (["simulate", LINEAR, *BOARD, "--buffers", "input=8KB"],
                    "--buffers: input: unknown unit, got '8KB'; allowed: B, KiB (1024 bytes), MiB; nearest: 8KiB"),
    "buffer zero": (["simulate", LINEAR, *BOARD, "--buffers", "input=0B"],
                    "--buffers: input: out of range, got '0B'; allowed: 1 B to 64 MiB"),
    "buffer small": (["simulate", LINEAR, *BOARD, "--buffers", "input=1B", "--array", "2x2x1"],
                     "--buffers: 1 bank(s) of 16 bits do not get an entry each, got 1; allowed: at least 2 bytes"),
    "buffer large": (["simulate", LINEAR, *BOARD, "--buffers", "input=1MiB", "--array", "2x2x1"], "--buffers: banks of over 65536 entries"),
    "multiplier": (["simulate", LINEAR, *BOARD, "--multiplier", "DSP"],
                   "--multiplier: not a choice, got 'DSP'; allowed: dsp, dsp_pair, lut; nearest: dsp"),
    "accumulate": (["simulate", LINEAR, *BOARD, "--accumulate", "row"], "--accumulate: not a choice, got 'row'; allowed: tree, per_column"),
    "output multiplier": (["simulate", LINEAR, *BOARD, "--output-multiplier", "seriel"], "nearest: serial"),
    "xnor in DSPs": (["simulate", LINEAR, *BOARD, "--precision", "w1a1", "--multiplier", "dsp"],
                     "--multiplier: w1a1 uses XNOR-popcount and no multiplier, got 'dsp'; allowed: lut"),
    "drains": (["simulate", LINEAR, *BOARD, "--drains", "0"], "--drains: out of range, got 0; allowed: 1 to 4096"),
    "array's drains": (["simulate", LINEAR, *BOARD, "--array", "2x2x1", "--drains", "3"],
                       "--drains: a 2x2x1 array cannot have this many drains, got 3; allowed: 1, 2; nearest: 2"),
    "accumulator": (["simulate", LINEAR, *BOARD, "--accumulator-bits", "-1"], "--accumulator-bits: out of range, got -1; allowed: 8 to 48"),
    "small accumulator": (["simulate", "linear K=2 C=4096", *BOARD, "--array", "2x2x1", "--accumulator-bits", "20"],
                          "--accumulator-bits: "),
    "clock": (["simulate", LINEAR, *BOARD, "--clock-mhz", "nan"], "--clock-mhz: out of range, got nan; allowed: 1 to 1000"),
    "bus": (["simulate", LINEAR, *BOARD, "--bus-bits", "17"],
            "--bus-bits: not a bus width, got 17; allowed: 16, 32, 64, 128, 256; nearest: 16"),
    "engine": (["simulate", LINEAR, *BOARD, "--engine", "verilatr"],
               "--engine: not a choice, got 'verilatr'; allowed: auto, verilator, amaranth; nearest: verilator"),
    "seed": (["simulate", LINEAR, *BOARD, "--seed", "-1"], "--seed: out of range, got -1; allowed: 0 to 4294967295"),
    "stall seed": (["simulate", LINEAR, *BOARD, "--stall-seed", "4294967296"], "--stall-seed: out of range, got 4294967296"),
    "two designs": (["simulate", LINEAR, *BOARD, "--design", "d.yaml", "--array", "1x1x1", "--clock-mhz", "5"],
                    "--design: given together with --array, --clock-mhz, got 'd.yaml'; change the file, or leave --design out"),
    "lone drains": (["simulate", LINEAR, *BOARD, "--drains", "7"],
                    "--drains: no array that fits the board has this many drains, got 7; allowed: a divisor of the lanes (1, 2, 3, "),
    "small lone drains": (["simulate", LINEAR, *BOARD, "--drains", "2", "--buffers", "input=1B"],
                          "--buffers: 2 bank(s) of 16 bits do not get an entry each, got 1; allowed: at least 4 bytes"),
    "wide digits": (["simulate", LINEAR, *BOARD, "--array", "\uff14x4x1"], "--array: not an array, got '\uff14x4x1'"),
    "wide precision": (["simulate", LINEAR, *BOARD, "--precision", "w\uff18a8"], "--precision: not a precision, got 'w\uff18a8'"),
    "empty design": (["simulate", LINEAR, *BOARD, "--design", ""], "--design: empty, got ''; allowed: the path of a design's .yaml"),
    "empty out": (["emit", LINEAR, *BOARD, "--out", ""], "--out: empty, got ''; allowed: the name of a directory"),
    "no design": (["simulate", LINEAR, *BOARD, "--design", "none.yaml"], "none.yaml: no such file"),
    "window alone": (["simulate", LINEAR, *BOARD, "--vcd-cycles", "0:1"], "--vcd-cycles: given without --vcd, got '0:1'"),
    "no input": (["simulate", LINEAR, *BOARD, "--input", "none.npz"], "--input: no such file, got 'none.npz'"),
    "no directory": (["simulate", LINEAR, *BOARD, "--save-tensors", "/none/t.npz"],
                     "--save-tensors: no such directory: /none, got '/none/t.npz'"),
    "device": (["simulate", LINEAR, *BOARD, "--vcd", "/dev/null"], "--vcd: is not a regular file, got '/dev/null'"),
    "long name": (["simulate", LINEAR, *BOARD, "--save-tensors", "x" * 300], "--save-tensors: cannot be written: File name too long"),
    "no out": (["emit", LINEAR, *BOARD], "Missing option '--out'; see `nearmac emit --help`"),
    "out": (["emit", LINEAR, *BOARD, "--out", "/dev/null"], "--out: not a directory, got '/dev/null'"),
    "boards": (["boards", "papilio-pr"], "nearest: papilio-pro\n"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_message_and_status_2(name, capsys, tmp_path, monkeypatch):
    args, message = WRONG[name]
    monkeypatch.chdir(tmp_path)
    assert run(args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert message in captured.err
    assert list(tmp_path.iterdir()) == []


FILES = {
    "empty layer": ("layer", b"", "layer.yaml: the file is empty"),
    "layer list": ("layer", b"- 1", "layer.yaml: not a workload that is known, got [1]; allowed: a layer (kind, K, C, ..)"),
    "layer type": ("layer", b"kind: linear\nK: two\nC: 1", "layer.yaml: layer.K: must be a whole number, got 'two'; allowed: 1 to 65536"),
    "design type": ("design", b"rows: '2'\ncols: 2", "design.yaml: design.rows: must be a whole number, got '2'; allowed: 1 to 64"),
    "design key": ("design", b"rows: 2\ncols: 2\nlane: 1", "design.yaml: design: unknown key, got 'lane'; allowed: rows, cols, lanes, "),
    "design bool": ("design", b"rows: true\ncols: 2", "design.yaml: design.rows: must be a whole number, got True; allowed: 1 to 64"),
    "layer key": ("layer", b"kind: linear\nK: 1\nC: 1\nzp: 3", "layer.yaml: layer: unknown key, got 'zp'; allowed: name, kind, "),
    "large design": ("design", b"rows: 8\ncols: 8", "design.yaml: the design does not fit papilio-pro: dsps: 64 of 16 usable"),
    "board": ("board", b"name: x\ndevice: xc6slx9\nmemory: 3", "board.yaml: "),
}


@pytest.mark.parametrize("name", FILES)
def test_wrong_files(name, capsys, tmp_path, monkeypatch):
    kind, content, message = FILES[name]
    monkeypatch.chdir(tmp_path)
    Path(f"{kind}.yaml").write_bytes(content)
    args = {"layer": ["layer.yaml", *BOARD], "design": [LINEAR, *BOARD, "--design", "design.yaml"],
            "board": [LINEAR, "--board", "board.yaml"]}[kind]
    assert run(["simulate", *args]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}") and error.count("\n") == 1


def test_layer_that_fits_no_bank_names_bank_and_size(capsys, directory):
    workload = "conv K=2 C=4096 OY=8 OX=8 FY=3 FX=3"
    design = directory / "wide.yaml"
    design.write_text(dump_design(DESIGN.with_(accumulator_bits=36)))
    assert run(["simulate", workload, *BOARD, "--design", str(design)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {design}: design.") and "no tile fits the" in error and "; it fits with " in error
    assert run(["simulate", workload, *BOARD, "--array", "2x2x1", "--buffers", "input=1KiB,weight=1KiB,psum=0B"]) == 2
    assert capsys.readouterr().err.startswith("error: --buffers: no tile fits the ")


# -- other --------------------------------------------------------------------------------------------------------------


def test_help_needs_no_heavy_module():
    code = ("import sys; from dse.cli.main import run; run(['simulate', '--help']); "
            "print([m for m in ('numpy', 'amaranth', 'boards', 'rich', 'yaml') if m in sys.modules], file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "[]\n"
    for option in ("--board", "--array", "--precision", "--buffers", "--vcd-cycles", "--save-tensors", "--stall-seed", "--json"):
        assert option in done.stdout


def test_help_has_the_interval_of_the_serial_multiplier(capsys):
    assert run(["simulate", "--help"]) == 0
    interval = Requantizer(accumulator_bits=32, activation_bits=8, multiplier=OutputMultiplier.SERIAL).initiation_interval
    assert f"serial takes {interval} cycles a result" in " ".join(capsys.readouterr().out.split())


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("nearmac ")
