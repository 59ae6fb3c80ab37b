"""Exported files: read back, read by ZigZag itself, counted by SCALE-Sim's formula, and run as loops."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from boards.errors import InputError
from dse.workload.builder import NetworkBuilder
from dse.workload.interop.export import Export, export
from dse.workload.layer_file import load_layer
from dse.workload.load import load_file
from dse.workload.network import Network
from dse.workload.network_file import load_network_file
from dse.workload.operators import ArrayOperator
from dse.workload.zoo import load_network
from hdl.layer import Layer
from sim.golden import LayerTensors, accumulate

ZOO = ("alexnet", "cnv", "deepspeech-gru", "lenet5", "mobilenetv2", "resnet18")  # groups, bits, repeats, no padding, depthwise, branches


def odd_network() -> Network:
    """Every axis different: sizes, strides, pads, dilations, groups, bits, names."""
    b = NetworkBuilder("odd", weight_bits=4)
    x = b.input((2, 4, 17, 35))
    x = b.conv(x, "a,1", K=6, FY=1, FX=7, SY=1, SX=2, PT=0, PL=3, PB=1, PR=2)
    x = b.conv(x, "bDP", K=12, FY=2, FX=3, G=6, DY=2, weight_bits=2, output_bits=4)
    x = b.conv(b.max_pool(x, F=2, S=2), "c", K=4, F=3, G=2, P=1, activation_bits=8)
    x = b.linear(b.flatten(b.global_average_pool(x)), "d", K=3)
    return b.build()


def written(made: Export, folder: Path) -> list[Path]:
    paths = []
    for name, text in made.files.items():
        (folder / name).write_text(text)
        paths.append(folder / name)
    return paths


def read_back(made: Export, folder: Path) -> list[ArrayOperator]:
    found: list[ArrayOperator] = []
    for path in written(made, folder):
        network = load_file(str(path))
        assert isinstance(network, Network)
        found += network.array_operators
    return found


def geometry(layer: Layer) -> Layer:
    return replace(layer, name="layer", lo=None, hi=None)


# -- ours -------------------------------------------------------------------------------------------------------------


def test_ours(tmp_path):
    layer, network = Layer.conv(name="one", K=2, C=3, OY=4, OX=5, FY=1, FX=1, input_zero_point=3), odd_network()
    [path] = written(export(layer, "yaml"), tmp_path)
    assert (path.name, load_layer(path)) == ("one.yaml", layer)
    made = export(network, "yaml")
    [path] = written(made, tmp_path)
    assert (load_network_file(path), made.layers, made.notes) == (network, 4, [])


def test_unknown_formats():
    with pytest.raises(InputError) as caught:
        export(odd_network(), "zig-zag")
    assert str(caught.value) == "--format: not a format, got 'zig-zag'; allowed: yaml, scalesim, zigzag, timeloop; nearest: zigzag"


# -- ZigZag -----------------------------------------------------------------------------------------------------------

PARSE = """
import json, sys, yaml
from zigzag.parser.mapping_validator import MappingValidator
from zigzag.parser.workload_factory import WorkloadFactory
from zigzag.parser.workload_validator import WorkloadValidator

mapping = MappingValidator([{"name": "default", "spatial_mapping": {"D1": ["K, 2"], "D2": ["C, 2"]},
                             "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}}])
assert mapping.validate()
found = {}
for path in sys.argv[1:]:
    validator = WorkloadValidator(yaml.safe_load(open(path)))
    assert validator.validate(), path
    workload = WorkloadFactory(validator.normalized_data, mapping.normalized_data).create()
    found[path] = [{
        "name": layer.name, "macs": layer.total_mac_count,
        "elements": {str(key): int(size) for key, size in layer.operand_size_elem.items()},
        "bits": {str(key): bits for key, bits in layer.operand_precision.data.items()},
        "reads": [other.name for other in workload.predecessors(layer)]} for layer in workload.layer_node_list]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def zigzag(tmp_path_factory) -> dict[str, list[dict[str, Any]]]:
    """What ZigZag 3.9.1's parser makes of the exported networks, by their names."""
    folder = tmp_path_factory.mktemp("zigzag")
    networks = [odd_network(), *map(load_network, ZOO)]
    paths = {network.name: str(written(export(network, "zigzag"), folder)[0]) for network in networks}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PARSE, *paths.values()], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: found[path] for name, path in paths.items()}


@pytest.mark.parametrize("name", ["odd", *ZOO])
def test_zigzag_reads_the_same_layers(name, zigzag):
    network = odd_network() if name == "odd" else load_network(name)
    layers = network.array_operators
    assert [entry["name"] for entry in zigzag[name]] == [node.name for node in layers]
    for entry, node in zip(zigzag[name], layers, strict=True):
        layer = node.layer
        assert entry["macs"] == layer.macs
        assert (entry["elements"]["O"], entry["elements"]["W"]) == (layer.outputs, layer.weights)
        # ZigZag counts an input that no window reads nowhere.
        read = [min(size, len({output * stride + tap * dilation for output in range(outputs) for tap in range(taps)}))
                for size, outputs, taps, stride, dilation in ((layer.IY, layer.OY, layer.FY, layer.SY, layer.DY),
                                                              (layer.IX, layer.OX, layer.FX, layer.SX, layer.DX))]
        assert entry["elements"]["I"] == layer.B * layer.C * read[0] * read[1]
        bits = node.weight_bits, node.activation_bits, node.output_bits
        assert tuple(entry["bits"][operand] for operand in ("W", "I", "O_final")) == bits
        assert entry["bits"]["O"] == max(16, node.weight_bits + node.activation_bits)
        direct = [source for source in node.inputs if isinstance(network.operator(source), ArrayOperator)]
        assert entry["reads"] == direct


@pytest.mark.parametrize("network", [odd_network(), *map(load_network, ZOO)], ids=lambda network: network.name)
def test_zigzag_and_back(network, tmp_path):
    """Layers, pads, bits and direct connections; host operators are left out and named."""
    made = export(network, "zigzag")
    found = read_back(made, tmp_path)
    for back, node in zip(found, network.array_operators, strict=True):
        assert geometry(back.layer) == geometry(node.layer) and back.name == node.name
        assert (back.weight_bits, back.activation_bits, back.output_bits) == (node.weight_bits, node.activation_bits, node.output_bits)
    host = [node for node in network.host_operators() if not node.is_view]
    assert bool(host) == any("host operators are left out" in note for note in made.notes)
    assert any(node.repeat > 1 for node in network.array_operators) == any("written once" in note for note in made.notes)


# -- SCALE-Sim --------------------------------------------------------------------------------------------------------


def topology(text: str) -> list[tuple[str, list[int]]]:
    """Rows as SCALE-Sim 3.0.0 splits them: the first line skipped, what follows the last comma dropped, DP rows once a channel."""
    rows: list[tuple[str, list[int]]] = []
    for line in text.split("\n")[1:]:
        if line:
            name, *cells = line.split(",")[:-1]
            sizes = [int(cell) for cell in cells]
            if "DP" in name:
                rows += [(f"{name}Channel_{at}", [*sizes[:4], 1, *sizes[5:]]) for at in range(sizes[4])]
            else:
                rows.append((name, sizes))
    return rows


@pytest.mark.parametrize("name", ZOO)
def test_scalesim_counts_the_same_macs(name, tmp_path):
    """With SCALE-Sim's own output sizes, ceil((padded - filter + stride) / stride)."""
    network = load_network(name)
    made = export(network, "scalesim")
    rows = topology(made.files[f"{network.name}.csv"])
    macs = sum(ceil((h - fh + s) / s) * ceil((w - fw + s) / s) * fh * fw * c * k for _, (h, w, fh, fw, c, k, s) in rows)
    rounded = [node.layer for node in network.array_operators if any("rounds" in note and node.name in note for note in made.notes)]
    more = sum(layer.macs // (layer.OY * layer.OX) * ((layer.OY + 1) * (layer.OX + 1) - layer.OY * layer.OX) for layer in rounded)
    assert macs == sum(node.layer.macs for node in network.array_operators) + more
    assert len(rounded) == (3 if name == "resnet18" else 0)
    assert len({row for row, _ in rows}) == len(rows)
    back = read_back(made, tmp_path)
    assert sum(node.layer.macs for node in back) == sum(node.layer.macs for node in network.array_operators)
    assert sum(node.layer.weights for node in back) >= sum(node.layer.weights for node in network.array_operators)


def test_scalesim_rows_and_notes():
    b = NetworkBuilder("mix")
    x = b.input((1, 3, 20, 17))
    x = b.conv(x, "a", K=8, F=3, S=2, P=1)
    x = b.conv(x, "bDPx", K=8, F=3, P=1, G=8)
    x = b.conv(x, "c,1", K=12, FY=1, FX=3, G=2, weight_bits=4)
    b.linear(b.global_average_pool(x), "fc", K=10)
    made = export(b.build(), "scalesim")
    assert made.files == {"mix.csv": (
        "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"
        "a, 21, 19, 3, 3, 3, 8, 2,\nbdpx_DP, 12, 11, 3, 3, 8, 1, 1,\nc_1_0, 10, 9, 1, 3, 4, 6, 1,\nc_1_1, 10, 9, 1, 3, 4, 6, 1,\n"
        "fc, 1, 1, 1, 1, 12, 10, 1,\n")}
    assert made.notes == [
        "a, bDPx: padding is in the input size, and its zeros count as data",
        "bDPx: written under another name, since DP makes a row depthwise",
        "c,1: written under another name", "c,1: a row for each group and image, as SCALE-Sim has neither",
        "c,1: SCALE-Sim has 8 bits only", "global_average_pool1: host operators are left out"]


def test_what_scalesim_cannot_express():
    with pytest.raises(InputError, match=r"^bDP.DY: SCALE-Sim has no dilation, got 2; allowed: 1$"):
        export(Layer.conv(name="bDP", K=1, C=1, OY=3, OX=3, FY=3, FX=3, DY=2), "scalesim")
    with pytest.raises(InputError, match=r"^many: SCALE-Sim has no groups and no batch, and this takes too many rows, got 8000; allowed: "
                                         r"at most "
                                         r"4096 rows$"):
        export(Layer.conv(name="many", K=4, C=4, OY=3, OX=3, FY=3, FX=3, G=2, B=4000), "scalesim")


# -- Timeloop ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", [odd_network(), *map(load_network, ("alexnet", "lenet5"))], ids=lambda network: network.name)
def test_timeloop_and_back(network, tmp_path):
    """A problem a layer; pads become inputs, and rows that no window reaches are gone."""
    made = export(network, "timeloop")
    assert len(made.files) == made.layers == len(network.array_operators)
    for back, node in zip(read_back(made, tmp_path), network.array_operators, strict=True):
        layer = geometry(node.layer)
        used = [(outputs - 1) * stride + (taps - 1) * dilation + 1 for outputs, stride, taps, dilation in (
            (layer.OY, layer.SY, layer.FY, layer.DY), (layer.OX, layer.SX, layer.FX, layer.DX))]
        assert geometry(back.layer) == replace(layer, IY=used[0], IX=used[1], PT=0, PL=0, PB=0, PR=0)


@pytest.mark.parametrize("layer", [
    Layer.conv(name="l", K=4, C=6, B=2, IY=5, IX=9, FY=2, FX=3, SY=2, SX=3, DY=2, PT=1, PR=2, G=2), Layer.linear(name="l", K=3, C=5, B=2)],
    ids=["conv", "linear"])
def test_timeloop_loops_compute_the_layer(layer):
    """The problem as the loops that it stands for, against the golden model."""
    rng = np.random.default_rng(1)
    problem = yaml.safe_load(export(layer, "timeloop").files["l.yaml"])["problem"]
    sizes, shape = problem["instance"], problem["shape"]
    data = {space["name"]: space["projection"] for space in shape["data_spaces"]}
    group = int("G" in sizes)
    images = rng.integers(-9, 9, (layer.B, layer.C, layer.IY, layer.IX))
    weights = rng.integers(-9, 9, (layer.K, layer.C // layer.G, layer.FY, layer.FX))
    padded = np.pad(images, ((0, 0), (0, 0), (layer.PT, layer.PB), (layer.PL, layer.PR)))
    # As the projections index them: N, G, C, X, Y; G, C, K, R (width), S (height); N, G, K, Q (height), P (width).
    inputs = padded.reshape(layer.B, layer.G, -1, *padded.shape[2:]).transpose(0, 1, 2, 4, 3)
    filters = weights.reshape(layer.G, layer.K // layer.G, *weights.shape[1:]).transpose(0, 2, 1, 4, 3)
    outputs = np.zeros((layer.B, layer.G, layer.K // layer.G, layer.OY, layer.OX), int)
    if not group:
        inputs, filters, outputs = inputs[:, 0], filters[0], outputs[:, 0]
    for point in itertools.product(*(range(sizes[loop]) for loop in shape["dimensions"])):
        at = dict(zip(shape["dimensions"], point, strict=True))
        places = {name: tuple(sum(at[loop] * (sizes[factor[0]] if factor else 1) for loop, *factor in index) for index in projection)
                  for name, projection in data.items()}
        outputs[places["Outputs"]] += inputs[places["Inputs"]] * filters[places["Weights"]]
    none = np.zeros(layer.K, int)
    tensors = LayerTensors(input=images, weight=weights, bias=none, multiplier=none, shift=none)
    assert np.array_equal(outputs.reshape(layer.B, layer.K, layer.OY, layer.OX), accumulate(layer, tensors))


def test_timeloop_files_and_notes():
    made = export(odd_network(), "timeloop")
    assert list(made.files) == ["a_1.yaml", "bDP.yaml", "c.yaml", "d.yaml"]
    assert made.notes == ["a,1, c: a problem has no padding: its zeros are inputs",
                          "odd: its problems have no bits: set them in Timeloop's architecture",
                          "max_pool1, global_average_pool1: host operators are left out"]
