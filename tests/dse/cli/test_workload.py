"""WORKLOAD arguments of every kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import InputError
from dse.cli.design_options import DesignOptions
from dse.cli.workload import read_target, read_workload
from dse.workload.grammar import parse_layer
from dse.workload.layer_file import dump_design, dump_layer
from dse.workload.zoo import load_network
from hdl.design import Design
from hdl.layer import Layer

words = st.sampled_from(("conv", "linear", "Conv", "K=1", "C=2", "OY=1", "OX=3", "FY=1", "FX=1", "=", "K", "x.onnx", "y.csv", ".yaml",
                         "name=a.yaml", "S=0", "P=-1", "lenet5", "resnet"))
BINARY = Design(rows=2, cols=4, weight_bits=1, activation_bits=1, accumulator_bits=12, multiplier="lut")


def message(call, *arguments) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments)
    return str(caught.value)


def test_in_place_and_from_a_file(tmp_path):
    layer = parse_layer("conv K=2 C=3 OY=4 OX=5 FY=1 FX=1 name=one")
    path = tmp_path / "conv K=1.yaml"
    path.write_text(dump_layer(layer))
    assert read_workload(str(layer)) == layer
    assert read_workload(str(path), "one") == layer
    assert read_workload(f"  {layer} ") == layer


@given(st.one_of(st.text(max_size=40), st.lists(words, max_size=8).map(" ".join)))
def test_any_text_is_a_layer_or_refused(text):
    try:
        assert isinstance(read_workload(text), Layer)
    except InputError as error:
        assert error.where


def test_a_layer_of_a_network():
    assert read_workload("resnet18", "layer2.0.conv1") == load_network("resnet18").array_layers()["layer2.0.conv1"]
    assert message(read_workload, "lenet5") == "--layer: lenet5 has 5 layers; allowed: c1, c3, c5, f6, output; name one"
    assert message(read_workload, "lenet5", "outputs") == (
        "--layer: no such layer in the workload, got 'outputs'; allowed: c1, c3, c5, f6, output; nearest: output")
    assert message(read_workload, "lenet5", "s2") == (
        "--layer: average_pool is an operator of the host, not of the array, got 's2'; allowed: c1, c3, c5, f6, output")
    assert message(read_workload, "linear K=1 C=1", "leyer").endswith("got 'leyer'; allowed: layer; nearest: layer")


def test_a_whole_network_comes_at_the_precision_of_the_options(tmp_path):
    path = tmp_path / "design.yaml"
    path.write_text(dump_design(BINARY))
    for options, precision in ((DesignOptions(), "w8a8"), (DesignOptions(precision="w4a2"), "w4a2"),
                               (DesignOptions(design=str(path)), "w1a1")):
        target = read_target("lenet5", None, options)
        assert target.network is not None and target.network.precision == precision and target.options == options
    target = read_target("linear K=1 C=1", None, DesignOptions())
    assert target.network is None and target.options == DesignOptions()


def test_a_layer_of_a_network_runs_at_its_own_precision(tmp_path):
    path = tmp_path / "design.yaml"
    path.write_text(dump_design(BINARY))
    assert read_target("cnv", "conv0", DesignOptions()).options == DesignOptions(precision="w1a8")
    assert read_target("cnv", "conv1", DesignOptions(array="2x2x1")).options == DesignOptions(array="2x2x1", precision="w1a1")
    wide = DesignOptions(precision="w2a16")
    assert read_target("cnv", "conv0", wide).options == wide
    assert message(read_target, "cnv", "conv0", DesignOptions(precision="w1a1")) == (
        "--precision: conv0 of cnv is w1a8, got 'w1a1'; allowed: at least 1 and 8 bits")
    assert message(read_target, "cnv", "conv0", DesignOptions(design=str(path))) == (
        f"{path}: conv0 of cnv is w1a8, got 'w1a1'; allowed: at least 1 and 8 bits")
