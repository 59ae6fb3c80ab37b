"""Nodes that are not as ONNX defines their operators, before inference sees them."""

from __future__ import annotations

import pytest
from onnx import helper

from dse.workload.onnx_import.schema import check_nodes
from tests.dse.workload.onnx_import.models import message, node, value

WRONG = node("Gemm", "", "y", "fc")


@pytest.mark.parametrize(("entry", "wrong"), [
    (WRONG, "m: fc: Gemm with another number of inputs, got 0; allowed: 2 to 3"),
    (node("Relu", "a b", "y"), "m: y: Relu with another number of inputs, got 2; allowed: 1"),
    (node("Concat", "", "y", axis=0), "m: y: Concat with another number of inputs, got 0; allowed: at least 1"),
    (node("Conv", "x w", "y z"), "m: y: Conv with another number of outputs, got 2; allowed: 1"),
    (node("Conv", "x w", ""), "m: Conv: Conv with another number of outputs, got 0; allowed: 1"),
    (node("Concat", "a b", "y"), "m: y.axis: Concat needs it"),
    (node("MaxPool", "x", "y", "p"), "m: p.kernel_shape: MaxPool needs it")])
def test_wrong_nodes(entry, wrong):
    assert message(check_nodes, [entry], {"": 17}, "m") == wrong
    inner = helper.make_graph([entry], "g", [], [value("y", None)])
    branch = node("If", "f", "o", then_branch=inner, else_branch=helper.make_graph([], "h", [], [value("y", None)]))
    assert message(check_nodes, [branch], {"": 17}, "m") == wrong


def test_versions_count():
    """Axes of Squeeze were an attribute before opset 13; the average of a pool has had more inputs at no time."""
    squeeze = node("Squeeze", "x axes", "y")
    check_nodes([squeeze], {"": 13}, "m")
    assert message(check_nodes, [squeeze], {"": 11}, "m") == "m: y: Squeeze with another number of inputs, got 2; allowed: 1"


def test_operators_of_others_are_not_looked_at():
    check_nodes([node("Gemm", "", "y", domain="somebody"), node("NewThing", "", "y")], {"": 17}, "m")
    ours = node("Gemm", "", "y", "fc", domain="ai.onnx")
    assert message(check_nodes, [ours], {"ai.onnx": 17}, "m").startswith("m: fc: Gemm with another")
