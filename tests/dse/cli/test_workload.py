"""WORKLOAD arguments of every kind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from boards.errors import InputError
from dse.cli.workload import read_workload
from dse.workload.grammar import parse_layer
from dse.workload.layer_file import dump_layer
from hdl.layer import Layer

words = st.sampled_from(("conv", "linear", "Conv", "K=1", "C=2", "OY=1", "OX=3", "FY=1", "FX=1", "=", "K", "x.onnx", "y.csv", ".yaml",
                         "name=a.yaml", "S=0", "P=-1"))


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
