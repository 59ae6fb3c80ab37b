"""What more of a resource would buy, against mappings searched here."""

from __future__ import annotations

from fractions import Fraction

import pytest

from boards import load_board
from dse.choose import board_timing
from dse.explain.explain import explain
from dse.schedule.search import best_tiling
from dse.simulate import choose
from dse.workload.load import load_workload
from hdl.design import Design
from sim.memory import MemoryTiming

BOARD = load_board("papilio-pro")


@pytest.fixture(scope="module")
def memory_bound():
    return explain(choose(load_workload("linear K=24 C=120"), BOARD, options={"rows": 4, "cols": 4, "drains": 1}), BOARD)


def test_one_more_mb_s(memory_bound):
    d, design = memory_bound.derivation, memory_bound.design
    beats = (Fraction(113) / 100) / (design.bus_bits // 8)  # 112 MB/s are offered, at 100 MHz
    again = best_tiling(design, memory_bound.layer, MemoryTiming.from_fraction(12, beats))
    assert d["cycles_with_mb_s"] == again.prediction.cycles < d["cycles"]
    assert d["saved_by_mb_s"] == d["cycles"] - again.prediction.cycles > 0
    assert d["saved_by_twice_mb_s"] > d["saved_by_mb_s"]


@pytest.mark.parametrize("kind", ["input", "weight", "output", "psum"])
def test_one_more_kib_of_a_bank(memory_bound, kind):
    d, design = memory_bound.derivation, memory_bound.design
    larger = design.with_(**{f"{kind}_bytes": getattr(design, f"{kind}_bytes") + 1024})
    again = best_tiling(larger, memory_bound.layer, board_timing(BOARD, larger))
    assert d[f"cycles_with_{kind}_kib"] == again.prediction.cycles


def test_larger_banks_save_what_they_save():
    """What does not fit on chip is loaded once for every row of tiles: more must show."""
    design = Design(rows=4, cols=4, input_bytes=2048, weight_bytes=8192, output_bytes=1024, accumulator_bits=24)
    found = explain(choose(load_workload("conv K=32 C=32 OY=20 OX=20 FY=3 FX=3 P=1"), BOARD, design=design), BOARD)
    larger = design.with_(input_bytes=2048 + 1024)
    again = best_tiling(larger, found.layer, board_timing(BOARD, larger))
    assert found.derivation["cycles_with_input_kib"] == again.prediction.cycles
    assert found.derivation["bytes_saved_by_input_kib"] == found.choice.bytes - again.bytes > 0


def test_larger_arrays(memory_bound):
    """A row, a column or a lane more, with banks of as many entries; one DSP block alone buys nothing."""
    d, design = memory_bound.derivation, memory_bound.design
    assert d["saved_by_dsp"] == 0 and d["dsps_with_rows"] == design.dsps + 4 and d["dsps_with_cols"] == design.dsps + 4
    taller = design.with_(rows=5, weight_bytes=design.weight_bytes // 4 * 5)
    assert taller.bank_depth("weight") == design.bank_depth("weight")
    assert d["cycles_with_rows"] == best_tiling(taller, memory_bound.layer, board_timing(BOARD, taller)).prediction.cycles
    assert "exceeds the board: dsps 20 of 16" in memory_bound.text


def test_what_cannot_be_is_said():
    design = Design(rows=64, cols=1, multiplier="lut", weight_bits=2, activation_bits=2, weight_bytes=64 * 512, accumulator_bits=16)
    found = explain(choose(load_workload("linear K=64 C=16"), load_board("kc705"), design=design.with_(family="xc7", bus_bits=64)),
                    load_board("kc705"))
    assert "designs_with_rows = 0 designs  [65 rows in place of 64, with banks as deep: out of range]" in found.text
