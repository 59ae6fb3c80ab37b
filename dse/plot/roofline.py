"""Rooflines as a picture: roofs, layers under them, and designs, predicted and simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dse.plot.style import COLOURS, new_figure
from dse.roofline.roof import Roof, amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dse.roofline.roofline import Rooflines

DASHES = ("-", "--", ":", "-.")
YELLOW = "#F0E442"  # too pale for lines on white
MARGIN = 4.0  # of the axes beyond the points, as a factor
MANY_ROOFS = 16


def plot_rooflines(report: Rooflines) -> Figure:
    """Gop/s against operations for each external byte, both logarithmic.

    Each roof has a colour and a dash of its own; dots on it are layers at their compulsory bytes. Circles are designs' layers as predicted,
    crosses as simulated, at the bytes they move; triangles a sweep's front, on the whole workload. Raises InputError without matplotlib.
    """
    groups: dict[tuple[str, float, float], list[Roof]] = {}
    for roof in report.roofs:  # a machine may compute several precisions alike
        groups.setdefault((roof.machine, roof.peak_gops, roof.mb_s), []).append(roof)
    figure, axes = new_figure(f"Roofline of {_short(report.workload)}", "Operations per external byte (ops/byte; 1 MAC = 2 ops)",
                              "Throughput (Gop/s)", width_inches=9.0, height_inches=5.0 + 0.15 * max(0, len(groups) - MANY_ROOFS))
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = _range(report)
    colours = [colour for colour in COLOURS if colour != YELLOW]
    colour_of: dict[tuple[str, str], str] = {}
    for at, (roof, *others) in enumerate(groups.values()):
        colour = colours[at % len(colours)]
        colour_of |= {(same.machine, same.precision): colour for same in (roof, *others)}
        ridge = roof.ridge_ops_per_byte
        xs = sorted({low, high, *([ridge] if low < ridge < high else [])})
        name = ", ".join([roof.name, *(same.precision for same in others)])
        axes.plot(xs, [roof.attainable_gops(x) for x in xs], color=colour, linestyle=DASHES[at // len(colours) % len(DASHES)],
                  linewidth=1.5, label=f"{name}: {amount(roof.peak_gops)} Gop/s, {amount(roof.mb_s / 1000)} GB/s")
    drawn: dict[tuple[str, str, bool], list[_Point]] = {}
    for point in _points(report):
        if (point.machine, point.precision) in colour_of:
            drawn.setdefault((point.kind, colour_of[point.machine, point.precision], point.is_filled), []).append(point)
    for (kind, colour, filled), points in drawn.items():
        _mark(axes, kind, [point.ops_per_byte for point in points], [point.gops for point in points], colour, filled=filled)
    for kind in dict.fromkeys(kind for kind, _, _ in drawn):
        _mark(axes, kind, [], [], "0.25", label=kind)
    figure.legend(loc="outside right upper", fontsize=7, frameon=False)
    return figure


@dataclass(frozen=True)
class _Point:
    kind: str
    machine: str
    precision: str
    ops_per_byte: float
    gops: float
    is_filled: bool = False


MARKERS = {"layer at its compulsory bytes": (".", 5), "sweep's front, whole workload": ("^", 6), "design's layer, predicted": ("o", 7),
           "design's layer, simulated": ("x", 7)}
LAYER, FRONT, PREDICTED, SIMULATED = MARKERS


def _mark(axes: Axes, kind: str, x: list[float], y: list[float], colour: str, *, filled: bool = False, label: str | None = None) -> None:
    marker, size = MARKERS[kind]
    face = colour if filled or kind == LAYER else "none"
    axes.plot(x, y, marker, markersize=size, color=colour, markerfacecolor=face, linestyle="none", label=label)


def _points(report: Rooflines) -> list[_Point]:
    """Everything that is no line, in the order in which it is drawn."""
    found = [_Point(LAYER, entry.roof.machine, entry.roof.precision, entry.ops_per_byte, entry.gops) for entry in report.attainable]
    found += [_Point(FRONT, point.board, point.precision, point.ops_per_byte, point.gops, point.is_best) for point in report.points]
    for landed in report.designs:
        for landing in landed.landings:
            for kind, run in ((PREDICTED, landing.predicted), (SIMULATED, landing.simulated)):
                if run:
                    roof = landing.at.roof
                    found.append(_Point(kind, roof.machine, roof.precision, landing.ops_per_byte(run), landing.gops(run)))
    return found


def _range(report: Rooflines) -> tuple[float, float]:
    """Of the intensities shown: those of all points, and the ridges of the roofs."""
    xs = [point.ops_per_byte for point in _points(report)] + [roof.ridge_ops_per_byte for roof in report.roofs]
    return min(xs) / MARGIN, max(xs) * MARGIN


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
