"""The points of a finished sweep under the roofs: its front, and the best design of each board and precision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boards.errors import InputError
from dse.sweep.results import PARETO, POINTS, SUMMARY, design_of, read_front
from hdl.design import Design


@dataclass(frozen=True)
class FrontPoint:
    """A design of a sweep's front on the whole workload. ``is_best``: the fastest of its board and precision; of equals, the one that moves
    fewest bytes."""

    index: int
    board: str
    precision: str
    design: Design
    macs: int
    cycles: int
    external_bytes: int
    is_best: bool

    @property
    def gops(self) -> float:
        """1 MAC = 2 ops."""
        return 2 * self.macs * self.design.clock_mhz / self.cycles / 1000

    @property
    def ops_per_byte(self) -> float:
        """Of the bytes that it moves."""
        return 2 * self.macs / self.external_bytes

    def to_dict(self) -> dict[str, Any]:
        return {"index": self.index, "board": self.board, "precision": self.precision, "array": self.design.array,
                "clock_mhz": self.design.clock_mhz, "best": self.is_best, "gops": self.gops, "ops_per_byte": self.ops_per_byte,
                "cycles": self.cycles, "external_bytes": self.external_bytes, "bytes_per_cycle": self.external_bytes / self.cycles}


def front_points(out: str, workload: str, macs: int) -> list[FrontPoint]:
    """The front of the sweep in the directory ``out``, which must be of this workload.

    Raises InputError for a directory that is no finished sweep, or one of another workload.
    """
    folder = Path(out)
    missing = [name for name in (SUMMARY, PARETO, POINTS) if not (folder / name).is_file()]
    if missing:
        raise InputError(f"not a finished sweep: it has no {missing[0]}", where="--points", value=out,
                         suggestion="give the --out directory of nearmac sweep")
    rows = read_front(folder)
    for row in rows:
        if (row["workload"], row["macs"]) != (workload, macs):
            raise InputError("a sweep of another workload", where="--points", value=f"{row['workload']}, {row['macs']:,} MACs",
                             allowed=f"{workload}, {macs:,} MACs")
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        rival = best.setdefault((row["board"], row["precision"]), row)
        if (row["seconds"], row["external_bytes"]) < (rival["seconds"], rival["external_bytes"]):
            best[row["board"], row["precision"]] = row
    return [FrontPoint(row["index"], row["board"], row["precision"], design_of(row), row["macs"], row["cycles"], row["external_bytes"],
                       row is best[row["board"], row["precision"]]) for row in rows]
