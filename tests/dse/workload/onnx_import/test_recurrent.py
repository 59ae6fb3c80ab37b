"""LSTM, GRU and RNN as matrix products, counted by hand."""

from __future__ import annotations

import pytest

from tests.dse.workload.onnx_import.models import imported, message, node, value, zeros

STEPS, BATCH, INPUTS, UNITS = 7, 2, 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def network_of(tmp_path, op, *, directions=1, dynamic=False, size=(STEPS, BATCH, INPUTS), outputs="y", extra="", gates=None, **attributes):
    gates = gates or GATES[op]
    weights = {"w": (directions, gates * UNITS, INPUTS), "r": (directions, gates * UNITS, UNITS)}
    constants = {} if dynamic else {name: zeros(*shape) for name, shape in weights.items()}
    constants |= {"b": zeros(directions, 2 * gates * UNITS), "lengths": zeros(BATCH).astype("int32"), "p": zeros(directions, 3 * UNITS)}
    inputs = [value("x", size), *(value(name, shape) for name, shape in weights.items() if dynamic)]
    return imported(
        tmp_path, [node(op, f"x w r {extra}", outputs, "cell", hidden_size=UNITS, **attributes)], inputs, outputs.split()[-1:], constants
    )


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize(("way", "directions"), [("forward", 1), ("reverse", 1), ("bidirectional", 2)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_macs_and_weights(op, way, directions, dynamic, tmp_path):
    network = network_of(tmp_path, op, directions=directions, direction=way, dynamic=dynamic).network
    gates = GATES[op]
    assert network.macs == directions * STEPS * BATCH * gates * UNITS * (INPUTS + UNITS)
    assert network.weights == directions * gates * UNITS * (INPUTS + UNITS)
    assert network.parameters == (0 if dynamic else network.weights)
    gate = network.operator("cell")
    assert gate.op == f"{op.lower()}_gates" and gate.output.shape == (STEPS, directions, BATCH, UNITS)


def test_products_of_an_lstm(tmp_path):
    network = network_of(tmp_path, "LSTM", extra="b").network
    first, second = network.array_operators
    assert (first.name, first.layer.B, first.layer.C, first.layer.K, first.repeat) == ("cell.input", 14, INPUTS, 20, 1)
    assert (second.name, second.layer.B, second.layer.C, second.layer.K, second.repeat) == ("cell.recurrent", BATCH, UNITS, 20, STEPS)
    assert first.bias and second.bias and network.operator("cell.state").is_state


@pytest.mark.parametrize(
    ("before", "names"), [(1, ["cell.input", "cell.recurrent"]), (0, ["cell.input", "cell.recurrent", "cell.candidate"])]
)
def test_where_the_reset_gate_of_a_gru_acts(before, names, tmp_path):
    network = network_of(tmp_path, "GRU", linear_before_reset=before).network
    assert list(network.array_layers()) == names
    assert sum(node.layer.K for node in network.array_operators[1:]) == 3 * UNITS


def test_layout_with_the_batch_first(tmp_path):
    network = network_of(tmp_path, "RNN", size=(BATCH, STEPS, INPUTS), layout=1).network
    assert [node.repeat for node in network.array_operators] == [1, STEPS]


def test_last_state_is_a_part_of_all(tmp_path):
    network = network_of(tmp_path, "LSTM", outputs="y last cell_state").network
    parts = [host for host in network.host_operators() if host.op == "slice"]
    assert [(part.output.shape, part.bytes_read) for part in parts] == [((1, BATCH, UNITS), 10)] * 2


def test_lengths_and_peepholes(tmp_path):
    found = network_of(tmp_path, "LSTM", extra="b lengths _ _ p")
    assert found.notes == ("cell: sequence_lens is not looked at: every step of every sequence counts",)
    assert found.network.operator("cell").ops == 36 * STEPS * BATCH * UNITS


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"direction": "both"}, "cell.direction: not a direction, got 'both'; allowed: forward, reverse, bidirectional"),
        ({"size": (STEPS, INPUTS)}, "cell: its input must have three sizes, got (7, 3)"),
        ({"gates": 3}, "cell: weights of another size, got (1, 15, 3); allowed: (1, 20, 3)"),
        ({"directions": 2}, "cell: weights of another size, got (2, 20, 3); allowed: (1, 20, 3)"),
    ],
)
def test_what_is_wrong_is_named(options, wrong, tmp_path):
    assert message(network_of, tmp_path, "LSTM", **options) == f"{tmp_path / 'model.onnx'}: {wrong}"


def test_more_steps_than_the_array_counts(tmp_path):
    text = message(network_of, tmp_path, "RNN", size=(4099 * 4096, 1, INPUTS))
    assert text.endswith("cell: 16789504 steps, the array counts to 4095 in two axes")
