"""Tilings: what is refused, and what the banks need."""

from __future__ import annotations

import pytest

from dse.schedule.tiling import INPUT_LOOPS, OUTPUT_LOOPS, WEIGHT_LOOPS, IllegalTiling, TilePlan, Tiling, parts
from hdl.design import Design
from hdl.layer import Layer

DESIGN = Design(rows=4, cols=4, psum_bytes=4096)
LAYER = Layer.conv(K=16, C=16, OY=12, OX=12, FY=3, FX=3, P=1)


def plan(layer: Layer = LAYER, design: Design = DESIGN, **sizes: object) -> TilePlan:
    whole = {"ts": 1, "tk": layer.K // layer.G, "tc": -(-layer.C // layer.G // design.cols), "ty": layer.OY, "tx": layer.OX}
    return TilePlan(design, layer, Tiling(**{**whole, **sizes}))  # type: ignore[arg-type]


def test_parts_cover_the_whole_once() -> None:
    assert [(part.start, part.size) for part in parts(10, 4)] == [(0, 4), (4, 4), (8, 2)]


@pytest.mark.parametrize(("sizes", "message"), [
    ({"tk": 3}, "output channels of a tile end inside a beat"),
    ({"ty": 1}, None),
])
def test_boundaries(sizes: dict[str, int], message: str | None) -> None:
    if message is None:
        plan(**sizes)
        return
    with pytest.raises(IllegalTiling, match=message):
        plan(**sizes)


def test_channel_tiles_need_a_psum_ram() -> None:
    with pytest.raises(IllegalTiling, match="psum"):
        plan(design=DESIGN.with_(psum_bytes=0), tc=2)


def test_only_first_and_last_tile_may_touch_padding() -> None:
    layer = Layer.conv(K=4, C=4, OY=12, OX=12, FY=7, FX=7, P=3)
    with pytest.raises(IllegalTiling, match="more than the first and last tile touch the padding"):
        plan(layer, ty=2)
    plan(layer, ty=4)


def test_padding_is_not_stored() -> None:
    # 12x12 real pixels of 4 words; the pads of the frame take no entries.
    assert plan().input_slot == 12 * 12 * 4
    # Rows 0..3 touch real rows 0..4, rows 4..7 touch 3..8: six rows at most.
    assert plan(ty=4).input_slot == 6 * 12 * 4


def test_strided_pointwise_layers_store_only_what_they_use() -> None:
    layer = Layer.conv(K=4, C=4, OY=6, OX=6, FY=1, FX=1, S=2)
    assert plan(layer).input_slot == 6 * 6


def test_loads_follow_the_order_of_loops() -> None:
    tiled = plan(tk=4, ty=4)
    assert (tiled.changes(WEIGHT_LOOPS), tiled.changes(INPUT_LOOPS), tiled.changes(OUTPUT_LOOPS)) == (4, 12, 12)
    outer = plan(tk=4, ty=4, order="pixels_outer")
    assert (outer.changes(WEIGHT_LOOPS), outer.changes(INPUT_LOOPS)) == (12, 3)


def test_needs_doubles_what_is_loaded_more_than_once() -> None:
    whole, tiled = plan().needs(), plan(tk=4).needs()
    assert whole["weight"][0] == 4 * 36 and tiled["weight"][0] == 2 * 36
    assert whole["input"][0] == tiled["input"][0] == 12 * 12 * 4


def test_buffer_need_never_rises_with_stride() -> None:
    """For one input size (tt-metal #13274)."""
    needs = [TilePlan(DESIGN, layer, Tiling(ts=1, tk=16, tc=4, ty=layer.OY, tx=layer.OX)).needs()
             for layer in (Layer.conv(K=16, C=16, IY=12, IX=12, FY=3, FX=3, S=stride, P=1) for stride in (1, 2, 3))]
    for kind in ("input", "weight", "output"):
        values = [need[kind][0] for need in needs]
        assert values == sorted(values, reverse=True)
