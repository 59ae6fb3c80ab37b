"""What users of other tools reported, geometry and bits, each beside the tests that would show it here.

Rows name the project and its issue. Those without a test of their own elsewhere have it below.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from boards import load_board
from boards.errors import InputError
from dse.choose import board_timing
from dse.cli.simulation_table import result_table
from dse.estimate.bounds import compulsory_bytes
from dse.schedule.search import Choice, best_tiling
from dse.simulate import simulate
from dse.workload.onnx_import.importer import import_onnx
from hdl.compatibility import accumulator_bits_needed, check_layer
from hdl.design import Design
from hdl.layer import Layer
from hdl.mapping import Format
from sim.golden import LayerTensors, golden, random_tensors
from tests.dse.workload.onnx_import.models import model, node, save, value, zeros

ROOT = Path(__file__).parent
ONNX = "dse/workload/onnx_import"
CASES = {
    # -- geometry and import
    "zigzag #13: height and width swapped for kernel, stride, dilation, pads": ["test_cases.py::test_rows_are_not_columns"],
    "zigzag: Conv without kernel_shape; auto_pad ignored": [
        f"{ONNX}/test_convolution.py::test_absent_attributes", f"{ONNX}/test_convolution.py::test_output_sizes_are_those_of_onnx"],
    "stream PR #111, tensorflow-onnx #1028: asymmetric pads, stride 2 SAME": [
        f"{ONNX}/test_convolution.py::test_mobilenet_stem", f"{ONNX}/test_convolution.py::test_sums_are_those_of_onnx_runtime"],
    "SCALE-Sim #40: one stride for both axes": ["test_cases.py::test_strides_and_dilations_of_their_own"],
    "SCALE-Sim #27: padding is read from memory": ["test_cases.py::test_padding_is_not_read"],
    "SCALE-Sim #38 #45, nvdla #41 #51, AutoSA #13: depthwise counted wrong, slow, wrong": ["test_cases.py::test_depthwise"],
    "FINN #315-#331, #860: non-square and 1-D images, dilations": [
        f"{ONNX}/test_convolution.py::test_one_axis_is_the_width",
        f"{ONNX}/test_convolution.py::test_three_axes_stay_on_the_host_with_the_axis_named", "test_cases.py::test_rows_are_not_columns"],
    "hls4ml #782: three dimensions into a dense layer": [f"{ONNX}/test_matmul.py::test_leading_dimensions_are_pixels"],
    "tt-metal #13274: fits at stride 1, out of memory at stride 2": ["test_cases.py::test_buffers_that_do_for_stride_1_do_for_stride_2"],
    # -- bits
    "hls4ml #324: accumulator as narrow as the input": [
        "test_cases.py::test_extremes_fill_the_derived_accumulator", "hdl/test_array.py::test_widest_products_fill_48_bits"],
    "hls4ml #978 #326 #437 #640: looks wide enough, is wrong": ["test_cases.py::test_one_bit_less_is_refused"],
    "an LX9 project: a constant one bit too narrow, logic gone without a word": [
        "hdl/test_synthesis.py::test_control_is_small", "hdl/test_synthesis.py::test_blocks_of_whole_accelerators",
        "hdl/test_compatibility.py::test_accumulator_too_narrow"],
    "nngen #19: a signal of 0x40000000 bits": ["hdl/test_verilog.py::test_what_is_in_it"],
    "gemmini #199: simulator signed, hardware unsigned": ["test_cases.py::test_signed_and_unsigned"],
    "gemmini #304: one dataflow fails at 4x4 with a 64-bit bus": ["test_cases.py::test_arrays_and_buses"],
}
BOARD = load_board("papilio-pro")


@pytest.mark.parametrize("row", CASES)
def test_every_row_has_its_tests(row):
    for name in CASES[row]:
        file, _, function = name.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert function in {entry.name for entry in tree.body if isinstance(entry, ast.FunctionDef)}, name


def small(layer: Layer, **changes) -> Design:
    """A 2x2 design that holds small layers whole."""
    bits = {"weight_bits": 8, "activation_bits": 8} | {key: changes[key] for key in ("weight_bits", "activation_bits") if key in changes}
    given = {"rows": 2, "cols": 2, "lanes": 1, "bus_bits": 16, "input_bytes": 4096, "weight_bytes": 4096, "output_bytes": 4096,
             "accumulator_bits": accumulator_bits_needed(layer, **bits), "clock_mhz": 100.0}
    return Design(**{**given, **changes})


def chosen(layer: Layer, **changes) -> Choice:
    design = small(layer, **changes)
    return best_tiling(design, layer, board_timing(BOARD, design))


def run(layer: Layer, tensors: LayerTensors | None = None, **changes):
    """The layer in hardware; it must be as predicted, and as NumPy has it."""
    choice = chosen(layer, **changes)
    report, arrays = simulate(layer, BOARD, choice, engine="amaranth", tensors=tensors)
    assert report.matches
    return report, arrays


def convolved(x: np.ndarray, weight: np.ndarray, layer: Layer) -> np.ndarray:
    """Sums of one image, with loops as anyone would write them: rows before columns."""
    padded = np.pad(x, ((0, 0), (layer.PT, layer.PB), (layer.PL, layer.PR)))
    result = np.zeros((layer.K, layer.OY, layer.OX), np.int64)
    per_group = layer.K // layer.G
    for k, oy, ox in np.ndindex(*result.shape):
        group = k // per_group
        channels = padded[group * layer.C // layer.G:(group + 1) * layer.C // layer.G]
        window = channels[:, oy * layer.SY:, ox * layer.SX:][:, ::layer.DY, ::layer.DX][:, :layer.FY, :layer.FX]
        result[k, oy, ox] = (window * weight[k]).sum()
    return result


def check_sums(layer: Layer, *, engine: str = "hardware", **changes) -> dict:
    """In hardware, or with the golden model alone. With a multiplier of 1 and no shift, outputs are the sums where those fit: of 2-bit
    operands they fit 16-bit outputs."""
    rng = np.random.default_rng(1)
    bits = {"weight_bits": 8, "activation_bits": 16, **changes}
    x = rng.integers(-2, 2, (1, layer.C, layer.IY, layer.IX))
    weight = rng.integers(-2, 2, (layer.K, layer.C // layer.G, layer.FY, layer.FX))
    ones, zero = np.ones(layer.K, np.int64), np.zeros(layer.K, np.int64)
    tensors = LayerTensors(input=x, weight=weight, bias=zero, multiplier=ones, shift=zero)
    if engine == "golden":
        np.testing.assert_array_equal(golden(small(layer, **bits), layer, tensors)[0], convolved(x[0], weight, layer))
        return {}
    report, arrays = run(layer, tensors, **bits)
    np.testing.assert_array_equal(arrays["output"][0], convolved(x[0], weight, layer))
    return report.to_dict()


def imported_layer(tmp_path, weight, size, **attributes) -> Layer:
    proto = model([node("Conv", "x w", "y", "c", **attributes)], [value("x", size)], ["y"], {"w": zeros(*weight)})
    return import_onnx(save(tmp_path, proto)).network.array_operators[0].layer


# -- geometry -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "strides", "pads", "output", "macs"), [
    ((1, 7), (1, 2), (0, 3, 0, 3), (17, 18), 17 * 18 * 7), ((7, 1), (2, 1), (3, 0, 3, 0), (9, 35), 9 * 35 * 7)])
def test_rows_are_not_columns(kernel, strides, pads, output, macs, tmp_path):
    """1x7 and 7x1 on 17x35: shape, MACs, bytes, bits."""
    layer = imported_layer(tmp_path, (1, 1, *kernel), (1, 1, 17, 35), kernel_shape=list(kernel), strides=list(strides), pads=list(pads))
    assert ((layer.OY, layer.OX), layer.macs, layer.inputs, layer.outputs) == (output, macs, 17 * 35, output[0] * output[1])
    assert chosen(layer, rows=1, cols=1, activation_bits=16).prediction.beats_written * 2 == 2 * layer.outputs
    check_sums(layer, engine="golden")
    crop = replace(layer, IY=6, IX=8, OY=(6 - 1) // layer.SY + 1, OX=(8 - 1) // layer.SX + 1)
    check_sums(crop, rows=1, cols=1)


def test_strides_and_dilations_of_their_own(tmp_path):
    layer = imported_layer(tmp_path, (2, 2, 3, 3), (1, 2, 9, 11), strides=[2, 1], dilations=[1, 3])
    assert (layer.SY, layer.SX, layer.DY, layer.DX, layer.OY, layer.OX) == (2, 1, 1, 3, 4, 5)
    check_sums(layer)


def test_padding_is_not_read():
    """The same outputs with the border in memory read it, and with padding do not: 100 - 64 pixels, a word of 2 bytes each."""
    padded, bordered = (Layer.conv(K=2, C=2, IY=size, IX=size, FY=3, FX=3, P=pad) for size, pad in ((8, 1), (10, 0)))
    read = [chosen(layer).prediction.beats_read * 2 for layer in (padded, bordered)]
    assert padded.outputs == bordered.outputs
    word_bytes = Format.of(small(padded), "input").beats(1) * 2
    assert read[1] - read[0] == (100 - 64) * word_bytes
    assert compulsory_bytes(small(bordered), bordered) - compulsory_bytes(small(padded), padded) == (100 - 64) * 2


def test_depthwise(tmp_path):
    layer = imported_layer(tmp_path, (32, 1, 3, 3), (1, 32, 2, 2), group=32, pads=[1, 1, 1, 1])
    assert (layer.G, layer.C, layer.K, layer.macs, layer.weights) == (32, 32, 32, 9 * 2 * 2 * 32, 288)
    check_sums(layer, engine="golden")
    shown = {row[0]: row[1] for row in _cells(result_table(run(layer)[0], BOARD))}
    assert "%" in shown["utilization"] and re.match(r"(compute|memory|drain): [\d,]+ cycles", shown["bound"])


def _cells(table) -> list[list[str]]:
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(("size", "kernel"), [(8, 1), (9, 3)])
def test_buffers_that_do_for_stride_1_do_for_stride_2(size, kernel):
    """For the same input, and for banks from none too small to more than enough."""
    done = []
    for kilobytes in (1, 4):
        fits = []
        for stride in (1, 2):
            layer = Layer.conv(K=2, C=128, IY=size, IX=size, FY=kernel, FX=kernel, S=stride, P=kernel // 2)
            try:
                chosen(layer, input_bytes=1024 * kilobytes, weight_bytes=8192, output_bytes=1024)
                fits.append(True)
            except InputError:
                fits.append(False)
        assert fits == sorted(fits), (kilobytes, fits)  # what fits goes on to fit
        done.append(fits[0])
    assert done == [kernel == 1, True]  # 3 x 3 x 128 inputs of one output pixel are more than 1 KiB


# -- bits ---------------------------------------------------------------------------------------------------------------


def test_extremes_fill_the_derived_accumulator():
    """Sums of 16 products of 8 by 16 bits, all at one end, by Python's integers: an output channel and an image for each end."""
    layer = Layer.conv(K=2, C=4, IY=2, IX=2, FY=2, FX=2, B=2)
    weights, activations = (-128, 127), (-32768, 32767)
    ones = np.ones(2, np.int64)
    tensors = LayerTensors(input=np.array(activations).reshape(2, 1, 1, 1).repeat(16, 1).reshape(2, 4, 2, 2),
                           weight=np.array(weights).reshape(2, 1, 1, 1).repeat(16, 1).reshape(2, 4, 2, 2), bias=0 * ones, multiplier=ones,
                           shift=16 * ones)
    _, arrays = run(layer, tensors, weight_bits=8, activation_bits=16)
    expected = [[min(max((16 * weight * activation + (1 << 15)) >> 16, -32768), 32767) for weight in weights] for activation in activations]
    assert arrays["output"].reshape(2, 2).tolist() == expected


def test_one_bit_less_is_refused():
    """128 x 128 x 9 is 147,456: 19 bits hold it and its negative; 18, which hold every product many times, do not."""
    layer = Layer.conv(K=2, C=1, OY=4, OX=4, FY=3, FX=3)
    design = small(layer, cols=1, accumulator_bits=19)
    check_layer(design, layer)
    with pytest.raises(InputError, match="accumulator needs at least 19 bits for 9 products of 8 x 8 bits, not 18"):
        check_layer(design.with_(accumulator_bits=18), layer)


@pytest.mark.parametrize("activations_signed", [True, False])
@pytest.mark.parametrize("outputs_signed", [True, False])
def test_signed_and_unsigned(activations_signed, outputs_signed):
    """All four: 200 is 200 or -56, and outputs end at -128 and 127 or at 0 and 255."""
    layer = Layer.linear(K=4, C=1, activations_signed=activations_signed, outputs_signed=outputs_signed)
    x = np.full((1, 1, 1, 1), 200 if not activations_signed else 200 - 256)
    ones = np.ones(4, np.int64)
    tensors = LayerTensors(input=x, weight=np.array([1, -1, 2, -2]).reshape(4, 1, 1, 1), bias=0 * ones, multiplier=ones, shift=0 * ones)
    _, arrays = run(layer, tensors, cols=1)
    low, high = (-128, 127) if outputs_signed else (0, 255)
    assert arrays["output"].ravel().tolist() == [min(max(int(x.ravel()[0]) * factor, low), high) for factor in (1, -1, 2, -2)]


@pytest.mark.parametrize(("rows", "cols", "bus_bits"), [
    (1, 1, 16), (2, 2, 32), (4, 4, 64), (3, 5, 128), (1, 1, 256)])
def test_arrays_and_buses(rows, cols, bus_bits):
    layer = Layer.conv(K=5, C=6, IY=3, IX=2, FY=2, FX=2)
    design = replace(small(layer), rows=rows, cols=cols, bus_bits=bus_bits, input_bytes=8192, weight_bytes=16384, output_bytes=16384)
    choice = best_tiling(design, layer, board_timing(BOARD, design))
    report, _ = simulate(layer, BOARD, choice, engine="amaranth", tensors=random_tensors(design, layer, 3))
    assert report.matches
