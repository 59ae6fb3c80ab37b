"""Where the cycles of a layer go, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dse.explain.phases import PARTS
from dse.explain.results import BOUNDS
from dse.plot.style import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dse.explain.explain import Explanation

LABELS = {"start_part": "program", "first_load_part": "first load", "vectors_part": "vectors issued", "drain_part": "wait for drains",
          "fill_part": "start and tail of tiles", "evaluation_part": "wait for evaluation", "memory_part": "wait for memory",
          "change_part": "phase changes", "last_store_part": "last store"}
ROOM = 1.25  # of the longest bar: its label stands behind it
MOST = 50  # characters of a workload's name, of the widest letters


def plot_explanation(explanation: Explanation) -> Figure:
    """Bars of the parts that add up to the predicted cycles, and below them what each resource alone would need.

    Raises InputError without matplotlib.
    """
    d, cycles = explanation.derivation, explanation.choice.prediction.cycles
    text = explanation.workload if len(explanation.workload) <= MOST else explanation.workload[:MOST - 3] + "..."
    design = explanation.design
    figure, axes = new_figure(f"{text}\n{design.array} {design.precision} on {explanation.board}: {cycles:,} cycles",
                              f"Time (cycles at {design.clock_mhz:g} MHz)", "")
    rows = [(LABELS[name], int(d[name]), COLOURS[0]) for name in PARTS]
    rows += [(f"{name} bound", int(d[f"{name}_bound"]), COLOURS[1]) for name in BOUNDS]
    names, values, colours = zip(*rows, strict=True)
    bars = axes.barh(range(len(rows)), values, color=colours)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, max(values) * ROOM)
    axes.bar_label(bars, [f"{value:,} ({value / cycles:.1%})" for value in values], padding=3, fontsize=8)
    axes.grid(False, axis="y")
    return figure
