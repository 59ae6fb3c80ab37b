"""Every built-in board: a tiny layer is swept on it, one of each new family runs in simulation; boards without memory say so."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from boards import InputError, list_boards, load_board
from dse.choose import choose_design
from dse.cli.main import run
from dse.simulate import choose, simulate
from dse.sweep.run import sweep
from dse.sweep.space import HUGE_BLOCK_RAMS, Space, default_space
from dse.sweep.workload import Workload
from hdl.layer import Layer

WITH_MEMORY = [name for name in list_boards() if load_board(name).memory]
WITHOUT = [name for name in list_boards() if not load_board(name).memory]
LAYER = Layer.conv(K=4, C=4, OY=4, OX=4, FY=3, FX=3, P=1)
SPACE = {"rows": [1, 2], "cols": [1, 4], "input_depth": 512, "weight_depth": 512, "output_depth": 512}


@pytest.fixture(scope="module")
def points(tmp_path_factory) -> list[dict]:
    out = tmp_path_factory.mktemp("sweep") / "out"
    report = sweep(LAYER, [load_board(name) for name in WITH_MEMORY], Space.from_dict(SPACE), out)
    assert report.points == 4 * len(WITH_MEMORY) and not report.errors
    return pq.read_table(out / "points.parquet").to_pylist()


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_a_sweep_on_each_board(points, name):
    board = load_board(name)
    mine = [row for row in points if row["board"] == name]
    assert len(mine) == 4 and any(row["feasible"] for row in mine)
    for row in mine:
        under = {key: board.usable[key] for key in ("dsps", "luts", "ffs")}
        assert {key: row[f"{key}_available"] for key in under} == under
        assert row["feasible"] == all(row[key] <= row[f"{key}_available"] for key in ("dsps", "block_rams", "luts", "ffs"))
        assert row["clock_mhz"] == board.clock_mhz.value and row["bus_bits"] == board.default_bus_bits()


@pytest.mark.parametrize("name", ["arty-a7-35", "zcu104", "orangecrab-25f", "icebreaker", "tang-primer-20k"])
def test_the_hardware_on_the_memory_of_each_family(name):
    board, layer = load_board(name), Layer.linear(K=2, C=3)
    choice = choose(layer, board, options={"rows": 1, "cols": 1, "lanes": 1})
    report, _ = simulate(layer, board, choice, engine="amaranth")
    assert report.matches and report.result.cycles == choice.prediction.cycles
    assert choice.plan.design.clock_mhz == board.clock_mhz.value


@pytest.mark.parametrize("name", WITHOUT)
def test_a_board_without_memory_is_refused(name, capsys, tmp_path):
    assert name in ("mimas", "pano-logic-g2", "ice40-hx8k-evn")
    for arguments in (["simulate", "linear K=2 C=3", "--board", name],
                      ["sweep", "linear K=2 C=3", "--board", f"atlys,{name}", "--out", str(tmp_path / "out")]):
        assert run(arguments) == 2
        assert capsys.readouterr().err == (f"error: --board: board {name} has no external memory, got '{name}'; choose a board with one "
                                           "(nearmac boards)\n")
    assert not (tmp_path / "out").exists()


def test_a_machine_is_refused(capsys):
    assert run(["simulate", "linear K=2 C=3", "--board", "dgx-1"]) == 2
    assert capsys.readouterr().err == ("error: --board: dgx-1 is a reference machine: it has no FPGA to build a design on, got 'dgx-1'; "
                                       "choose a board of `nearmac boards`\n")


@pytest.mark.parametrize("name", ["zc706", "alveo-u250"])
def test_the_default_space_of_a_huge_board_stays_small(name):
    board = load_board(name)
    assert 2 * board.usable["block_rams"] >= HUGE_BLOCK_RAMS
    found = default_space(board).enumerate(board, Workload("layer", (("layer", LAYER, 1),)))
    assert 10_000 < found.points < 200_000


def test_a_huge_board_gets_a_large_array():
    layer = Layer.conv(K=64, C=64, OY=14, OX=14, FY=3, FX=3, P=1)
    small, large = (choose_design(load_board(name), layer, 8, 8).plan.design for name in ("papilio-pro", "alveo-u250"))
    assert small.dsps <= 16 and large.macs_per_cycle >= 512 and large.dsps <= load_board("alveo-u250").usable["dsps"]


def test_a_layer_that_needs_more_than_the_smallest_board_has():
    with pytest.raises(InputError) as caught:
        choose_design(load_board("icebreaker"), Layer.linear(K=2, C=3), 8, 8, fixed={"rows": 8, "cols": 8, "lanes": 1})
    assert "does not fit icebreaker" in str(caught.value) and "of 8 usable" in str(caught.value)
