"""What the device families are made of: multipliers, block RAMs and distributed RAM, as synthesis uses them.

Facts of the families, the same for every device; how many of each a device has is in ``boards/devices/``. Sizes and widths were read in
the libraries of Yosys 0.70 (``share/*/brams*.txt``, ``lutrams*.txt``, ``urams.txt``, ``cells_sim*.v``; a test does it again); each
``source`` is the vendor's guide to the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Family(StrEnum):
    """Device families."""

    SPARTAN6 = "xc6s"
    SERIES7 = "xc7"
    ULTRASCALE_PLUS = "xcup"
    ECP5 = "ecp5"
    ICE40 = "ice40"
    GOWIN = "gowin"


class DspKind(StrEnum):
    """Multipliers."""

    DSP48A1 = "DSP48A1"
    DSP48E1 = "DSP48E1"
    DSP48E2 = "DSP48E2"
    MULT18X18D = "MULT18X18D"
    SB_MAC16 = "SB_MAC16"
    MULT18X18 = "MULT18X18"


class RamKind(StrEnum):
    """Block RAMs, and the halves into which some of them split."""

    RAMB16 = "RAMB16"
    RAMB8 = "RAMB8"
    RAMB36 = "RAMB36"
    RAMB18 = "RAMB18"
    URAM = "URAM288"
    DP16KD = "DP16KD"
    SB_RAM40_4K = "SB_RAM40_4K"
    SPRAM = "SB_SPRAM256KA"
    BSRAM = "BSRAM"


@dataclass(frozen=True)
class Dsp:
    """A multiplier of ``a_bits`` x ``b_bits`` signed. ``accumulator_bits``: of the adder and register behind it in the same block, 0 for
    none (ECP5's and Gowin's ALU is a block of its own). ``pre_adder_bits``: of the adder before it, 0 for none."""

    a_bits: int
    b_bits: int
    accumulator_bits: int
    pre_adder_bits: int
    source: str


@dataclass(frozen=True)
class Ram:
    """A block RAM. ``widths``: (depth, widest word) from the shallowest, with one port that writes and one that reads.
    ``ports``: 1 for a RAM that reads or writes in a cycle. ``half``: two of that kind fit in its place."""

    bits: int
    widths: tuple[tuple[int, int], ...]
    ports: int
    source: str
    half: RamKind | None = None

    @property
    def port_bits(self) -> int:
        """What it delivers in a cycle through one port."""
        return max(width for _, width in self.widths)


@dataclass(frozen=True)
class DistributedRam:
    """RAM in look-up tables: ``depth`` words of ``width_bits`` take ``luts`` of them, one port that writes and one that reads."""

    kind: str
    depth: int
    width_bits: int
    luts: int
    source: str


@dataclass(frozen=True)
class FamilyFacts:
    """``lut_inputs`` of a look-up table; ``large_rams``: kinds of RAM beside the block RAM that some devices have."""

    title: str
    lut_inputs: int
    dsp: DspKind
    block_ram: RamKind
    large_ram: RamKind | None
    distributed_ram: DistributedRam | None


_9_KB = ((256, 36), (512, 18), (1024, 9), (2048, 4), (4096, 2), (8192, 1))
_18_KB = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
_36_KB = ((512, 72), (1024, 36), (2048, 18), (4096, 9), (8192, 4), (16384, 2), (32768, 1))

DSPS = {
    DspKind.DSP48A1: Dsp(18, 18, 48, 18, "Xilinx UG389"),
    DspKind.DSP48E1: Dsp(25, 18, 48, 25, "Xilinx UG479"),
    DspKind.DSP48E2: Dsp(27, 18, 48, 27, "Xilinx UG579"),
    DspKind.MULT18X18D: Dsp(18, 18, 0, 18, "Lattice FPGA-TN-02205; the adder is PRADD18A, the accumulator ALU54B"),
    DspKind.SB_MAC16: Dsp(16, 16, 32, 0, "Lattice FPGA-TN-02007"),
    DspKind.MULT18X18: Dsp(18, 18, 0, 18, "Gowin UG287; the adder is PADD18, the accumulator ALU54D"),
}

RAMS = {
    RamKind.RAMB16: Ram(18432, _18_KB, 2, "Xilinx UG383", half=RamKind.RAMB8),
    RamKind.RAMB8: Ram(9216, _9_KB, 2, "Xilinx UG383"),
    RamKind.RAMB36: Ram(36864, _36_KB, 2, "Xilinx UG473, UG573", half=RamKind.RAMB18),
    RamKind.RAMB18: Ram(18432, _18_KB, 2, "Xilinx UG473, UG573"),
    RamKind.URAM: Ram(294912, ((4096, 72),), 2, "Xilinx UG573; its two ports share a clock"),
    RamKind.DP16KD: Ram(18432, _18_KB, 2, "Lattice FPGA-TN-02204; 36 bits as PDPW16KD"),
    RamKind.SB_RAM40_4K: Ram(4096, ((256, 16), (512, 8), (1024, 4), (2048, 2)), 2, "Lattice FPGA-TN-02002"),
    RamKind.SPRAM: Ram(262144, ((16384, 16),), 1, "Lattice FPGA-TN-02022"),
    RamKind.BSRAM: Ram(18432, _18_KB, 2, "Gowin UG285; 36 bits as SDPX9B"),
}

_RAM32M = DistributedRam("RAM32M", 32, 6, 4, "Xilinx UG384, UG474: three read ports of two bits")

FAMILIES = {
    Family.SPARTAN6: FamilyFacts("Xilinx Spartan-6", 6, DspKind.DSP48A1, RamKind.RAMB16, None, _RAM32M),
    Family.SERIES7: FamilyFacts("Xilinx 7 series", 6, DspKind.DSP48E1, RamKind.RAMB36, None, _RAM32M),
    Family.ULTRASCALE_PLUS: FamilyFacts(
        "Xilinx UltraScale+", 6, DspKind.DSP48E2, RamKind.RAMB36, RamKind.URAM,
        DistributedRam("RAM32M16", 32, 14, 8, "Xilinx UG574: seven read ports of two bits")),
    Family.ECP5: FamilyFacts(
        "Lattice ECP5", 4, DspKind.MULT18X18D, RamKind.DP16KD, None,
        DistributedRam("TRELLIS_DPR16X4", 16, 4, 6, "Lattice FPGA-TN-02204: two slices of RAM and one for the write port")),
    Family.ICE40: FamilyFacts("Lattice iCE40", 4, DspKind.SB_MAC16, RamKind.SB_RAM40_4K, RamKind.SPRAM, None),
    Family.GOWIN: FamilyFacts("Gowin", 4, DspKind.MULT18X18, RamKind.BSRAM, None,
                              DistributedRam("RAM16SDP4", 16, 4, 4, "Gowin UG288")),
}
"""In the order in which `nearmac boards` lists them."""
