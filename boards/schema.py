"""What a device and a board offer. Every figure keeps its source and how far it can be trusted.

In YAML a figure is ``{value: 5720, source: "DS160 table 1", trust: read}``, or the bare value, which is then unverified.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from boards.errors import InputError

BUS_BITS = (16, 32, 64, 128, 256)
MIN_CLOCK_MHZ, MAX_CLOCK_MHZ = 1, 1000
UNSTATED = "no source stated"

T = TypeVar("T", int, float)


class Trust(StrEnum):
    """How a figure is known."""

    READ = "read"  # seen at the source named
    COMPUTED = "computed"  # arithmetic on figures that were read
    UNVERIFIED = "unverified"  # nobody has opened the source yet
    ASSUMPTION = "assumption"  # chosen, not a property of the part


class Family(StrEnum):
    """Device families whose primitives the generators and estimators know."""

    SPARTAN6 = "xc6s"


class DspKind(StrEnum):
    """DSP blocks. DSP48A1: 18 x 18 signed multiplier, 48-bit accumulator."""

    DSP48A1 = "DSP48A1"


class BlockRamKind(StrEnum):
    """Block RAMs. RAMB16: 18 Kb, 512 x 36 to 16 K x 1, two ports."""

    RAMB16 = "RAMB16"


class MemoryKind(StrEnum):
    """External memories, by interface."""

    SRAM = "SRAM"
    PSRAM = "PSRAM"
    SDR = "SDR"
    LPDDR = "LPDDR"
    DDR2 = "DDR2"
    DDR3 = "DDR3"


BLOCK_RAM_BITS = {BlockRamKind.RAMB16: 18432}
BLOCK_RAM_PORT_BITS = {BlockRamKind.RAMB16: 36}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Figure(_Model, Generic[T]):
    """A quantity with its provenance; the unit is in the key that holds it."""

    value: T
    source: str = Field(UNSTATED, min_length=1, max_length=500)
    trust: Trust = Field(Trust.UNVERIFIED, strict=False)

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, data: Any) -> Any:
        return data if isinstance(data, dict | Figure) else {"value": data}


def _speed_text(value: Any) -> Any:
    """``speed_grade: -2`` is a number to YAML."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _none_text(value: Any) -> Any:
    """``memory: none`` is text to YAML."""
    return None if value in ("none", "None") else value


def _list_text(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Logic(Figure[Annotated[int, Field(ge=1, le=10_000_000)]]):
    """A count of LUTs, flip-flops, slices or logic cells."""


class Blocks(Figure[Annotated[int, Field(ge=0, le=100_000)]]):
    """A count of hard blocks, 0 for none."""


class Share(Figure[Annotated[float, Field(ge=0, le=1)]]):
    """A part of a whole, 0 to 1."""


class Efficiency(Figure[Annotated[float, Field(gt=0, le=1)]]):
    """The part of a memory's transfers that carries data, above 0 to 1."""


class ClockMHz(Figure[Annotated[float, Field(ge=MIN_CLOCK_MHZ, le=MAX_CLOCK_MHZ)]]):
    """A core clock."""


class ClockInputMHz(Figure[Annotated[float, Field(ge=0.01, le=10_000)]]):
    """An oscillator."""


class RateMTs(Figure[Annotated[float, Field(ge=0.1, le=20_000)]]):
    """Million transfers a second."""


class SizeMiB(Figure[Annotated[float, Field(ge=0.001, le=1_048_576)]]):
    """A memory size."""


class WidthBits(Figure[Annotated[int, Field(ge=4, le=2048)]]):
    """Data pins of a memory."""


class LatencyCycles(Figure[Annotated[int, Field(ge=8, le=10_000)]]):
    """Core cycles; the memory model has no fewer than 8."""


Percent = Annotated[float, Field(gt=0, le=100)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9._+-]*$")]
Text = Annotated[str, Field(min_length=1, max_length=500)]


class Device(_Model):
    """An FPGA.

    ``luts`` (6-input), ``ffs``, ``slices`` and ``logic_cells`` count logic; ``carry_lut_share`` of the LUTs sit in slices with a
    carry chain, ``ram_lut_share`` of them can be RAM. ``dsps`` and ``block_rams`` count whole blocks of their kind (an 18-Kb RAM
    that splits into two of 9 Kb counts once); ``memory_controllers`` are hard ones, 0 for none.
    """

    name: Name
    title: Text | None = None
    family: Family = Field(strict=False)
    luts: Logic
    ffs: Logic
    dsp_kind: DspKind = Field(strict=False)
    dsps: Blocks
    block_ram_kind: BlockRamKind = Field(strict=False)
    block_rams: Blocks
    carry_lut_share: Share
    ram_lut_share: Share
    slices: Logic | None = None
    logic_cells: Logic | None = None
    memory_controllers: Blocks | None = None
    transceivers: Blocks | None = None
    pcie_blocks: Blocks | None = None
    notes: Annotated[tuple[Text, ...], BeforeValidator(_list_text)] = ()

    @property
    def carry_luts(self) -> int:
        """LUTs in slices with a carry chain."""
        return int(_exact(self.carry_lut_share.value) * self.luts.value)

    @property
    def ram_luts(self) -> int:
        """LUTs that can be distributed RAM."""
        return int(_exact(self.ram_lut_share.value) * self.luts.value)

    @property
    def block_ram_bits(self) -> int:
        """Bits of one block RAM, parity included."""
        return BLOCK_RAM_BITS[self.block_ram_kind]

    @property
    def block_ram_read_bits_per_cycle(self) -> int:
        """What all block RAMs together deliver in a cycle through one port each."""
        return self.block_rams.value * BLOCK_RAM_PORT_BITS[self.block_ram_kind]

    @property
    def capacity(self) -> dict[str, int]:
        """Everything that a design uses up: luts, carry_luts, ram_luts, ffs, dsps, block_rams."""
        return {"luts": self.luts.value, "carry_luts": self.carry_luts, "ram_luts": self.ram_luts, "ffs": self.ffs.value,
                "dsps": self.dsps.value, "block_rams": self.block_rams.value}


class Memory(_Model):
    """External memory as a controller drives it.

    ``mt_s``: transfers of ``width_bits`` a second, in millions. ``efficiency``: the share of them that carries data.
    ``latency_cycles``: core cycles from a request to its first beat. ``part_maximum_mt_s``: what part and device allow at most.
    """

    kind: MemoryKind = Field(strict=False)
    part: Text | None = None
    size_mib: SizeMiB | None = None
    width_bits: WidthBits
    mt_s: RateMTs
    efficiency: Efficiency
    latency_cycles: LatencyCycles
    part_maximum_mt_s: RateMTs | None = None
    source: Text = UNSTATED
    trust: Trust = Field(Trust.UNVERIFIED, strict=False)

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
        return self._mb_s(self.mt_s) * _exact(self.efficiency.value)

    def _mb_s(self, rate: RateMTs) -> Fraction:
        return Fraction(self.width_bits.value, 8) * _exact(rate.value)


class Ceilings(_Model):
    """Shares of a device's resources that a design may use, in percent. ``luts_percent`` holds for carry and RAM LUTs too."""

    luts_percent: Percent = 70
    ffs_percent: Percent = 70
    dsps_percent: Percent = 100
    block_rams_percent: Percent = 100


class Board(_Model):
    """A device with a core clock and an external memory, or none. ``source`` and ``trust`` are those of device, package and
    speed grade."""

    name: Name
    title: Text | None = None
    device: Device
    package: Text | None = None
    speed_grade: Annotated[Text | None, BeforeValidator(_speed_text)] = None
    source: Text = UNSTATED
    trust: Trust = Field(Trust.UNVERIFIED, strict=False)
    clock_mhz: ClockMHz = ClockMHz(value=100.0, source="default core clock", trust=Trust.ASSUMPTION)
    clock_input_mhz: ClockInputMHz | None = None
    memory: Annotated[Memory | None, BeforeValidator(_none_text)]
    ceilings: Ceilings = Ceilings()
    notes: Annotated[tuple[Text, ...], BeforeValidator(_list_text)] = ()

    @property
    def usable(self) -> dict[str, int]:
        """``device.capacity`` under the ceilings, rounded down."""
        ceilings = self.ceilings
        percent = {"luts": ceilings.luts_percent, "carry_luts": ceilings.luts_percent, "ram_luts": ceilings.luts_percent,
                   "ffs": ceilings.ffs_percent, "dsps": ceilings.dsps_percent, "block_rams": ceilings.block_rams_percent}
        return {name: int(count * _exact(percent[name]) / 100) for name, count in self.device.capacity.items()}

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
        return self.memory.offered_mb_s_exact / _exact(self._clock(clock_mhz))

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


def _exact(value: float) -> Fraction:
    """The decimal that was written: 0.7 is 7/10, not the nearest binary number."""
    return Fraction(str(value))
