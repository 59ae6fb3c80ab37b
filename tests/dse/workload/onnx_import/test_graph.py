"""Order, names and edges of a model's graph; attributes of its nodes."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from dse.workload.onnx_import import graph as graphs
from dse.workload.onnx_import.graph import Node, read_graph
from dse.workload.onnx_import.reading import read_model
from dse.workload.operators import check_name
from tests.dse.workload.onnx_import.models import message, model, node, save, value, zeros

X, W = [value("x", (1, 3, 8, 8))], {"w": zeros(3, 3, 1, 1)}


def graph_of(tmp_path, nodes, outputs=("y",), **options):
    return read_graph(read_model(save(tmp_path, model(nodes, X, outputs, W, **options))))


def test_order_is_repaired_and_cycles_are_named(tmp_path):
    found = graph_of(tmp_path, [node("Relu", "a", "y", "second"), node("Conv", "x w", "a", "first")])
    assert [node.label for node in found.nodes] == ["first", "second"]
    circle = [node("Conv", "c w", "a", "one"), node("Relu", "a", "b", "two"), node("Relu", "b", "c", "three"), node("Relu", "c", "y")]
    text = message(graph_of, tmp_path, circle)
    assert "operators that wait for each other, got '" in text
    assert text.split("'")[1].split(" -> ")[0] == text.split("'")[1].split(" -> ")[-1]
    assert set(text.split("'")[1].split(" -> ")) == {"one", "two", "three"}
    assert "operators that wait for each other, got 'self -> self'" in message(graph_of, tmp_path, [node("Add", "x y", "y", "self")])


def test_edges(tmp_path):
    path = str(tmp_path / "model.onnx")
    assert message(graph_of, tmp_path, [node("Conv", "x W1", "y")]) == f"{path}: Conv_0.input: no such tensor, got 'W1'; allowed: w, x, y"
    assert message(graph_of, tmp_path, [node("Relu", "x", "y")], ["z"]) == f"{path}: output: no such tensor, got 'z'; allowed: w, x, y"
    twice = [node("Relu", "x", "y"), node("Relu", "x", "y")]
    assert message(graph_of, tmp_path, twice) == f"{path}: Relu_1.output: a tensor that exists already, got 'y'"
    assert "Relu_0.output: a tensor that exists already, got 'x'" in message(graph_of, tmp_path, [node("Relu", "w", "x")])
    found = graph_of(tmp_path, [node("Relu", "x", "y"), node("Neg", "y", "z")], ["y", "z"])
    assert (found.reader_count("y"), found.reader_count("z"), found.reader_count("x")) == (2, 1, 1)


def test_values_that_the_model_brings_are_no_inputs(tmp_path):
    proto = model([node("Conv", "x w", "y")], [*X, value("w", (3, 3, 1, 1))], ["y"], W, ir_version=3)
    assert list(read_graph(read_model(save(tmp_path, proto))).inputs) == ["x"]


def test_control_flow_reads_outer_tensors(tmp_path):
    branch = helper.make_graph([node("Conv", "a w", "inner")], "g", [], [value("inner", None)])
    found = graph_of(tmp_path, [node("Relu", "x", "a", "outer"), node("If", "x", "y", "if", then_branch=branch, else_branch=branch)])
    assert found.captured[found.nodes[1]] == ("a", "w")
    assert found.readers["a"] == [found.nodes[1]]


def test_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(graphs, "MAX_NODES", 1)
    assert message(graph_of, tmp_path, [node("Relu", "x", "a"), node("Relu", "a", "y")]).endswith(
        "too many operators, got 2; allowed: at most 1")


def test_sparse_weights(tmp_path):
    proto = model([node("Conv", "x w", "y")], X, ["y"], W)
    proto.graph.sparse_initializer.add().values.name = "s"
    assert message(read_graph, read_model(save(tmp_path, proto))).endswith("sparse weights, got 's'; make them dense")


def test_labels(tmp_path):
    names = ["", "a b ", "dup", "dup", "Relu_0", "Ü" * 500]
    nodes = [node("Relu", "x", f"y{at}", name) for at, name in enumerate(names)]
    found = [entry.label for entry in graph_of(tmp_path, nodes, ["y0"]).nodes]
    assert len(set(found)) == len(names)
    assert found[1] == "a_b_" and found[4] == "Relu_0" and found[0].startswith("Relu_0_")
    assert {found[2], found[3]} == {"dup", "dup_3"}
    for label in found:
        check_name(label)


# -- attributes -------------------------------------------------------------------------------------------------------


def with_attributes(**attributes) -> Node:
    return Node(node("Conv", "x w", "y", **attributes), "c", "m: c")


def test_attributes_are_checked():
    given = with_attributes(group=2, pads=[1, 2], alpha=0.5, auto_pad="VALID", many=[1.0, 2.0])
    assert (given.whole("group", 1), given.number("alpha", 1.0), given.text("auto_pad", "")) == (2, 0.5, "VALID")
    assert given.wholes("pads", 2, None, 0) == [1, 2] and given.wholes("strides", 2, [1, 1], 1) == [1, 1]
    assert given.numbers("many") == [1.0, 2.0] and given.open_list("pads") == [1, 2] and given.numbers("none") is None
    assert message(given.whole, "group", 1, 3) == "m: c.group: out of range, got 2; allowed: 3 to 1099511627776"
    assert message(given.wholes, "pads", 4, None, 0) == "m: c.pads: must have 4 values, got [1, 2]"
    assert message(given.wholes, "pads", 2, None, 2) == "m: c.pads: out of range, got [1, 2]; allowed: from 2 on"
    assert message(given.whole, "alpha", 1) == "m: c.alpha: must be a whole number, got 'FLOAT'"
    assert message(given.text, "group", "") == "m: c.group: must be text, got 'INT'"
    assert message(given.number, "group", 0.0) == "m: c.group: must be a number, got 'INT'"
    assert message(given.wholes, "group", 1, None, 0) == "m: c.group: must be a list of whole numbers, got 'INT'"
    assert message(given.needed, 5, "the scale") == "m: c: Conv without its input 5, the scale"


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_names_of_operators(domain):
    assert Node(onnx.NodeProto(op_type="Conv", domain=domain), "", "").op == "Conv"
    assert Node(onnx.NodeProto(op_type="Conv", domain="com.microsoft"), "", "").op == "com.microsoft.Conv"
