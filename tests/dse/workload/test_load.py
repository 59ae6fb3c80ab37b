"""WORKLOAD arguments of every kind."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.workload.grammar import parse_layer
from dse.workload.layer_file import dump_layer
from dse.workload.load import load_whole_network, load_workload
from dse.workload.network_file import dump_network
from dse.workload.zoo import load_network

LAYER = "conv K=2 C=3 OY=4 OX=5 FY=1 FX=1 name=one"


def message(call, *arguments) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments)
    return str(caught.value)


def test_zoo_files_and_in_place(tmp_path):
    layer, network = parse_layer(LAYER), load_network("digits-cnn")
    (tmp_path / "layer.yaml").write_text(dump_layer(layer))
    (tmp_path / "net.yml").write_text(dump_network(network))
    assert load_workload(LAYER) == load_workload(str(tmp_path / "layer.yaml")) == layer
    assert load_workload(" digits-cnn ") == load_workload(str(tmp_path / "net.yml")) == network
    assert load_whole_network("digits-cnn") == load_whole_network(str(tmp_path / "net.yml")) == network
    assert load_workload("digits-cnn", 4, 2) == load_whole_network(str(tmp_path / "net.yml"), 4, 2) == load_network("digits-cnn", 4, 2)


def test_wrong_workloads(tmp_path):
    path = tmp_path / "layer.yaml"
    path.write_text(dump_layer(parse_layer(LAYER)))
    assert message(load_workload, "resnet8").endswith("or the path of an .onnx or a layer or network .yaml; nearest: resnet18")
    assert message(load_workload, "konv").endswith("; nearest: conv")
    assert message(load_workload, "").startswith("WORKLOAD: empty, got ''; allowed: a layer in place (")
    assert message(load_workload, "a.onnx") == "WORKLOAD: no such file, got 'a.onnx'"
    assert message(load_workload, str(tmp_path / "none.yaml")).endswith("none.yaml: no such file")
    assert message(load_whole_network, str(path)) == f"{path}: a single layer, not a network; a network file has nodes"
    assert message(load_whole_network, "resnet").startswith("network: not in the zoo, got 'resnet'; allowed: alexnet, ")
    path.write_text("kind: conv\nK: 0")
    assert message(load_workload, str(path)) == f"{path}: layer.K: out of range, got 0; allowed: 1 to 65536"
