"""Layer and design files: round trips, and one message for whatever else the file holds."""

import os

import pytest

from dse.workload.layer_file import dump_design, dump_layer, load_design, load_layer
from hdl.design import Design
from hdl.errors import InputError
from hdl.layer import Layer

LAYERS = [Layer.linear(K=10, C=20),
          Layer.conv(K=8, C=4, G=2, IY=17, IX=35, FY=3, FX=5, SY=2, DX=3, PT=1, PR=2, activations_signed=False, lo=-4, hi=100),
          *(Layer.linear(name=name, K=1, C=1) for name in (
              "1e3", "no", "null", "0x10", "1:30", "010", "~", "-", "#a", "!tag", "*a", "a:", "'", '"', "\\", "2001-01-01", "{}",
              "é" * 200))]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_layer_round_trips(tmp_path, layer):
    path = tmp_path / "layer.yaml"
    path.write_text(dump_layer(layer), encoding="utf-8")
    assert load_layer(path) == load_layer(str(path)) == layer


def test_layer_in_a_few_keys(tmp_path):
    path = tmp_path / "layer.yaml"
    path.write_text("kind: conv\nK: 192\nC: 192\nOY: 13\nOX: 13\nFY: 3\nFX: 3\nP: 1  # same\n")
    assert load_layer(path) == Layer.conv(K=192, C=192, OY=13, OX=13, FY=3, FX=3, P=1)


@pytest.mark.parametrize("design", [
    Design(rows=4, cols=4),
    Design(rows=1, cols=64, weight_bits=1, activation_bits=1, multiplier="lut", bus_bits=64, clock_mhz=62.5),
    Design(rows=4, cols=4, lanes=2, accumulate="per_column", drains=2, output_multiplier="dsp", counters=False, psum_bytes=4096)])
def test_design_round_trips(tmp_path, design):
    path = tmp_path / "design.yaml"
    path.write_text(dump_design(design))
    assert load_design(path) == design


def layer_error(path):
    with pytest.raises(InputError) as caught:
        load_layer(path)
    text = str(caught.value)
    assert text.startswith(str(path)) and "\n" not in text
    return text.removeprefix(str(path))


@pytest.mark.parametrize("content, text", [
    (b"K: 0\nC: 1\nkind: linear\n", ": layer.K: out of range, got 0; allowed: 1 to 65536"),
    (b"K: 1.5\n", ": layer.K: must be a whole number, got 1.5; allowed: 1 to 65536"),
    (b"K: '8'\n", ": layer.K: must be a whole number, got '8'; allowed: 1 to 65536"),
    (b"K: [8]\n", ": layer.K: must be a whole number, got [8]; allowed: 1 to 65536"),
    (b"K: 1\nC: 1\nkind: {a: b}\n", ": layer.kind: not a kind of layer, got {'a': 'b'}; allowed: conv, linear"),
])
def test_wrong_values(tmp_path, content, text):
    path = tmp_path / "layer.yaml"
    path.write_bytes(content)
    assert layer_error(path) == text


@pytest.mark.parametrize("content, part", [
    (b"", "empty"), (b"# nothing\n", "empty"), (b"K: 1\nK: 2\n", "duplicate key 'K'"), (b"a: &x 1\nb: *x\n", "aliases"),
    (b"- 1\n", "mapping"), (b"conv K=1", "mapping"), (b"\xff\xfe\x00", "not a text file"), (b"K: \x00", "not a text file"),
    (b"K: [1", "not valid YAML"), (b"K: !!python/name:os.system\n", "tag"), (b"K: 1\n---\nK: 2\n", "not valid YAML"),
    (b"K: " + b"[" * 100000, "deep"), (b"# " + b"x" * (1 << 20), "1048576"), (b"K: " + b"9" * 5000, "layer.K"),
    (b"kk: 1", "unknown key"),
])
def test_unreadable_content(tmp_path, content, part):
    path = tmp_path / "layer.yaml"
    path.write_bytes(content)
    assert part in layer_error(path)


def test_unreadable_paths(tmp_path):
    assert "directory" in layer_error(tmp_path)
    assert "no such file" in layer_error(tmp_path / "none.yaml").lower()
    os.mkfifo(tmp_path / "fifo")
    assert "regular file" in layer_error(tmp_path / "fifo")


def test_design_errors_name_file_and_field(tmp_path):
    path = tmp_path / "design.yaml"
    path.write_text("rows: 4\ncols: 4\ndrains: 3\n")
    with pytest.raises(InputError) as caught:
        load_design(path)
    assert str(caught.value).startswith(f"{path}: design.drains: ")
