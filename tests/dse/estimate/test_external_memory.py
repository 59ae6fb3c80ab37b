"""Layers that do not fit into a board's external memory."""

from __future__ import annotations

import pytest

from boards import InputError, load_board
from dse.cli.main import run
from dse.estimate.external_memory import check_external_memory, excess, layer_bytes
from dse.simulate import choose
from hdl.design import Design
from hdl.layer import Layer

LARGE = Layer.conv(K=64, C=64, OY=56, OX=56, FY=3, FX=3, P=1)
BYTES = 64 * 64 * 9 + 2 * 64 * 56 * 56
REASON = f"weights, input and output are {BYTES:,} bytes, the external memory of icebreaker has 131,072"


def test_bytes_of_a_layer():
    layer = Layer.conv(K=3, C=2, OY=4, OX=5, FY=1, FX=1)
    assert layer_bytes(layer, 8, 8) == 3 * 2 + 2 * 4 * 5 + 3 * 4 * 5
    assert layer_bytes(layer, 1, 1) == -(-(6 + 40 + 60) // 8) and layer_bytes(layer, 16, 0) == 12


def test_the_edge():
    board = load_board("icebreaker")  # 128 KiB
    exact, over = Layer.linear(K=127, C=1023), Layer.linear(K=127, C=1024)
    assert layer_bytes(exact, 8, 8) == 127 * 1023 + 1023 + 127 == 131071 and excess(exact, board, 8, 8) is None
    assert excess(over, board, 8, 8) is not None and excess(over, board, 4, 8) is None
    assert excess(LARGE, load_board("papilio-pro"), 8, 8) is None
    assert excess(LARGE, load_board("vc707"), 8, 8) is None  # a size that is not known


def test_it_is_said_before_a_design_is_chosen():
    board = load_board("icebreaker")
    for call in (lambda: check_external_memory(LARGE, board, 8, 8), lambda: choose(LARGE, board),
                 lambda: choose(LARGE, board, design=Design(rows=1, cols=4, bus_bits=32))):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == (f"--board: {REASON}, got 'icebreaker'; use a smaller layer or batch, fewer bits, or another board")


def test_a_sweep_refuses_the_points(capsys, tmp_path):
    space = tmp_path / "space.yaml"
    space.write_text("rows: 1\ncols: [1, 2]\ninput_depth: 512\nweight_depth: 512\noutput_depth: 512\n")
    assert run(["sweep", str(LARGE), "--board", "icebreaker", "--space", str(space), "--out", str(tmp_path / "out")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "external_memory: 2 points" in out and f"cannot be mapped: layer layer: {REASON}" in out
