"""The picture of where cycles go: bars as long as the parts, labels with units, nothing cut off."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from boards import load_board
from dse.explain.explain import explain
from dse.explain.phases import PARTS
from dse.plot.explanation import LABELS, plot_explanation
from dse.simulate import choose
from hdl.layer import Layer


@pytest.fixture(scope="module")
def drawn():
    board = load_board("papilio-pro")
    explanation = explain(choose(Layer.linear(K=6, C=40), board, options={"rows": 2, "cols": 2, "lanes": 1}), board, workload="w" * 200)
    figure = plot_explanation(explanation)
    FigureCanvasAgg(figure).draw()
    return explanation, figure


def test_bars_are_the_parts_and_the_bounds(drawn):
    explanation, figure = drawn
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert set(LABELS) == set(PARTS)
    assert sum(widths[:len(PARTS)]) == explanation.choice.prediction.cycles
    assert max(widths[len(PARTS):]) == explanation.choice.prediction.bound[1]


def test_labels_have_units_and_stay_inside(drawn):
    explanation, figure = drawn
    assert figure.axes[0].get_xlabel() == "Time (cycles at 100 MHz)"
    width, height = figure.canvas.get_width_height()
    axes = figure.axes[0]
    ticks = [label for label in axis_labels(axes) if not axes.get_xlim()[0] <= label.get_position()[0] <= axes.get_xlim()[1]]
    texts = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible() and text not in ticks]
    assert len(texts) > 25
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text.get_text()


def axis_labels(axes) -> list[Text]:
    return list(axes.xaxis.get_ticklabels(which="both"))
