"""What Yosys makes of the hardware: block RAMs and DSP blocks are those that the design says, and the rest is small.

Each synthesis is run once. Block RAMs and DSP blocks are final before flip-flops and look-up tables are mapped, so where nothing else
is asked the flow stops there. `benchmarks/area.py` measures more.
"""

from __future__ import annotations

import importlib.util
import json

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hdl.accelerator import Accelerator
from hdl.array import MacArray
from hdl.bank import Bank
from hdl.design import Design
from hdl.errors import InputError
from hdl.mac import XnorUnit
from hdl.popcount import MatchCounter, compression
from hdl.ram import RamShape, ram_shape
from hdl.synthesis import BLOCKS, Cells, SynthesisError, flow, run_yosys, synthesise, total
from hdl.verilog import component_verilog

LX9_LUTS, LX9_BLOCK_RAMS, LX9_DSPS = 5720, 32, 16

TREE = Design(rows=4, cols=4, input_bytes=32768, weight_bytes=16384, output_bytes=2048, counters=False)
DESIGNS = {  # four on Spartan-6, of every style, and others each on another family
    "tree": TREE,
    "per_column": TREE.with_(accumulate="per_column", accumulator_bits=28),
    "pairs": TREE.with_(multiplier="dsp_pair", family="xc7", lanes=2, output_bytes=64, distributed_depth=16),
    "psum": Design(rows=3, cols=4, output_multiplier="dsp", input_bytes=16384, weight_bytes=6144, psum_bytes=4096),
    "wide": Design(rows=1, cols=2, weight_bits=16, activation_bits=16, accumulator_bits=40, output_multiplier="lut", family="ice40"),
    "xnor": Design(rows=4, cols=64, weight_bits=1, activation_bits=1, multiplier="lut", accumulator_bits=16, input_bytes=8192,
                   weight_bytes=8192, output_bytes=1024, drains=2, bus_bits=32, counters=False),
    "narrow": Design(rows=2, cols=2, weight_bits=4, activation_bits=4, multiplier="dsp_pair", output_multiplier="dsp", family="gowin"),
}


def test_the_plain_command_goes_to_its_end(tmp_path):
    """ABC9, its last stage, stops where an element of an array is called like a bit of another signal."""
    pytest.importorskip("pyosys")
    design = Design(rows=1, cols=4, weight_bits=1, activation_bits=1, multiplier="lut", accumulator_bits=12, counters=False)
    (tmp_path / "array.v").write_text(component_verilog(MacArray(design=design), "array"))
    run_yosys(["read_verilog array.v", "synth_xilinx -family xc6s", "tee -q -o stat.json stat -json"], folder=tmp_path)
    cells = Cells(json.loads((tmp_path / "stat.json").read_text())["design"]["num_cells_by_type"])
    assert cells.luts > 20 and cells.flip_flops > 50 and cells.block_rams == cells.dsps == 0


@pytest.mark.parametrize("name", DESIGNS)
def test_blocks_of_whole_accelerators(name):
    pytest.importorskip("pyosys")
    design = DESIGNS[name]
    cells = synthesise(Accelerator(design), family=design.family, run=BLOCKS)[""]
    assert (cells.block_rams, cells.half_block_rams, cells.dsps, cells.distributed_rams) \
        == (design.block_rams, 0, design.dsps, design.distributed_rams)


def test_dsps_of_the_designs():
    assert {name: design.dsps for name, design in DESIGNS.items()} == {
        # 2: an accumulator of 32 bits by 18
        "tree": 16, "per_column": 16, "pairs": 16, "psum": 12 + 2, "wide": 2, "xnor": 0, "narrow": 2 + 2}
    assert TREE.block_rams <= LX9_BLOCK_RAMS and TREE.dsps <= LX9_DSPS


def test_control_is_small():
    """All that is neither array nor banks (which have no look-up tables): the whole less the array by itself."""
    pytest.importorskip("pyosys")
    array = synthesise(MacArray(design=TREE))[""]
    assert array.dsps == TREE.array_dsps
    cells = synthesise(Accelerator(TREE))[""]
    assert cells.luts <= LX9_LUTS
    assert cells.luts - array.luts < 1500
    assert cells.lut_rams - array.lut_rams == 0
    # And it is all there: nothing that was meant to work is driven by a constant or drives nothing.
    assert array.luts > 200
    assert cells.luts - array.luts > 1000
    assert cells.flip_flops > 2500


def test_matching_columns_are_small():
    """Compressors keep their borders until they are mapped."""
    pytest.importorskip("pyosys")
    cells = synthesise(MatchCounter(bits=64))[""]
    assert 0.95 * compression(64).luts <= cells.luts <= 1.35 * 64
    assert cells.flip_flops <= 0.8 * 64 and cells.lut_rams <= 2


def test_all_of_a_binary_row_is_small():
    """Matches, mask, accumulator and capture; what an array adds is in docs/resources.md."""
    pytest.importorskip("pyosys")
    design = DESIGNS["xnor"].with_(cols=128, family="xc7")
    cells = synthesise(XnorUnit(design=design), family=design.family)[""]
    assert compression(128).luts <= cells.luts + cells.lut_rams <= 1.6 * 128
    assert cells.flip_flops <= 1.5 * 128  # 2.5 with the operands, which rows and lanes share


class Banks(wiring.Component):
    """Banks side by side, all with their own ports."""

    def __init__(self, shapes: list[RamShape]) -> None:
        self.banks = [Bank(shape=shape, word_bits=sum(shape.slice_bits)) for shape in shapes]
        super().__init__({f"bank_{number}": Out(bank.signature) for number, bank in enumerate(self.banks)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for number, bank in enumerate(self.banks):
            m.submodules[f"bank_{number}"] = bank
            wiring.connect(m, wiring.flipped(getattr(self, f"bank_{number}")), bank)
        return m


def test_banks_are_whole_block_rams():
    pytest.importorskip("pyosys")
    asked = [(width, entries) for width, depths in {
        1: (1, 16384), 2: (8192,), 4: (3000,), 5: (4096,), 8: (512, 2048), 9: (2049,), 10: (1024,), 16: (1024,), 18: (513,),
        19: (512,), 20: (1000,), 32: (512, 1024, 8192), 36: (512,), 37: (512, 1024), 48: (512,), 54: (512,), 55: (512,),
        64: (512, 1024), 72: (600,), 73: (512,), 128: (512,)}.items() for entries in depths]
    shapes = [ram_shape(width, entries) for width, entries in asked]
    cells = synthesise(Banks(shapes), flatten=False, run=BLOCKS)
    for number, ((width, entries), shape) in enumerate(zip(asked, shapes, strict=True)):
        assert sum(shape.slice_bits) == width and shape.depth >= entries
        bank = total(cells, f"bank_{number}")
        # What else there is, the wires between the parts of a word, is not mapped yet.
        assert {kind: count for kind, count in bank.by_type.items() if not kind.startswith("$")} == {"RAMB16BWER": shape.blocks}, \
            (width, entries)


@pytest.mark.parametrize(("family", "block_rams"), [("xc6s", 1), ("ecp5", 1), ("ice40", 4), ("gowin", 1)])
def test_collisions_are_not_emulated(family, block_rams):
    """The attribute that allows it is in the Verilog: there is RAM and nothing else."""
    pytest.importorskip("pyosys")
    cells = synthesise(Bank(shape=ram_shape(32, 512), word_bits=32), family=family)[""]
    assert (cells.luts, cells.flip_flops, cells.lut_rams, cells.block_rams) == (0, 0, 0, block_rams)


def test_collisions_would_be_emulated(tmp_path):
    """Without the attribute, the same text becomes much more."""
    pytest.importorskip("pyosys")
    text = component_verilog(Bank(shape=ram_shape(32, 512), word_bits=32), "top")
    unmarked = text.replace(", no_rw_check = 1", "")
    assert unmarked != text
    (tmp_path / "top.v").write_text(unmarked)
    run_yosys(["read_verilog top.v", *flow("ecp5", "top"), "tee -q -o stat.json stat -json"], folder=tmp_path)
    cells = Cells(json.loads((tmp_path / "stat.json").read_text())["design"]["num_cells_by_type"])
    assert cells.block_rams == 1 and cells.luts > 20 and cells.flip_flops > 32


def test_unknown_family():
    with pytest.raises(InputError) as error:
        synthesise(Bank(shape=ram_shape(8, 512), word_bits=8), family="xc6")
    assert str(error.value) == ("family: no synthesis flow for this family, got 'xc6'; allowed: xc6s, xc7, xcup, ecp5, ice40, gowin; "
                                "nearest: xc6s")


def test_extra_missing(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError) as error:
        synthesise(Bank(shape=ram_shape(8, 512), word_bits=8))
    assert str(error.value) == "synthesis needs Yosys, which is not installed; pip install 'nearmac[synth]'"


def test_yosys_fails(tmp_path):
    pytest.importorskip("pyosys")
    with pytest.raises(SynthesisError) as error:
        run_yosys(["read_verilog none.v", "stat"], folder=tmp_path)
    assert error.value.command == ("read_verilog none.v", "stat")
    assert error.value.status == 1
    assert "File `none.v' not found" in error.value.last_lines
    assert str(error.value) == f"synthesis failed with status 1: read_verilog none.v; stat\n{error.value.last_lines}"


def test_cells_add_up():
    parts = {"": Cells({"LUT6": 1}), "a": Cells({"LUT2": 2, "INV": 1}), "a.b": Cells({"FDRE": 3, "SRL16E": 1}),
             "ab": Cells({"RAMB16BWER": 4, "RAMB8BWER": 1, "DSP48A1": 1, "CARRY4": 2, "MUXF7": 1})}
    under_a, everything = total(parts, "a"), total(parts)
    assert under_a.by_type == {"LUT2": 2, "INV": 1, "FDRE": 3, "SRL16E": 1}
    assert (everything.luts, everything.inverters, everything.flip_flops, everything.lut_rams, everything.carries, everything.muxes) \
        == (3, 1, 3, 1, 2, 1)
    assert (everything.dsps, everything.block_rams, everything.half_block_rams) == (1, 4, 1)
