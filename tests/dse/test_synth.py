"""The runs of the tools behind ``nearmac synth``: which are made, which come from the cache, what is made of their reports.

The tools are stand-ins here that leave reports; ``tests/dse/cli/test_synth.py`` and ``tests/hdl/test_place_and_route.py`` run real ones.
"""

from __future__ import annotations

import json

import pytest

from boards import list_boards, load_board
from dse.cli.console import print_tables
from dse.cli.synthesis import _tables
from dse.synth import Usage, _part, synth
from hdl.design import Design
from hdl.errors import ToolError
from hdl.place_and_route import TOOLS

DESIGN = Design(rows=1, cols=1, family="ecp5", bus_bits=16, accumulator_bits=20, input_bytes=1024, weight_bytes=1024, output_bytes=512,
                counters=False, clock_mhz=40)
CELLS = {"LUT4": 1000, "CCU2C": 100, "TRELLIS_FF": 2000, "MULT18X18D": 1, "DP16KD": 6}
CLOCKS = {1: 41.0, 2: 44.0, 3: 36.0}


class Tools:
    """Stand-ins: ``calls`` lists what ran; nextpnr stops at the seed ``broken``."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.cells = dict(CELLS)
        self.broken = 0

    def emit(self, factory, design, artifacts):
        return f"module nearmac_accelerator(); // {factory.__name__} {design.with_(clock_mhz=100)}"  # no clock is in the Verilog

    def run_flow(self, verilog, commands, folder):
        self.calls.append(commands[0])
        assert "module nearmac_accelerator(" in verilog
        (folder / "cells.json").write_text(json.dumps({"modules": {"\\nearmac_accelerator": {"num_cells_by_type": self.cells}}}))
        (folder / "yosys.log").write_text("a log")
        (folder / "top.json").write_text("{}")

    def place(self, part, folder, *, seed, target_mhz):
        assert (folder / "top.json").exists()
        if seed == self.broken:
            raise ToolError([part.tool], 1, "ERROR: no room")
        self.calls.append(f"seed {seed}, {target_mhz:g} MHz, {part.title}")
        (folder / f"nextpnr-{seed}.log").write_text("a log")
        ends = {"from": {"cell": "a", "port": "Q"}, "to": {"cell": "b", "port": "D"}}
        path = [{"type": "routing", "delay": 5.0, **ends}, {"type": "logic", "delay": 1000 / CLOCKS[seed] - 5, **ends}]
        (folder / f"report-{seed}.json").write_text(json.dumps({
            "fmax": {"clk": {"achieved": CLOCKS[seed], "constraint": target_mhz}},
            "utilization": {"TRELLIS_COMB": {"used": 1300, "available": 24288}},
            "critical_paths": [{"from": "posedge clk", "to": "posedge clk", "path": path}]}))


@pytest.fixture
def tools(monkeypatch, tmp_path):
    stand_in = Tools()
    monkeypatch.setenv("NEARMAC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("dse.synth.emit", stand_in.emit)
    monkeypatch.setattr("dse.synth.run_flow", stand_in.run_flow)
    monkeypatch.setattr("dse.synth.place", stand_in.place)
    return stand_in


def test_every_run_is_made_once(tools):
    board, stages = load_board("ulx3s-25f"), list[str]()
    title = "Lattice LFE5U-25F, speed grade 6, CABGA381"
    report = synth(DESIGN, board, seeds=2, stage=stages.append)
    assert tools.calls == ["synth_ecp5 -top nearmac_accelerator", "synth_ecp5 -top nearmac_accelerator",
                           f"seed 1, 40 MHz, {title}", f"seed 2, 40 MHz, {title}"]
    assert stages == ["writing Verilog", "Yosys: synth_ecp5 for ecp5", "Yosys: netlist for nextpnr-ecp5",
                      f"nextpnr-ecp5: seed 1 of 2, {title}", f"nextpnr-ecp5: seed 2 of 2, {title}"]
    assert (report.cached, report.runs, report.best.seed, report.best.clock_mhz) == (0, 3, 2, 44.0)
    assert (report.usage["luts"].used, report.usage["luts"].available) == (1200, 24288)  # two a CCU2C
    assert report.failures == []
    assert list(report.files) == ["cells.json", "yosys.log", "report-1.json", "nextpnr-1.log", "report-2.json", "nextpnr-2.log"]

    tools.calls.clear()
    again = synth(DESIGN, board, seeds=2)
    assert tools.calls == [] and again.cached == 3 and again.files == report.files
    assert {**again.to_dict(), "cached_runs": 0} == report.to_dict()
    third = synth(DESIGN, board, seeds=3)
    assert tools.calls[1:] == [f"seed 3, 40 MHz, {title}"] and (third.cached, third.best.seed) == (3, 2)
    assert synth(DESIGN.with_(clock_mhz=50), board, target_mhz=40).cached == 2  # the same hardware


def test_what_is_another_run(tools):
    synth(DESIGN, load_board("ulx3s-25f"))
    assert synth(DESIGN, load_board("ulx3s-25f"), target_mhz=50).cached == 1
    assert synth(DESIGN, load_board("orangecrab-25f")).cached == 1  # package and speed grade
    assert synth(DESIGN.with_(accumulator_bits=21), load_board("ulx3s-25f")).cached == 0


def test_seeds_before_a_failure_are_kept(tools):
    tools.broken = 2
    with pytest.raises(ToolError, match=r"^external tool failed with status 1: nextpnr-ecp5\nERROR: no room$"):
        synth(DESIGN, load_board("ulx3s-25f"), seeds=3)
    assert synth(DESIGN, load_board("ulx3s-25f"), seeds=1).cached == 2


def test_a_design_that_is_larger_than_estimated(tools):
    """Then there is no use in placing it; and an exact count that is wrong is our failure."""
    tools.cells |= {"LUT4": 24100, "DP16KD": 7}
    report = synth(DESIGN, load_board("ulx3s-25f"))
    assert report.failures == ["the design does not fit lfe5u-25f: look-up tables: 24,300 of 24,288",
                               "block RAMs: 7 synthesised, 6 predicted"]
    assert report.placements == () and report.unplaced == "the device has too little for it"
    assert len(tools.calls) == 1


def test_the_clock_beside_the_assumed_one(tools, capsys):
    print_tables(*_tables("linear K=1 C=1", synth(DESIGN, load_board("ulx3s-25f"), seeds=3), None))
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("Resources", "assumed", "Fmax", "slowest", "tools"))]
    assert rows[1:2] == ["Resources, after synthesis"] and rows[2:] == [
        "assumed       40 MHz: the design's",
        "Fmax          44.0 MHz (seed 2; 41.0, 44.0, 36.0 MHz for seeds 1 to 3): 110% of the assumed clock",
        "slowest path  a.Q to b.D, 22.7 ns, 22% of it wires"]


def test_an_upper_bound_is_called_so(tools, capsys):
    report = synth(DESIGN.with_(family="gowin"), load_board("tang-primer-20k"))
    assert report.to_dict()["clock"]["untimed"] == "DSP blocks and block RAMs"
    print_tables(*_tables(None, report, None))
    text = capsys.readouterr().out
    assert "Fmax          at most 41.0 MHz: " in text and "nextpnr has no delays of this family's DSP blocks and block RAMs" in text


def test_every_board_of_these_families_has_a_part():
    boards = [board for board in map(load_board, list_boards()) if board.device.family in TOOLS]
    assert len(boards) >= 10
    for board in boards:
        part, why = _part(board, True)
        assert why == "" and part.family == board.device.family
        assert board.device.name.removeprefix("ice40").upper() in part.title.upper()
        assert part.family == "ice40" or f"speed grade {board.speed_grade}" in part.title


def test_error_of_an_estimate():
    assert Usage(used=200, estimated=180, usable=1, available=1).error == pytest.approx(-0.1)
    assert Usage(used=0, estimated=0, usable=1, available=1).error is None
