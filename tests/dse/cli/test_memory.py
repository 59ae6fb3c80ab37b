"""``nearmac memory``: tables, JSON, pictures, errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dse.cli.main import run
from dse.cli.memory_tables import size_text

LAYER = "conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1"


def output(capsys, *arguments: str) -> str:
    assert run(["memory", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def lines_of(text: str) -> dict[str, str]:
    """First column -> the rest, of tables whose names have single spaces."""
    return dict(line.split("  ", 1) for line in text.splitlines() if "  " in line)


def test_a_layer_in_place(capsys):
    """Culurciello et al.'s layer: 331,776 weights, 0.65 MB at 16 bits; 32,448 activations in and out."""
    rows = {name: value.strip() for name, value in lines_of(output(capsys, LAYER, "--bits", "16")).items()}
    assert rows["layer"].split() == ["conv", "1x192x13x13", "663.6", "kB", "64.90", "kB", "129.8", "kB", "freed"]
    assert rows["weights"] == "663.6 kB with biases and normalisations"
    assert rows["network's input"] == "64.90 kB"
    assert rows["in all"].startswith("793.3 kB at most, in forward layer: 663.6 kB weights and what goes with them, 129.8 kB activations")


def test_training_with_everything(capsys):
    text = output(capsys, "resnet18", "--batch", "32", "--bits", "32", "--training", "--optimizer", "adam", "--recompute", "cheap",
                  "--in-place", "--unfused", "--lowering", "im2col", "--device", "gtx-1050-ti")
    rows = lines_of(text)
    assert rows["optimiser"].strip() == "93.52 MB, adam"  # 2 x 4 x 11,689,512
    assert rows["memory"].strip() == "4.295 GB" and rows["this"].strip().startswith("fits, ")
    conv = next(line for line in text.splitlines() if line.startswith("layer1.0.conv1 "))
    assert 32 * 4 * 64 * 9 * 56 * 56 == 231_211_008
    assert conv.split()[-4:] == ["231.2", "MB", "9x", "kept"]
    assert rows["layer1.0.conv1.relu"].split()[-2:] == ["in", "place"]


def test_json_is_one_object_with_the_rooms_figures(capsys):
    data = json.loads(output(capsys, "resnet50", "--bits", "32", "--json", "--device", "gtx-1050-ti"))
    assert (data["parameters"], data["weight_bytes"]) == (25_557_032, 4 * 25_557_032)
    assert data["peak"] == {"event": "forward layer1.0.add", "activation_bytes": 3 * 4 * 256 * 56**2, "gradient_bytes": 0,
                            "lowering_bytes": 0}
    assert data["device"]["memory_bytes"] == 4 << 30 and data["device"]["fits"] is True
    assert len(data["layers"]) == 54 + 19 and data["layers"][0]["shape"] == [1, 64, 112, 112]
    assert json.loads(output(capsys, "lenet5", "--json"))["device"] is None


def test_an_input_of_another_size(capsys):
    """The reader's question: (10, 20, 3), height and width first."""
    data = json.loads(output(capsys, "resnet18", "--input-shape", "input=1x3x10x20", "--batch", "8", "--json"))
    assert data["input_bytes"] == 8 * 10 * 20 * 3 and data["layers"][0]["shape"] == [1, 64, 5, 10]


def test_bits_of_weights_and_activations(capsys):
    both = json.loads(output(capsys, "lenet5", "--json", "--weights-bits", "2", "--activations-bits", "32"))
    assert (both["options"]["weight_bits"], both["options"]["activation_bits"]) == (2, 32)
    assert both["input_bytes"] == 32 * 32 * 4


def test_what_does_not_fit(capsys):
    rows = lines_of(output(capsys, "vgg16", "--bits", "32", "--device", "papilio-pro"))
    assert rows["this"].strip().startswith("does not fit, 5") and rows["largest batch"].strip() == "not even 1"
    assert "one of 8 devices" in output(capsys, "lenet5", "--device", "dgx-1")


def test_a_picture(capsys, tmp_path):
    path = tmp_path / "picture.svg"
    output(capsys, "lenet5", "--plot", str(path), "--json")
    assert "memory in use" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_an_onnx_model_with_an_open_size(capsys, tmp_path):
    import numpy as np
    from onnx import TensorProto, helper, save
    from onnx.numpy_helper import from_array

    weight = from_array(np.zeros((4, 3, 3, 3), np.float32), "w")
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, None, None])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weight])
    path = tmp_path / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    data = json.loads(output(capsys, str(path), "--input-shape", "x=1x3x10x20", "--bits", "32", "--json"))
    assert (data["weight_bytes"], data["input_bytes"]) == (4 * 108, 4 * 600)
    assert data["total_bytes"] == 4 * (108 + 600 + 4 * 8 * 18)


@pytest.mark.parametrize("arguments, message", [
    (["resnet18", "--bits", "8", "--weights-bits", "4"],
     "--bits: says the same as --weights-bits and --activations-bits, got 8; leave one out"),
    (["resnet18", "--bits", "0"], "--weights-bits: out of range, got 0; allowed: 1 to 64"),
    (["resnet18", "--optimizer", "adam"], "--optimizer: is of training, got 'adam'; add --training"),
    (["resnet18", "--plot", "a.gif"], "--plot: not a picture's name, got 'a.gif'; allowed: a name that ends in .svg, .png, .pdf"),
    (["resnet18", "--input-shape", "image=1x3x8x8"], "--input-shape: no such input, got 'image'; allowed: input"),
    (["resnet19"], "nearest: resnet1"), (["resnet18", "--device", "gtx1050ti"], "nearest: gtx-1050-ti")])
def test_wrong_input(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["memory", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: ") and message in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size, text", [(0, "0 B"), (9_999, "9,999 B"), (10_000, "10.00 kB"), (168_000_000, "168.0 MB"),
                                        (2_152_000_000, "2.152 GB"), (999_949_999, "999.9 MB"), (999_960_000, "1,000 MB"),
                                        (12_345_678_901_234_567, "12,346 TB")])
def test_sizes_have_four_digits(size, text):
    assert size_text(size) == text


def test_help_needs_no_library():
    script = ("import sys; from dse.cli.main import run; run(['memory', '--help']); "
              "print([name for name in ('networkx', 'numpy', 'matplotlib', 'amaranth', 'dse.footprint') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
