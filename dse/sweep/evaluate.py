"""Evaluates families of design points on a workload: one row a point, feasible or with the reason why not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from boards.schema import Board
from dse.choose import board_timing
from dse.estimate.external_memory import excess
from dse.estimate.resources import estimate_logic, usable
from dse.schedule.axes import Sizes
from dse.schedule.banks import BANKS, design_with_depths
from dse.schedule.explore import LayerSpace, Objective
from dse.sweep.arrays import to_arrow, to_texts
from dse.sweep.chaining import SAVINGS, savings
from dse.sweep.columns import COLUMNS, SCHEMA, TEXT
from dse.sweep.constraints import RESOURCES, TILING, Constraints, describe_excess, describe_missing, describe_slow, describe_traffic
from dse.sweep.family import Family
from dse.sweep.workload import Workload
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

__all__ = ["Workload", "evaluate_family", "unevaluated"]

Integers = NDArray[np.int64]
Objects = NDArray[np.object_]
TOTALS = ("cycles", "beats_read", "beats_written", "compute_bound_cycles", "memory_bound_cycles", "drain_bound_cycles")
BOUNDS = ("compute", "memory", "drain")
TILE_SIZES = Sizes.EVEN
"""A sweep compares even tilings only. On 36 random pairs of a design and a layer (2026-11-30) their optimum took at most 0.03 % more cycles
than that of all tilings, which `nearmac simulate` looks at, and no more bytes."""
LEAST_DEPTHS = [512, 512, 512, 0]
"""Banks that every array can have."""
CACHED_TOTALS = 32
"""Families whose totals are kept: those that follow with another clock and the same memory timing take them."""


class _Verdicts:
    """For each of n points: why it is infeasible, if it is; the first thing said of a point holds."""

    def __init__(self, count: int) -> None:
        self.open = np.ones(count, bool)
        self.reason: Objects = np.full(count, None, object)
        self.limiting: Objects = np.full(count, None, object)
        self.miss = np.full(count, np.nan)

    def refuse(self, at: int, limiting: str, reason: str, miss: float = np.nan) -> None:
        if self.open[at]:
            self.open[at], self.reason[at], self.limiting[at], self.miss[at] = False, reason, limiting, miss

    def refuse_all(self, limiting: str, reason: str) -> None:
        for at in np.flatnonzero(self.open).tolist():
            self.refuse(at, limiting, reason)


@dataclass(frozen=True)
class _Totals:
    """Sums over the layers for n bank configurations, 0 where there is a reason in ``reasons`` (by row: limiting, text, miss)."""

    figures: dict[str, Integers]
    reasons: dict[int, tuple[str, str, float]]


def evaluate_family(family: Family, workload: Workload, board: Board, constraints: Constraints | None = None,
                    objective: Objective = Objective.BOTH) -> pa.Table:
    """One row a point, with the columns of ``SCHEMA``. A row depends on its point alone.

    Points that exceed the board are not mapped; the others get the best mapping of each layer.
    """
    constraints = constraints or Constraints()
    verdicts = _Verdicts(len(family))
    columns = _design_columns(family, workload, board)
    resources = _resources(family, board, constraints)
    columns |= resources
    _check_resources(verdicts, resources)
    mapped = np.flatnonzero(verdicts.open)
    totals = _map(family, workload, board, objective, verdicts)
    evaluated = verdicts.open.copy()
    columns |= _figures(family, workload, totals, mapped)
    _check_constraints(verdicts, columns, constraints)
    return _table(columns, verdicts, evaluated)


def unevaluated(family: Family, workload: Workload, board: Board, constraints: Constraints | None, limiting: str, reason: str) -> pa.Table:
    """The rows of a family that could not be evaluated, all for one ``reason``."""
    verdicts = _Verdicts(len(family))
    verdicts.refuse_all(limiting, reason)
    columns = _design_columns(family, workload, board) | _resources(family, board, constraints or Constraints())
    columns |= _figures(family, workload, None, np.zeros(0, np.intp))
    return _table(columns, verdicts, verdicts.open)


# -- what a point is --------------------------------------------------------------------------------------------------


def _design_columns(family: Family, workload: Workload, board: Board) -> dict[str, Any]:
    """A plain value stands for the whole column."""
    design = family.design
    plain = {name: getattr(design, name) for name in COLUMNS if hasattr(design, name) and not name.endswith("_bytes")}
    plain = {name: str(value) if COLUMNS[name].type == TEXT else value for name, value in plain.items()}
    banks = {f"{kind}_bytes": family.banks[:, at] for at, kind in enumerate(BANKS)}
    index = np.arange(family.first_index, family.first_index + len(family), dtype=np.int64)
    return {**plain, **banks, "index": index, "board": board.name, "workload": workload.name, "macs": workload.macs}


def _resources(family: Family, board: Board, constraints: Constraints) -> dict[str, Any]:
    (luts, ffs), room = estimate_logic(family.design, family.entry_bits()), usable(constraints.applied_to(board))
    return {"dsps": family.design.dsps, "luts": luts, "ffs": ffs, "block_rams": family.block_rams(),
            **{f"{name}_available": room[name] for name in RESOURCES}}


def _check_resources(verdicts: _Verdicts, resources: dict[str, Any]) -> None:
    """A reason names every resource that does not suffice; ``limiting`` is the one that is exceeded by the largest share."""
    count = len(verdicts.open)
    excess = {}
    for name in RESOURCES:
        used, there = np.broadcast_to(resources[name], (count,)), resources[f"{name}_available"]
        excess[name] = (used, there, np.where(used > there, used / max(there, 1) - 1, 0.0) if there else used.astype(float))
    worst = np.max([share for _, _, share in excess.values()], axis=0)
    for at in np.flatnonzero(worst > 0).tolist():
        over = [name for name, (_, _, share) in excess.items() if share[at] > 0]
        text = "; ".join(describe_excess(name, int(excess[name][0][at]), excess[name][1]) for name in over)
        verdicts.refuse(at, max(over, key=lambda name: excess[name][2][at]), text, float(worst[at]))


# -- what it does -----------------------------------------------------------------------------------------------------


def _map(family: Family, workload: Workload, board: Board, objective: Objective, verdicts: _Verdicts) -> _Totals | None:
    """Totals of the points that are still open, in their order; those that cannot be mapped are refused."""
    mapped = np.flatnonzero(verdicts.open)
    if not len(mapped):
        return None
    try:
        timing = board_timing(board, family.design)
    except InputError as error:
        verdicts.refuse_all("unsupported", f"{(error.where or 'memory').removeprefix('design.')}: {error.what}")
        return None
    for name, layer, _ in workload.layers:  # what a chain keeps on chip need not be in the memory; weights must
        wrong = excess(layer, board, family.design.weight_bits, 0 if family.design.chaining else family.design.activation_bits)
        if wrong:
            verdicts.refuse_all("external_memory", f"layer {name}: {wrong}")
            return None
    depths = family.depths()[mapped]
    # What the layers' mappings do not depend on is left out, so that families share them.
    design = design_with_depths(family.design.with_(clock_mhz=100.0, counters=True), LEAST_DEPTHS)
    totals = _totals(design, workload, timing, objective, depths.shape, depths.tobytes())
    for row, why in totals.reasons.items():
        verdicts.refuse(int(mapped[row]), *why)
    return totals


@lru_cache(maxsize=CACHED_TOTALS)
def _totals(design: Design, workload: Workload, timing: MemoryTiming, objective: Objective, shape: tuple[int, int], data: bytes) -> _Totals:
    """``data``: the depths, (n, 4) of int64. Each distinct layer is searched once; a configuration is out with its first failing layer."""
    depths = np.frombuffer(data, np.int64).reshape(shape)
    figures = {name: np.zeros(len(depths), np.int64) for name in TOTALS}
    reasons: dict[int, tuple[str, str, float]] = {}
    by_layer: dict[Layer, dict[str, Integers]] = {}
    alive = np.arange(len(depths))
    for layer, (name, repeat) in _distinct(workload).items():
        try:
            best = LayerSpace(design, layer, TILE_SIZES).best(depths[alive], timing, objective, figures_only=True)
        except InputError as error:
            reasons |= {int(row): ("unsupported", f"layer {name}: {error.what}", np.nan) for row in alive}
            alive = alive[:0]
            break
        for row, missing in best.reasons.items():
            text, miss = describe_missing(design, depths[alive[row]].tolist(), missing)
            reasons[int(alive[row])] = TILING, f"layer {name}: {text}", miss
        for figure in TOTALS:
            figures[figure][alive] += getattr(best, figure) * repeat
        if design.chaining:
            by_layer[layer] = {figure: np.zeros(len(depths), np.int64) for figure in TOTALS}
            for figure, values in by_layer[layer].items():
                values[alive] = getattr(best, figure)
        alive = alive[best.feasible]
        if not len(alive):
            break
    for figure, change in savings(design, workload, timing, objective, depths, alive, by_layer).items():
        figures[figure] = figures.get(figure, 0) + change
    return _Totals(figures, reasons)


@lru_cache(maxsize=16)
def _distinct(workload: Workload) -> dict[Layer, tuple[str, int]]:
    """Layers that differ in more than their names -> the first name, and how many there are."""
    found: dict[Layer, tuple[str, int]] = {}
    for name, layer, repeat in workload.layers:
        shape = replace(layer, name="layer")
        first, count = found.get(shape, (name, 0))
        found[shape] = (first, count + repeat)
    return found


def _figures(family: Family, workload: Workload, totals: _Totals | None, mapped: NDArray[np.intp]) -> dict[str, Any]:
    """Columns of every point; without meaning where it was not mapped."""
    design, count = family.design, len(family)
    sums = {name: np.zeros(count, np.int64) for name in (*TOTALS, *SAVINGS)}
    if totals is not None:
        for name, values in sums.items():
            values[mapped] = totals.figures[name]
    cycles = np.maximum(sums["cycles"], 1)
    seconds = cycles / (design.clock_mhz * 1e6)
    read, written = (sums[name] * (design.bus_bits // 8) for name in ("beats_read", "beats_written"))
    bounds = {f"{kind}_bound_cycles": sums[f"{kind}_bound_cycles"] for kind in BOUNDS}
    largest = np.argmax(np.stack(list(bounds.values())), axis=0)
    return {"cycles": cycles, "seconds": seconds, "fps": 1 / seconds, "bytes_read": read, "bytes_written": written,
            "kept_tensors": sums["kept_tensors"], "saved_cycles": sums["saved_cycles"],
            "saved_bytes": sums["saved_beats"] * (design.bus_bits // 8),
            "external_bytes": read + written, "external_mb_s": (read + written) / seconds / 1e6,
            "utilization": workload.macs / (cycles * design.macs_per_cycle), **bounds, "bound": np.array(BOUNDS, object)[largest]}


def _check_constraints(verdicts: _Verdicts, columns: dict[str, Any], constraints: Constraints) -> None:
    """What the user asks of a point that works."""
    least, most = constraints.min_fps, constraints.max_mb_s
    fps, mb_s = columns["fps"], columns["external_mb_s"]
    slow = np.zeros(len(fps), bool) if least is None else fps < least
    greedy = np.zeros(len(fps), bool) if most is None else mb_s > most
    for at in np.flatnonzero(verdicts.open & (slow | greedy)).tolist():
        missed = []  # (by how much, limiting, text)
        if least is not None and slow[at]:
            missed.append((least / fps[at] - 1, "min_fps", describe_slow(fps[at], least)))
        if most is not None and greedy[at]:
            missed.append((mb_s[at] / most - 1, "max_mb_s", describe_traffic(mb_s[at], most)))
        miss, limiting, _ = max(missed, key=lambda entry: entry[0])
        verdicts.refuse(at, limiting, "; ".join(text for _, _, text in missed), float(miss))


# -- the table --------------------------------------------------------------------------------------------------------


def _table(columns: dict[str, Any], verdicts: _Verdicts, evaluated: NDArray[np.bool_]) -> pa.Table:
    """``evaluated``: rows whose nullable figures mean something."""
    count = len(evaluated)
    columns = {**columns, "feasible": verdicts.open, "reason": verdicts.reason, "limiting": verdicts.limiting, "miss": verdicts.miss}
    arrays = []
    for name, column in COLUMNS.items():
        value = columns[name]
        if name in ("reason", "limiting"):
            there = ~verdicts.open
        elif name == "miss":
            there = ~np.isnan(verdicts.miss)
        else:
            there = evaluated if column.nullable else np.ones(count, bool)
        arrays.append(_texts(value, there) if column.type == TEXT else _numbers(value, there, column.type))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _numbers(value: Any, there: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    values = np.broadcast_to(np.asarray(value), there.shape).astype(str(kind))  # Arrow's name of the type is NumPy's
    values[~there] = 0
    return to_arrow(values, kind, there)


def _texts(value: Any, there: NDArray[np.bool_]) -> pa.Array:
    if isinstance(value, str):
        return to_texts(np.zeros(len(there), np.int32), [value], there)
    place: dict[str, int] = {}
    codes = [place.setdefault(text, len(place)) if known else 0 for text, known in zip(value, there.tolist(), strict=True)]
    return to_texts(np.array(codes, np.int32), list(place), there)
