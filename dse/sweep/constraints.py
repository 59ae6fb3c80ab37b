"""Constraints of a sweep: what a point must keep to, and what to say when none does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from boards.figures import Percent, Trust
from boards.schema import Board
from dse.schedule.banks import BANKS
from dse.schedule.explore import Missing
from hdl.design import Design
from hdl.ram import ram_shape

if TYPE_CHECKING:
    import pyarrow as pa

RESOURCES = ("dsps", "block_rams", "luts", "ffs")
"""In the order in which their excess is told."""
ESTIMATES = ("luts", "ffs")
TILING = "tiling"
"""What limits a point whose banks hold no tile of some layer."""
SHOWN = ("rows", "cols", "lanes", "precision", "drains", "chaining", "input_bytes", "weight_bytes", "output_bytes", "psum_bytes",
         "bus_bits", "clock_mhz")


class Constraints(BaseModel):
    """What a feasible point keeps to.

    ``dsps``, ``block_rams``, ``luts``, ``ffs``: the share of the device's that a design may use, above 0 to 1, in place of the board's
    ceiling. ``min_fps``: complete runs of the workload a second, at least. ``max_mb_s``: external memory traffic on average over the
    run, in 1e6 bytes a second, at most.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    dsps: float | None = Field(default=None, gt=0, le=1)
    block_rams: float | None = Field(default=None, gt=0, le=1)
    luts: float | None = Field(default=None, gt=0, le=1)
    ffs: float | None = Field(default=None, gt=0, le=1)
    min_fps: float | None = Field(default=None, gt=0)
    max_mb_s: float | None = Field(default=None, gt=0)

    def applied_to(self, board: Board) -> Board:
        """The board with these ceilings in place of its own."""
        shares = {f"{name}_percent": Percent(float(Fraction(str(getattr(self, name))) * 100), "a constraint of the sweep", Trust.ASSUMPTION)
                  for name in RESOURCES if getattr(self, name) is not None}
        return replace(board, ceilings=replace(board.ceilings, **shares)) if shares else board


def describe_excess(resource: str, used: int, usable: int) -> str:
    """``"block_rams: 40 of 32 usable (8 too many)"``."""
    estimate = "estimate, " if resource in ESTIMATES else ""
    return f"{resource}: {used} of {usable} usable ({estimate}{used - usable} too many)"


def describe_missing(design: Design, depths: Sequence[int], missing: Missing) -> tuple[str, float]:
    """(why no tile fits, by how much): of all banks that are too small together, the block RAMs that they would have to have more, in
    relation to those of the whole design. ``depths``: of its input, weight, output and psum banks. Not a number where no bank is too
    small."""
    if not missing.banks:
        return str(missing), float("nan")
    more = sum(_blocks(design, kind, need) - _blocks(design, kind, there) for kind, need, there in missing.banks)
    present = _fixed_blocks(design) + sum(_blocks(design, kind, depth) for kind, depth in zip(BANKS, depths, strict=True))
    return f"{missing} ({more} block RAM{'s' if more != 1 else ''} more, beside {present})", more / present


@lru_cache(maxsize=4096)
def _blocks(design: Design, kind: str, entries: int) -> int:
    """Block RAMs of banks of so many entries."""
    if not entries:
        return 0
    shape = ram_shape(design.bank_width_bits(kind), entries, family=design.family, distributed_depth=design.distributed_depth)
    return design.bank_count(kind) * shape.blocks


@lru_cache(maxsize=64)
def _fixed_blocks(design: Design) -> int:
    return design.bank_rams("parameter") + design.bank_rams("program")


def describe_slow(fps: float, least: float) -> str:
    return f"min_fps: {fps:.6g} of at least {least:g} frames a second ({least - fps:.4g} too few)"


def describe_traffic(mb_s: float, most: float) -> str:
    return f"max_mb_s: {mb_s:.6g} of at most {most:g} MB/s ({mb_s - most:.4g} too many)"


@dataclass(frozen=True)
class Summary:
    """Counts of a sweep's points, and the infeasible one that misses by the least.

    ``removed``: points by what limits them (the column ``limiting``). ``nearest``: its row, as plain values; ``None`` when every point is
    feasible, or there are none. ``miss``: by how much, in relation to what there is (0.25: a quarter too much); infinite for a point that
    cannot be mapped at all.
    """

    points: int = 0
    feasible: int = 0
    removed: Mapping[str, int] | None = None
    nearest: Mapping[str, Any] | None = None
    miss: float = float("inf")

    def merged(self, other: Summary) -> Summary:
        """Of both sets of points; the earlier point wins a tie."""
        removed = dict(self.removed or {})
        for key, count in (other.removed or {}).items():
            removed[key] = removed.get(key, 0) + count
        first, second = (self, other) if _order(self) <= _order(other) else (other, self)
        nearest = first if first.nearest is not None else second
        return Summary(self.points + other.points, self.feasible + other.feasible, removed, nearest.nearest, nearest.miss)


def _order(summary: Summary) -> tuple[float, int]:
    return summary.miss, summary.nearest["index"] if summary.nearest else 0


def summarise(tables: Iterable[pa.Table]) -> Summary:
    """The summary of tables as :func:`dse.sweep.evaluate.evaluate_family` makes them, whatever their order and cut."""
    total = Summary()
    for table in tables:
        total = total.merged(_summary(table))
    return total


def _summary(table: pa.Table) -> Summary:
    import pyarrow as pa
    import pyarrow.compute as pc

    infeasible = table.filter(pc.invert(table["feasible"]))
    limiting = pc.cast(infeasible["limiting"], pa.string())
    removed = {str(entry["values"]): int(entry["counts"]) for entry in pc.value_counts(limiting).to_pylist()}
    nearest, least = None, float("inf")
    if infeasible.num_rows:
        order = pc.sort_indices(infeasible.select(["miss", "index"]), sort_keys=[("miss", "ascending"), ("index", "ascending")])
        nearest = infeasible.slice(order[0].as_py(), 1).to_pylist()[0]
        least = float("inf") if nearest["miss"] is None else nearest["miss"]
    return Summary(table.num_rows, table.num_rows - infeasible.num_rows, removed, nearest, least)


def explain_none(summary: Summary) -> str:
    """Why no point is feasible: how many each constraint removed, and the nearest point with what it misses. Lines of text."""
    if not summary.points:
        return "The space has no points."
    none = f"None of the {summary.points} points is feasible" if summary.points > 1 else "The one point is not feasible"
    lines = [f"{none}. Removed by:"]
    for name, count in sorted((summary.removed or {}).items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  {name}: {count} point{'s' if count != 1 else ''}")
    if summary.nearest is not None:
        row = summary.nearest
        lines.append(f"The nearest point, {row['index']} on {row['board']}: " + " ".join(f"{name}={row[name]}" for name in SHOWN))
        mapped = row["miss"] is not None and row["limiting"] != TILING
        lines.append(f"  misses by {row['reason']}" if mapped else f"  cannot be mapped: {row['reason']}")
    return "\n".join(lines)
