"""Footprints as tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dse.cli.network_tables import number_table, short
from dse.cli.simulation_table import rows_table
from dse.footprint.footprint import WIDTH_PERCENT, Footprint
from dse.footprint.room import Room

SCALES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def memory_tables(footprint: Footprint, left: Room | None) -> list[RenderableType]:
    """Step by step, then all together, then what is left on the device."""
    tables: list[RenderableType] = [layers_table(footprint), summary_table(footprint)]
    return tables if left is None else [*tables, room_table(footprint, left)]


def layers_table(footprint: Footprint) -> Table:
    """One row a step. ``in use``, ``backward``: activations, their gradients and lowering buffer while it, or its backward step, runs."""
    options = footprint.options
    heads = ["step left", "operator left", "shape", "weights", "output", "in use"]
    heads += ["backward"] if options.is_training else []
    heads += ["lowered", "inflation"] if options.lowering == "im2col" else []
    table = number_table(*heads, "output is left", title=f"{footprint.network.name}, batch {options.batch:,}")
    for row in footprint.layers:
        sizes = [row.parameter_bytes, row.output_bytes, row.live_bytes]
        sizes += [] if row.backward_live_bytes is None else [row.backward_live_bytes]
        sizes += [row.lowering_bytes] if options.lowering == "im2col" else []
        cells = [row.name, "+".join(map(short, row.op.split("+"))), "x".join(map(str, row.shape)), *map(size_text, sizes)]
        cells += [f"{row.inflation:.3g}x" if row.inflation else ""] if options.lowering == "im2col" else []
        table.add_row(*map(Text, (*cells, "in place" if row.storage.startswith("over ") else row.storage)))
    return table


def summary_table(footprint: Footprint) -> Table:
    options, used = footprint.options, footprint.usage[footprint.peak]
    rows = [("weights", f"{size_text(footprint.weight_bytes)} with biases and normalisations"),
            ("activations", f"{size_text(footprint.activation_bytes)}: {footprint.activations:,} elements, if nothing were freed"),
            ("both", size_text(footprint.weight_bytes + footprint.activation_bytes)),
            ("network's input", size_text(footprint.input_bytes)),
            ("inference", f"{size_text(footprint.inference_peak_bytes)} of activations and inputs at a time, "
                          "each freed after its last reader")]
    if options.is_training:
        rows += [("kept for backward", f"{size_text(footprint.kept_bytes)} of activations and inputs, recompute {options.recompute}"),
                 ("gradients", f"{size_text(footprint.weight_gradient_bytes)} of weights, "
                               f"{size_text(footprint.activation_gradient_bytes)} of activations at a time"),
                 ("optimiser", f"{size_text(footprint.optimizer_bytes)}, {options.optimizer}"),
                 ("recomputed", f"{footprint.recomputed_operations:,} ops, "
                                f"{footprint.recomputed_operations / footprint.forward_operations:.1%} of the forward pass")]
    if options.lowering == "im2col":
        rows.append(("lowering", f"{size_text(footprint.lowering_bytes)}, the largest buffer"))
    parts = [("weights and what goes with them", footprint.fixed_bytes), ("activations", used.activations),
             ("gradients of activations", used.gradients), ("lowering", used.lowering)]
    rows += [("in all", f"{size_text(footprint.total_bytes)} at most, in {footprint.peak_event}: "
                        + ", ".join(f"{size_text(size)} {name}" for name, size in parts if size)),
             ("left out", "an allocator's gaps, code, workspaces of libraries")]
    return rows_table("Memory (1 MB = 1e6 bytes)", [(name, text) for name, text in rows])


def room_table(footprint: Footprint, left: Room) -> Table:
    capacity, options = left.capacity, footprint.options
    of = f", one of {capacity.devices} devices" if capacity.devices > 1 else ""
    room = f"fits, {size_text(left.free_bytes)} are free" if left.fits else f"does not fit, {size_text(-left.free_bytes)} are missing"
    wide = "there is no layer but the last"
    if left.width_percent is not None:
        more = f": {left.width_percent - WIDTH_PERCENT:,} % more" if left.width_percent >= WIDTH_PERCENT else ""
        wide = f"at most {left.width_percent:,} % of the channels of all layers but the last, at batch {options.batch:,}{more}"
    return rows_table(f"On {capacity.name}", [
        ("memory", f"{size_text(capacity.memory_bytes)}{of}"), ("this", room),
        ("largest batch", f"{left.largest_batch:,}" if left.largest_batch else "not even 1"), ("channels", wide)])


def size_text(size_bytes: int) -> str:
    """``168.0 MB``, with four digits or more; exact below 10 kB."""
    for scale, unit in SCALES:
        if size_bytes >= max(scale, 10_000):
            value = size_bytes / scale
            return f"{value:#.4g} {unit}" if value < 999.95 else f"{value:,.0f} {unit}"
    return f"{size_bytes:,} B"
