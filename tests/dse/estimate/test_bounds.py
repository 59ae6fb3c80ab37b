"""Communication bounds: never above what a run moves."""

from __future__ import annotations

from dse.estimate.bounds import asymptotic_bound_bytes, communication_lower_bound_bytes, compulsory_bytes, real_macs, used_inputs
from dse.fidelity.points import random_points
from dse.schedule.compiler import compile_program
from dse.schedule.predict import predict
from dse.schedule.tiling import TilePlan
from hdl.design import Design
from hdl.layer import Layer


def test_lower_bound_is_never_above_the_traffic() -> None:
    for point in random_points(7, 25, 8):
        plan = TilePlan(point.design, point.layer, point.tiling)
        prediction = predict(plan, compile_program(plan), point.timing)
        moved = (prediction.beats_read + prediction.beats_written) * point.design.bus_bits // 8
        bound = communication_lower_bound_bytes(point.design, point.layer)
        assert compulsory_bytes(point.design, point.layer) <= bound <= moved, point


def test_compulsory_bytes_of_the_reference_layer() -> None:
    """331,776 weights, 13*13*192 inputs and outputs (area.md: 32,448 activations)."""
    layer = Layer.conv(K=192, C=192, OY=13, OX=13, FY=3, FX=3, P=1)
    assert compulsory_bytes(Design(rows=4, cols=4), layer) == 331_776 + 2 * 32_448


def test_only_inputs_that_a_tap_reads_are_compulsory() -> None:
    assert used_inputs(Layer.conv(K=1, C=1, IY=7, IX=7, FY=1, FX=1, S=2)) == 16
    assert used_inputs(Layer.conv(K=1, C=1, IY=7, IX=7, FY=3, FX=3, S=2)) == 49


def test_real_macs_leave_out_padding() -> None:
    assert real_macs(Layer.conv(K=1, C=1, OY=3, OX=3, FY=3, FX=3, P=1)) == 7 * 7


def test_bound_grows_when_the_banks_shrink() -> None:
    layer = Layer.conv(K=2048, C=2048, OY=28, OX=28, FY=1, FX=1)
    small, large = (communication_lower_bound_bytes(Design(rows=4, cols=4, input_bytes=size, weight_bytes=size), layer)
                    for size in (4096, 1 << 18))
    assert small > large >= compulsory_bytes(Design(rows=4, cols=4), layer)
    assert asymptotic_bound_bytes(Design(rows=4, cols=4), layer) > 0
