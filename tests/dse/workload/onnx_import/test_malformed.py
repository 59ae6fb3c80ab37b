"""Damaged models: read or refused with one message. `python benchmarks/fuzz_onnx.py N` tries more of them."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

from boards.errors import InputError
from dse.workload.onnx_import.importer import import_onnx
from tests.dse.workload.onnx_import.models import message, model, node, save, value, zeros

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "fuzz_onnx.py"
spec = importlib.util.spec_from_file_location("fuzz_onnx", SCRIPT)
fuzz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz)
ORIGINALS = fuzz.models()


def test_the_originals_are_whole(tmp_path):
    """Else nothing would be damaged."""
    for original in ORIGINALS:
        assert fuzz.attempt(original.SerializeToString(), tmp_path / "m.onnx") == "read"


@given(st.integers(0, 1 << 40))
@settings(max_examples=150)
def test_damaged_models(tmp_path_factory, seed):
    path = tmp_path_factory.getbasetemp() / "damaged.onnx"
    assert fuzz.attempt(fuzz.damaged(seed, ORIGINALS), path) in ("read", "refused")


def test_a_campaign_counts_what_it_finds(tmp_path, monkeypatch):
    """In this process: what a child would report."""

    class Queue:
        def __init__(self):
            self.entries = []

        def put(self, entry):
            self.entries.append(entry)

    def attempt(data, path):
        if len(queue.entries) > 4:
            raise KeyError("found")
        return "read"

    queue = Queue()
    monkeypatch.setattr(fuzz, "attempt", attempt)
    fuzz.run_chunk(range(3), queue)
    assert queue.entries == [
        ("begin", 0),
        ("read", 0),
        ("begin", 1),
        ("read", 1),
        ("begin", 2),
        ("failed: KeyError: 'found'", 2),
        ("end", 0),
    ]


def test_damage_is_reproducible_and_real():
    found = [fuzz.damaged(seed, ORIGINALS) for seed in range(40)]
    assert found == [fuzz.damaged(seed, ORIGINALS) for seed in range(40)]
    whole = {original.SerializeToString() for original in ORIGINALS}
    assert sum(data in whole for data in found) < 8
    assert isinstance(fuzz.damaged_model(ORIGINALS[0], random.Random(1)), ModelProto)


# -- one of each kind, with its message ---------------------------------------------------------------------------------


def nested(depth: int):
    graph = helper.make_graph([node("Relu", "x", "t")], "g", [], [value("t", None)])
    for _ in range(depth):
        graph = helper.make_graph([node("If", "f", "t", then_branch=graph, else_branch=graph)], "g", [], [value("t", None)])
    return graph


X = [value("x", (1, 3, 8, 8)), value("f", (), 9)]


@pytest.mark.parametrize(
    ("nodes", "constants", "wrong"),
    [
        (
            [node("Conv", "x w", "y", "c")],
            {"w": TensorProto(name="w", data_type=1, dims=[-4, 3, 3, 3])},
            "w: impossible sizes of a tensor, got (-4, 3, 3, 3)",
        ),
        (
            [node("Conv", "x w", "y", "c")],
            {"w": TensorProto(name="w", data_type=1, dims=[1 << 31, 1 << 31, 1, 1])},
            "w: impossible sizes of a tensor",
        ),
        ([node("Conv", "x w", "y", "c", pads=[1 << 60, 0, 0, 0])], {"w": zeros(4, 3, 3, 3)}, "c.pads: out of range"),
        (
            [node("Conv", "x w", "y", "c", strides=[0, 0])],
            {"w": zeros(4, 3, 3, 3)},
            "c.strides: out of range, got [0, 0]; allowed: from 1 on",
        ),
        ([node("Conv", "y w", "y", "c")], {"w": zeros(4, 3, 3, 3)}, "operators that wait for each other, got 'c -> c'"),
    ],
)
def test_kinds_of_damage(nodes, constants, wrong, tmp_path):
    path = save(tmp_path, model(nodes, X, ["y"], constants))
    assert message(import_onnx, path).startswith(f"{path}: {wrong}")


def test_the_largest_layers_are_counted_without_being_made(tmp_path):
    """A tensor of 2 GiB that no byte stands for."""
    weights = TensorProto(name="w", data_type=1, dims=[1 << 15, 1 << 14])
    path = save(tmp_path, model([node("MatMul", "x w", "y", "m")], [value("x", (1, 1, 1 << 15))], ["y"], {"w": weights}))
    found = import_onnx(path)
    assert found.network.weights == 1 << 29
    assert message(found.building.constants.value, "w").startswith(f"{path}: w: a damaged tensor: ")


@pytest.mark.parametrize("depth", [5, 8])
def test_deep_control_flow(depth, tmp_path):
    """Two branches at each level: twice as many graphs, which are named twice."""
    graph = nested(depth)
    path = save(
        tmp_path,
        model(
            [node("Conv", "x w", "y", "c"), node("If", "f", "z", "if", then_branch=graph, else_branch=graph)],
            X,
            ["y", "z"],
            {"w": zeros(4, 3, 3, 3)},
        ),
    )
    try:
        assert import_onnx(path).network.macs == 36 * 108
    except InputError as error:
        assert "\n" not in str(error)
