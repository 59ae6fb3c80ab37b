"""``nearmac synth`` with real tools on boards of four families: tables, JSON, reports, cache; and what can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boards import load_board
from dse.cli.main import run
from dse.simulate import choose
from dse.workload.layer_file import dump_design
from hdl.design import Design
from hdl.errors import ToolError
from hdl.layer import Layer
from hdl.synthesis import FLOWS, Flow

SMALL = Design(rows=1, cols=1, bus_bits=16, accumulator_bits=20, input_bytes=1024, weight_bytes=1024, output_bytes=512, counters=False)
BOARDS = {  # board -> (DSP blocks, their name in Yosys' library, block RAMs, the name of most)
    "papilio-pro": (1, "DSP48A1", 6, "RAMB16BWER"), "arty-a7-35": (1, "DSP48E1", 6, "RAMB18E1"),
    "ulx3s-12f": (1, "MULT18X18D", 6, "DP16KD"), "icebreaker": (1, "SB_MAC16", 15, "SB_RAM40_4K"),
}
"""A product of 8 by 9 bits is one DSP block. Each of six memories (program, weights, input, output, bias and multiplier, shift) is one RAM
of 18 Kb at least; those of 4 Kb have half the width, and the program's 512 words of 32 bits take four."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache, monkeypatch):
    monkeypatch.setenv("NEARMAC_CACHE_DIR", str(cache))


def design_file(folder: Path, **changes: object) -> str:
    path = folder / "design.yaml"
    path.write_text(dump_design(SMALL.with_(**changes)))
    return str(path)


def error(capsys, *arguments: str, status: int = 2) -> str:
    assert run(["synth", *arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.removeprefix("error: ").rstrip("\n")


@pytest.mark.parametrize("board", BOARDS)
def test_four_families(board, capsys, tmp_path):
    """The second time all comes from the cache, and is the same."""
    device = load_board(board).device
    arguments = ["synth", "--design", design_file(tmp_path, family=device.family), "--board", board, "--no-place"]
    out = tmp_path / "reports"
    assert run([*arguments, "--json", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    data = json.loads(captured.out)
    assert (data["cached_runs"], data["runs"], data["failures"], data["placements"]) == (0, 1, [], [])
    assert data["stage"] == "after synthesis, before placement"
    dsps, dsp, rams, ram = BOARDS[board]
    resources, cells = data["resources"], data["cells"]
    found = {kind: count for kind, count in cells.items() if kind.startswith(("RAMB", "DP16", "PDPW", "SB_RAM"))}
    assert cells[dsp] == dsps and ram in found
    assert sum(count * (2 if kind == "RAMB36E1" else 1) for kind, count in found.items()) == rams
    assert (resources["dsps"]["used"], resources["dsps"]["estimated"], resources["dsps"]["available"]) == (dsps, dsps, device.dsps.value)
    assert (resources["block_rams"]["used"], resources["block_rams"]["estimated"]) == (rams, rams)
    assert resources["luts"]["available"] == device.luts.value and 1000 < resources["luts"]["used"] < 3000
    for name in ("luts", "ffs"):  # on no figure of ours: a change of the hardware that costs more shows here
        assert abs(resources[name]["estimated"] / resources[name]["used"] - 1) <= 0.2
    assert resources["ffs"]["used"] == sum(count for kind, count in cells.items() if kind.startswith(("FD", "TRELLIS_FF", "SB_DFF")))

    written = json.loads((out / "synthesis.json").read_text())
    assert data.pop("files") == [str(out / name) for name in ("synthesis.json", "cells.json", "yosys.log")]
    assert {"workload": None, **written} == data
    assert "Executing" in (out / "yosys.log").read_text()

    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert "Resources, after synthesis, before placement\n" in text and "; 1 of 1 runs from the cache" in text
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    luts = resources["luts"]
    assert rows["look-up tables"][2:] == [f"{luts['used']:,}", f"{luts['estimated']:,}",
                                          f"{(luts['estimated'] - luts['used']) / luts['used']:+.1%}", f"{luts['usable']:,}",
                                          f"{luts['available']:,}"]
    assert rows["block RAMs"][2:5] == [str(rams), str(rams), "equal"]
    assert rows["DSP blocks"][2:5] == [str(dsps), str(dsps), "equal"]
    assert "distributed RAM cells" not in rows and "assumed" in rows and "Fmax" not in rows
    reason = "nextpnr's Python packages have no Xilinx" if device.family in ("xc6s", "xc7") else "not asked for"
    assert " ".join(rows["not placed"]).startswith(f"not placed {reason}")


def test_a_tool_that_fails(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(FLOWS, SMALL.family, Flow("synth_xilinx -family xc9"))
    message = error(capsys, "--design", design_file(tmp_path), "--board", "papilio-pro", status=3).splitlines()
    assert message[0].startswith("synthesis failed with status 1: read_verilog top.v; synth_xilinx -family xc9 -top nearmac_accelerator")
    assert len(message) > 1 and any("xc9" in line for line in message[1:])


def test_missing_extra(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert error(capsys, "--design", design_file(tmp_path), "--board", "papilio-pro") == (
        "synthesis needs Yosys, which is not installed; pip install 'nearmac[synth]'")


def test_the_workload_chooses_the_design(capsys, monkeypatch):
    """A design that is chosen is the one that ``simulate`` would run."""
    designs: list[Design] = []

    def spy(design: Design, board: object, **options: object) -> None:
        designs.append(design)
        raise ToolError(["yosys"], 9, "as it happens")

    monkeypatch.setattr("dse.cli.synthesis.synth", spy)
    assert error(capsys, "linear K=10 C=64", "--array", "2x2x1", "--board", "papilio-pro", status=3) == (
        "external tool failed with status 9: yosys\nas it happens")
    assert run(["synth", "lenet5", "--array", "2x2x1", "--board", "papilio-pro"]) == 3
    array = {"rows": 2, "cols": 2, "lanes": 1}
    assert designs[0] == choose(Layer.linear(K=10, C=64), load_board("papilio-pro"), options=array).plan.design
    assert designs[1].array == "2x2x1"


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "WORKLOAD: missing; name a workload, from which a design is chosen, or give --design"),
    (["--design", "{design}", "--layer", "c1"], "--layer: given without a workload, got 'c1'"),
    (["--design", "{design}", "--seeds", "0"], "--seeds: out of range, got 0; allowed: 1 to 100"),
    (["--design", "{design}", "--target-mhz", "nan"], "--target-mhz: out of range, got nan; allowed: 1 to 1000"),
    (["--design", "{design}", "--out", "{design}"], "--out: not a directory, got '{design}'"),
    (["--design", "{design}", "--out", ""], "--out: empty, got ''; allowed: the name of a directory"),
])
def test_wrong_arguments(arguments, message, capsys, tmp_path):
    path = design_file(tmp_path)
    assert error(capsys, "--board", "papilio-pro", *(argument.format(design=path) for argument in arguments)) == message.format(design=path)


def test_designs_that_are_not_for_the_board(capsys, tmp_path):
    path = design_file(tmp_path, input_bytes=1 << 16)
    assert error(capsys, "--design", path, "--board", "papilio-pro") == (
        f"{path}: the design does not fit papilio-pro: block rams: 37 of 32 usable (5 too many); use a smaller array or smaller buffers, "
        "or another board")
    assert error(capsys, "--design", path, "--board", "arty-a7-35") == (
        f"{path}: design.family: the design is for another family than arty-a7-35, got 'xc6s'; allowed: xc7")


def test_packages_that_nextpnr_does_not_have(capsys, tmp_path):
    board = tmp_path / "board.yaml"
    board.write_text("name: mine\ndevice: lfe5u-45f\npackage: bg3810\nmemory:\n")
    path = design_file(tmp_path, family="ecp5")
    assert error(capsys, "--design", path, "--board", str(board)) == (
        "mine: package: nextpnr has no such package of lfe5u-45f, got 'bg3810'; allowed: bg381, bg256, bg554, mg285, tg144; "
        "--no-place synthesises alone")
