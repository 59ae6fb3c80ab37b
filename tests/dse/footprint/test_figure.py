"""The picture: what it says, that nothing is cut off, that it is the same every time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from dse.footprint.figure import plot
from dse.footprint.footprint import Footprint, Options
from dse.footprint.room import Capacity
from dse.workload.zoo import load_network

SVG = "{http://www.w3.org/2000/svg}"


def drawn(tmp_path, footprint: Footprint, capacity: Capacity | None = None) -> tuple[ElementTree.Element, list[str]]:
    path = tmp_path / "picture.svg"
    plot(footprint, path, capacity)
    root = ElementTree.parse(path).getroot()
    return root, ["".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")]


def test_training_has_all_that_is_in_use(tmp_path):
    found = Footprint(load_network("resnet18"), Options(is_training=True, lowering="im2col", batch=8))
    root, texts = drawn(tmp_path, found, Capacity("some-board", found.total_bytes * 2))
    for label in ("memory in use (MB)", "weights, their gradients, optimiser state", "activations", "gradients of activations",
                  "lowering buffer", "the backward pass begins",
                  f"resnet18, training, batch 8, im2col: at most {found.total_bytes / 1e6:.4g} MB",
                  f"memory of some-board: {found.total_bytes * 2 / 1e6:.4g} MB"):
        assert label in texts
    assert {"conv1", "layer4.1.add", "maxpool"} <= set(texts)
    width, height = (float(root.get(key).removesuffix("pt")) for key in ("width", "height"))
    assert width > 400 and height > 200
    for text in root.iter(f"{SVG}text"):
        places = re.findall(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)", text.get("transform", ""))
        where = [tuple(map(float, place)) for place in places] or [(float(text.get("x")), float(text.get("y")))]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in where)


def test_inference_shows_what_it_has(tmp_path):
    found = Footprint(load_network("lenet5"))
    _, texts = drawn(tmp_path, found, Capacity("far", 100 * found.total_bytes))
    assert "weights" in texts and "activations" in texts
    assert not any("gradient" in text or "far" in text or "lowering" in text for text in texts)


def test_long_names_are_cut(tmp_path):
    from dse.workload.line import network_of
    from hdl.layer import Layer

    _, texts = drawn(tmp_path, Footprint(network_of(Layer.linear(name="x" * 150 + "end", K=4, C=4))))
    assert ".." + "x" * 25 + "end" in texts


@pytest.mark.parametrize("suffix, start", [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_other_formats(tmp_path, suffix, start):
    path = tmp_path / f"picture.{suffix}"
    plot(Footprint(load_network("digits-cnn")), path)
    assert path.read_bytes().startswith(start)


def test_the_same_footprint_makes_the_same_file(tmp_path):
    paths = [tmp_path / f"{index}.svg" for index in range(2)]
    for path in paths:
        plot(Footprint(load_network("digits-cnn")), path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
