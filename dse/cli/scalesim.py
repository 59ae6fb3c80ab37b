"""SCALE-Sim's own count beside ours, where ``--scalesim-config`` names its configuration."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from boards.errors import InputError
from dse.workload.interop.scalesim_config import ScaleSimConfig
from hdl.layer import Layer

Counts = Mapping[str, int | str]


def layer_counts(config: ScaleSimConfig, layer: Layer, repeat: int = 1) -> dict[str, int | str]:
    """As :meth:`ScaleSimConfig.counts`, of one layer."""
    try:
        return {layer.name: config.cycles(layer, repeat)}
    except InputError as error:
        return {layer.name: error.what}


def counts_json(config: ScaleSimConfig, counts: Counts) -> dict[str, Any]:
    """The value of ``scale_sim`` in JSON objects; ``cycles`` of a layer is null where SCALE-Sim has none, ``refused`` says why."""
    layers = [{"name": name, "cycles": count if isinstance(count, int) else None, "refused": count if isinstance(count, str) else None}
              for name, count in counts.items()]
    return {**config.to_dict(), "cycles": total(counts), "layers": layers}


def counts_table(config: ScaleSimConfig, counts: Counts, ours: Mapping[str, int] | None = None) -> RenderableType:
    """A row a layer; ``ours``: cycles of our hardware, where some were counted."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("layer", overflow="fold")
    table.add_column("SCALE-Sim cycles", justify="right", overflow="fold")
    if ours is not None:
        table.add_column("cycles here", justify="right")
        table.add_column("ratio", justify="right")
    both = {name: count for name, count in counts.items() if isinstance(count, int) and (ours is None or name in ours)}
    rows: list[tuple[str, int | str, int | None]] = [(name, count, (ours or {}).get(name)) for name, count in counts.items()]
    if len(counts) > 1:
        rows.append(("total" if len(both) == len(counts) else f"total of {len(both)}", sum(both.values()),
                     sum(ours[name] for name in both) if ours is not None else None))
    for name, count, own in rows:
        cells = [name, f"{count:,}" if isinstance(count, int) else f"none: {count}"]
        if ours is not None:
            cells += [f"{own:,}" if own else "-", f"{own / count:.3g}" if own and isinstance(count, int) and count else "-"]
        table.add_row(*map(Text, cells))
    return Group(Text(f"Cycles of SCALE-Sim on its {config.array}: its formula, without memory stalls", style="italic"), table)


def total(counts: Counts) -> int | None:
    """Of all layers; ``None`` where one has no count."""
    found = [count for count in counts.values() if isinstance(count, int)]
    return sum(found) if len(found) == len(counts) else None


def remark_on(config: ScaleSimConfig) -> None:
    """Say what the count leaves out of the configuration."""
    if config.is_bandwidth_bound:
        print(f"nearmac: {config.path}: InterfaceBandwidth USER is not modelled; the count is without stalls (CALC)", file=sys.stderr)
