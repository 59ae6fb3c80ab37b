"""The files of a sweep: ``points.parquet``, ``pareto.csv``, ``designs/*.yaml`` and ``sweep.json``, each written at once."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from dse.sweep.arrays import to_arrow
from dse.sweep.chunks import ERROR, PARQUET, write_file
from dse.sweep.constraints import Summary, summarise
from dse.sweep.pareto import Goal, goal_values, pareto_mask
from dse.workload.layer_file import dump_design
from hdl.design import Design

POINTS, PARETO, DESIGNS, SUMMARY = "points.parquet", "pareto.csv", "designs", "sweep.json"
GROUP_ROWS = 1 << 16
FRONT_OF = ("board", "precision")
"""Points compete with those of the same board and precision alone: fewer bits would always win, and are another network."""


@dataclass
class Tally:
    """What a sweep found, added up part by part.

    ``front``: the Pareto front, as rows of ``points.parquet`` in their order.
    """

    goals: Sequence[Goal]
    summary: Summary = field(default_factory=Summary)
    front: pa.Table | None = None

    @property
    def errors(self) -> int:
        """Points whose evaluation failed in a way that nobody foresaw."""
        return (self.summary.removed or {}).get(ERROR, 0)

    def add(self, part: pa.Table) -> None:
        """Count the rows of one part, and let them compete with the front so far."""
        self.summary = self.summary.merged(summarise([part]))
        good = part.filter(part["feasible"])
        self.front = pareto_front(good if self.front is None else pa.concat_tables([self.front, good]), self.goals)


def pareto_front(table: pa.Table, goals: Sequence[Goal]) -> pa.Table:
    """The rows that no other row of the same board and precision beats; of equals, the first."""
    values = goal_values(table, goals)
    members: dict[tuple[str, ...], list[int]] = {}
    for at, group in enumerate(zip(*(table[name].to_pylist() for name in FRONT_OF), strict=True)):
        members.setdefault(group, []).append(at)
    keep = np.zeros(table.num_rows, bool)
    for group_rows in members.values():
        rows = np.array(group_rows)
        keep[rows[pareto_mask(values[rows])]] = True
    return table.filter(to_arrow(keep, pa.bool_())).combine_chunks()


def write_points(parts: Iterable[pa.Table], out: Path, scratch: Path, goals: Sequence[Goal], *, group_rows: int = GROUP_ROWS) -> Tally:
    """Write ``points.parquet`` in row groups of ``group_rows``; one of them is in memory at a time. The cut into parts leaves no trace."""
    tally = Tally(goals)
    temporary = scratch / f"{POINTS}.tmp"
    writer: pq.ParquetWriter | None = None
    try:
        for group in _regrouped(parts, group_rows):
            if writer is None:
                writer = pq.ParquetWriter(temporary, group.schema, **PARQUET)
            writer.write_table(group, row_group_size=group_rows)
            tally.add(group)
    finally:
        if writer is not None:
            writer.close()
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(temporary, out / POINTS)
    return tally


def _regrouped(parts: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of ``rows`` each, and the rest."""
    waiting: list[pa.Table] = []
    count = 0
    for part in parts:
        waiting.append(part)
        count += part.num_rows
        while count >= rows:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, rows).combine_chunks()
            waiting, count = [whole.slice(rows)], count - rows
    if count:
        yield pa.concat_tables(waiting).combine_chunks()


def write_front(front: pa.Table, out: Path, scratch: Path) -> None:
    """Write ``pareto.csv``, and each of its designs as the file that ``--design`` takes."""
    buffer = io.BytesIO()
    csv.write_csv(front, buffer)
    write_file(out / PARETO, buffer.getvalue(), scratch)
    (out / DESIGNS).mkdir(exist_ok=True)
    rows = front.to_pylist()
    names = {design_name(row) for row in rows}
    for left in (out / DESIGNS).iterdir():  # by an interrupted end of this sweep
        if left.name not in names:
            with suppress(OSError):
                left.unlink()
    for row in rows:
        write_file(out / DESIGNS / design_name(row), dump_design(design_of(row)).encode(), scratch)


def read_front(out: Path) -> list[dict[str, Any]]:
    """The rows of ``pareto.csv``, with the types of ``points.parquet``."""
    schema = pq.read_schema(out / POINTS)
    types = {entry.name: entry.type.value_type if pa.types.is_dictionary(entry.type) else entry.type for entry in schema}
    options = csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    rows: list[dict[str, Any]] = csv.read_csv(out / PARETO, convert_options=options).to_pylist()
    return rows


def design_of(row: Mapping[str, Any]) -> Design:
    """The design of a row of ``points.parquet``."""
    return Design.from_dict({entry.name: row[entry.name] for entry in fields(Design) if entry.name in row}, where=f"point {row['index']}")


def design_name(row: Mapping[str, Any]) -> str:
    """``"000123-papilio-pro.yaml"``: the point's index and board."""
    return f"{row['index']:06d}-{row['board']}.yaml"
