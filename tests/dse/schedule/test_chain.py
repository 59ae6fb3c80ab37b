"""Chains: what is refused, and that hardware, prediction and NumPy agree on what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dse.fidelity.chains import ChainPoint, chain_tensors, check_chain_point
from dse.schedule.chain import check_chain, pack_chain, place_chain, predict_chain, why_not_kept
from dse.schedule.tiling import IllegalTiling, Order, TilePlan, Tiling
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import output_beats
from sim.memory import MemoryTiming

TIMING = MemoryTiming(12, 14, 25)
W8A8 = Design(rows=4, cols=4, accumulator_bits=24, chaining=True)
W4A4 = Design(rows=3, cols=4, lanes=2, weight_bits=4, activation_bits=4, accumulator_bits=20, multiplier="lut", bus_bits=64,
              psum_bytes=2048, chaining=True, output_multiplier="lut")


def tiled(ty: int, tx: int, tk: int, tc: int = 1, **options: Any) -> Tiling:
    return Tiling(ts=1, tk=tk, tc=tc, ty=ty, tx=tx, **options)


FIRST = Layer.conv(name="first", K=8, C=3, OY=6, OX=5, FY=3, FX=3, P=1, output_zero_point=-3)
POINT = Layer.conv(name="point", K=8, C=8, OY=6, OX=5, FY=1, FX=1, input_zero_point=-3, output_zero_point=2)
NEXT = Layer.conv(name="next", K=7, C=8, OY=6, OX=5, FY=3, FX=3, P=1, input_zero_point=-3, output_zero_point=2)
SMALLER = Layer.conv(name="smaller", K=6, C=7, IY=6, IX=5, FY=3, FX=2, S=2, PT=1, PL=1, input_zero_point=2)
LAST = Layer.conv(name="last", K=5, C=8, IY=6, IX=5, FY=3, FX=3, P=1, S=2, input_zero_point=2)
WIDE = Layer.conv(name="wide", K=16, C=3, OY=6, OX=5, FY=3, FX=3, P=1, output_zero_point=-3)
FEW = Layer.conv(name="few", K=6, C=16, IY=6, IX=5, FY=3, FX=3, S=2, PT=1, input_zero_point=-3, lo=0)
CHAINS = {
    "two, a tile each": (W8A8, (FIRST, NEXT), (tiled(6, 5, 8), tiled(6, 5, 7, 2))),
    "tiled producer, weight tiles in the consumer": (W8A8, (FIRST, NEXT), (tiled(2, 3, 4), tiled(6, 5, 2, 2))),
    "pixel tiles of one kept input": (W8A8, (FIRST, NEXT), (tiled(4, 5, 4), tiled(2, 2, 4, 2, order=Order.PIXELS_OUTER))),
    "conv, 1x1, conv with stride and padding": (W8A8, (FIRST, POINT, LAST), (tiled(2, 5, 8), tiled(3, 5, 4, 2), tiled(3, 3, 2, 2))),
    "words that end inside": (W8A8, (FIRST, NEXT, SMALLER), (tiled(3, 5, 8), tiled(6, 5, 4, 2), tiled(3, 3, 6, 2))),
    "two lanes": (W8A8.with_(lanes=2), (FIRST, NEXT, SMALLER), (tiled(3, 2, 4), tiled(6, 5, 7, 2), tiled(3, 3, 4, 2))),
    "two lanes, pixel tiles": (W8A8.with_(lanes=2), (FIRST, NEXT), (tiled(3, 2, 4), tiled(3, 2, 7, 2))),
    "4 bits, 64-bit beats": (W4A4, (WIDE, FEW), (tiled(4, 5, 16), tiled(3, 2, 6, 4))),
    "4 bits, channel tiles": (W4A4, (WIDE, FEW), (tiled(2, 2, 16), tiled(3, 2, 6, 4))),
}


def point(name: str, timing: MemoryTiming = TIMING) -> ChainPoint:
    return ChainPoint(*CHAINS[name], timing, seed=3)


@pytest.mark.parametrize("name", CHAINS)
def test_prediction_equals_simulation_and_bits_equal_numpy(name: str) -> None:
    for timing in (TIMING, MemoryTiming(8, 1, 1)):
        outcome = check_chain_point(point(name, timing))
        assert outcome.mismatches == ()
        assert outcome.result.cycles < 50_000
        # Nothing but the last output is written.
        layer = outcome.run.layers[-1]
        assert outcome.result.beats_written == layer.OY * layer.OX * output_beats(outcome.run.design, layer.K)


def test_on_amaranths_simulator_too() -> None:
    layers = (Layer.conv(name="a", K=6, C=4, OY=3, OX=3, FY=1, FX=1), Layer.conv(name="b", K=3, C=6, OY=3, OX=3, FY=3, FX=3, P=1))
    small = ChainPoint(W8A8, layers, (tiled(2, 3, 6), tiled(2, 3, 3, 2)), MemoryTiming(8, 1, 1), seed=2)
    outcome = check_chain_point(small, engine="amaranth")
    assert outcome.mismatches == () and outcome.result.engine == "amaranth"
    assert check_chain_point(small).result.cycles == outcome.result.cycles


def test_random_stalls_change_cycles_but_no_bit() -> None:
    outcome = check_chain_point(point("two lanes"), stall_seed=5)
    assert outcome.mismatches == ()
    assert outcome.result.cycles > outcome.prediction.cycles


def test_inputs_of_neighbours_lie_at_opposite_ends() -> None:
    run = place_chain(*CHAINS["conv, 1x1, conv with stride and padding"])
    depth, (first, point, last) = W8A8.bank_depth("input"), run.plans
    assert first.input_entry is None and last.input_entry == 0
    assert point.input_entry == depth - point.input_slot == depth - 6 * 5 * 2
    assert [frame and frame.entry for frame in (first.output_frame, point.output_frame, last.output_frame)] == [depth - 60, 0, None]


def test_what_stays_on_chip_has_no_place_in_memory() -> None:
    run = place_chain(*CHAINS["two, a tile each"])
    first, second = (program.memory for program in run.programs)
    assert first.output.beats == second.input.beats == 0
    assert first.beats == second.program.address and second.output.beats == 6 * 5 * 4
    tensors = chain_tensors(W8A8, (FIRST, NEXT), 3)
    image = pack_chain(run, tensors)
    assert len(image) == second.beats * 2
    tensors[1] = replace(tensors[1], input=np.zeros(0, np.int64))
    assert (pack_chain(run, tensors) == image).all()


def test_a_chain_of_one_layer_is_that_layer() -> None:
    run = place_chain(W8A8, [FIRST], [tiled(2, 5, 4)])
    assert run.plans[0].needs() == TilePlan(W8A8, FIRST, tiled(2, 5, 4)).needs()
    prediction = predict_chain(run, TIMING)
    assert [layer.cycles for layer in prediction.layers] == [prediction.cycles]


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("second", "message"), [
    (Layer.conv(name="next", K=7, C=9, OY=6, OX=5, FY=3, FX=3, P=1, input_zero_point=-3),
     "layers[1].C: next does not read what first writes, got 9; allowed: 8, the K before it"),
    (Layer.conv(name="next", K=7, C=8, OY=7, OX=5, FY=3, FX=3, P=1, input_zero_point=-3),
     "layers[1].IY: next does not read what first writes, got 7; allowed: 6, the OY before it"),
    (Layer.conv(name="next", K=7, C=8, OY=6, OX=4, FY=3, FX=3, P=1, input_zero_point=-3),
     "layers[1].IX: next does not read what first writes, got 4; allowed: 5, the OX before it"),
    (Layer.conv(name="next", K=7, C=8, OY=6, OX=5, FY=3, FX=3, P=1, B=2, input_zero_point=-3),
     "layers[1].B: next does not read what first writes, got 2; allowed: 1, the B before it"),
    (Layer.conv(name="next", K=7, C=8, OY=6, OX=5, FY=3, FX=3, P=1),
     "layers[1].input_zero_point: next does not read what first writes, got 0; allowed: -3, the output_zero_point before it"),
    (Layer.conv(name="next", K=7, C=8, OY=6, OX=5, FY=3, FX=3, P=1, activations_signed=False),
     "layers[1].input_zero_point: next does not read what first writes, got 0; allowed: -3, the output_zero_point before it"),
])
def test_layers_that_do_not_follow_are_refused_by_dimension(second: Layer, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_chain(W8A8, [FIRST, second])
    assert str(caught.value) == message


def test_signedness_must_agree() -> None:
    first = Layer.conv(name="first", K=8, C=3, OY=6, OX=5, FY=1, FX=1)
    second = Layer.conv(name="next", K=8, C=8, OY=6, OX=5, FY=1, FX=1, activations_signed=False)
    with pytest.raises(InputError) as caught:
        check_chain(W8A8, [first, second])
    assert str(caught.value) == ("layers[1].activations_signed: next does not read what first writes, got False; "
                                 "allowed: True, the outputs_signed before it")


def test_a_design_without_chaining_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        place_chain(W8A8.with_(chaining=False), [FIRST, NEXT], [tiled(6, 5, 8), tiled(6, 5, 7, 2)])
    assert str(caught.value) == ("design.chaining: the design has no way from the output banks to the input banks, got False; "
                                 "allowed: true")


@pytest.mark.parametrize(("design", "layers", "why"), [
    (W8A8, (FIRST, NEXT), None),
    (W8A8, (Layer.conv(K=8, C=3, OY=4, OX=4, FY=1, FX=1, B=2), Layer.conv(K=8, C=8, OY=4, OX=4, FY=1, FX=1, B=2)),
     "a batch of several images"),
    (W8A8, (Layer.conv(K=12, C=3, OY=4, OX=4, FY=1, FX=1), Layer.conv(K=12, C=12, G=2, OY=4, OX=4, FY=1, FX=1)),
     "the next layer's groups end inside words"),
    (W8A8.with_(weight_bits=1, multiplier="lut"), (Layer.conv(K=6, C=3, OY=4, OX=4, FY=1, FX=1, output_zero_point=3),
                                                   Layer.conv(K=4, C=6, OY=4, OX=4, FY=1, FX=1, input_zero_point=3)),
     "the last word is padded with zeros, and 1-bit weights would count them"),
])
def test_what_cannot_stay_on_chip_says_why(design: Design, layers: tuple[Layer, Layer], why: str | None) -> None:
    assert why_not_kept(design, *layers) == why


@pytest.mark.parametrize(("design", "tilings", "message"), [
    (W8A8, (tiled(6, 5, 2), tiled(6, 5, 7, 2)), "output channels of a tile end inside an entry of the input banks"),
    (W8A8, (tiled(6, 5, 8), tiled(3, 5, 4, 2, resident=True)), "the input is on chip already"),
    (W8A8.with_(lanes=2), (tiled(6, 5, 8), tiled(4, 5, 7, 2)),
     "lanes hold a kept input at the distance of a tile's bands, which must be one"),
])
def test_tilings_that_the_hardware_cannot_chain(design: Design, tilings: tuple[Tiling, Tiling], message: str) -> None:
    with pytest.raises(IllegalTiling) as caught:
        place_chain(design, (FIRST, NEXT), tilings)
    assert str(caught.value) == message


def test_both_regions_must_fit_the_input_banks() -> None:
    layers = [Layer.conv(name=name, K=8, C=8, OY=16, OX=10, FY=1, FX=1) for name in ("first", "second", "third")]
    tilings = [tiled(8, 10, 8, 2)] * 3
    assert W8A8.with_(input_bytes=2560).bank_depth("input") == 1024
    place_chain(W8A8.with_(input_bytes=2560), layers, tilings)  # 320 entries and 320
    with pytest.raises(IllegalTiling, match="^second does not fit the input banks$"):
        place_chain(W8A8.with_(input_bytes=2048), layers, tilings)
