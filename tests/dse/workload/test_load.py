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
    assert message(load_workload, "resnet8").endswith("or of a SCALE-Sim .csv; nearest: resnet18")
    assert message(load_workload, "konv").endswith("; nearest: conv")
    assert message(load_workload, "").startswith("WORKLOAD: empty, got ''; allowed: a layer in place (")
    assert message(load_workload, "a.onnx") == "WORKLOAD: no such file, got 'a.onnx'"
    assert message(load_workload, str(tmp_path / "none.yaml")).endswith("none.yaml: no such file")
    assert message(load_whole_network, str(path)) == f"{path}: a single layer, not a network; a network file has nodes"
    assert message(load_whole_network, "resnet").startswith("network: not in the zoo, got 'resnet'; allowed: alexnet, ")
    assert message(load_workload, "scale.cfg").endswith("; a SCALE-Sim configuration belongs to --scalesim-config")
    assert message(load_whole_network, "scale.cfg") == message(load_workload, "scale.cfg")
    path.write_text("kind: conv\nK: 0")
    assert message(load_workload, str(path)) == f"{path}: layer.K: out of range, got 0; allowed: 1 to 65536"


# -- recognised by what is in it ---------------------------------------------------------------------------------------

ZIGZAG = """
- {id: 0, name: g, operator_type: Gemm, equation: "O[b][k]+=I[b][c]*W[c][k]", loop_dims: [B, C, K], loop_sizes: [1, 5, 7],
   operand_precision: {W: 8, I: 4, O: 16, O_final: 4}}
"""
FILES = {
    "g.csv": "Layer, M, N, K,\ng, 1, 7, 5,\n", "zigzag.yaml": ZIGZAG, "g.yaml": "problem: {shape: gemm_ABZ, instance: {M: 1, N: 7, K: 5}}",
    "ours.yaml": "nodes:\n- {op: input, shape: [1, 5, 1, 1]}\n- {op: linear, name: g, K: 7}", "G.CSV": "g,1,7,5"}


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_tools(name, tmp_path):
    path = tmp_path / name
    path.write_text(FILES[name])
    found = load_workload(str(path))
    assert load_whole_network(str(path)) == found and found.array_layers()["g"] == parse_layer("linear K=7 C=5 name=g")
    assert found.precision == ("w8a4" if name == "zigzag.yaml" else "w8a8")
    assert load_workload(str(path), 2, 16).precision == "w2a16"


@pytest.mark.parametrize("text, what", [
    ("node: [1]", "not a workload that is known, got ['node']; allowed: {allowed}; nearest valid key: nodes of a network, for node"),
    ("problems: 1", "not a workload that is known, got ['problems']; allowed: {allowed}; nearest valid key: problem of a Timeloop "
                    "problem, for "
                    "problems"),
    ("- {operator: Conv, eqation: x}", "not a workload that is known, got ['operator', 'eqation']; allowed: {allowed}; nearest valid key: "
                                       "operator_type of a ZigZag layer, for operator"),
    ("- 1", "not a workload that is known, got [1]; allowed: {allowed}"), ("[]", "not a workload that is known, got []; allowed: "
                                                                                 "{allowed}"),
    ("three", "not a workload that is known, got 'three'; allowed: {allowed}"),
    ("{x: 1}", "not a workload that is known, got ['x']; allowed: {allowed}"),
    ("- {name: default, spatial_mapping: {}}", "a ZigZag mapping, not a workload, got ['name', 'spatial_mapping']; allowed: {allowed}"),
    ("{name: x, memories: {}, operational_array: {}}", "a ZigZag accelerator, not a workload, got ['name', 'memories', "
                                                       "'operational_array']; "
                                                       "allowed: {allowed}"),
    ("rows: 4", "a design or a space (--design, --space), not a workload, got ['rows']; allowed: {allowed}"),
    ("a: &x 1", "anchors and aliases (& and *) are not allowed; write the value out")])
def test_files_that_are_no_workload(text, what, tmp_path):
    path = tmp_path / "w.yaml"
    path.write_text(text)
    line = ":1" if "&" in text else ""
    assert message(load_workload, str(path)) == f"{path}{line}: " + what.format(
        allowed="a layer (kind, K, C, ..), a network (nodes), a ZigZag workload (a list with operator_type, equation, ..), a Timeloop "
                "problem "
                "(problem)")
