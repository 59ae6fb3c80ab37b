"""Timeloop problems: its own convolution and matrix product, shapes that are written out, and what is none by its projection."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from boards.errors import InputError
from dse.workload.interop.timeloop import load_timeloop
from dse.workload.network import Network
from hdl.layer import Layer

SHAPE = yaml.safe_load("""
name: conv2D
dimensions: [C, M, R, S, N, P, Q]
coefficients:
- {name: Wstride, default: 1}
- {name: Hstride, default: 1}
- {name: Wdilation, default: 1}
- {name: Hdilation, default: 1}
data-spaces:
- name: Weights
  projection: [[[C]], [[M]], [[R]], [[S]]]
- name: Inputs
  projection: [[[N]], [[C]], [[R, Wdilation], [P, Wstride]], [[S, Hdilation], [Q, Hstride]]]
- name: Outputs
  projection: [[[N]], [[M]], [[Q]], [[P]]]
  read-write: true
""".replace("[N]", "['N']").replace("N,", "'N',"))
INSTANCE = {"C": 3, "M": 8, "R": 5, "S": 3, "N": 2, "P": 6, "Q": 7, "Wstride": 2, "Hdilation": 3}


def load(problem: dict[str, Any], *bits: int, path: str = "dir/layer1.yaml", **others: Any) -> Network:
    return load_timeloop({"problem": problem, **others}, path, *bits)


def message(problem: Any) -> str:
    with pytest.raises(InputError) as caught:
        load(problem)
    return str(caught.value).removeprefix("dir/layer1.yaml: ")


def changed(instance: dict[str, Any] | None = None, **shape: Any) -> dict[str, Any]:
    return {"shape": {**copy.deepcopy(SHAPE), **shape}, "instance": {**INSTANCE, **(instance or {})}}


def test_a_convolution_that_is_written_out():
    """P and R are widths, Q and S heights."""
    network = load(changed())
    expected = Layer.conv(name="layer1", B=2, K=8, C=3, OY=7, OX=6, FY=3, FX=5, SX=2, DY=3)
    assert network.array_layers() == {"layer1": expected} and network.remarks == ()
    assert (network.name, network.precision, network.operator("layer1").inputs) == ("layer1", "w8a8", ("layer1_input",))
    assert load(changed(), 4, 2).precision == "w4a2"
    newer = {key.replace("-", "_"): [{name.replace("-", "_"): value for name, value in space.items()} for space in value]
             if key == "data-spaces" else value for key, value in SHAPE.items()}
    assert load({"version": 0.4, "shape": newer, "instance": INSTANCE}) == network


def test_shapes_by_name():
    sizes = {"C": 3, "K": 64, "N": 1, "P": 54, "Q": 55, "R": 11, "S": 9, "Wstride": 4, "Hstride": 3}
    expected = Layer.conv(name="layer1", K=64, C=3, OY=55, OX=54, FY=9, FX=11, SY=3, SX=4)
    for problem in ({**sizes, "shape": "cnn-layer"}, {**sizes, "shape": "cnn_layer.yaml"}, sizes,
                    {"shape": "CNN-Layer", "instance": sizes}):
        assert load(problem).array_layers()["layer1"] == expected
    product = load({"shape": "gemm_ABZ", "instance": {"M": 12, "N": 5, "K": 7}})
    assert product.array_layers()["layer1"] == Layer.conv(name="layer1", OY=12, OX=1, K=5, C=7, FY=1, FX=1)
    assert load({**dict.fromkeys("CKNPQRS", 1), "C": 9, "K": 4}).array_layers()["layer1"] == Layer.linear(name="layer1", K=4, C=9)


def test_other_nests():
    depthwise = load({"shape": {"dimensions": ["C", "R", "P"], "data_spaces": [
        {"name": "Filter", "projection": ["C", "R"]}, {"name": "In", "projection": [[["C"]], [["R"], ["P"]]]},
        {"name": "Out", "projection": [["C"], ["P"]], "read_write": True}]}, "instance": {"C": 6, "R": 3, "P": 9}})
    assert depthwise.array_layers()["layer1"] == Layer.conv(name="layer1", K=6, C=6, G=6, OY=1, OX=9, FY=1, FX=3)


def test_what_is_ignored_is_said():
    network = load(changed({"H": 224, "Hpad": 1, "densities": {"Weights": 0.5}}), architecture={}, mapper={})
    assert network.remarks == (
        "dir/layer1.yaml: only the problem is read, not architecture, mapper",
        "dir/layer1.yaml: densities are not modelled: all weights are stored and multiplied",
        "dir/layer1.yaml: no projection uses H, Hpad: ignored")


def spaces(**projections: list[Any]) -> list[dict[str, Any]]:
    """Those of SHAPE with other projections."""
    found = copy.deepcopy(SHAPE["data-spaces"])
    for space in found:
        space["projection"] = projections.get(space["name"], space["projection"])
    return found


@pytest.mark.parametrize("problem, what", [
    (None, "problem: must be a mapping, got None"),
    ({"shape": "my-shape", "instance": {}}, "problem.shape: a shape that is in a file of Timeloop's, not in this one, got 'my-shape'; "
                                            "allowed: cnn_layer, gemm_ABZ"),
    ({"shape": "cnn_layers", "instance": {}}, "problem.shape: a shape that is in a file of Timeloop's, not in this one, got 'cnn_layers'; "
                                              "allowed: cnn_layer, gemm_ABZ; nearest: cnn_layer"),
    ({"shape": {"dimensions": []}, "instance": {}}, "problem.shape.data_spaces: missing; a shape has dimensions and data_spaces"),
    ({"shape": SHAPE}, "problem.instance: must be a mapping, got None"),
    ({"shape": SHAPE, "instance": INSTANCE, "instances": 1}, "problem: unknown key, got 'instances'; allowed: version, name, shape, "
                                                             "instance; "
                                                             "nearest: instance"),
    (changed(dims=[]), "problem.shape: unknown key, got 'dims'; allowed: name, dimensions, coefficients, data_spaces, flatten, ranks; "
                       "nearest: dimensions"),
    (changed({"P": "INPUT"}), "problem.instance.P: must be a whole number, got 'INPUT'; allowed: 1 to 281474976710656"),
    (changed({"P": -3}), "problem.instance.P: out of range, got -3; allowed: 1 to 281474976710656"),
    (changed({"Wstride": 0}), "problem.instance.Wstride: out of range, got 0; allowed: 1 to 1048576"),
    (changed({"Wstride": float("nan")}), "problem.instance.Wstride: must be a whole number, got nan; allowed: 1 to 1048576"),
    (changed({"hstride": 2}), "problem.instance: unknown key, got 'hstride'; allowed: C, M, R, S, N, P, Q, Wstride, Hstride, Wdilation, "
                              "Hdilation; nearest: Hstride"),
    ({"shape": SHAPE, "instance": {"C": 3}}, "problem.instance.M: missing; sizes of C, M, R, S, N, P, Q"),
    (changed(dimensions=["C", "C"]), "problem.shape.dimensions: a dimension twice, got 'C'"),
    (changed(coefficients=[{"default": 1}]), "problem.shape.coefficients[0].name: must be text of 1 to 1000 characters, got None"),
    (changed(**{"data-spaces": SHAPE["data-spaces"][:2]}), "problem.shape.data_spaces: 2 data spaces that are read and 0 that are written "
                                                           "(read_write: True); allowed: two and one: inputs, weights; outputs"),
    (changed(**{"data-spaces": spaces(Weights=[[["X"]]])}),
     "problem.shape.data_spaces[0] Weights.projection[0]: no such dimension, got 'X'; allowed: C, M, R, S, N, P, Q"),
    (changed(**{"data-spaces": spaces(Inputs=[[["P", "Wstrid"]]])}),
     "problem.shape.data_spaces[1] Inputs.projection[0]: no such coefficient, got 'Wstrid'; allowed: Wstride, Hstride, Wdilation, "
     "Hdilation; "
     "nearest: Wstride"),
    (changed(**{"data-spaces": spaces(Inputs=[[["P", "Wstride", "C"]]])}),
     "problem.shape.data_spaces[1] Inputs.projection[0]: must be a list of [dimension] or [dimension, coefficient], got "
     "[['P', 'Wstride', 'C']]"),
    (changed(**{"data-spaces": spaces(Inputs="C")}), "problem.shape.data_spaces[1] Inputs.projection: must be a list of indices, each a "
                                                     "list of "
                                                     "[dimension] or [dimension, coefficient], got 'C'"),
    # No convolution: the projection is named.
    (changed(**{"data-spaces": spaces(Outputs=[[["N"]], [["M"]], [["Q"], ["S"]], [["P"]]])}),
     "problem.shape.data_spaces[2] Outputs.projection[2]: the output's index is a sum or has a coefficient: a transposed or dilated "
     "output, "
     "no convolution, got 'Q + S'"),
    (changed(**{"data-spaces": spaces(Inputs=[[["N"]], [["C"]], [["R", "Wdilation"], ["P", "Wstride"], ["Q"]], [["S"]]])}),
     "problem.shape.data_spaces[1] Inputs.projection[2]: neither a loop nor an output's position times stride plus a filter's times "
     "dilation: no convolution, got 'R*Wdilation + P*Wstride + Q'"),
    (changed(**{"data-spaces": spaces(Weights=[[["C"]], [["M"]], [["R"]]])}),
     "problem.shape.data_spaces[1] Inputs.projection[3]: neither a loop nor an output's position times stride plus a filter's times "
     "dilation: "
     "no convolution, got 'S*Hdilation + Q*Hstride'"),
    (changed({"R": 65}), "layer1.FX: out of range, got 65; allowed: 1 to 64")])
def test_what_is_refused(problem, what):
    assert message(problem) == what
