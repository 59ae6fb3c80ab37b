"""Reference machines without an FPGA: what rooflines compare boards with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from boards.figures import UNSTATED, BandwidthMBs, ClockMHz, Count, Limit, Name, RateGops, SizeMiB, Text, Trust


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A processor or several.

    ``peak_gops``: precision (``"fp16"``, ``"int8"``) -> 1e9 operations a second of one device, a multiply-accumulate being two.
    ``clock_mhz``: where it is stated. ``memory_mb_s``: bandwidth of one device's memory; ``memory_mib``: its size. ``devices``: how many
    there are, with ``link_mb_s`` between them: what one device sends to the others, all its links together, in one direction.
    """

    name: Name
    title: Text | None = None
    peak_gops: Annotated[dict[str, RateGops], Limit(shortest=1)]
    memory_mb_s: BandwidthMBs
    memory_mib: SizeMiB | None = None
    devices: Count = Count(1, "a single one", Trust.COMPUTED)
    link: Text | None = None
    link_mb_s: BandwidthMBs | None = None
    clock_mhz: ClockMHz | None = None
    source: Text = UNSTATED
    trust: Trust = Trust.UNVERIFIED
    notes: tuple[Text, ...] = ()

    def total_gops(self, precision: str) -> float:
        """Of all devices together. Raises KeyError for a precision that is not stated."""
        return float(self.peak_gops[precision].exact * self.devices.value)

    @property
    def total_memory_mb_s(self) -> float:
        """Bandwidth of all devices' memories together."""
        return float(self.memory_mb_s.exact * self.devices.value)

    @property
    def total_memory_bytes(self) -> int | None:
        """Memory of all devices together, where it is known."""
        return int(self.memory_mib.exact * (1 << 20)) * self.devices.value if self.memory_mib else None

    def ridge_ops_per_byte(self, precision: str) -> float:
        """Operations a byte from which the machine is compute-bound."""
        return float(self.peak_gops[precision].exact * 1000 / self.memory_mb_s.exact)
