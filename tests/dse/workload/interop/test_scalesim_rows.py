"""Layers as rows of a topology, against SCALE-Sim's formulas written out."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import InputError
from dse.workload.interop.scalesim_rows import TopologyRow, scale_sim_cycles
from hdl.layer import Layer


def reported(row: TopologyRow, height: int, width: int, dataflow: str) -> int:
    """Cycles of one run of ``row``: output sizes as ``topology_utils`` has them, folds as the compute models have."""
    pixels = ceil((row.height - row.fy + row.stride) / row.stride) * ceil((row.width - row.fx + row.stride) / row.stride)
    window = row.fy * row.fx * row.channels
    on_rows, on_cols, streamed = {"os": (pixels, row.filters, window), "ws": (window, row.filters, pixels),
                                  "is": (window, pixels, row.filters)}[dataflow]
    fill = (height if dataflow == "os" else 2 * height) + width - 2
    return ceil(on_rows / height) * ceil(on_cols / width) * (streamed + fill) - 1


@pytest.mark.parametrize("dataflow, counts", [("ws", (727, 8 * 311, 2 * 251, 89)), ("os", (850, 8 * 436, 2 * 395, 43)),
                                              ("is", (1847, 8 * 539, 2 * 539, 71))])
def test_reports_of_scalesim_3_0_0(dataflow, counts):
    """What the release reported for the rows that these layers are exported as, on 4x8 in CALC mode."""
    layers = (Layer.conv(K=8, C=3, IY=20, IX=17, FY=3, FX=3, S=2, P=1), Layer.conv(K=8, C=8, IY=10, IX=9, FY=3, FX=3, P=1, G=8),
              Layer.conv(K=12, C=8, IY=10, IX=9, FY=1, FX=3, G=2), Layer.linear(K=10, C=12))
    assert tuple(scale_sim_cycles(layer, rows=4, cols=8, dataflow=dataflow) for layer in layers) == counts
    assert scale_sim_cycles(layers[3], rows=4, cols=8, dataflow=dataflow, repeat=5) == 5 * counts[3]


sizes = st.integers(1, 9)


@given(st.integers(1, 6), st.integers(1, 6), sizes, sizes, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2),
       st.sampled_from(("os", "ws", "is")), st.integers(1, 3), st.integers(1, 2))
def test_any_layer(k, c, iy, ix, fy, fx, stride, pad, dataflow, groups, batch):
    if fy > iy + 2 * pad or fx > ix + 2 * pad:
        return
    layer = Layer.conv(K=k * groups, C=c * groups, IY=iy, IX=ix, FY=fy, FX=fx, S=stride, P=pad, G=groups, B=batch)
    row = TopologyRow.of(layer)
    assert (row.channels, row.filters, row.copies) == (c, k, groups * batch)
    assert iy + pad <= row.height <= iy + 2 * pad or layer.OY == 1
    # Where the stride leaves padding over, it is not written: the outputs are ours. What is left of the input itself stays.
    if pad >= stride - 1:
        assert row.outputs == layer.OY * layer.OX
    assert scale_sim_cycles(layer, rows=3, cols=5, dataflow=dataflow) == groups * batch * reported(row, 3, 5, dataflow)


def test_images_of_a_linear_layer_are_rows_of_a_matrix():
    row = TopologyRow.of(Layer.linear(K=10, C=84, B=7))
    assert (row.height, row.width, row.copies, row.outputs) == (7, 1, 1, 7)


def test_what_no_row_can_say():
    with pytest.raises(InputError, match="^net.DX: SCALE-Sim has no dilation, got 2; allowed: 1$"):
        TopologyRow.of(Layer.conv(name="net", K=1, C=1, OY=4, OX=4, FY=1, FX=3, D=2))
    with pytest.raises(InputError, match="^net.SX: SCALE-Sim has one stride for both axes, got 1; allowed: 2$"):
        TopologyRow.of(Layer.conv(name="net", K=1, C=1, OY=4, OX=4, FY=3, FX=3, SY=2))
    # Dilation of one tap, and the stride of an axis with one output, mean nothing.
    row = TopologyRow.of(Layer.conv(K=1, C=1, IY=3, OX=4, FY=1, FX=3, SY=5, SX=2, DY=3))
    assert (row.height, row.width, row.stride, row.outputs) == (1, 9, 2, 4)
