"""Layers under roofs, and where designs land: predicted beside simulated, and the front of a sweep."""

from __future__ import annotations

import pytest

from boards import InputError, load_board
from dse.choose import board_timing
from dse.roofline.points import front_points
from dse.roofline.roof import load_target
from dse.roofline.roofline import Rooflines, attainable, land, works_of
from dse.schedule.search import best_tiling
from dse.sweep.run import sweep
from dse.sweep.space import Space
from dse.workload.load import load_workload
from dse.workload.zoo import load_network
from hdl.design import Design
from hdl.layer import Layer

BOARD = load_board("papilio-pro")
DESIGN = Design(rows=2, cols=2, input_bytes=2048, weight_bytes=4096, output_bytes=1024, accumulator_bits=24)
CONV = load_workload("conv K=4 C=3 OY=4 OX=4 FY=3 FX=3 P=1")


def test_attainable_by_hand():
    """Culurciello et al. 2017: 13x13, 3x3, 192 to 192. At 8 bits 331,776 + 2 * 32,448 bytes for 112,140,288 ops."""
    works = works_of(load_workload("conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 P=1"))
    _, (lx9, p100, old) = attainable(works, [BOARD, load_target("p100-sxm2"), load_target("mos-6502")])
    assert lx9.ops_per_byte == pytest.approx(112_140_288 / 396_672) and p100.ops_per_byte == pytest.approx(lx9.ops_per_byte / 2)
    assert (lx9.bound, p100.bound, old.bound) == ("compute", "compute", "compute")
    assert lx9.needed_mb_s == pytest.approx(lx9.roof.peak_gops * 1000 / lx9.ops_per_byte)
    assert old.seconds == pytest.approx(112_140_288 / 0.5e6)


def test_a_linear_layer_needs_a_byte_for_each_weight():
    """An M x M product on one vector: 2 ops a weight, so at 8 bits two ops a byte and less; at 1 bit 8 times as much."""
    layer = Layer.linear(K=1024, C=1024)
    (byte,), (bit,) = (attainable(works_of(layer, bits, bits), [BOARD])[1] for bits in (8, 1))
    assert byte.ops_per_byte == pytest.approx(2 * 1024**2 / (1024**2 + 2048)) and byte.bound == "memory"
    assert byte.gops == pytest.approx(0.112 * byte.ops_per_byte)
    assert bit.ops_per_byte == pytest.approx(8 * byte.ops_per_byte) and bit.gops == pytest.approx(8 * byte.gops)


def test_repeats_read_the_weights_again():
    works = works_of(load_network("deepspeech-gru"))
    assert any(work.repeat > 1 for work in works)
    for at in attainable(works, [BOARD])[1]:
        alone = at.work.layer
        assert at.ops_per_byte == pytest.approx(2 * alone.macs / ((alone.weights + alone.inputs + alone.outputs) * at.work.weight_bits / 8))


def test_totals_are_ops_over_the_time_of_all_layers():
    """cnv: the first layer has 8-bit inputs, all others are binary; the 6502 computes both in its bytes."""
    network = load_network("cnv")
    works = works_of(network)
    assert {work.precision for work in works} == {"w1a8", "w1a1"}
    roofs, layers = attainable(works, [BOARD, load_target("mos-6502")])
    ours, old = Rooflines("cnv", roofs, layers, (("w1a8", tuple(works)),)).totals()
    assert (ours["machine"], old["machine"], ours["ops"], old["ops"]) == ("papilio-pro", "mos-6502", 2 * network.macs, 2 * network.macs)
    seconds = sum(at.work.ops / at.gops / 1e9 for at in layers if at.roof.machine == "papilio-pro")
    assert ours["least_seconds"] == pytest.approx(seconds) and ours["attainable_gops"] == pytest.approx(2 * network.macs / 1e9 / seconds)
    assert old["attainable_gops"] == pytest.approx(0.0005)


def test_predicted_points_are_exact_and_layers_alike_are_mapped_once():
    _, layers = attainable(works_of(CONV), [BOARD])
    heard = []
    landed = land([*layers, *layers], BOARD, DESIGN, "given", precision="w8a8", started=heard.append)
    landing, again = landed.landings
    assert landing == again and heard == ["mapping layer on papilio-pro"]
    choice = best_tiling(DESIGN, CONV, board_timing(BOARD, DESIGN))
    assert (landing.predicted.cycles, landing.predicted.bytes) == (choice.prediction.cycles, choice.bytes)
    assert landing.gops(landing.predicted) == pytest.approx(2 * CONV.macs * 100e6 / choice.prediction.cycles / 1e9)
    data = landing.to_dict()
    assert data["simulated"] is None and data["predicted"]["bytes_per_cycle"] == pytest.approx(choice.bytes / choice.prediction.cycles)
    assert data["array_peak_gops"] == pytest.approx(0.8)


def test_no_landing_is_above_its_roof():
    _, layers = attainable(works_of(load_network("lenet5")), [BOARD])
    landed = land(layers, BOARD, DESIGN.with_(rows=4, cols=4, weight_bytes=16384, input_bytes=8192), "given", precision="w8a8")
    for landing in landed.landings:
        assert landing.predicted is not None
        assert landing.gops(landing.predicted) <= landing.at.gops and landing.ops_per_byte(landing.predicted) <= landing.at.ops_per_byte


def test_what_a_design_cannot_run_is_said():
    _, layers = attainable(works_of(CONV, 16, 16), [BOARD])
    landed = land(layers, BOARD, DESIGN, "given", precision="w16a16")
    assert landed.landings[0].refused == "w16a16 operands, the array has w8a8" and landed.landings[0].to_dict()["predicted"] is None


def test_what_is_left_out_is_remarked():
    heard = []
    works = works_of(CONV, 16, 16)
    roofs, layers = attainable(works, [BOARD, load_target("mos-6502")], remark=heard.append)
    assert [roof.machine for roof in roofs] == ["papilio-pro"] and len(layers) == 1
    assert heard == ["mos-6502 w16a16 is left out: mos-6502 has no number format that holds 16 bits"]
    with pytest.raises(InputError, match="mos-6502 has no number format"):
        attainable(works, [load_target("mos-6502")], remark=heard.append)


# -- sweeps -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "out"
    space = Space.from_dict({"rows": [1, 2, 4], "cols": [2, 4], "accumulator_bits": 24,
                             "objectives": ["seconds", "external_bytes", "dsps"]})
    sweep(CONV, [BOARD], space, out)
    return out


def test_the_best_point_of_a_sweep(swept):
    points = front_points(str(swept), CONV.name, CONV.macs)
    best = [point for point in points if point.is_best]
    assert len(points) > 1 and len(best) == 1 and best[0].cycles == min(point.cycles for point in points)
    again = best_tiling(best[0].design, CONV, board_timing(BOARD, best[0].design))
    assert abs(best[0].cycles - again.prediction.cycles) <= 0.01 * again.prediction.cycles  # a sweep compares even tilings
    assert best[0].gops == pytest.approx(2 * CONV.macs * 100e6 / best[0].cycles / 1e9)
    _, layers = attainable(works_of(CONV), [BOARD])
    assert all(point.gops <= layers[0].gops and point.ops_per_byte <= layers[0].ops_per_byte for point in points)


def test_sweeps_that_cannot_be_shown(swept, tmp_path):
    with pytest.raises(InputError) as caught:
        front_points(str(tmp_path), CONV.name, CONV.macs)
    assert str(caught.value) == (f"--points: not a finished sweep: it has no sweep.json, got {str(tmp_path)!r}; "
                                 "give the --out directory of nearmac sweep")
    with pytest.raises(InputError, match="^--points: a sweep of another workload, got 'layer, 1,728 MACs'; allowed: lenet5, 7 MACs$"):
        front_points(str(swept), "lenet5", 7)
