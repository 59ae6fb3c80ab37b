"""Other tools' and papers' models in closed form, to state their number for a layer without running them.

They describe those tools' machines, not ours, and predict nothing about a nearmac design. Each has its own idea of a layer; what a
model leaves out (groups, batches, dilation) is refused, never approximated. A linear layer is a convolution of extent 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, sqrt

from dse.estimate.bounds import used_inputs
from hdl.errors import InputError
from hdl.layer import Layer
from hdl.mapping import ceil_div

ZHANG_PIPELINE_CYCLES = 20
"""Depth of the loop pipeline that the published table of Zhang et al. pays once for every pair of channel tiles."""
NAMES = {"B": "batch", "G": "groups", "DY": "dilation", "DX": "dilation"}


# -- SCALE-Sim --------------------------------------------------------------------------------------------------------


class SystolicDataflow(StrEnum):
    """What stays in SCALE-Sim's array: outputs, weights or inputs."""

    OS = "os"
    WS = "ws"
    IS = "is"


@dataclass(frozen=True)
class SystolicRun:
    """A matrix product on a systolic array with no memory stalls.

    ``cycles``: as reported, the "-1" included. ``macs``: of the product. ``folds``: times that the array is filled.
    ``mapping_efficiency``: share of the array's places that a fold uses, mean over the folds, 0..1. ``utilisation``: share of all
    places and cycles that do a MAC, 0..1.
    """

    cycles: int
    macs: int
    folds: int
    mapping_efficiency: float
    utilisation: float


def scale_sim_gemm(m: int, n: int, k: int, *, rows: int, cols: int, dataflow: SystolicDataflow | str) -> SystolicRun:
    """An (m x k) by (k x n) product as SCALE-Sim 3.0.0 counts it in its CALC mode, every size at least 1.

    The two dimensions that lie on the array, Sr on its rows and Sc on its columns, are cut into folds; the third, T, streams::

        os: Sr=m Sc=n T=k   cycles = folds * (T + rows + cols - 2) - 1
        ws: Sr=k Sc=n T=m   cycles = folds * (T + 2 * rows + cols - 2) - 1    (a fold loads its operand, a row a cycle)
        is: Sr=k Sc=m T=n   as ws

    The "-1" is SCALE-Sim's: it reports the index of the last cycle, not the number of cycles. Found by comparison with its reports
    (its repository's ``test/general/golden_trace_*`` and runs of the release); it is in no paper of theirs.
    """
    for name, size in (("m", m), ("n", n), ("k", k), ("rows", rows), ("cols", cols)):
        _check_positive("scale_sim", name, size)
    try:
        kind = SystolicDataflow(dataflow)
    except ValueError:
        raise InputError("not a dataflow of SCALE-Sim", where="scale_sim.dataflow", value=str(dataflow),
                         allowed=", ".join(SystolicDataflow)) from None
    on_rows, on_cols, streamed = {SystolicDataflow.OS: (m, n, k), SystolicDataflow.WS: (k, n, m), SystolicDataflow.IS: (k, m, n)}[kind]
    fill = rows + cols - 2 if kind is SystolicDataflow.OS else 2 * rows + cols - 2
    folds = ceil_div(on_rows, rows) * ceil_div(on_cols, cols)
    cycles, macs = folds * (streamed + fill) - 1, m * n * k
    return SystolicRun(cycles, macs, folds, on_rows * on_cols / (folds * rows * cols), macs / (rows * cols * cycles))


def scale_sim_conv(layer: Layer, *, rows: int, cols: int, dataflow: SystolicDataflow | str) -> SystolicRun:
    """A convolution as SCALE-Sim counts it: OY*OX by C*FY*FX by K, on an input that is padded beforehand.

    Its second trap: output sizes are rounded up (:func:`scale_sim_outputs`), so a strided layer may have a row and a column more than
    it really has, and ``macs`` more than ``layer.macs``.
    """
    _check_plain(layer, "SCALE-Sim", ("B", "G", "DY", "DX"))
    outputs = (scale_sim_outputs(layer.IY + layer.PT + layer.PB, layer.FY, layer.SY)
               * scale_sim_outputs(layer.IX + layer.PL + layer.PR, layer.FX, layer.SX))
    return scale_sim_gemm(outputs, layer.K, layer.reduction_length, rows=rows, cols=cols, dataflow=dataflow)


def scale_sim_outputs(padded: int, taps: int, stride: int) -> int:
    """SCALE-Sim's output rows or columns: ``ceil((padded - taps + stride) / stride)``, where everybody else rounds down."""
    return ceil_div(padded - taps + stride, stride)


# -- FPGA papers ------------------------------------------------------------------------------------------------------


def zhang_cycles(layer: Layer, tm: int, tn: int, *, pipeline_cycles: int = ZHANG_PIPELINE_CYCLES) -> int:
    """Compute cycles of Zhang et al., "Optimizing FPGA-based accelerator design for deep CNNs" (FPGA 2015), unroll <tm, tn>.

    ``tm`` output and ``tn`` input channels a cycle: ``ceil(K/tm) * ceil(C/tn) * (OY*OX*FY*FX + pipeline_cycles)`` for each group, one
    after another. The paper's text has no pipeline term, its table has 20 cycles, but for the first layer, which has 0. Transfers
    that computation does not hide are left out: the throughput measured on the board is 6.7 % below the model's.
    """
    _check_plain(layer, "Zhang et al.", ("B", "DY", "DX"))
    _check_positive("zhang", "tm", tm)
    _check_positive("zhang", "tn", tn)
    passes = ceil_div(layer.K // layer.G, tm) * ceil_div(layer.C // layer.G, tn)
    return layer.G * passes * (layer.OY * layer.OX * layer.FY * layer.FX + pipeline_cycles)


def finn_interval_cycles(layer: Layer, simd: int, pe: int) -> int:
    """Initiation interval of a FINN layer folded to ``pe`` output channels by ``simd`` inputs: cycles from one frame to the next.

    ``(FY*FX*C / simd) * (K / pe) * OY*OX`` (Umuroglu et al., FPGA 2017; "Ext Latency" in BNN-PYNQ's ``hw/config.h``). Both folds
    must come out even, as FINN demands.
    """
    _check_plain(layer, "FINN", ("B", "G", "DY", "DX"))
    for name, size, total, what in (("simd", simd, layer.reduction_length, "FY*FX*C"), ("pe", pe, layer.K, "K")):
        _check_positive("finn", name, size)
        if total % size:
            raise InputError(f"must divide {what}={total}", where=f"finn.{name}", value=size, suggestion="FINN pads no fold")
    return layer.reduction_length // simd * (layer.K // pe) * layer.OY * layer.OX


def pipeline_frames_s(interval_cycles: list[int], clock_mhz: float) -> float:
    """Frames a second of a pipeline in which every layer has its own hardware, as in FINN: the slowest layer sets the pace."""
    return clock_mhz * 1e6 / max(interval_cycles)


def peak_gops(macs_per_cycle: int, clock_mhz: float) -> float:
    """Gop/s of an array that never waits; 1 MAC = 2 ops."""
    return 2 * macs_per_cycle * clock_mhz / 1e3


# -- communication ----------------------------------------------------------------------------------------------------


def chen_words(layer: Layer, capacity_words: int) -> int:
    """External words of a layer with ``capacity_words`` on chip: Chen et al., "Communication lower bound in CNN accelerators", HPCA 2020.

    ``max(compulsory words, 2 * MACs / sqrt(R * S))`` with ``R = FY*FX / (SY*SX)``, the places of the lowered input in which an input
    stands; at least 1, for strides beyond the filter. An asymptotic form: padding's MACs count, and a small layer may move less.
    ``dse.estimate.bounds.communication_lower_bound_bytes`` is the bound that holds for every nearmac design.
    """
    _check_positive("chen", "capacity_words", capacity_words)
    reuse = max(1.0, layer.FY * layer.FX / (layer.SY * layer.SX))
    compulsory = layer.weights + layer.outputs + used_inputs(layer)
    return max(compulsory, ceil(2 * layer.macs / sqrt(reuse * capacity_words)))


# -- what a model does not have ---------------------------------------------------------------------------------------


def _check_plain(layer: Layer, model: str, dimensions: tuple[str, ...]) -> None:
    for dimension in dimensions:
        if getattr(layer, dimension) != 1:
            raise InputError(f"the model of {model} has no {NAMES[dimension]}", where=f"layer.{dimension}",
                             value=getattr(layer, dimension), allowed="1")


def _check_positive(model: str, name: str, size: int) -> None:
    if size < 1:
        raise InputError("must be positive", where=f"{model}.{name}", value=size, allowed="at least 1")
