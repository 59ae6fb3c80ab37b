"""What a device and a board offer. Every figure keeps its source and how far it can be trusted (:mod:`boards.figures`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated

from boards.clocks import default_clock
from boards.errors import InputError
from boards.figures import (
    MAX_CLOCK_MHZ,
    MIN_CLOCK_MHZ,
    UNSTATED,
    Blocks,
    ClockInputMHz,
    ClockMHz,
    Efficiency,
    LatencyCycles,
    Limit,
    Logic,
    Name,
    Percent,
    RateMTs,
    Share,
    SizeMiB,
    Text,
    Trust,
    WidthBits,
)
from boards.primitives import DSPS, FAMILIES, RAMS, DistributedRam, Dsp, DspKind, Family, FamilyFacts, Ram, RamKind

BUS_BITS = (16, 32, 64, 128, 256)
RESOURCES = ("luts", "ffs", "dsps", "block_rams", "large_rams")


class MemoryKind(StrEnum):
    """External memories, by interface. SPRAM is on the chip and stands in for an external memory on boards that have none."""

    SRAM = "SRAM"
    PSRAM = "PSRAM"
    SDR = "SDR"
    LPDDR = "LPDDR"
    LPDDR4 = "LPDDR4"
    DDR2 = "DDR2"
    DDR3 = "DDR3"
    DDR4 = "DDR4"
    SPRAM = "SPRAM"


@dataclass(frozen=True)
class Ceilings:
    """Shares of a device's resources that a design may use. ``luts_percent`` holds for carry and RAM LUTs too. One that is not
    given on a board is its device's, and else :data:`DEFAULT_CEILINGS`."""

    luts_percent: Percent | None = None
    ffs_percent: Percent | None = None
    dsps_percent: Percent | None = None
    block_rams_percent: Percent | None = None
    large_rams_percent: Percent | None = None


_ROOM, _ALL = "room for placement and routing", "hard blocks can all be used"
DEFAULT_CEILINGS = Ceilings(
    Percent(70.0, _ROOM, Trust.ASSUMPTION), Percent(70.0, _ROOM, Trust.ASSUMPTION), Percent(100.0, _ALL, Trust.ASSUMPTION),
    Percent(100.0, _ALL, Trust.ASSUMPTION), Percent(100.0, _ALL, Trust.ASSUMPTION))


@dataclass(frozen=True, kw_only=True)
class Device:
    """An FPGA.

    ``luts`` (of 6 or 4 inputs, by family), ``ffs``, ``slices`` and ``logic_cells`` count logic; ``carry_lut_share`` of the LUTs sit where
    there is a carry chain, ``ram_lut_share`` of them can be RAM. ``dsps`` and ``block_rams`` count whole blocks of their kind (an 18-Kb RAM
    that splits into two of 9 Kb counts once, and so does a 36-Kb one); ``large_rams`` those of a second kind, such as URAM;
    ``memory_controllers`` are hard ones, 0 for none.
    """

    name: Name
    title: Text | None = None
    family: Family
    luts: Logic
    ffs: Logic
    dsp_kind: DspKind
    dsps: Blocks
    block_ram_kind: RamKind
    block_rams: Blocks
    large_ram_kind: RamKind | None = None
    large_rams: Blocks | None = None
    carry_lut_share: Share
    ram_lut_share: Share
    slices: Logic | None = None
    logic_cells: Logic | None = None
    memory_controllers: Blocks | None = None
    transceivers: Blocks | None = None
    pcie_blocks: Blocks | None = None
    ceilings: Ceilings = Ceilings()
    notes: tuple[Text, ...] = ()

    @property
    def carry_luts(self) -> int:
        """LUTs with a carry chain."""
        return int(self.carry_lut_share.exact * self.luts.value)

    @property
    def ram_luts(self) -> int:
        """LUTs that can be distributed RAM."""
        return int(self.ram_lut_share.exact * self.luts.value)

    @property
    def facts(self) -> FamilyFacts:
        """What is the same for the whole family."""
        return FAMILIES[self.family]

    @property
    def lut_inputs(self) -> int:
        """Inputs of a look-up table."""
        return self.facts.lut_inputs

    @property
    def dsp(self) -> Dsp:
        """Widths of a DSP block."""
        return DSPS[self.dsp_kind]

    @property
    def block_ram(self) -> Ram:
        """Sizes of a block RAM."""
        return RAMS[self.block_ram_kind]

    @property
    def large_ram(self) -> Ram | None:
        """Sizes of a RAM of the second kind."""
        return RAMS[self.large_ram_kind] if self.large_ram_kind else None

    @property
    def distributed_ram(self) -> DistributedRam | None:
        """RAM in look-up tables, where the family has it."""
        return self.facts.distributed_ram

    @property
    def block_ram_bits(self) -> int:
        """Bits of one block RAM, parity included."""
        return self.block_ram.bits

    @property
    def block_ram_read_bits_per_cycle(self) -> int:
        """What all block RAMs together deliver in a cycle through one port each."""
        return self.block_rams.value * self.block_ram.port_bits

    @property
    def capacity(self) -> dict[str, int]:
        """Everything that a design uses up: luts, carry_luts, ram_luts, ffs, dsps, block_rams, large_rams."""
        return {"luts": self.luts.value, "carry_luts": self.carry_luts, "ram_luts": self.ram_luts, "ffs": self.ffs.value,
                "dsps": self.dsps.value, "block_rams": self.block_rams.value,
                "large_rams": self.large_rams.value if self.large_rams else 0}


@dataclass(frozen=True, kw_only=True)
class Memory:
    """External memory as a controller drives it.

    ``mt_s``: transfers of ``width_bits`` a second, in millions. ``efficiency``: the share of them that carries data.
    ``latency_cycles``: core cycles from a request to its first beat. ``part_maximum_mt_s``: what part and device allow at most.
    """

    kind: MemoryKind
    part: Text | None = None
    size_mib: SizeMiB | None = None
    width_bits: WidthBits
    mt_s: RateMTs
    efficiency: Efficiency
    latency_cycles: LatencyCycles
    part_maximum_mt_s: RateMTs | None = None
    source: Text = UNSTATED
    trust: Trust = Trust.UNVERIFIED

    @property
    def peak_mb_s(self) -> float:
        """width x rate, in 1e6 bytes a second."""
        return float(self._mb_s(self.mt_s))

    @property
    def part_maximum_mb_s(self) -> float | None:
        """The same at the part's maximum rate, where that is known."""
        return float(self._mb_s(self.part_maximum_mt_s)) if self.part_maximum_mt_s else None

    @property
    def offered_mb_s_exact(self) -> Fraction:
        """Peak x efficiency, as the decimal figures of the profile say it."""
        return self._mb_s(self.mt_s) * self.efficiency.exact

    @property
    def size_bytes(self) -> int | None:
        """Its size, where that is known."""
        return int(self.size_mib.exact * (1 << 20)) if self.size_mib else None

    def _mb_s(self, rate: RateMTs) -> Fraction:
        return Fraction(self.width_bits.value, 8) * rate.exact


@dataclass(frozen=True, kw_only=True)
class Board:
    """A device with a core clock and an external memory, or none. ``source`` and ``trust`` are those of device, package and
    speed grade. Without a clock it is the family's default for the speed grade (:mod:`boards.clocks`). ``amaranth``: module and class
    of the board in the package amaranth-boards, where it has pins."""

    name: Name
    title: Text | None = None
    device: Device
    package: Text | None = None
    speed_grade: Text | None = None
    source: Text = UNSTATED
    trust: Trust = Trust.UNVERIFIED
    clock_mhz: ClockMHz = None  # type: ignore[assignment]  # filled in below
    clock_input_mhz: ClockInputMHz | None = None
    memory: Memory | None
    ceilings: Ceilings = Ceilings()
    amaranth: Annotated[str, Limit(shortest=1, longest=200, pattern=r"^[a-z0-9_]+:[A-Za-z0-9_]+$", words="module:Class")] | None = None
    notes: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if self.clock_mhz is None:
            object.__setattr__(self, "clock_mhz", default_clock(self.device.family, self.speed_grade))

    def ceiling(self, resource: str) -> Percent:
        """The share of a resource (``"luts"``) that a design may use."""
        name = f"{resource}_percent"
        found = (getattr(ceilings, name) for ceilings in (self.ceilings, self.device.ceilings, DEFAULT_CEILINGS))
        return next(percent for percent in found if percent is not None)

    @property
    def usable(self) -> dict[str, int]:
        """``device.capacity`` under the ceilings, rounded down."""
        kinds = {"carry_luts": "luts", "ram_luts": "luts"}
        return {name: int(count * self.ceiling(kinds.get(name, name)).exact / 100) for name, count in self.device.capacity.items()}

    @property
    def peak_mb_s(self) -> float:
        """Peak bandwidth of the external memory, 1e6 bytes a second; 0 without one."""
        return self.memory.peak_mb_s if self.memory else 0.0

    @property
    def offered_mb_s(self) -> float:
        """Peak x efficiency; 0 without external memory."""
        return float(self.memory.offered_mb_s_exact) if self.memory else 0.0

    def offered_bytes_per_cycle(self, clock_mhz: float | None = None) -> Fraction:
        """Bytes that the external memory moves per core cycle, on average and exactly."""
        if self.memory is None:
            raise InputError(f"board {self.name} has no external memory", where="--board", value=self.name,
                             suggestion="choose a board with one (nearmac boards)")
        return self.memory.offered_mb_s_exact / Fraction(str(self._clock(clock_mhz)))

    def offered_beats_per_cycle(self, bus_bits: int, clock_mhz: float | None = None) -> Fraction:
        """Beats of ``bus_bits`` (16 to 256) per core cycle, exactly; at most 1, for the bus moves one a cycle."""
        if isinstance(bus_bits, bool) or bus_bits not in BUS_BITS:
            raise InputError("not a bus width", where="bus_bits", value=bus_bits, allowed=", ".join(map(str, BUS_BITS)))
        return min(Fraction(1), self.offered_bytes_per_cycle(clock_mhz) / (bus_bits // 8))

    def default_bus_bits(self, clock_mhz: float | None = None) -> int:
        """The narrowest bus that takes all the external memory offers; the widest when none does."""
        offered = self.offered_bytes_per_cycle(clock_mhz)
        return next((bits for bits in BUS_BITS if bits // 8 >= offered), BUS_BITS[-1])

    def _clock(self, clock_mhz: float | None) -> float:
        if clock_mhz is None:
            return self.clock_mhz.value
        number = isinstance(clock_mhz, int | float) and not isinstance(clock_mhz, bool)
        if not number or not MIN_CLOCK_MHZ <= clock_mhz <= MAX_CLOCK_MHZ:
            raise InputError("clock out of range", where="clock_mhz", value=clock_mhz,
                             allowed=f"{MIN_CLOCK_MHZ} to {MAX_CLOCK_MHZ} (MHz)")
        return clock_mhz
