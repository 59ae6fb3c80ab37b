"""`nearmac boards` in tables and JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

import boards
from boards.primitives import FAMILIES
from dse.cli.main import run


def names(text: str) -> dict[str, list[str]]:
    """Title of a table -> first words of its rows."""
    tables = [part.splitlines() for part in text.strip("\n").split("\n\n")]
    assert all(table[1].split()[0] == "name" for table in tables)
    return {table[0]: [line.split()[0] for line in table[2:]] for table in tables}


def test_every_board_is_listed_with_its_family(capsys):
    assert run(["boards"]) == 0
    out = capsys.readouterr().out
    found = names(out)
    assert list(found)[:-1] == [
        "Xilinx Spartan-6 (xc6s): LUT6, DSP48A1, RAMB16 of 18 Kb", "Xilinx 7 series (xc7): LUT6, DSP48E1, RAMB36 of 36 Kb",
        "Xilinx UltraScale+ (xcup): LUT6, DSP48E2, RAMB36 of 36 Kb, URAM288 of 288 Kb",
        "Lattice ECP5 (ecp5): LUT4, MULT18X18D, DP16KD of 18 Kb",
        "Lattice iCE40 (ice40): LUT4, SB_MAC16, SB_RAM40_4K of 4 Kb, SB_SPRAM256KA of 256 Kb",
        "Gowin (gowin): LUT4, MULT18X18, BSRAM of 18 Kb"]
    for family, listed in zip(FAMILIES, found.values(), strict=False):
        assert listed == [name for name in boards.list_boards() if boards.load_board(name).device.family == family]
    assert set(found["Reference machines, without an FPGA"]) == set(boards.list_machines())
    assert max(map(len, out.splitlines())) <= 132
    heads = [line.index("offered MB/s") for line in out.splitlines() if "offered MB/s" in line]
    assert len(heads) == len(FAMILIES) and len(set(heads)) == 1


def test_json_lists_the_same(capsys):
    assert run(["boards", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in data["boards"]] == list(boards.list_boards())
    assert [row["name"] for row in data["machines"]] == list(boards.list_machines())
    papilio = next(row for row in data["boards"] if row["name"] == "papilio-pro")
    assert (papilio["device"], papilio["dsps"], papilio["peak_mb_s"], papilio["family"]) == ("xc6slx9", 16, 160.0, "xc6s")
    icebreaker = next(row for row in data["boards"] if row["name"] == "icebreaker")
    assert (icebreaker["large_ram_kind"], icebreaker["large_rams"], icebreaker["lut_inputs"]) == ("SB_SPRAM256KA", 4, 4)
    dgx = next(row for row in data["machines"] if row["name"] == "dgx-1")
    assert dgx["total_gops"] == {"fp32": 84800, "fp16": 169600} and dgx["total_memory_mb_s"] == 5856000


def test_one_family_or_device(capsys):
    assert run(["boards", "--family", "ecp5"]) == 0
    (found,) = names(capsys.readouterr().out).values()
    assert found == [name for name in boards.list_boards() if name.startswith(("ulx3s", "orangecrab", "colorlight"))]
    assert run(["boards", "--device", "xc7a100t", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in data["boards"]] == ["arty-a7-100", "nexys4-ddr"] and data["machines"] == []


@pytest.mark.parametrize(("arguments", "message"), [
    (["--family", "xc8"], "--family: unknown family, got 'xc8'; allowed: xc6s, xc7, xcup, ecp5, ice40, gowin; nearest: xc7"),
    (["--family", "xc7", "atlys"], "--family: given together with the name of a board, got 'xc7'; give one of them"),
    (["--device", "xc6slx4"], "--device: no built-in board has it, got 'xc6slx4'; name it in a board's file of your own (device: xc6slx4)"),
    (["--device", "xc7a100t", "--family", "ecp5"], "--device: no built-in board has it, got 'xc7a100t'; leave out --family"),
    (["atlys", "--device", "xc6slx45"], "--device: given together with the name of a board, got 'xc6slx45'; give one of them"),
])
def test_wrong_choices(capsys, arguments, message):
    assert run(["boards", *arguments]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
    assert run(["boards", "--device", "XC6SLX8"]) == 2
    assert capsys.readouterr().err.endswith("; nearest: xc6slx9\n")


def test_details_give_source_and_trust_of_each_figure(capsys, tmp_path):
    assert run(["boards", "papilio-pro"]) == 0
    text = capsys.readouterr().out
    for words in (("memory.efficiency", "0.7", "assumption", "usual for SDR with page bursts"),
                  ("device.luts", "5,720", "read", "place-and-route report of an LX9 design"),
                  ("clock_mhz", "100", "assumption", "default for xc6s -2: 36 % of the block RAM's limit"),
                  ("ceiling.luts_percent", "70", "assumption", "room for placement and routing")):
        assert any(all(word in line for word in words) for line in text.splitlines())
    assert run(["boards", "papilio-pro", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["memory"]["mt_s"] == {"value": 80.0, "trust": "read",
                                      "source": "LiteX target gadgetfactory_papilio_pro, default clock and PHY ratio"}
    assert data["usable"]["luts"] == 4004 and data["offered_mb_s"] == 112.0 and data["ceilings_percent"]["luts"] == 70
    assert data["primitives"]["dsp"]["a_bits"] == 18 and data["primitives"]["block_ram"]["half"] == "RAMB8"


def test_details_of_a_machine(capsys):
    assert run(["boards", "dgx-1"]) == 0
    text = capsys.readouterr().out
    for words in (("peak fp16", "169,600 Gop/s; ridge at 29 op/byte"), ("memory size", "137,438,953,472 bytes"), ("link", "NVLink"),
                  ("peak_gops.fp32", "10,600", "unverified"), ("devices", "8", "unverified")):
        assert any(all(word in line for word in words) for line in text.splitlines())
    assert run(["boards", "dgx-1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["peak_gops"]["fp32"]["trust"] == "unverified" and data["ridge_ops_per_byte"]["fp32"] == pytest.approx(14.48, abs=0.01)


@pytest.mark.parametrize("memory", ["none", {"kind": "SDR", "width_bits": 16, "mt_s": 100, "efficiency": 0.5, "latency_cycles": 9}])
def test_own_board(capsys, tmp_path, memory):
    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump({"name": "my", "title": "[red]My[/red] board", "device": "xc6slx9", "memory": memory}))
    assert run(["boards", str(path)]) == 0
    out = capsys.readouterr().out
    assert "my ([red]My[/red] board)" in out
    assert ("memory             none" in out) == (memory == "none") or "memory" in out


@pytest.mark.parametrize(("arguments", "unneeded"), [
    ([], ["pydantic", "rich", "numpy", "networkx", "amaranth"]), (["--json"], ["pydantic", "rich", "numpy", "networkx", "amaranth"]),
    (["zcu104"], ["pydantic", "numpy", "networkx", "amaranth"])])
def test_what_takes_long_to_import_is_not(arguments, unneeded):
    """That is what keeps the command under 0.4 s."""
    code = ("import sys; from dse.cli.main import run; status = run(sys.argv[1].split()); "
            "print(*(name for name in sys.argv[2].split() if name in sys.modules), file=sys.stderr); sys.exit(status)")
    done = subprocess.run([sys.executable, "-c", code, " ".join(["boards", *arguments]), " ".join(unneeded)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.split()) == (0, [])
