"""Pictures of rooflines: everything is inside, labels have units, colours differ, and the same report makes the same file."""

from __future__ import annotations

import re

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from boards import list_machines, load_board
from dse.plot.roofline import plot_rooflines
from dse.plot.style import save
from dse.roofline.points import FrontPoint
from dse.roofline.roof import load_target
from dse.roofline.roofline import Rooflines, attainable, land, works_of
from dse.workload.zoo import load_network
from hdl.design import Design

BOARD = load_board("papilio-pro")
DESIGN = Design(rows=4, cols=4, input_bytes=8192, weight_bytes=16384, output_bytes=1024, accumulator_bits=24)


@pytest.fixture(scope="module")
def report() -> Rooflines:
    works = works_of(load_network("lenet5"))
    roofs, layers = attainable(works, [BOARD, *map(load_target, list_machines())])
    landed = land([at for at in layers if at.roof.machine == BOARD.name], BOARD, DESIGN, "given", precision="w8a8")
    point = FrontPoint(1, BOARD.name, "w8a8", DESIGN, sum(work.ops for work in works) // 2, 80_000, 100_000, True)
    return Rooflines("lenet5", roofs, layers, designs=(landed,), points=(point,))


def texts(figure) -> list[Text]:
    """As drawn: all that is visible and not empty."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def test_no_text_leaves_the_figure(report):
    figure = plot_rooflines(report)
    width, height = figure.canvas.get_width_height()
    found = texts(figure)
    ticks = {label for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis) for label in axis.get_ticklabels(which="both")}
    low, high = figure.axes[0].get_window_extent().min, figure.axes[0].get_window_extent().max
    seen = 0
    for text in found:
        box = text.get_window_extent()
        if text in ticks and not (low[0] - 1 <= text.get_window_extent().x1 and box.x0 <= high[0] + 1 and box.y0 <= high[1] + 1):
            continue  # of a tick beyond the axes' limits, which is not drawn
        seen += 1
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text.get_text()
    assert seen > 15


def test_labels_carry_units(report):
    figure = plot_rooflines(report)
    axes = figure.axes[0]
    assert axes.get_xlabel() == "Operations per external byte (ops/byte; 1 MAC = 2 ops)" and axes.get_ylabel() == "Throughput (Gop/s)"
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    roofs = [text for text in legend if "GB/s" in text]
    assert len(roofs) == 1 + len(list_machines()) and all(re.search(r": [\d.,]+ Gop/s, [\d.,]+ GB/s$", text) for text in roofs)
    assert legend[-3:] == ["layer at its compulsory bytes", "sweep's front, whole workload", "design's layer, predicted"]


def test_every_roof_looks_different_and_has_its_ridge(report):
    axes = plot_rooflines(report).axes[0]
    lines = [line for line in axes.get_lines() if line.get_linestyle() != "None" and len(line.get_xdata()) > 1]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(lines) == len(report.roofs)
    for line, roof in zip(lines, report.roofs, strict=True):
        assert max(line.get_ydata()) == pytest.approx(roof.peak_gops)
        assert roof.ridge_ops_per_byte in list(line.get_xdata())


def test_points_lie_where_they_should(report):
    axes = plot_rooflines(report).axes[0]
    drawn = {(line.get_marker(), x, y) for line in axes.get_lines() if line.get_linestyle() == "None"
             for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
    for at in report.attainable:
        assert (".", at.ops_per_byte, at.gops) in drawn
    for landing in report.designs[0].landings:
        assert ("o", landing.ops_per_byte(landing.predicted), landing.gops(landing.predicted)) in drawn
    assert ("^", report.points[0].ops_per_byte, report.points[0].gops) in drawn


@pytest.mark.parametrize("suffix, magic", [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_files(report, tmp_path, suffix, magic):
    small = Rooflines("lenet5", report.roofs[:1], report.attainable[:5], designs=report.designs)
    path = tmp_path / f"one{suffix}"
    save(plot_rooflines(small), path)
    assert path.read_bytes().startswith(magic)
    if suffix == ".svg":
        again = tmp_path / "again.svg"
        save(plot_rooflines(small), again)
        assert again.read_bytes() == path.read_bytes() and "Throughput (Gop/s)" in path.read_text(encoding="utf-8")
