"""Figures with their provenance: what a number is, where it was seen, and how far it can be trusted.

In YAML a figure is ``{value: 5720, source: "DS160 table 1", trust: read}``, or the bare value, which is then unverified. The
classes say the legal range; the unit is in the key that holds the figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Generic, TypeVar

UNSTATED = "no source stated"
MIN_CLOCK_MHZ, MAX_CLOCK_MHZ = 1, 1000

T = TypeVar("T", int, float)


@dataclass(frozen=True)
class Limit:
    """What a value keeps to, for :mod:`boards.models`: ``low`` (or more than ``above``) to ``high``; a text or mapping has ``shortest`` to
    ``longest`` characters or entries, and a text matches ``pattern``, which says ``words``."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    shortest: int | None = None
    longest: int | None = None
    pattern: str | None = None
    words: str | None = None


Name = Annotated[str, Limit(shortest=1, longest=64, pattern=r"^[a-z0-9][a-z0-9._+-]*$", words="small letters, digits and . _ + -")]
Text = Annotated[str, Limit(shortest=1, longest=500)]


class Trust(StrEnum):
    """How a figure is known."""

    READ = "read"  # seen at the source named
    COMPUTED = "computed"  # arithmetic on figures that were read
    UNVERIFIED = "unverified"  # nobody has opened the source yet
    ASSUMPTION = "assumption"  # chosen, not a property of the part


@dataclass(frozen=True)
class Figure(Generic[T]):
    """A quantity with its provenance. Its subclasses say in the type of ``value`` what is legal."""

    value: T
    source: Text = UNSTATED
    trust: Trust = Trust.UNVERIFIED

    @property
    def exact(self) -> Fraction:
        """The decimal that was written: 0.7 is 7/10, not the nearest binary number."""
        return Fraction(str(self.value))


class Logic(Figure[int]):
    """A count of LUTs, flip-flops, slices or logic cells."""

    value: Annotated[int, Limit(1, 10_000_000)]


class Blocks(Figure[int]):
    """A count of hard blocks, 0 for none."""

    value: Annotated[int, Limit(0, 100_000)]


class Count(Figure[int]):
    """A count of devices."""

    value: Annotated[int, Limit(1, 1_000_000)]


class Share(Figure[float]):
    """A part of a whole, 0 to 1."""

    value: Annotated[float, Limit(0, 1)]


class Percent(Figure[float]):
    """A part of a whole, above 0 to 100."""

    value: Annotated[float, Limit(above=0, high=100)]


class Efficiency(Figure[float]):
    """The part of a memory's transfers that carries data, above 0 to 1."""

    value: Annotated[float, Limit(above=0, high=1)]


class ClockMHz(Figure[float]):
    """A core clock."""

    value: Annotated[float, Limit(MIN_CLOCK_MHZ, MAX_CLOCK_MHZ)]


class ClockInputMHz(Figure[float]):
    """An oscillator."""

    value: Annotated[float, Limit(0.01, 10_000)]


class RateMTs(Figure[float]):
    """Million transfers a second."""

    value: Annotated[float, Limit(0.1, 20_000)]


class SizeMiB(Figure[float]):
    """A memory size."""

    value: Annotated[float, Limit(0.001, 1_048_576)]


class WidthBits(Figure[int]):
    """Data pins of a memory."""

    value: Annotated[int, Limit(4, 2048)]


class LatencyCycles(Figure[int]):
    """Core cycles; the memory model has no fewer than 8."""

    value: Annotated[int, Limit(8, 10_000)]


class RateGops(Figure[float]):
    """1e9 operations a second; a multiply-accumulate is two."""

    value: Annotated[float, Limit(above=0, high=10**12)]


class BandwidthMBs(Figure[float]):
    """1e6 bytes a second."""

    value: Annotated[float, Limit(above=0, high=10**12)]
