"""Choice of one design for a network, and its runs."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from boards.loader import load_board
from dse.choose import board_timing
from dse.schedule.search import best_tiling
from dse.simulate_network import choose_network_design, simulate_network
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
    first, second, third = report.runs
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
