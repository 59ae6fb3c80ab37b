"""`nearmac boards` in tables and JSON."""

from __future__ import annotations

import json

import pytest
import yaml

import boards
from dse.cli.main import run


def test_every_board_is_listed(capsys):
    assert run(["boards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["name", "device", "LUTs"]
    assert [line.split()[0] for line in lines[1:]] == list(boards.list_boards())
    assert run(["boards", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in data["boards"]] == list(boards.list_boards())
    papilio = next(row for row in data["boards"] if row["name"] == "papilio-pro")
    assert (papilio["device"], papilio["dsps"], papilio["peak_mb_s"]) == ("xc6slx9", 16, 160.0)


def test_details_give_source_and_trust_of_each_figure(capsys, tmp_path):
    assert run(["boards", "papilio-pro"]) == 0
    text = capsys.readouterr().out
    for words in (("memory.efficiency", "0.7", "assumption", "usual for SDR with page bursts"),
                  ("device.luts", "5,720", "read", "place-and-route report of an LX9 design")):
        assert any(all(word in line for word in words) for line in text.splitlines())
    assert run(["boards", "papilio-pro", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["memory"]["mt_s"] == {"value": 80.0, "trust": "read",
                                      "source": "LiteX target gadgetfactory_papilio_pro, default clock and PHY ratio"}
    assert data["usable"]["luts"] == 4004 and data["offered_mb_s"] == 112.0


@pytest.mark.parametrize("memory", ["none", {"kind": "SDR", "width_bits": 16, "mt_s": 100, "efficiency": 0.5, "latency_cycles": 9}])
def test_own_board(capsys, tmp_path, memory):
    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump({"name": "my", "title": "[red]My[/red] board", "device": "xc6slx9", "memory": memory}))
    assert run(["boards", str(path)]) == 0
    out = capsys.readouterr().out
    assert "my ([red]My[/red] board)" in out
    assert ("memory             none" in out) == (memory == "none") or "memory" in out
