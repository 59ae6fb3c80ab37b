"""Core clocks that boards get when nobody says another: one for each family and speed grade.

No tool placed or routed anything for them. For Xilinx families they keep well under what the data sheet allows the slower hard blocks:
:data:`BLOCK_RAM_MHZ` is the block RAM's limit, and no default is above 36 % of it. Published accelerators on the same grades: 50 MHz (16
DSP blocks of a Spartan-6 LX9 -2, unpipelined), 80 MHz (196 of 220 DSP blocks of a Zynq-7020 -1), 100 MHz (VTA and BNN-PYNQ there; Zhang et
al. on a Virtex-7 -2), 250 MHz (Snowflake on a Zynq-7045 -2). The Artix-7 rows hold for all of 7 series: Kintex-7 and Virtex-7 allow more.
"""

from __future__ import annotations

from boards.figures import ClockMHz, Trust
from boards.primitives import Family

XILINX = (Family.SPARTAN6, Family.SERIES7, Family.ULTRASCALE_PLUS)

DEFAULTS_MHZ: dict[Family, dict[str, float]] = {
    Family.SPARTAN6: {"-2": 100.0, "-3": 100.0, "-3N": 100.0, "-1L": 50.0},
    Family.SERIES7: {"-1": 100.0, "-1L": 100.0, "-2": 125.0, "-2L": 100.0, "-3": 150.0},
    Family.ULTRASCALE_PLUS: {"-1": 175.0, "-2": 200.0, "-2L": 175.0, "-3": 225.0},
    Family.ECP5: {"6": 50.0, "7": 55.0, "8": 60.0},
    Family.ICE40: {"up": 24.0, "lp": 24.0, "hx": 40.0},
    Family.GOWIN: {"C8/I7": 50.0},
}
"""Family -> speed grade -> MHz. A grade that is not stated, or not here, gets the family's first."""

BLOCK_RAM_MHZ: dict[Family, dict[str, float]] = {
    Family.SPARTAN6: {"-2": 280.0, "-3": 320.0, "-3N": 320.0, "-1L": 150.0},
    Family.SERIES7: {"-1": 388.2, "-1L": 388.2, "-2": 460.83, "-2L": 315.66, "-3": 509.68},
    Family.ULTRASCALE_PLUS: {"-1": 645.0, "-2": 738.0, "-2L": 585.0, "-3": 825.0},
}
"""The block RAM's limit, from memory of :data:`DATA_SHEETS`: unverified."""

DATA_SHEETS = {Family.SPARTAN6: "DS162", Family.SERIES7: "DS181, Artix-7", Family.ULTRASCALE_PLUS: "DS925"}

_REASONS = {
    Family.ECP5: "prototype arrays of 4 x 4 MACs routed at 63 MHz (nextpnr 0.11, LFE5U-25F-6)",
    Family.ICE40: "LiteX runs its processors at 24 MHz on UP5K boards",
    Family.GOWIN: "LiteX runs its processors at 48 MHz on GW2A-18 C8/I7",
}


def default_clock(family: Family, speed_grade: str | None) -> ClockMHz:
    """The default core clock, as a figure that says where it comes from."""
    defaults = DEFAULTS_MHZ[family]
    grade = speed_grade if speed_grade in defaults else next(iter(defaults))
    mhz = defaults[grade]
    unknown = "" if speed_grade == grade else ", for want of a known speed grade"
    if family in XILINX:
        limit = BLOCK_RAM_MHZ[family][grade]
        reason = f"{100 * mhz / limit:.0f} % of the block RAM's limit of {limit:g} MHz ({DATA_SHEETS[family]}, unverified)"
    else:
        reason = _REASONS[family]
    return ClockMHz(mhz, f"default for {family} {grade}{unknown}: {reason}; not placed and routed", Trust.ASSUMPTION)
