"""Choice of one design for a network, and its runs."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from boards.loader import load_board
from dse.choose import board_timing
from dse.schedule.search import best_tiling
from dse.simulate_network import ChainOfLayers, choose_network_design, simulate_network
from dse.workload.builder import NetworkBuilder
from dse.workload.network import Network
from hdl.design import Design

BOARD = load_board("papilio-pro")


@pytest.fixture(scope="module")
def network() -> Network:
    """Two products and one that is repeated."""
    b = NetworkBuilder("net")
    x = b.conv(b.input((1, 2, 4, 4)), "first", K=4, F=3, P=1)
    x = b.max_pool(b.relu(x), F=4, S=4)
    x = b.linear(b.flatten(x), "second", K=6)
    state = b.input((1, 6, 1, 1), "state", is_state=True)
    y = b.linear(state, "third", K=4, repeat=3)
    b.host("gates", x, y, shape=(1, 4, 1, 1), ops=1)
    return b.build()


def test_the_design_runs_every_layer(network):
    design = choose_network_design(network, BOARD)
    assert design.precision == "w8a8"
    for layer in network.array_layers().values():
        assert best_tiling(design, layer, board_timing(BOARD, design)).prediction.cycles > 0


def test_fixed_options_stay(network):
    design = choose_network_design(network, BOARD, weight_bits=8, activation_bits=16, options={"rows": 2, "cols": 2, "lanes": 1})
    assert (design.rows, design.cols, design.lanes, design.precision) == (2, 2, 1, "w8a16")


def test_operands_too_wide(network):
    with pytest.raises(InputError) as caught:
        choose_network_design(network, BOARD, weight_bits=4, activation_bits=8)
    assert str(caught.value) == "--precision: no layer of net has so narrow operands, got 'w4a8'; allowed: at least w8a8"


def test_repeats_count_in_totals(network):
    design = Design(rows=2, cols=2, input_bytes=2048, output_bytes=1024, accumulator_bits=24)
    heard: list[str] = []
    report = simulate_network(network, BOARD, design, engine="amaranth", started=heard.append)
    first, second, third = report.single
    assert report.chains == ()
    assert first.report and second.report and third.report and report.matches
    assert third.cycles == 3 * third.report.cycles and third.note == "3 times"
    totals = report.totals()
    assert totals["cycles"] == first.report.cycles + second.report.cycles + 3 * third.report.cycles == totals["predicted_cycles"]
    assert totals["macs"] == network.macs == 4 * 18 * 16 + 6 * 4 + 3 * 24
    assert totals["bytes_read"] == 4 // 2 * sum(
        run.report.result.beats_read * run.operator.repeat for run in report.runs if run.report)
    assert heard == ["mapping first (1 of 3)", "mapping second (2 of 3)", "mapping third (3 of 3)"]


def test_a_design_that_runs_nothing(network):
    design = Design(rows=2, cols=2, weight_bits=1, activation_bits=1, accumulator_bits=12, multiplier="lut")
    with pytest.raises(InputError) as caught:
        simulate_network(network, BOARD, design)
    assert str(caught.value) == "--design: no layer of net runs on the design; the first: w8a8 operands, the array has w1a1"


# -- chains -----------------------------------------------------------------------------------------------------------

CHAINING = Design(rows=2, cols=2, input_bytes=2048, output_bytes=1024, accumulator_bits=24, chaining=True)


@pytest.fixture(scope="module")
def line() -> Network:
    """Three layers that follow each other, and one behind a pooling."""
    b = NetworkBuilder("line")
    x = b.relu(b.conv(b.input((1, 2, 3, 3)), "first", K=4, F=1))
    x = b.relu(b.conv(x, "second", K=3, F=1))
    x = b.max_pool(b.relu(b.conv(x, "third", K=4, F=1)), F=3, S=3)
    b.linear(b.flatten(x), "last", K=3)
    return b.build()


def test_tensors_that_fit_stay_on_chip(line):
    report = simulate_network(line, BOARD, CHAINING, engine="amaranth")
    chain, last = report.runs
    assert isinstance(chain, ChainOfLayers) and report.matches
    assert chain.report.name == "first+second+third" and last.operator.name == "last"
    timing, layers = board_timing(BOARD, CHAINING), list(line.array_layers().values())
    one_by_one = sum(best_tiling(CHAINING, layer, timing).bytes for layer in layers[:3])
    assert chain.report.saved_bytes == one_by_one - chain.report.bytes >= 2 * 9 * (4 + 4)
    totals = report.totals()
    assert (totals["chains"], totals["kept_tensors"], totals["simulated"], totals["layers"]) == (1, 2, 4, 4)
    assert totals["cycles"] == totals["predicted_cycles"] == chain.cycles + last.cycles
    assert totals["saved_bytes"] == chain.report.saved_bytes and totals["saved_cycles"] == chain.report.saved_cycles
    assert totals["macs"] == line.macs
    data = report.to_dict()
    assert [layer["name"] for layer in data["layers"]] == ["first", "second", "third", "last"]
    assert [layer.get("chain") for layer in data["layers"]] == ["first+second+third"] * 3 + [None]
    assert sum(layer["predicted_cycles"] for layer in data["layers"]) == totals["cycles"]
    (found,) = data["chains"]
    assert found["cycles"] == found["predicted_cycles"] == chain.cycles and found["saved_bytes"] == chain.report.saved_bytes
    assert found["bytes_written"] == found["predicted_bytes_written"] == 9 * 4 and found["bit_exact"] is True


def test_a_design_for_chains_has_room_for_tensors():
    b = NetworkBuilder("wide")
    x = b.relu(b.conv(b.input((1, 4, 24, 24)), "first", K=8, F=1))
    b.conv(x, "second", K=4, F=1)
    network, options = b.build(), {"rows": 4, "cols": 4, "lanes": 1}
    plain = choose_network_design(network, BOARD, options=options)
    chaining = choose_network_design(network, BOARD, options={**options, "chaining": True})
    assert (plain.chaining, chaining.chaining) == (False, True)
    assert chaining.input_bytes >= 24 * 24 * 8 > plain.input_bytes
    small = choose_network_design(network, BOARD, options={**options, "chaining": True, "input_bytes": 4096})
    assert small.input_bytes == 4096
