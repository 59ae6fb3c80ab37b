from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from dse.sweep.axis import AXES
from dse.sweep.columns import COLUMNS, SCHEMA
from dse.sweep.constraints import Constraints
from dse.sweep.pareto import Goal

PAGE = (Path(__file__).parents[3] / "docs" / "sweep.md").read_text(encoding="utf-8")


def test_the_page_has_every_column_with_its_unit():
    rows = [(name, unit.strip(), meaning) for name, unit, meaning in
            re.findall(r"^\| `(\w+)` \|(.*?)\| (.+) \|$", PAGE.split("## Columns of points.parquet")[1], re.MULTILINE)]
    assert rows == [(name, column.unit, column.meaning) for name, column in COLUMNS.items()]


def test_the_page_has_every_axis_constraint_and_objective():
    space, rest = PAGE.split("## Constraints")
    assert all(f"`{name}`" in space for name in AXES)
    assert all(f"`{name}`" in rest.split("## Mappings")[0] for name in Constraints.model_fields)
    assert all(f"`{goal}`" in rest.split("## The front")[1] for goal in Goal)


def test_names_say_their_unit():
    units = {"bits": "bits", "bytes": "bytes", "mhz": "MHz", "cycles": "cycles", "mb_s": "1e6 bytes/s", "seconds": "s"}
    for name, column in COLUMNS.items():
        for suffix, unit in units.items():
            if name == suffix or name.endswith(f"_{suffix}"):
                assert column.unit == unit, name


def test_sums_have_64_bits():
    assert all(SCHEMA.field(name).type == pa.int64() for name in COLUMNS if name.endswith(("cycles", "bytes")) or name in ("index", "macs"))
