from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from boards.errors import InputError
from boards.loader import load_board
from dse.choose import board_timing
from dse.estimate.resources import overshoot, usable
from dse.schedule.compiler import compile_program
from dse.schedule.explore import LayerSpace
from dse.schedule.predict import predict
from dse.schedule.search import best_tiling
from dse.schedule.tiling import TilePlan
from dse.sweep.columns import COLUMNS, SCHEMA
from dse.sweep.constraints import Constraints, summarise
from dse.sweep.evaluate import TILE_SIZES, evaluate_family, unevaluated
from dse.sweep.family import Family
from dse.sweep.space import Space
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.layer import Layer

BOARD = load_board("papilio-pro")
CONV = Layer.conv(name="conv", K=8, C=16, OY=6, OX=6, FY=3, FX=3, P=1)
LINEAR = Layer.linear(name="fc", K=10, C=96)
WORKLOAD = Workload("w", (("conv", CONV, 3), ("fc", LINEAR, 1), ("again", CONV, 1)))
KINDS = ("input", "weight", "output", "psum")
BANKS = {"input_bytes": [512, 4096], "weight_bytes": [1024, 8192, 1 << 17], "output_bytes": 2048, "psum_bytes": [0, 2048]}


def one_family(board=BOARD, workload=WORKLOAD, **data) -> Family:
    (family,) = Space.from_dict({"rows": 4, "cols": 4, **data}).enumerate(board, workload, first_index=40).families
    return family


def one_design(**options) -> Family:
    design = Design(rows=4, cols=4, accumulator_bits=26, **options)
    return Family(BOARD.name, design, np.array([[design.input_bytes, design.weight_bytes, design.output_bytes, design.psum_bytes]]), 0)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return evaluate_family(one_family(**BANKS), WORKLOAD, BOARD)


def test_columns(table):
    assert table.schema == SCHEMA and table.num_rows == 12
    table.validate(full=True)
    assert table["index"].to_pylist() == list(range(40, 52)) and set(table["board"].to_pylist()) == {"papilio-pro"}
    for name, column in COLUMNS.items():
        assert column.nullable or not table[name].null_count


def test_rows_are_what_each_layer_takes_by_itself(table):
    """Sums over the layers, of the program that is compiled and predicted for the tiling chosen."""
    family, seen = one_family(**BANKS), 0
    for at, row in enumerate(table.to_pylist()):
        design = family.point(at)
        options = {name: value for name, value in vars(design).items() if name in row}
        assert len(options) >= 16 and all(row[name] == value for name, value in options.items())
        over = overshoot(design, BOARD)
        if over:
            (name, (used, there)), = over.items()
            assert (row["feasible"], row["limiting"], row["cycles"], row["bound"]) == (False, name, None, None)
            assert row["reason"] == f"{name}: {used} of {there} usable ({used - there} too many)" and row["miss"] == used / there - 1
            continue
        timing = board_timing(BOARD, design)
        depths = np.array([[design.bank_depth(kind) if kind != "psum" or design.psum_bytes else 0 for kind in KINDS]])
        runs = []
        for layer, repeat in ((CONV, 4), (LINEAR, 1)):
            best = LayerSpace(design, layer, TILE_SIZES).best(depths, timing)
            if not best.feasible[0]:
                assert row["reason"] == f"layer {layer.name}: {best.reasons[0]}" and row["limiting"] == "tiling"
                with pytest.raises(InputError):
                    best_tiling(design, layer, timing)
                break
            plan = TilePlan(design, layer, best.tilings[int(best.tiling_index[0])])
            runs.append((predict(plan, compile_program(plan), timing), repeat))
        else:
            seen += 1
            total = {name: sum(getattr(run, name) * repeat for run, repeat in runs) for name in (
                "cycles", "beats_read", "beats_written", "compute_bound_cycles", "memory_bound_cycles", "drain_bound_cycles")}
            assert row["feasible"] and (row["reason"], row["limiting"], row["miss"]) == (None, None, None)
            assert all(row[name] == total[name] for name in total if name in row)
            assert (row["bytes_read"], row["bytes_written"]) == (total["beats_read"] * 2, total["beats_written"] * 2)
            assert row["external_bytes"] == row["bytes_read"] + row["bytes_written"]
            assert row["macs"] == 4 * 8 * 16 * 9 * 36 + 10 * 96
            assert row["seconds"] == pytest.approx(row["cycles"] / 100e6) and row["fps"] == pytest.approx(100e6 / row["cycles"])
            assert row["external_mb_s"] == pytest.approx(row["external_bytes"] * 100 / row["cycles"])
            assert row["utilization"] == pytest.approx(row["macs"] / row["cycles"] / 16)
            assert row["bound"] == max(("compute", "memory", "drain"), key=lambda kind: total[f"{kind}_bound_cycles"])
        room = usable(BOARD)
        assert all(row[f"{name}_available"] == room[name] for name in room)
        assert (row["dsps"], row["block_rams"]) == (16, design.block_rams)
    assert seen >= 4


def test_a_row_depends_on_its_point_alone(table):
    family = one_family(**BANKS)
    for order in ([3], [5, 0], list(range(11, -1, -1))):
        part = Family(family.board, family.point(order[0]), family.banks[order], 40 + order[0])
        rows = evaluate_family(part, WORKLOAD, BOARD).to_pylist()
        expected = [{**table.slice(at, 1).to_pylist()[0], "index": 40 + order[0] + place} for place, at in enumerate(order)]
        assert rows == expected


def test_two_evaluations_are_equal(table):
    assert evaluate_family(one_family(**BANKS), WORKLOAD, BOARD).equals(table)


def test_equal_hardware_has_equal_rows(table):
    """1024 entries of 16 bits a bank, whether 512 or 2048 bytes were asked for."""
    rows = evaluate_family(one_family(input_bytes=[1500, 2048]), WORKLOAD, BOARD).to_pylist()
    differing = {name for name in rows[0] if rows[0][name] != rows[1][name]}
    assert differing == {"index", "input_bytes"}


def test_clock_and_ceilings():
    slow, fast = (evaluate_family(one_family(clock_mhz=clock, bus_bits=16), WORKLOAD, BOARD).to_pylist()[0] for clock in (25, 50))
    # 112 MB/s fill a 16-bit bus at either clock: the same cycles, in twice the time.
    assert slow["cycles"] == fast["cycles"] and slow["seconds"] == 2 * fast["seconds"]
    tight = evaluate_family(one_family(), WORKLOAD, BOARD, Constraints(dsps=0.5, luts=0.2)).to_pylist()[0]
    assert tight["dsps_available"] == 8 and tight["luts_available"] == 5720 * 2 // 10
    luts = tight["luts"]
    assert tight["reason"] == f"dsps: 16 of 8 usable (8 too many); luts: {luts} of 1144 usable (estimate, {luts - 1144} too many)"
    assert tight["limiting"] == "dsps" and tight["miss"] == 1.0


def test_constraints_on_speed_and_traffic():
    free = evaluate_family(one_family(), WORKLOAD, BOARD).to_pylist()[0]
    fps, mb_s = free["fps"], free["external_mb_s"]
    kept = evaluate_family(one_family(), WORKLOAD, BOARD, Constraints(min_fps=fps, max_mb_s=mb_s)).to_pylist()[0]
    assert kept == free
    missed = evaluate_family(one_family(), WORKLOAD, BOARD, Constraints(min_fps=2 * fps, max_mb_s=mb_s / 4)).to_pylist()[0]
    assert (missed["feasible"], missed["limiting"]) == (False, "max_mb_s") and missed["miss"] == pytest.approx(3)
    assert missed["cycles"] == free["cycles"]
    assert missed["reason"].startswith(f"min_fps: {fps:.6g} of at least {2 * fps:g} frames a second (")
    assert f"; max_mb_s: {mb_s:.6g} of at most {mb_s / 4:g} MB/s (" in missed["reason"]


def test_what_a_design_cannot_compute():
    wide = Workload("wide", (("conv", CONV, 1), ("deep", Layer.linear(K=1, C=65536), 1)))
    row = evaluate_family(one_design(), wide, BOARD).to_pylist()[0]
    assert (row["feasible"], row["limiting"], row["cycles"]) == (False, "unsupported", None)
    assert row["reason"] == "layer deep: accumulator needs at least 32 bits for 65536 products of 8 x 8 bits, not 26"


def test_a_memory_that_a_design_cannot_use(monkeypatch):
    def refuse(board, design):
        raise InputError("the latency is below the lanes", where="design.lanes", value=design.lanes)

    monkeypatch.setattr("dse.sweep.evaluate.board_timing", refuse)
    rows = evaluate_family(one_family(**BANKS), WORKLOAD, BOARD).to_pylist()
    fitting = [row for row in rows if row["limiting"] != "block_rams"]
    assert 0 < len(fitting) < len(rows)
    assert {(row["limiting"], row["reason"]) for row in fitting} == {("unsupported", "lanes: the latency is below the lanes")}


def test_rows_of_a_failure():
    family = one_family(**BANKS)
    table = unevaluated(family, WORKLOAD, BOARD, None, "error", "it broke")
    table.validate(full=True)
    assert table.schema == SCHEMA and table["limiting"].to_pylist() == ["error"] * 12 and table["cycles"].null_count == 12
    assert summarise([table]).removed == {"error": 12}
