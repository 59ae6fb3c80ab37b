"""The layers of one design point add up to it."""

from __future__ import annotations

import pytest

from boards.errors import InputError
from dse.schedule.explore import Objective
from dse.sweep.evaluate import evaluate_family
from dse.sweep.layers import layer_table
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.layer import Layer
from tests.dse.sweep.test_evaluate import BOARD, WORKLOAD, one_design


@pytest.mark.parametrize("objective", list(Objective))
def test_layer_table_adds_up(objective):
    family = one_design(psum_bytes=2048)
    row = evaluate_family(family, WORKLOAD, BOARD, None, objective).to_pylist()[0]
    layers = layer_table(family.design, WORKLOAD, BOARD, objective)
    assert [(layer["name"], layer["repeat"]) for layer in layers] == [("conv", 3), ("fc", 1), ("again", 1)]
    for name in ("cycles", "external_bytes", "macs", "compute_bound_cycles", "memory_bound_cycles", "drain_bound_cycles"):
        assert sum(layer[name] for layer in layers) == row[name]
    assert sum(layer["time_share"] for layer in layers) == pytest.approx(1)
    for layer in layers:  # at the bandwidth named, memory takes exactly as long as the array and its drains
        array = max(layer["compute_bound_cycles"], layer["drain_bound_cycles"])
        assert 0 <= layer["memory_stall_cycles"] < layer["cycles"] and not layer["output_stays"]
        assert layer["external_bytes"] / layer["compute_bound_mb_s"] == pytest.approx(array / 100)


def test_layer_table_of_what_does_not_fit():
    wide = Workload("w", (("fc", Layer.linear(K=1, C=9000), 1),))
    with pytest.raises(InputError, match="^layer: layer fc: no tile fits the weight banks"):
        layer_table(Design(rows=1, cols=1, accumulator_bits=32, weight_bytes=1024), wide, BOARD)
