"""Models of other tools, held against the figures that those tools and papers published or reported."""

from __future__ import annotations

from math import ceil, sqrt

import pytest

from dse.estimate.bounds import asymptotic_bound_bytes, capacity_bytes, used_inputs
from dse.estimate.compat import (
    chen_words,
    finn_interval_cycles,
    peak_gops,
    pipeline_frames_s,
    scale_sim_conv,
    scale_sim_gemm,
    scale_sim_outputs,
    zhang_cycles,
)
from dse.schedule.search import best_tiling
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer
from sim.memory import MemoryTiming

W1 = Layer.conv(K=192, C=192, OY=13, OX=13, FY=3, FX=3, P=1)

# ResNet-18's 20 convolutions: (how many, K, C, output size, filter, stride), He et al. 2016; padded to keep the size.
RESNET18 = [
    (1, 64, 3, 112, 7, 2),
    (4, 64, 64, 56, 3, 1),
    (1, 128, 64, 28, 3, 2), (3, 128, 128, 28, 3, 1), (1, 128, 64, 28, 1, 2),
    (1, 256, 128, 14, 3, 2), (3, 256, 256, 14, 3, 1), (1, 256, 128, 14, 1, 2),
    (1, 512, 256, 7, 3, 2), (3, 512, 512, 7, 3, 1), (1, 512, 256, 7, 1, 2),
]


def square(k: int, c: int, outputs: int, taps: int, stride: int = 1, pad: int = 0) -> Layer:
    return Layer.conv(K=k, C=c, OY=outputs, OX=outputs, FY=taps, FX=taps, S=stride, P=pad)


# -- SCALE-Sim --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dataflow, cycles", [("os", 10_175), ("ws", 11_199), ("is", 14_207)])
def test_scale_sim_golden_gemm(dataflow: str, cycles: int) -> None:
    """Its repository's golden reports for M=256 N=128 K=256 on 32x32."""
    assert scale_sim_gemm(256, 128, 256, rows=32, cols=32, dataflow=dataflow).cycles == cycles


def test_scale_sim_golden_conv() -> None:
    """Its golden report of AlexNet's first layer, on 55 x 55 outputs where there are 54 x 54."""
    layer = Layer.conv(K=96, C=3, IY=224, IX=224, FY=11, FX=11, S=4)
    run = scale_sim_conv(layer, rows=32, cols=32, dataflow="ws")
    assert run.cycles == 112_283
    assert run.mapping_efficiency * 100 == 94.53125
    assert f"{run.utilisation:.3%}" == "91.683%"
    assert (layer.OY, scale_sim_outputs(224, 11, 4)) == (54, 55)
    assert run.macs * 54 * 54 == layer.macs * 55 * 55


def test_scale_sim_rounds_up_only_where_the_stride_leaves_a_rest() -> None:
    assert [scale_sim_outputs(padded, 3, 2) for padded in (3, 4, 5, 6, 7)] == [1, 2, 2, 3, 3]
    assert [Layer.conv(K=1, C=1, IY=padded, IX=3, FY=3, FX=3, S=2).OY for padded in (3, 4, 5, 6, 7)] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("size, dataflow, cycles, utilisation, mapping", [
    (8, "os", 919_775, "95.25", "96.02"), (8, "ws", 990_143, "88.48", "100.00"), (8, "is", 1_016_927, "86.15", "96.02"),
    (16, "os", 232_055, "94.38", "96.02"), (16, "ws", 278_639, "78.60", "100.00"), (16, "is", 282_743, "77.46", "96.02"),
    (32, "os", 64_439, "84.97", "88.02"), (32, "ws", 85_211, "64.26", "100.00"), (32, "is", 92_663, "59.09", "88.02")])
def test_scale_sim_runs_of_the_13x13_layer(size: int, dataflow: str, cycles: int, utilisation: str, mapping: str) -> None:
    """Reports of SCALE-Sim 3.0.0 (CALC mode, 64 KB of SRAM for each operand)."""
    run = scale_sim_conv(W1, rows=size, cols=size, dataflow=dataflow)
    assert (run.cycles, run.macs) == (cycles, 56_070_144)
    assert (f"{run.utilisation * 100:.2f}", f"{run.mapping_efficiency * 100:.2f}") == (utilisation, mapping)
    # im2col leaves a plain product: the same layer given as M, N, K.
    assert run == scale_sim_gemm(169, 192, 1728, rows=size, cols=size, dataflow=dataflow)


@pytest.mark.parametrize("dataflow, cycles", [("os", 2_114_948), ("ws", 2_806_392)])
def test_scale_sim_runs_of_resnet18(dataflow: str, cycles: int) -> None:
    """The 20 reports of SCALE-Sim 3.0.0 on 32x32, summed. Its inputs are the rows and columns that outputs need and no more."""
    total = macs = 0
    for count, k, c, outputs, taps, stride in RESNET18:
        exact = square(k, c, outputs, taps, stride)
        total += count * scale_sim_conv(exact, rows=32, cols=32, dataflow=dataflow).cycles
        macs += count * exact.macs
    assert sum(row[0] for row in RESNET18) == 20
    assert f"{macs / 1e6:.1f}" == "1813.6"
    assert total == cycles


def test_scale_sim_arrays_need_not_be_square() -> None:
    """One column holds one filter: 4 folds of 3 rows, each of 5 steps and 2 to fill and drain; ws also loads 3 rows."""
    assert scale_sim_gemm(6, 2, 5, rows=3, cols=1, dataflow="os").cycles == 4 * (5 + 2) - 1
    assert scale_sim_gemm(5, 2, 6, rows=3, cols=1, dataflow="ws").cycles == 4 * (5 + 5) - 1
    assert scale_sim_gemm(2, 5, 6, rows=3, cols=1, dataflow="is").cycles == 4 * (5 + 5) - 1


def test_linear_layer_is_a_product_of_one_row() -> None:
    run = scale_sim_conv(Layer.linear(K=100, C=64), rows=32, cols=32, dataflow="ws")
    assert run == scale_sim_gemm(1, 100, 64, rows=32, cols=32, dataflow="ws")


@pytest.mark.parametrize("size, output_multiplier", [(8, "serial"), (16, "dsp"), (32, "dsp")])
def test_compute_bound_layer_takes_no_more_than_on_scale_sims_array(size: int, output_multiplier: str) -> None:
    """Same layer, same MACs a cycle, memory that never limits: ours fills no systolic array, and still counts load and store.

    SCALE-Sim's own figures with its first load ("incl. prefetch") are 927,105, 237,357 and 68,727 cycles.
    """
    design = Design(rows=size, cols=size, bus_bits=256, output_multiplier=output_multiplier,
                    input_bytes=1 << 16, weight_bytes=1 << 16, output_bytes=1 << 16)
    prediction = best_tiling(design, W1, MemoryTiming(8, 1, 1)).prediction
    theirs = scale_sim_conv(W1, rows=size, cols=size, dataflow="os")
    assert prediction.bound == ("compute", ceil(192 / size) * ceil(192 / size) * 9 * 169)
    assert theirs.macs // size**2 <= prediction.bound[1] < prediction.cycles <= theirs.cycles


# -- Zhang et al. -----------------------------------------------------------------------------------------------------

# (layer: one of the two groups of AlexNet's, cycles of <64, 7>)
ZHANG = [
    (square(48, 3, 55, 11, 4), 366_025),
    (square(128, 48, 27, 5, 1, 2), 255_430),
    (square(192, 256, 13, 3, 1, 1), 171_051),
    (square(192, 192, 13, 3, 1, 1), 129_444),
    (square(128, 192, 13, 3, 1, 1), 86_296),
]


def zhang_pipeline(number: int) -> int:
    """The table's pipeline term of a layer, counted from 0."""
    return 0 if number == 0 else 20


def test_zhang_unified_unroll() -> None:
    cycles = [zhang_cycles(layer, 64, 7, pipeline_cycles=zhang_pipeline(at)) for at, (layer, _) in enumerate(ZHANG)]
    assert cycles == [expected for _, expected in ZHANG]
    assert sum(cycles) == 1_008_246


@pytest.mark.parametrize("number, tm, tn, cycles", [(0, 48, 3, 366_025), (2, 96, 5, 160_264), (4, 32, 15, 80_132)])
def test_zhang_best_unroll_of_a_layer(number: int, tm: int, tn: int, cycles: int) -> None:
    """Rows of the paper's table from memory; their arithmetic is checked here."""
    layer, unified = ZHANG[number]
    assert zhang_cycles(layer, tm, tn, pipeline_cycles=zhang_pipeline(number)) == cycles <= unified


def test_zhang_throughput() -> None:
    """61.62 GFLOPS measured are 6.7 % under the model; 2240 DSP48E at 5 an fp32 MAC (3 to multiply, 2 to add) set the peak."""
    flops = 2 * sum(layer.macs for layer, _ in ZHANG)
    modelled_gflops = flops / (1_008_246 / 100e6) / 1e9
    assert f"{modelled_gflops:.2f}" == "66.03"
    assert f"{1 - 61.62 / modelled_gflops:.1%}" == "6.7%"
    assert modelled_gflops < peak_gops(2240 // 5, 100) == pytest.approx(2 * 64 * 7 * 100 / 1e3)


def test_zhang_groups_run_one_after_another() -> None:
    whole, group = Layer.conv(K=256, C=96, OY=27, OX=27, FY=5, FX=5, P=2, G=2), ZHANG[1][0]
    assert zhang_cycles(whole, 64, 7) == 2 * zhang_cycles(group, 64, 7)


# -- FINN -------------------------------------------------------------------------------------------------------------

# (layer, SIMD, PE, latency) of BNN-PYNQ's bnn/src/network/*/hw/config.h; CNV's last layer is padded from 10 to 64 outputs, LFC's first
# from 784 to 832 inputs and its last likewise.
CNV_LAYERS = [square(64, 3, 30, 3), square(64, 64, 28, 3), square(128, 64, 12, 3), square(128, 128, 10, 3), square(256, 128, 3, 3),
              square(256, 256, 1, 3), Layer.linear(K=512, C=256), Layer.linear(K=512, C=512), Layer.linear(K=64, C=512)]
CNV_W1A1 = [(3, 16, 32_400), (32, 32, 28_224), (32, 16, 20_736), (32, 16, 28_800), (32, 4, 20_736), (32, 1, 18_432), (4, 1, 32_768),
            (8, 1, 32_768), (1, 4, 8_192)]
CNV_W2A2 = [(3, 8, 64_800), (16, 16, 112_896), (16, 8, 82_944), (16, 8, 115_200), (8, 4, 82_944), (8, 1, 73_728), (2, 1, 65_536),
            (2, 2, 65_536), (1, 4, 8_192)]
LFC_LAYERS = [Layer.linear(K=1024, C=832), Layer.linear(K=1024, C=1024), Layer.linear(K=1024, C=1024), Layer.linear(K=64, C=1024)]
LFC_W1A1 = [(64, 32, 416), (32, 64, 512), (64, 32, 512), (8, 16, 512)]


@pytest.mark.parametrize("layers, folding, slowest, fps", [
    (CNV_LAYERS, CNV_W1A1, 32_768, "3051.8"), (CNV_LAYERS, CNV_W2A2, 115_200, "868.1"), (LFC_LAYERS, LFC_W1A1, 512, "195312.5")],
    ids=["cnvW1A1", "cnvW2A2", "lfcW1A1"])
def test_finn_folding(layers: list[Layer], folding: list[tuple[int, int, int]], slowest: int, fps: str) -> None:
    intervals = [finn_interval_cycles(layer, simd, pe) for layer, (simd, pe, _) in zip(layers, folding, strict=True)]
    assert intervals == [latency for _, _, latency in folding]
    assert max(intervals) == slowest
    assert f"{pipeline_frames_s(intervals, 100):.1f}" == fps


def test_macs_of_the_bnn_pynq_networks() -> None:
    assert sum(layer.macs for layer in CNV_LAYERS) == 59_489_024
    for width, macs in ((1024, 2_910_208), (256, 334_336)):  # LFC and SFC as trained, nothing padded
        assert sum(Layer.linear(K=k, C=c).macs for c, k in ((784, width), (width, width), (width, width), (width, 10))) == macs


# -- other machines ---------------------------------------------------------------------------------------------------


def test_vta_and_snowflake_peaks() -> None:
    """VTA on PYNQ: 16x16 int8 at 100 MHz. Snowflake: 256 MACs at 250 MHz."""
    assert peak_gops(16 * 16, 100) == pytest.approx(51.2)
    assert peak_gops(256, 250) == pytest.approx(128)


@pytest.mark.parametrize("macs, batch, seconds, dram_mb, fps, per_mac", [
    (2 * sum(layer.macs for layer, _ in ZHANG), 4, 0.1153, 15.4, "35", "0.0029"),
    (15_346_630_656, 3, 4.3095, 321.1, "0.7", "0.0035")], ids=["alexnet", "vgg16"])
def test_eyeriss_figures_agree(macs: int, batch: int, seconds: float, dram_mb: float, fps: str, per_mac: str) -> None:
    """Frames a second and DRAM accesses for each MAC of the abstract, from the table of totals; its 16-bit words are 2 bytes.

    Seconds and megabytes of the batch are from memory (Chen et al., JSSC 2017, tables V and VI); 168 MACs at 200 MHz are the peak.
    """
    digits = 0 if fps == "35" else 1
    assert f"{batch / seconds:.{digits}f}" == fps
    assert f"{dram_mb * 1e6 / 2 / (macs * batch):.4f}" == per_mac
    assert 2 * macs * batch / seconds / 1e9 < peak_gops(168, 200) == pytest.approx(67.2)


def test_vgg16_macs() -> None:
    """The 13 convolutions behind the figure of Eyeriss."""
    sizes = [(64, 3, 224), (64, 64, 224), (128, 64, 112), (128, 128, 112), (256, 128, 56), (256, 256, 56), (256, 256, 56),
             (512, 256, 28), (512, 512, 28), (512, 512, 28), (512, 512, 14), (512, 512, 14), (512, 512, 14)]
    assert sum(square(k, c, outputs, 3, 1, 1).macs for k, c, outputs in sizes) == 15_346_630_656


# -- communication ----------------------------------------------------------------------------------------------------


def test_chen_words() -> None:
    """The formula is from memory. Small capacity: 2 * MACs / sqrt(9 * S); large: every weight, input and output once."""
    assert chen_words(W1, 1 << 10) == ceil(2 * 56_070_144 / sqrt(9 * 1024)) == 1_168_128
    assert chen_words(W1, 1 << 20) == 331_776 + 2 * 32_448
    assert chen_words(Layer.linear(K=1000, C=4096), 1 << 20) == 4_096_000 + 5_096


def test_chen_words_fall_with_capacity_down_to_the_compulsory() -> None:
    words = [chen_words(W1, 1 << bits) for bits in range(24)]
    assert words == sorted(words, reverse=True)
    assert words[-1] == words[-2] == W1.weights + W1.outputs + used_inputs(W1)


def test_stride_beyond_the_filter_reuses_no_input() -> None:
    """R is 1, not 1/4: an input that is read stands in one place."""
    layer = Layer.conv(K=512, C=512, IY=55, IX=55, FY=1, FX=1, S=2)
    assert chen_words(layer, 256) == ceil(2 * layer.macs / 16)


def test_chen_words_are_the_asymptotic_bound_of_a_design() -> None:
    """dse.estimate.bounds has the same form for a design's banks, in bytes: equal at 8 bits where capacity limits."""
    design, layer = Design(rows=4, cols=4, input_bytes=4096, weight_bytes=4096, output_bytes=2048), square(2048, 2048, 28, 1)
    assert asymptotic_bound_bytes(design, layer) == chen_words(layer, capacity_bytes(design))


# -- what a model does not have ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("call, message", [
    (lambda: scale_sim_conv(Layer.conv(K=4, C=4, OY=3, OX=3, FY=3, FX=3, G=4), rows=8, cols=8, dataflow="os"),
     "layer.G: the model of SCALE-Sim has no groups, got 4; allowed: 1"),
    (lambda: zhang_cycles(Layer.conv(K=4, C=4, OY=3, OX=3, FY=3, FX=3, B=2), 4, 4),
     "layer.B: the model of Zhang et al. has no batch, got 2; allowed: 1"),
    (lambda: finn_interval_cycles(Layer.conv(K=4, C=4, OY=3, OX=3, FY=3, FX=3, DX=2), 4, 4),
     "layer.DX: the model of FINN has no dilation, got 2; allowed: 1"),
    (lambda: finn_interval_cycles(CNV_LAYERS[0], 4, 16), "finn.simd: must divide FY*FX*C=27, got 4; FINN pads no fold"),
    (lambda: finn_interval_cycles(CNV_LAYERS[0], 3, 5), "finn.pe: must divide K=64, got 5; FINN pads no fold"),
    (lambda: finn_interval_cycles(CNV_LAYERS[0], 3, 0), "finn.pe: must be positive, got 0; allowed: at least 1"),
    (lambda: scale_sim_gemm(0, 1, 1, rows=8, cols=8, dataflow="os"), "scale_sim.m: must be positive, got 0; allowed: at least 1"),
    (lambda: scale_sim_gemm(1, 1, 1, rows=8, cols=8, dataflow="rs"),
     "scale_sim.dataflow: not a dataflow of SCALE-Sim, got 'rs'; allowed: os, ws, is"),
    (lambda: zhang_cycles(W1, 0, 7), "zhang.tm: must be positive, got 0; allowed: at least 1"),
    (lambda: chen_words(W1, 0), "chen.capacity_words: must be positive, got 0; allowed: at least 1")])
def test_what_a_model_lacks_is_refused(call, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message
