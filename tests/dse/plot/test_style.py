"""Names of pictures, and what all of them look like."""

from __future__ import annotations

import importlib.util

import pytest

from boards.errors import InputError
from dse.plot.style import COLOURS, check_path, new_figure, save


@pytest.mark.parametrize("name", ["picture.jpg", "picture", "svg"])
def test_other_names_are_refused(name, tmp_path):
    message = f"--plot: not a picture's name, got {name!r}; allowed: a name that ends in .svg, .png, .pdf"
    with pytest.raises(InputError) as caught:
        check_path(name)
    assert str(caught.value) == message
    figure, _ = new_figure("title", "x (s)", "y (m)")
    with pytest.raises(InputError, match="not a picture's name"):
        save(figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_figures_have_labels_and_colours():
    figure, axes = new_figure("title", "x (s)", "y (m)")
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == ("title", "x (s)", "y (m)")
    assert [axes.plot([0, 1], [0, 1])[0].get_color() for _ in COLOURS] == list(COLOURS)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError) as caught:
        new_figure("title", "x", "y")
    assert str(caught.value) == "pictures need matplotlib, which is not installed; pip install 'nearmac[report]'"
