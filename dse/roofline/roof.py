"""Rooflines: the most operations a second that a board or machine attains on work of a given intensity.

``attainable = min(peak, bandwidth * intensity)``, the intensity in operations for each byte that crosses the external memory channel: S.
Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures", Communications of the
ACM 52(4), 2009. Intensities here count compulsory bytes, which no schedule can do without, so no design lands above its roof.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from boards.errors import InputError
from boards.loader import list_machines, load_board, load_machine
from boards.machine import Machine
from boards.primitives import Family
from boards.schema import Board
from dse.choose import with_smallest_banks
from dse.estimate.resources import estimate_resources, usable
from hdl.design import MAX_ARRAY, MAX_COLS, MAX_MULTIPLIER_COLS, Accumulate, Design, Multiplier, OutputMultiplier

COLUMNS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Widths of dot products among which the cheapest in look-up tables is taken."""
SIGNIFICANT_BITS = {"fp16": 11, "fp32": 24, "fp64": 53}
"""Whole numbers of so many bits are exact in these formats (IEEE 754); others hold their own width."""


@dataclass(frozen=True)
class Roof:
    """Compute and memory roof of a board or a machine (all its devices together).

    ``precision``: of the work. ``weight_bits``, ``activation_bits``: of elements as they travel, wider than the work's where a machine has
    no such format. ``limit``: what the peak is made of; ``is_estimate``: look-up tables limit it, whose count is a rough estimate.
    ``on_chip_bytes_per_cycle``: what all block RAMs read through one port each. ``link_mb_s``: of all devices together, between them.
    """

    machine: str
    precision: str
    weight_bits: int
    activation_bits: int
    peak_gops: float
    mb_s: float
    limit: str
    is_estimate: bool = False
    clock_mhz: float | None = None
    on_chip_bytes_per_cycle: float | None = None
    link_mb_s: float | None = None

    @property
    def name(self) -> str:
        return f"{self.machine} {self.precision}"

    @property
    def ridge_ops_per_byte(self) -> float:
        """The intensity above which compute is the roof."""
        return self.peak_gops * 1000 / self.mb_s

    @property
    def bytes_per_cycle(self) -> float | None:
        """Of the external memory, where there is a clock."""
        return self.mb_s / self.clock_mhz if self.clock_mhz else None

    @property
    def ops_per_cycle(self) -> float | None:
        return self.peak_gops * 1000 / self.clock_mhz if self.clock_mhz else None

    def memory_gops(self, ops_per_byte: float) -> float:
        """The memory roof at an intensity."""
        return self.mb_s * ops_per_byte / 1000

    def attainable_gops(self, ops_per_byte: float) -> float:
        return min(self.peak_gops, self.memory_gops(ops_per_byte))

    def bound(self, ops_per_byte: float) -> str:
        """``compute`` or ``memory``: which roof is lower."""
        return "compute" if ops_per_byte >= self.ridge_ops_per_byte else "memory"

    def to_dict(self) -> dict[str, Any]:
        return {"machine": self.machine, "precision": self.precision, "weight_bits": self.weight_bits,
                "activation_bits": self.activation_bits, "peak_gops": self.peak_gops, "external_mb_s": self.mb_s,
                "ridge_ops_per_byte": self.ridge_ops_per_byte, "clock_mhz": self.clock_mhz, "bytes_per_cycle": self.bytes_per_cycle,
                "ops_per_cycle": self.ops_per_cycle, "on_chip_bytes_per_cycle": self.on_chip_bytes_per_cycle,
                "link_mb_s": self.link_mb_s, "limit": self.limit, "is_estimate": self.is_estimate}


def load_target(name: str, *, where: str = "--board") -> Board | Machine:
    """A board or a reference machine, by name or file of a board. Raises InputError."""
    if name in list_machines():
        return load_machine(name)
    try:
        return load_board(name)
    except InputError as error:
        if error.what != "unknown board":
            raise
        raise InputError("unknown board or machine", where=where, value=name, allowed=f"{error.allowed}; {', '.join(list_machines())}",
                         suggestion=error.suggestion) from None


def roof_of(target: Board | Machine, weight_bits: int, activation_bits: int, *, clock_mhz: float | None = None) -> Roof:
    """The roof for work of a precision. ``clock_mhz``: of a board's core, by default the board's.

    Raises InputError for a board without external memory, and for a machine that has no format as wide.
    """
    if isinstance(target, Machine):
        return _machine_roof(target, weight_bits, activation_bits)
    clock = target.clock_mhz.value if clock_mhz is None else clock_mhz
    bytes_per_cycle = target.offered_bytes_per_cycle(clock)  # refuses a board without memory
    macs, limit, is_estimate = most_macs(target, weight_bits, activation_bits)
    device = target.device
    return Roof(target.name, f"w{weight_bits}a{activation_bits}", weight_bits, activation_bits, 2 * macs * clock / 1000,
                float(bytes_per_cycle) * clock, f"{macs:,} MACs a cycle: {limit}, {clock:g} MHz", is_estimate, clock,
                device.block_ram_read_bits_per_cycle / 8)


# -- boards -----------------------------------------------------------------------------------------------------------


def most_macs(board: Board, weight_bits: int, activation_bits: int) -> tuple[int, str, bool]:
    """(MACs a cycle that no array on the board exceeds, why, whether look-up tables limit them).

    For each kind of multiplier: what its DSP blocks allow (exact), and its look-up tables (an estimate) at the fewest that any array takes
    for a MAC. The kind that allows most counts.
    """
    have, family = usable(board), board.device.family
    found: list[tuple[int, str, bool]] = []
    for multiplier in Multiplier:
        costs = _cheapest(family, weight_bits, activation_bits, multiplier)
        if costs is None:
            continue
        dsps, luts = costs
        by_luts = int(have["luts"] / luts)
        if not dsps:
            found.append((by_luts, f"{have['luts']:,} look-up tables at {luts:.3g} a MAC (estimate)", True))
            continue
        by_dsps = int(have["dsps"] / dsps)
        blocks = f"{have['dsps']:,} DSP blocks, {_a_block(dsps)}"
        if by_luts < by_dsps:
            found.append((by_luts, f"{have['luts']:,} look-up tables at {luts:.3g} a MAC beside DSP blocks (estimate)", True))
        else:
            found.append((by_dsps, blocks, False))
    return max(found)


def _a_block(dsps: float) -> str:
    return f"{1 / dsps:g} MACs each" if dsps < 1 else f"{dsps:g} a MAC"


@lru_cache(maxsize=256)
def _cheapest(family: Family, weight_bits: int, activation_bits: int, multiplier: Multiplier) -> tuple[float, float] | None:
    """(DSP blocks, look-up tables by estimate) a MAC of the arrays that take fewest; None where no array has such multipliers."""
    xnor = weight_bits == activation_bits == 1
    luts, dsps = [], 0.0
    for accumulate in Accumulate:
        for cols in COLUMNS:
            if cols > (MAX_COLS if xnor else MAX_MULTIPLIER_COLS):
                continue
            options: dict[str, Any] = {
                "rows": MAX_ARRAY, "cols": cols, "lanes": MAX_ARRAY, "drains": 1, "weight_bits": weight_bits,
                "activation_bits": activation_bits, "accumulator_bits": max(8, max(2, weight_bits) + activation_bits + 2),
                "multiplier": multiplier, "accumulate": accumulate, "output_multiplier": OutputMultiplier.SERIAL, "bus_bits": 16,
                "counters": False, "family": family}
            try:
                design = with_smallest_banks(options)
            except InputError:
                continue
            luts.append(estimate_resources(design).luts / design.macs_per_cycle)
            dsps = design.array_dsps / design.macs_per_cycle
    return (dsps, min(luts)) if luts else None


# -- machines ---------------------------------------------------------------------------------------------------------


def _machine_roof(machine: Machine, weight_bits: int, activation_bits: int) -> Roof:
    form, bits = machine_format(machine, max(weight_bits, activation_bits))
    count = machine.devices.value
    several = f"{count} devices of " if count > 1 else ""
    clock_mhz = machine.clock_mhz.value if machine.clock_mhz else None
    return Roof(machine.name, f"w{weight_bits}a{activation_bits}", bits, bits, machine.total_gops(form), machine.total_memory_mb_s,
                f"{several}{machine.peak_gops[form].value:,g} Gop/s in {form}", clock_mhz=clock_mhz,
                link_mb_s=float(machine.link_mb_s.exact * count) if machine.link_mb_s else None)


def machine_format(machine: Machine, bits: int) -> tuple[str, int]:
    """(name, bits) of the narrowest number format of a machine that holds ``bits``. Raises InputError where there is none."""
    widths = {form: int(found[0]) for form in machine.peak_gops if (found := re.findall(r"[0-9]+$", form))}
    holds = {form: SIGNIFICANT_BITS.get(form, width) for form, width in widths.items()}
    wide = [form for form in widths if holds[form] >= bits]
    if not wide:
        raise InputError(f"{machine.name} has no number format that holds {bits} bits", where="--board", value=machine.name,
                         allowed=f"operands of at most {max(holds.values(), default=0)} bits")
    narrowest = min(wide, key=lambda form: widths[form])
    return narrowest, widths[narrowest]


def peak_of(design: Design) -> float:
    """Gop/s of a design's own array; 1 MAC = 2 ops."""
    return 2 * design.macs_per_cycle * design.clock_mhz / 1000


def amount(value: float) -> str:
    """Three digits, or all whole ones: ``0.0005``, ``8.2``, ``169,600``."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
