"""``nearmac networks``: tables, JSON, errors, and what it imports."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dse.cli.main import run
from dse.workload.zoo import NAMES, load_network


def output(capsys, *arguments: str) -> str:
    assert run(["networks", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_list_has_a_row_a_network(capsys):
    lines = output(capsys).splitlines()
    assert lines[0].split() == "name layers on host MACs weights parameters activations precision input what".split()
    rows = {line.split()[0]: line.split() for line in lines[1:] if not line.startswith(" ")}
    assert tuple(rows) == NAMES
    assert rows["resnet18"][1:9] == ["21", "11", "1,814,073,344", "11,678,912", "11,689,512", "3,438,568", "w8a8", "3x224x224"]
    assert rows["cnv"][3] == "59,489,024" and rows["cnv"][7] == "w1a1"


def test_list_as_json(capsys):
    data = json.loads(output(capsys, "--json"))
    assert [entry["name"] for entry in data["networks"]] == list(NAMES)
    for entry in data["networks"]:
        network = load_network(entry["name"])
        assert (entry["macs"], entry["parameters"], entry["precision"]) == (network.macs, network.parameters, network.precision)


def test_one_network(capsys):
    text = output(capsys, "mobilenetv2")
    row = next(line for line in text.splitlines() if line.startswith("block2.1.depthwise"))
    # 96 channels of 112x112 in, of 56x56 out, 864 weights, a byte each; 9 MACs an output.
    macs, size = 9 * 96 * 56 * 56, 96 * (112 * 112 + 56 * 56) + 864
    assert row.split() == ["block2.1.depthwise", "conv", "3x3", "s2", "g96", "+bn+relu6", "96x56x56", f"{macs:,}", "864",
                           f"{96 * 56 * 56:,}", "w8a8", f"{size:,}", f"{2 * macs / size:.1f}", "1"]  # of the first line of layers
    assert "The array does not compute host operators, and no cycle count or time includes them." in text
    add = next(line for line in text.splitlines() if line.startswith("block2.2.add"))
    assert add.split() == ["block2.2.add", "add", "24x56x56", "75,264", "150,528", "75,264"]
    assert "MACs         300,774,272 (1 MAC = 2 ops)" in text


def test_repeats_and_batches_show(capsys):
    text = output(capsys, "deepspeech-gru")
    assert "linear 50 times" in text and "50x1200x1x1" in text


def test_precision(capsys):
    narrow, own = (json.loads(output(capsys, "lenet5", "--json", *more)) for more in (("--precision", "w4a8"), ()))
    assert (narrow["precision"], own["precision"]) == ("w4a8", "w8a8")
    first, wide = narrow["layers"][0], own["layers"][0]
    assert (first["weight_bytes"], wide["weight_bytes"]) == (75, 150) and first["input_bytes"] == wide["input_bytes"] == 1024
    assert first["ops_per_byte"] > wide["ops_per_byte"]


def test_own_file(capsys, tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text("name: mine\nnodes:\n  - {op: input, shape: [1, 4, 1, 1]}\n  - {op: linear, name: fc, K: 3}\n")
    data = json.loads(output(capsys, str(path), "--json"))
    assert data["name"] == "mine" and data["totals"]["macs"] == 12 and data["inputs"][0]["shape"] == [1, 4, 1, 1]
    assert "Host operators" not in output(capsys, str(path))


@pytest.mark.parametrize("arguments, message", [
    (["resnet"], "network: not in the zoo, got 'resnet'; allowed: alexnet, alexnet-owt, cnv, "),
    (["vgg61"], "; nearest: vgg16\n"),
    (["none.yaml"], "none.yaml: no such file"),
    (["vgg16", "--precision", "w3a3"], "--precision: not a precision, got 'w3a3'"),
    (["net.onnx"], "WORKLOAD: no such file, got 'net.onnx'")])
def test_wrong_input(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["networks", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert message in captured.err


def test_it_needs_no_heavy_module():
    code = ("import sys; from dse.cli.main import run; run(['networks']); "
            "print([m for m in ('numpy', 'amaranth', 'networkx', 'onnx') if m in sys.modules], file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "[]\n" and "resnet18" in done.stdout
