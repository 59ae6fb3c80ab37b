"""Facts of the families against the libraries of Yosys."""

from __future__ import annotations

import re
from pathlib import Path

import pyosys
import pytest

from boards.primitives import DSPS, FAMILIES, RAMS, DspKind, Family, RamKind

SHARE = Path(pyosys.__file__).parent / "share"


def ram(file: str, name: str, option: str = "") -> tuple[int, int]:
    """(address bits, widest word) of a RAM in a Yosys library; the depth is that of its narrowest word, 1 bit of the widths listed."""
    text = (SHARE / file).read_text()
    block = text[text.index(f"ram {name} "):]
    block = block[block.index(option):]
    found = re.search(r"abits (\d+);\s+widths? ([\d ]+)", block)
    assert found
    return int(found[1]), max(map(int, found[2].split()))


@pytest.mark.parametrize(("kind", "file", "name", "option", "widest"), [
    (RamKind.RAMB16, "xilinx/brams_xc3sda.txt", "block $__XILINX_BLOCKRAM_TDP_", "abits 14", 36),
    (RamKind.RAMB8, "xilinx/brams_xc3sda.txt", "block $__XILINX_BLOCKRAM_SDP_", "", 36),
    (RamKind.DP16KD, "lattice/brams_16kd.txt", "block $__PDPW16KD_", "", 36),
    (RamKind.SB_RAM40_4K, "ice40/brams.txt", "block $__ICE40_RAM4K_", "", 16),
    (RamKind.BSRAM, "gowin/brams.txt", "block $__GOWIN_SDP_", "", 36),
])
def test_block_rams(kind, file, name, option, widest):
    address_bits, width = ram(file, name, option)
    shapes = dict(RAMS[kind].widths)
    data_bits = 1 << address_bits if kind is not RamKind.SB_RAM40_4K else 4096  # its narrowest word has 2 bits
    assert width == widest == RAMS[kind].port_bits
    assert all(depth * (1 << (word.bit_length() - 1)) == data_bits for depth, word in shapes.items())
    assert RAMS[kind].bits == max(depth * word for depth, word in shapes.items())


@pytest.mark.parametrize(("kind", "file", "name"), [
    (RamKind.URAM, "xilinx/urams.txt", "huge $__XILINX_URAM_"), (RamKind.SPRAM, "ice40/spram.txt", "huge $__ICE40_SPRAM_")])
def test_large_rams(kind, file, name):
    address_bits, width = ram(file, name)
    assert RAMS[kind].widths == ((1 << address_bits, width),) and RAMS[kind].bits == width << address_bits


def test_halves():
    for kind, found in RAMS.items():
        if found.half:
            assert RAMS[found.half].bits * 2 == found.bits, kind
    assert RAMS[RamKind.RAMB36].half is RamKind.RAMB18 and dict(RAMS[RamKind.RAMB18].widths) == dict(RAMS[RamKind.RAMB16].widths)


@pytest.mark.parametrize(("kind", "file", "a_port", "b_port", "result"), [
    (DspKind.DSP48A1, "xilinx/cells_sim.v", "A", "B", "P"),
    (DspKind.DSP48E1, "xilinx/cells_sim.v", "D", "B", "P"),  # A is wider, for the adder: the multiplier takes what D has
    (DspKind.DSP48E2, "xilinx/cells_xtra.v", "D", "B", "P"),
    (DspKind.SB_MAC16, "ice40/cells_sim.v", "A", "B", "O"),
    (DspKind.MULT18X18, "gowin/cells_xtra_gw2a.v", "A", "B", None),
])
def test_multipliers(kind, file, a_port, b_port, result):
    text = (SHARE / file).read_text()
    start = re.search(rf"^module {kind}\b", text, re.MULTILINE)
    assert start
    block = text[start.start():text.index("endmodule", start.start())]
    vectors = re.findall(r"(?:input|output)(?: reg| wire)?(?: signed)?\s*\[(\d+):0\]\s*([\w, ]+)", block)
    widths = {name: int(high) + 1 for high, names in vectors
              for name in re.findall(r"\w+", names)}
    assert (DSPS[kind].a_bits, DSPS[kind].b_bits) == (widths[a_port], widths[b_port])
    assert DSPS[kind].accumulator_bits == (widths[result] if result else 0)


def test_a_multiplier_with_a_pin_a_bit():
    text = (SHARE / "lattice" / "cells_bb_ecp5.v").read_text()
    block = text[text.index("module MULT18X18D("):]
    pins = re.findall(r"^ +input ([AB])\d+;", block[:block.index("endmodule")], re.MULTILINE)
    found = DSPS[DspKind.MULT18X18D]
    assert (found.a_bits, found.b_bits, found.accumulator_bits) == (pins.count("A"), pins.count("B"), 0) == (18, 18, 0)


@pytest.mark.parametrize(("family", "file", "name", "option"), [
    (Family.SPARTAN6, "xilinx/lutrams_xc5v.txt", "distributed $__XILINX_LUTRAM_SDP_", 'option "ABITS" 5'),
    (Family.SERIES7, "xilinx/lutrams_xc5v.txt", "distributed $__XILINX_LUTRAM_SDP_", 'option "ABITS" 5'),
    (Family.ULTRASCALE_PLUS, "xilinx/lutrams_xcu.txt", "distributed $__XILINX_LUTRAM_SDP_", 'option "ABITS" 5'),
    (Family.ECP5, "lattice/lutrams_trellis.txt", "distributed $__TRELLIS_DPR16X4_", ""),
    (Family.GOWIN, "gowin/lutrams.txt", "distributed $__GOWIN_LUTRAM_", ""),
])
def test_distributed_rams(family, file, name, option):
    found = FAMILIES[family].distributed_ram
    address_bits, width = ram(file, name, option)
    assert found is not None and (found.depth, found.width_bits) == (1 << address_bits, width)
    assert found.luts * (1 << FAMILIES[family].lut_inputs) >= found.depth * found.width_bits


def test_families():
    assert list(FAMILIES) == list(Family) and FAMILIES[Family.ICE40].distributed_ram is None
    assert {facts.lut_inputs for facts in FAMILIES.values()} == {4, 6}
