"""What all pictures have in common: size, type, colours that colour-blind readers tell apart, and how they are written."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boards.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".pdf")
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
"""M. Okabe, K. Ito, "Color Universal Design", 2008."""


def new_figure(title: str, x_label: str, y_label: str, *, width_inches: float = 8.0, height_inches: float = 4.5) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes, whose labels say their units. Raises InputError where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("pictures need matplotlib, which is not installed", suggestion="pip install 'nearmac[report]'")
    from cycler import cycler
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_prop_cycle(cycler(color=COLOURS))
    axes.grid(True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def check_path(path: str | Path) -> None:
    """Raises InputError for another suffix than .svg, .png or .pdf: before the work, not after it."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError("not a picture's name", where="--plot", value=str(path), allowed=f"a name that ends in {', '.join(SUFFIXES)}")


def save(figure: Figure, path: str | Path) -> None:
    """Write ``figure``, with nothing cut off; the same figure makes the same file. Raises InputError for another suffix."""
    import matplotlib

    check_path(path)
    suffix = Path(path).suffix.lower()
    no_date: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[suffix]
    with matplotlib.rc_context({"svg.hashsalt": "nearmac", "svg.fonttype": "none"}):
        figure.savefig(path, format=suffix[1:], dpi=200, bbox_inches="tight", metadata=no_date)
