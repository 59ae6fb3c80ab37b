"""Pooling: windows and output sizes."""

from __future__ import annotations

from collections.abc import Mapping

from boards.errors import InputError
from dse.workload.operators import Window, check_whole, unknown
from hdl.layer import MAX_EXTENT, SHORTHANDS

LEAST = {"FY": 1, "FX": 1, "SY": 1, "SX": 1, "PT": 0, "PL": 0, "PB": 0, "PR": 0}
SHORT = {"F": ("FY", "FX"), "S": SHORTHANDS["S"], "P": SHORTHANDS["P"]}


def pooling_window(given: Mapping[str, int]) -> Window:
    """``{"F": 3, "S": 2}`` -> the window; without a stride, windows overlap all they can (stride 1)."""
    values: dict[str, int] = {}
    for key, value in given.items():
        if key not in LEAST and key not in SHORT:
            raise unknown("unknown key", key, [*SHORT, *LEAST], where=key)
        for name in SHORT.get(key, (key,)):
            check_whole(key, value, LEAST[name], MAX_EXTENT)
            if name in values:
                raise InputError(f"{name} is given twice", where=key, value=value)
            values[name] = value
    missing = [name for name in ("FY", "FX") if name not in values]
    if missing:
        raise InputError("missing", where=missing[0], suggestion="pooling needs F, or FY and FX")
    window = Window(**values)
    for pad, filter_ in (("PT", "FY"), ("PB", "FY"), ("PL", "FX"), ("PR", "FX")):
        if getattr(window, pad) >= getattr(window, filter_):
            raise InputError(f"a window in the padding alone: {filter_}={getattr(window, filter_)}", where=pad,
                             value=getattr(window, pad), allowed=f"at most {getattr(window, filter_) - 1}")
    return window


def pooled(axis: str, size: int, window: Window, ceil: bool) -> int:
    """Output height (axis ``Y``) or width (``X``) for an input of ``size``; with ``ceil``, a last window that begins in it counts too."""
    first, last = (window.PT, window.PB) if axis == "Y" else (window.PL, window.PR)
    filter_, stride = (window.FY, window.SY) if axis == "Y" else (window.FX, window.SX)
    room = size + first + last - filter_
    if room < 0:
        raise InputError(f"larger than the padded input of {size + first + last}", where=f"F{axis}", value=filter_)
    outputs = room // stride + 1
    if ceil and room % stride and outputs * stride < size + first:
        outputs += 1
    return outputs
