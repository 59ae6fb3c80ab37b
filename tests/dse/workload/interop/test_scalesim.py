"""SCALE-Sim topologies: rows of every kind, and what is wrong in a row by its line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards.errors import InputError
from dse.workload.interop.scalesim import load_topology
from dse.workload.network import Network
from dse.workload.operators import Tensor
from hdl.layer import Layer

HEADER = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"


@pytest.fixture
def load(tmp_path):
    def from_text(text: str, *bits: int) -> Network:
        path = tmp_path / "net.csv"
        path.write_text(text)
        return load_topology(str(path), *bits)

    return from_text


@pytest.fixture
def message(load, tmp_path):
    def of(text: str) -> str:
        with pytest.raises(InputError) as caught:
            load(text)
        return str(caught.value).replace(str(tmp_path / "net.csv"), "net.csv")

    return of


def remarks(network: Network) -> list[str]:
    return [remark.partition("net.csv: ")[2] for remark in network.remarks]


def test_convolutions(load):
    network = load(HEADER + "conv1, 17, 35, 1, 7, 3, 8, 2,\nconv2,9,15,3,2,8,4,1,\n")
    assert list(network.array_layers().values()) == [
        Layer.conv(name="conv1", K=8, C=3, IY=17, IX=35, FY=1, FX=7, S=2), Layer.conv(name="conv2", K=4, C=8, IY=9, IX=15, FY=3, FX=2)]
    assert network.name == "net" and network.remarks == () and network.precision == "w8a8"
    # The second reads what the first writes; the first has an input of its own.
    assert network.operator("conv2").inputs == ("conv1",)
    assert network.operator("conv1_input").output == Tensor((1, 3, 17, 35), 8)
    assert [edge for edge in network.graph.edges] == [("conv1_input", "conv1"), ("conv1", "conv2")]
    assert all(not node.bias for node in network.array_operators)


def test_rows_that_do_not_follow_have_inputs_of_their_own(load):
    network = load(HEADER + "a,8,8,3,3,4,4,1,\nb,8,8,3,3,4,4,1,\n")
    assert network.operator("b").inputs == ("b_input",)


def test_precision(load):
    assert load(HEADER + "a,8,8,3,3,4,4,1,\n", 4, 2).array_operators[0].precision == "w4a2"


@pytest.mark.parametrize("text", ["a,8,8,3,3,4,4,1", "a,8,8,3,3,4,4,1,", "a, 8 ,8,3,3,4,4,1,,,\n\n,,\n", "\ufeffa,8,8,3,3,4,4,1,#dw",
                                  "a,8,8,3,3,4,4,1\r\n"])
def test_no_header_and_no_last_comma(load, text):
    network = load(text)
    assert network.array_layers()["a"] == Layer.conv(name="a", K=4, C=4, IY=8, IX=8, FY=3, FX=3)
    assert remarks(network) == ["no header: SCALE-Sim itself would skip the first row, a"]


def test_matrix_products(load):
    network = load("Layer, M, N, K,\nqkv, 128, 1536, 512,\nscore,12544,7,9,\none,1,10,84\n")
    assert list(network.array_layers().values()) == [
        Layer.conv(name="qkv", K=1536, C=512, OY=128, OX=1, FY=1, FX=1), Layer.conv(name="score", K=7, C=9, OY=112, OX=112, FY=1, FX=1),
        Layer.linear(name="one", K=10, C=84)]
    assert network.macs == 128 * 1536 * 512 + 12544 * 7 * 9 + 840
    chained = load("Layer, M, N, K,\nup,16,8,4,\ndown,16,4,8,\n")
    assert chained.operator("down").inputs == ("up",)


def test_depthwise_rows(load):
    """Num Filter is of each channel, whatever tables mean by it."""
    network = load(HEADER + "Conv2 DP,9,9,3,3,32,1,1,\nwide DP,9,9,3,3,8,8,1,\nENDPOINT,9,9,3,3,4,1,1,\nConv2_dw,9,9,3,3,1,1,1,\n")
    layers = network.array_layers()
    assert layers["Conv2_DP"] == Layer.conv(name="Conv2_DP", K=32, C=32, G=32, IY=9, IX=9, FY=3, FX=3)
    assert (layers["Conv2_DP"].macs, layers["Conv2_DP"].weights) == (9 * 49 * 32, 288)
    assert layers["wide_DP"].K == 64 and layers["ENDPOINT"].G == 4
    assert remarks(network) == [
        "wide_DP: a DP row has Num Filter for each channel, so this is 8 times 8 filters, as SCALE-Sim counts them; a plain depthwise "
        "layer "
        "has Num Filter 1",
        "ENDPOINT: depthwise, as SCALE-Sim takes every row with DP in its name",
        "Conv2_dw: one channel alone, as SCALE-Sim counts it; a depthwise layer has DP in its name, all its channels and Num Filter 1"]


def test_sparsity_text_and_two_strides(load):
    network = load(HEADER + "a,8,8,3,3,4,5,1,1:4,\nb,8,8,2,2,4,6,1,2:4\nc,8,8,2,2,4,7,2,1,\nd,8,8,3,3,4,4,1, NPU\n")
    assert remarks(network) == ["a, b: sparsity N:M is not modelled: all weights are stored and multiplied",
                                "d: text after the numbers is ignored"]
    assert (network.array_layers()["c"].SY, network.array_layers()["c"].SX) == (2, 1)  # as SCALE-Sim writes such a table itself


def test_rounded_outputs_are_told(load):
    """AlexNet's first row: 55 outputs where there are 54."""
    network = load(HEADER + "conv1,224,224,11,11,3,96,4,\n")
    assert network.array_layers()["conv1"].OY == 54
    assert remarks(network) == ["conv1: SCALE-Sim rounds output sizes up, and counts a row or column more than there is"]


def test_filters_as_large_as_the_input_are_matrix_products(load):
    """As recommendation models have them: a vector is an image of one row."""
    network = load(HEADER + "mlp, 16, 512, 1, 512, 1, 256, 1,\nfc, 7, 100, 7, 100, 3, 10, 1,\nfc6, 6,6,6,6,256,40,1,\n")
    assert list(network.array_layers().values()) == [
        Layer.conv(name="mlp", K=256, C=512, OY=16, OX=1, FY=1, FX=1), Layer.linear(name="fc", K=10, C=2100),
        Layer.conv(name="fc6", K=40, C=256, OY=1, OX=1, FY=6, FX=6)]
    assert network.macs == 16 * 512 * 256 + 21000 + 9216 * 40


def test_names(load):
    network = load(HEADER + "a b,8,8,3,3,4,4,1,\na b,8,8,3,3,4,4,1,\n,8,8,3,3,4,4,1,\na\x0bb,8,8,3,3,4,4,1,\n" .replace("\x0b", "\x01"))
    assert list(network.array_layers()) == ["a_b", "a_b_2", "layer3", "a_b_3"]


@pytest.mark.parametrize("rows, what", [
    ("", "net.csv: no row below the header"),
    ("a,8,8,3,3,4,4\n", "net.csv:2: a: Strides: missing; a row has a name and 7 numbers: IFMAP Height, IFMAP Width, Filter Height, "
                        "Filter Width, Channels, Num Filter, Strides"),
    ("a,8,,3,3,4,4,1,\n", "net.csv:2: a: IFMAP Width: missing; a row has a name and 7 numbers: IFMAP Height, IFMAP Width, Filter Height, "
                          "Filter Width, Channels, Num Filter, Strides"),
    ("a,8,8,3,3,4,4,1,\nb,8,8,3.0,3,4,4,1,\n", "net.csv:3: b: Filter Height: not a whole number, got '3.0'; a row has a name and 7 "
                                               "numbers: "
                                               "IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides"),
    ("a,8,8,3,3,4,4,0,\n", "net.csv:2: a: Strides: out of range, got '0'; allowed: at least 1, at most 10 digits"),
    ("a,8,8,3,3,-4,4,1,\n", "net.csv:2: a: Channels: out of range, got '-4'; allowed: at least 1, at most 10 digits"),
    ("a,8,8,3,3,4,99999999999,1,\n", "net.csv:2: a: Num Filter: out of range, got '99999999999'; allowed: at least 1, at most 10 digits"),
    ("a,2,8,3,3,4,4,1,\n", "net.csv:2: a: Filter Height: larger than the input of 2, got 3"),
    ("a,8,8,3,3,4,4,100,\n", "net.csv: a.SY: out of range, got 100; allowed: 1 to 64"),
    ("a,8000,8,3,3,4,4,1,\n", "net.csv: a.IY: out of range, got 8000; allowed: 1 to 4095"),
    ("a,100,100,70,3,4,4,1,\n", "net.csv: a.FY: out of range, got 70; allowed: 1 to 64"),
    ("a,8,8,3,3,4,4,1,4:2,\n", "net.csv:2: a: not a sparsity, got '4:2'; allowed: N:M with N of 1 to M"),
    ("a,8,8,3,3,4,4,1,1,1,\n", "net.csv:2: a: more numbers than columns, got '1'; a row has a name and 7 numbers: IFMAP Height, IFMAP "
                               "Width, "
                               "Filter Height, Filter Width, Channels, Num Filter, Strides"),
    ("a," + "1," * 20 + "\n", "net.csv:2: a row of 20 numbers: a layout, no topology"),
    ("a,nan,inf,3,3,4,4,1\n", "net.csv:2: a: IFMAP Height: not a whole number, got 'nan'; a row has a name and 7 numbers: IFMAP Height, "
                              "IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides")])
def test_wrong_rows(message, rows, what):
    assert message(HEADER + rows) == what


def test_wrong_files(message, tmp_path):
    assert message(" \n,,\n") == "net.csv: the file is empty"
    assert message("Layer,M,N,K,\na,1,2,\n") == "net.csv:2: a: K: missing; a row has a name and 3 numbers: M, N, K"
    assert message("Layer,M,N,K,\na,4099,2,2,\n") == (
        "net.csv:2: a: M: rows that are no product of two sizes, got 4099; allowed: sizes of 1 to 4095; add rows, or divide the product "
        "in two")
    assert message("Layer,M,N,K,\na,1,2,3,\nb,1,2,x,\n") == (
        "net.csv:3: b: K: not a whole number, got 'x'; a row has a name and 3 numbers: M, N, K")
    assert message("Layer,M,N,K,\n" + "a,1,1,1,\n" * 7000) == "net.csv: too many rows, got 7000; allowed: at most 6666"
    Path(tmp_path / "net.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file: byte 0xff at position 0 is not UTF-8"):
        load_topology(str(tmp_path / "net.csv"))
