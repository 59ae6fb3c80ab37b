"""The footprint over the network's depth, as a picture."""

from __future__ import annotations

from pathlib import Path

from dse.footprint.footprint import Footprint
from dse.footprint.room import Capacity
from dse.plot.style import COLOURS, new_figure, save

UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1))
MAX_NAMES, MAX_LETTERS = 16, 30
BAR_WIDTH = 1.0


def plot(footprint: Footprint, path: str | Path, capacity: Capacity | None = None) -> None:
    """What is in use while each event runs, in the order of events, stacked: weights and what goes with them, activations, gradients,
    lowering buffers. A dashed line is a device's memory (``capacity``), if it is less than three times the peak.

    Raises InputError for another suffix than .svg, .png or .pdf, and where matplotlib is not installed.
    """
    unit, divisor = next((name, size) for name, size in UNITS if footprint.total_bytes >= size)
    options, usage = footprint.options, footprint.usage
    what = "training" if options.is_training else "inference"
    how = "".join(f", {text}" for text, is_so in (
        ("unfused", options.is_unfused), ("in place", options.in_place), (f"recompute {options.recompute}", options.recompute != "none"),
        (options.lowering, options.lowering != "direct")) if is_so)
    title = f"{footprint.network.name}, {what}, batch {options.batch:,}{how}: at most {footprint.total_bytes / divisor:.4g} {unit}"
    figure, axes = new_figure(title, "step (operator, in the order in which they run)", f"memory in use ({unit})")
    gradients = "weights, their gradients, optimiser state" if options.is_training else "weights"
    layers = [(gradients, [footprint.fixed_bytes] * len(usage)), ("activations", [used.activations for used in usage]),
              ("gradients of activations", [used.gradients for used in usage]), ("lowering buffer", [used.lowering for used in usage])]
    bottom = [0.0] * len(usage)
    edges = [index - BAR_WIDTH / 2 for index in range(len(usage) + 1)]
    hatches = ("", "//", "..", "xx")  # told apart without colour too
    for (label, values), colour, hatch in zip(layers, COLOURS, hatches, strict=False):
        if any(values):
            top = [low + value / divisor for low, value in zip(bottom, values, strict=True)]
            axes.stairs(top, edges, baseline=bottom, fill=True, label=label, facecolor=colour, edgecolor="white", linewidth=0.0,
                        hatch=hatch)
            bottom = top
    if capacity is not None and capacity.memory_bytes < 3 * footprint.total_bytes:
        axes.axhline(capacity.memory_bytes / divisor, color="black", linestyle="--", linewidth=1.2,
                     label=f"memory of {capacity.name}: {capacity.memory_bytes / divisor:.4g} {unit}")
    forward = sum(event.phase == "forward" for event in footprint.model.order)
    if options.is_training:
        axes.axvline(forward - BAR_WIDTH / 2, color="0.3", linestyle=":", linewidth=1.2, label="the backward pass begins")
    spacing = max(1, -(-len(usage) // MAX_NAMES))
    ticks = range(0, len(usage), spacing)
    names = [_short(footprint.model.steps[footprint.model.order[index].step].name) for index in ticks]
    axes.set_xticks(list(ticks), names, rotation=45, ha="right", fontsize=7)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, None)
    axes.margins(y=0.05)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    save(figure, path)


def _short(name: str) -> str:
    return name if len(name) <= MAX_LETTERS else f"..{name[-MAX_LETTERS + 2:]}"
