"""Layers as rows of a SCALE-Sim topology, and what SCALE-Sim counts for them."""

from __future__ import annotations

from dataclasses import dataclass

from boards.errors import InputError
from dse.estimate.compat import SystolicRun, scale_sim_gemm, scale_sim_outputs
from hdl.layer import Layer


@dataclass(frozen=True)
class TopologyRow:
    """One row, which SCALE-Sim runs ``copies`` times: for each image and group, since it knows neither.

    Sizes hold the padding, without the zeros at the bottom and right that no window reaches: there, where SCALE-Sim would round the
    number of outputs up.
    """

    height: int
    width: int
    fy: int
    fx: int
    channels: int
    filters: int
    stride: int
    copies: int
    is_depthwise: bool

    @classmethod
    def of(cls, layer: Layer) -> TopologyRow:
        """Raises InputError for what no row can say: dilation, two strides."""
        for dilation, taps in (("DY", layer.FY), ("DX", layer.FX)):
            if taps > 1 and getattr(layer, dilation) > 1:
                raise InputError("SCALE-Sim has no dilation", where=f"{layer.name}.{dilation}", value=getattr(layer, dilation), allowed="1")
        strides = {stride for stride, outputs in ((layer.SY, layer.OY), (layer.SX, layer.OX)) if outputs > 1}
        if len(strides) > 1:
            raise InputError("SCALE-Sim has one stride for both axes", where=f"{layer.name}.SX", value=layer.SX, allowed=f"{layer.SY}")
        stride = strides.pop() if strides else 1
        if layer.kind == "linear":  # images are rows of a matrix
            height, width, copies = layer.B, 1, layer.G
        else:
            height = _size(layer.IY, layer.PT, layer.PB, layer.FY, layer.OY, stride)
            width = _size(layer.IX, layer.PL, layer.PR, layer.FX, layer.OX, stride)
            copies = layer.B * layer.G
        return cls(height, width, layer.FY, layer.FX, layer.C // layer.G, layer.K // layer.G, stride, copies,
                   is_depthwise=layer.G == layer.C > 1 and layer.B == 1)

    @property
    def outputs(self) -> int:
        """Output pixels as SCALE-Sim counts them: rounded up."""
        return scale_sim_outputs(self.height, self.fy, self.stride) * scale_sim_outputs(self.width, self.fx, self.stride)

    def run(self, rows: int, cols: int, dataflow: str) -> SystolicRun:
        """What SCALE-Sim reports for the row, once, without stalls (its CALC mode)."""
        return scale_sim_gemm(self.outputs, self.filters, self.channels * self.fy * self.fx, rows=rows, cols=cols, dataflow=dataflow)


def scale_sim_cycles(layer: Layer, *, rows: int, cols: int, dataflow: str, repeat: int = 1) -> int:
    """SCALE-Sim's stall-free cycles for all groups and images of ``layer``, ``repeat`` times.

    Raises InputError as :meth:`TopologyRow.of`.
    """
    row = TopologyRow.of(layer)
    return repeat * row.copies * row.run(rows, cols, dataflow).cycles


def _size(size: int, before: int, after: int, taps: int, outputs: int, stride: int) -> int:
    """Padded size, less the padding after it that no window reaches. An axis with one output moves nowhere: what it reads."""
    needed = (outputs - 1) * stride + taps
    if outputs == 1 and stride > 1:
        return needed
    return max(size + before, min(size + before + after, needed))
