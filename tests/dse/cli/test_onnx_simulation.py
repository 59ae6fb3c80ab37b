"""ONNX models from the command line."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet
import pytest

from dse.cli import onnx_simulation
from dse.cli.main import run
from tests.dse.onnx_layer.quantised import F
from tests.dse.workload.onnx_import.models import U8, model, node, save, value, zeros

SIMULATE = ["--board", "papilio-pro", "--array", "2x2x1", "--engine", "amaranth"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """``quantised.onnx``, ``float.onnx`` and inputs for them, in the current folder."""
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    x = rng.integers(0, 256, (1, 4, 5, 4), np.uint8)
    quantised = model(
        [node("QLinearConv", "x s z w ws wz ys yz b", "c", "Conv_3", pads=[1, 1, 1, 1]), node("MaxPool", "c", "y", kernel_shape=[2, 2])],
        [value("x", x.shape, U8)],
        [value("y", None, U8)],
        {
            "s": np.array(0.02, F),
            "z": np.array(9, np.uint8),
            "w": rng.integers(-128, 128, (4, 4, 3, 3), np.int8),
            "ws": rng.uniform(0.01, 0.02, 4).astype(F),
            "wz": zeros(4, kind=np.int8),
            "ys": np.array(0.6, F),
            "yz": np.array(100, np.uint8),
            "b": rng.integers(-9999, 9999, 4).astype(np.int32),
        },
        opset=10,
    )
    plain = model(
        [node("Conv", "x w", "c", "conv"), node("Relu", "c", "y")],
        [value("x", ("n", 4, 5, 4))],
        ["y"],
        {"w": rng.normal(size=(4, 4, 3, 3)).astype(F)},
    )
    save(tmp_path, quantised, "quantised.onnx")
    save(tmp_path, plain, "float.onnx")
    np.savez("quantised.npz", x=x)
    np.savez("float.npz", x=rng.normal(size=(3, 4, 5, 4)).astype(F))


def lines(text: str) -> dict[str, str]:
    return dict(line.split("  ", 1) for line in text.splitlines() if "  " in line)


def test_a_quantised_layer_in_hardware(files, capsys):
    command = ["simulate", "quantised.onnx", "--layer", "Conv_3", "--input", "quantised.npz", "--save-tensors", "out.npz", *SIMULATE]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    comparison = found["onnx"]
    assert found["bit_exact"] and found["cycles"] == found["predicted_cycles"]
    assert (comparison["tensor"], comparison["outputs"], comparison["is_quantised"]) == ("c", 80, True)
    assert comparison["largest_difference_lsb"] <= 1 and comparison["differing_outputs"] <= 4 and comparison["noise"] == []
    saved = np.load("out.npz")
    assert saved["output"].shape == (1, 4, 5, 4) and saved["input_zero_point"] == 9
    np.testing.assert_array_equal(saved["input"], np.load("quantised.npz")["x"])


def test_a_float_layer_in_hardware(files, capsys):
    command = ["simulate", "float.onnx", "--layer", "conv", "--input", "float.npz", "--input-shape", "x=1x4x5x4", *SIMULATE]
    assert run(command) == 0
    captured = capsys.readouterr()
    assert "quantisation     ours, calibrated on 3 samples" in captured.out and "ONNX Runtime " in captured.out
    table = captured.out.split("Signal to quantisation noise")[1]
    rows = [line.split()[0] for line in table.splitlines() if " dB" in line]
    assert rows == ["16", "8", "4", "2", "1"]
    assert table.count(" dB") == 10


def test_a_mismatch_ends_with_status_1(files, capsys, monkeypatch):
    """As it would be if ONNX Runtime said something else."""
    original = onnx_simulation.prepare

    def wrong(*arguments):
        made = original(*arguments)
        made.expected[0, 0, 0, 0] += 3
        return made

    monkeypatch.setattr(onnx_simulation, "prepare", wrong)
    assert run(["simulate", "quantised.onnx", "--layer", "Conv_3", "--input", "quantised.npz", *SIMULATE]) == 1
    captured = capsys.readouterr()
    assert "outputs          MISMATCH: " in captured.out and captured.err.endswith("error: the simulation does not match ONNX Runtime\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "none.onnx", "--layer", "c", "--input", "quantised.npz", *SIMULATE], "WORKLOAD: no such file, got 'none.onnx'"),
        (
            ["simulate", "quantised.onnx", "--layer", "c", "--input", "quantised.npz", *SIMULATE],
            "--layer: no such layer in the workload, got 'c'",
        ),
        (
            ["simulate", "quantised.onnx", "--layer", "Conv_3", "--input", "float.npz", *SIMULATE],
            "--input float.npz: x: another type of elements, got 'float32'; allowed: uint8",
        ),
        (["simulate", "quantised.onnx", "--layer", "Conv_3", "--input", "quantised.onnx", *SIMULATE], "--input: not an .npz file"),
        (
            ["simulate", "quantised.onnx", "--layer", "Conv_3", "--input", "quantised.npz", "--precision", "w4a4", *SIMULATE],
            "--precision: the layer's integers are wider, got 'w4a4'; allowed: at least w8a8",
        ),
        (["simulate", "quantised.onnx", "--input", "quantised.npz", *SIMULATE], "--input: is of one layer"),
        (
            ["networks", "float.onnx"],
            "float.onnx: x: an input without a fixed size, got ['n', '4', '5', '4']; give it: --input-shape x=1x4x5x4",
        ),
        (["networks", "float.onnx", "--input-shape", "x=1x4"], "--input-shape: the model's input x has 4 sizes, got '1x4'"),
        (
            ["networks", "float.onnx", "--input-shape", "1x4"],
            "--input-shape: not a shape of an input, got '1x4'; allowed: NAME=1x3x224x224",
        ),
        (["networks", "float.onnx", "--input-shape", "x=1x-4"], "--input-shape: not a shape of an input, got 'x=1x-4'"),
        (["networks", "float.onnx", "--input-shape", "x=1x4x5x4", "--input-shape", "x=1"], "--input-shape: given twice, got 'x'"),
        (["sweep", "float.onnx", "--board", "papilio-pro", "--out", "o"], "float.onnx: x: an input without a fixed size"),
        (["emit", "float.onnx", "--board", "papilio-pro", "--out", "o", "--layer", "conv"], "float.onnx: x: an input without a fixed size"),
        (
            ["simulate", "lenet5", "--board", "papilio-pro", "--input-shape", "x=1"],
            "--input-shape: only ONNX models have inputs with open sizes",
        ),
    ],
)
def test_wrong_input(arguments, message, files, capsys):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {message}") and captured.err.count("\n") == 1 and captured.out == ""


def test_networks(files, capsys):
    assert run(["networks", "float.onnx", "--input-shape", "x=2x4x5x4", "--precision", "w4a8", "--json"]) == 0
    (layer,) = json.loads(capsys.readouterr().out)["layers"]
    assert (layer["name"], layer["B"], layer["macs"], layer["precision"], layer["folded"]) == ("conv", 2, 2 * 4 * 6 * 36, "w4a8", ["relu"])
    assert run(["networks", "quantised.onnx"]) == 0
    assert "max_pool" in capsys.readouterr().out


def test_notes_of_host_operators_are_printed(files, tmp_path, capsys):
    save(
        tmp_path,
        model(
            [node("Conv", "x w", "c"), node("ConvTranspose", "c v", "y", "up")],
            [value("x", (1, 3, 4, 4))],
            ["y"],
            {"w": zeros(2, 3, 1, 1), "v": zeros(2, 1, 2, 2)},
        ),
        "up.onnx",
    )
    assert run(["networks", "up.onnx"]) == 0
    found = capsys.readouterr().out
    assert "why" in found and "transposed convolutions are counted, not run on the array" in " ".join(found.split())


def test_random_tensors_without_an_input(files, capsys):
    assert run(["simulate", "quantised.onnx", "--layer", "Conv_3", *SIMULATE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bit_exact"] and "onnx" not in found and found["layer"]["input_zero_point"] == 9


def test_a_sweep(files, capsys, tmp_path):
    (tmp_path / "space.yaml").write_text(
        "{rows: [1, 2], cols: [2], lanes: [1], input_bytes: [4096], weight_bytes: [4096], output_bytes: [2048], psum_bytes: [0],"
        " precision: w8a8}"
    )
    status = run(
        ["sweep", "float.onnx", "--board", "papilio-pro", "--input-shape", "x=1x4x5x4", "--space", "space.yaml", "--out", "out", "--json"]
    )
    assert status == 0 and json.loads(capsys.readouterr().out)
    points = pyarrow.parquet.read_table(tmp_path / "out" / "points.parquet").to_pylist()
    assert [(point["rows"], point["workload"], point["feasible"]) for point in points] == [(1, "float", True), (2, "float", True)]
