"""ZigZag workloads: layers, padding, sources, bits, and what is wrong by layer and key. ZigZag's own parser reads ours in test_export."""

from __future__ import annotations

import json
from typing import Any

import pytest

from boards.errors import InputError
from dse.workload.interop.zigzag import load_zigzag, looks_like_workload
from dse.workload.network import Network
from hdl.layer import Layer

CONV = "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
POOL = "O[b][g][oy][ox]+=W[fx][fy]*I[b][g][iy][ix]"
ADD = "O[b][g][oy][ox]=W[b][g][oy][ox]+I[b][g][oy][ox]"
BITS = {"W": 8, "I": 8, "O": 16, "O_final": 8}


def conv(identity: int, sizes: list[int], stride: int = 1, source: int | None = None, **more: Any) -> dict[str, Any]:
    """``sizes``: B, K, C, OY, OX, FY, FX."""
    return {"id": identity, "operator_type": "Conv", "equation": CONV,
            "dimension_relations": [f"ix={stride}*ox+1*fx", f"iy={stride}*oy+1*fy"], "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
            "loop_sizes": sizes, "operand_precision": dict(BITS),
            "operand_source": {"I": identity if source is None else source, "W": identity}, **more}


def load(*layers: dict[str, Any], bits: tuple[int, ...] = ()) -> Network:
    return load_zigzag(json.loads(json.dumps(layers)), "net.yaml", *bits)


def message(*layers: Any) -> str:
    with pytest.raises(InputError) as caught:
        load(*layers)
    return str(caught.value)


# The beginning of ResNet-18 as ZigZag's repository had it: no padding anywhere.
RESNET = (
    conv(0, [1, 64, 3, 112, 112, 7, 7], 2, name="conv1"),
    {"id": 1, "operator_type": "Pooling", "equation": POOL, "dimension_relations": ["ix=2*ox+1*fx", "iy=2*oy+1*fy"],
     "loop_dims": ["B", "G", "OY", "OX", "FX", "FY"], "loop_sizes": [1, 64, 56, 56, 3, 3],
     "operand_precision": {**BITS, "W": 0}, "operand_source": {"I": 0, "W": 1}},
    conv(2, [1, 64, 64, 56, 56, 3, 3], 1, 1),
    {"id": 3, "operator_type": "Add", "equation": ADD, "loop_dims": ["B", "G", "OY", "OX"], "loop_sizes": [1, 64, 56, 56],
     "operand_precision": BITS, "operand_source": {"W": 1, "I": 2}},
    conv(4, [1, 128, 64, 28, 28, 3, 3], 2, 3), conv(5, [1, 128, 64, 28, 28, 1, 1], 2, 3) | {"operator_type": "Conv_downsample"})


def test_a_network_with_branches_and_host_operators():
    network = load(*RESNET)
    assert network.name == "net" and network.precision == "w8a8"
    assert list(network.graph.edges) == [("conv1_input", "conv1"), ("conv1", "Layer1"), ("Layer1", "Layer2"), ("Layer1", "Layer3"),
                                         ("Layer2", "Layer3"), ("Layer3", "Layer4"), ("Layer3", "Layer5")]
    assert [(node.op, node.output.shape) for node in network.host_operators()] == [("pool", (1, 64, 56, 56)), ("add", (1, 64, 56, 56))]
    layers = network.array_layers()
    assert layers["conv1"] == Layer.conv(name="conv1", K=64, C=3, OY=112, OX=112, FY=7, FX=7, S=2)  # nothing says that it is padded
    # 58 rows read, 56 written: padding. Of the one row that stride 2 misses, none before.
    assert layers["Layer2"] == Layer.conv(name="Layer2", K=64, C=64, IY=56, IX=56, FY=3, FX=3, P=1)
    assert layers["Layer4"] == Layer.conv(name="Layer4", K=128, C=64, IY=56, IX=56, FY=3, FX=3, S=2, PB=1, PR=1)
    assert layers["Layer5"] == Layer.conv(name="Layer5", K=128, C=64, IY=56, IX=56, FY=1, FX=1, S=2)  # one row left over
    assert network.remarks == ("net.yaml: Layer2, Layer4: padding taken from the sizes: it reads more than it gets",)


def test_padding_that_is_given():
    """Sizes and pads are in the order of pr_loop_dims, here width first."""
    padded = conv(0, [2, 4, 3, 9, 5, 1, 7], 1, name="wide", pr_loop_dims=["IX", "IY"], pr_loop_sizes=[5, 9], padding=[[3, 3], [0, 0]])
    assert load(padded).array_layers()["wide"] == Layer.conv(name="wide", K=4, C=3, B=2, IY=9, IX=5, FY=1, FX=7, PL=3, PR=3)
    without_sizes = {key: value for key, value in padded.items() if key != "pr_loop_sizes"}
    assert load(without_sizes) == load(padded)
    without_pads = {key: value for key, value in padded.items() if key != "padding"}
    assert load(without_pads) == load(padded) and "padding taken from the sizes" in load(without_pads).remarks[0]
    uneven = conv(0, [1, 4, 3, 2, 2, 3, 3], 2, pr_loop_dims=["IY", "IX"], pr_loop_sizes=[4, 4], padding=[[0, 1], [1, 0]])
    assert load(uneven).array_operators[0].layer.pads == (0, 1, 1, 0)


def test_groups_dilation_and_order_of_loops():
    grouped = {"id": 7, "name": "dw", "operator_type": "Conv", "equation": "O[g][b][k][oy][ox] += W[g][k][c][fy][fx] * I[g][b][c][iy][ix]",
               "dimension_relations": ["iy = 2*oy + 3*fy", "ix=ox+fx"], "loop_dims": ["FX", "FY", "OX", "OY", "C", "K", "G", "B"],
               "loop_sizes": [2, 3, 4, 5, 1, 2, 6, 1], "operand_precision": BITS}
    assert load(grouped).array_layers()["dw"] == Layer.conv(name="dw", K=12, C=6, G=6, OY=5, OX=4, FY=3, FX=2, SY=2, DY=3)


def test_matrix_products():
    def gemm(equation: str, dims: list[str], sizes: list[int]) -> Layer:
        return load({"id": 0, "name": "g", "operator_type": "Gemm", "equation": equation, "dimension_relations": [], "loop_dims": dims,
                     "loop_sizes": sizes, "operand_precision": {**BITS, "O": 32}}).array_layers()["g"]

    assert gemm("O[b][k]+=I[b][c]*W[c][k]", ["B", "C", "K"], [3, 5, 7]) == Layer.linear(name="g", B=3, C=5, K=7)
    assert gemm("O[d0][d1]+=I[d0][d2]*W[d2][d1]", ["D0", "D1", "D2"], [3, 5, 7]) == Layer.conv(name="g", OY=3, OX=1, K=5, C=7, FY=1, FX=1)


def test_a_vector_of_an_image():
    flat = {"id": 1, "operator_type": "Gemm", "equation": "O[b][k]+=I[b][c]*W[c][k]", "loop_dims": ["B", "C", "K"],
            "loop_sizes": [1, 36, 10], "operand_precision": BITS, "operand_source": {"I": 0}}
    network = load(conv(0, [1, 4, 3, 3, 3, 1, 1]), flat)
    assert network.operator("Layer1").inputs == ("Layer0_flat",) and network.host_operators()[0].is_view


def test_bits():
    """The usual ones are the network's, and what --precision replaces; other layers keep theirs, in widths that the array has."""
    layers = [conv(at, [1, 4, 4, 3, 3, 1, 1], source=max(0, at - 1), operand_precision=bits) for at, bits in enumerate((
        {"W": 4, "I": 8, "O": 16, "O_final": 8}, {"W": 4, "I": 8, "O": 16, "O_final": 32}, {"W": 3, "I": 8, "O": 16, "O_final": 2},
        {"W": 4, "I": 12, "O": 16, "O_final": 8}))]
    network = load(*layers)
    assert network.precision == "w4a8"
    assert [(node.weight_bits, node.activation_bits, node.output_bits) for node in network.array_operators] == [
        (4, 8, 8), (4, 8, 16), (4, 8, 2), (4, 16, 8)]
    assert [node.op for node in network.host_operators()] == ["requantize"] and network.operator("Layer2").inputs == ("Layer1_narrow",)
    assert network.remarks == ("net.yaml: Layer1: outputs of more than 16 bits: the array writes no more",
                               "net.yaml: Layer2, Layer3: bits that the array does not have: the next width is taken")
    other = load(*layers, bits=(2, 4))
    assert [(node.weight_bits, node.activation_bits) for node in other.array_operators] == [(2, 4), (2, 4), (4, 4), (2, 16)]
    wide = conv(0, [1, 4, 4, 3, 3, 1, 1], operand_precision={**BITS, "W": 32})
    assert message(wide) == ("net.yaml: [0].operand_precision.W: more bits than the array has, got 32; allowed: 1 to 16; "
                             "give the precision with --precision")
    assert load(wide, bits=(8, 8)).precision == "w8a8"


def test_what_does_not_fit_together():
    network = load(conv(0, [1, 4, 4, 9, 9, 1, 1]), conv(1, [1, 4, 4, 3, 3, 3, 3], source=0), conv(2, [1, 4, 8, 3, 3, 1, 1], source=1),
                   conv(3, [1, 4, 4, 3, 3, 1, 1], source=1) | {"operand_source": {"I": 1, "W": 0}})
    assert [network.operator(f"Layer{at}").inputs for at in (1, 2, 3)] == [("Layer1_input",), ("Layer2_input",), ("Layer1",)]
    assert network.remarks == ("net.yaml: Layer1, Layer2: reads another size than its source writes: it has an input of its own",
                               "net.yaml: Layer3: its weights come from another layer; they are taken as given")


def test_recognition():
    assert looks_like_workload([conv(0, [1] * 7)]) and looks_like_workload([{"equation": 1}, 2])
    assert not looks_like_workload([]) and not looks_like_workload([{"name": "x", "spatial_mapping": {}}]) and not looks_like_workload({})


PLAIN = conv(0, [1, 4, 3, 5, 5, 3, 3], name="c")


@pytest.mark.parametrize("change, what", [
    ({"equation": None}, "net.yaml: [0] c.equation: must be text of 1 to 1000 characters, got None"),
    ({"equation": "O = W * I"}, "net.yaml: [0] c.equation: not an equation of an output and two operands, got 'O = W * I'; " + CONV),
    ({"equation": ADD}, f"net.yaml: [0] c.equation: Conv multiplies two operands, got {ADD!r}; {CONV}"),
    ({"equation": CONV.replace("oy", "zz")}, "net.yaml: [0] c.equation: ZZ is no loop of the nest, got 'zz'; allowed: B, K, C, OY, OX, "
                                             "FY, FX"),
    ({"dimension_relations": ["ix=ox+fx"]}, "net.yaml: [0] c.equation: IY is no loop of the nest, got 'iy'; allowed: B, K, C, OY, OX, "
                                            "FY, FX"),
    ({"dimension_relations": ["ix=ox*fx"]}, "net.yaml: [0] c.dimension_relations[0]: not a relation, got 'ix=ox*fx'; for example "
                                            "ix=2*ox+1*fx"),
    ({"dimension_relations": ["ix=0*ox+1*fx", "iy=oy+fy"]},
     "net.yaml: [0] c.dimension_relations: coefficients must be at least 1, got 'ix=0*ox+1*fx'"),
    ({"dimension_relations": ["ix=ox+fx", "IX=ox+fx"]}, "net.yaml: [0] c.dimension_relations[1]: IX has a relation already, got "
                                                        "'IX=ox+fx'"),
    # As some files have it: the output's position is a sum, so the layer scatters its inputs.
    ({"dimension_relations": ["ox=1*ix+1*fx", "oy=1*iy+1*fy"], "loop_dims": ["B", "K", "C", "IY", "IX", "FY", "FX"]},
     "net.yaml: [0] c.dimension_relations: the output's index is a sum or has a coefficient: a transposed or dilated output, no "
     "convolution, "
     "got 'oy=1*iy+1*fy'"),
    ({"loop_sizes": [1, 4, 3, 5, 5, 3]}, "net.yaml: [0] c.loop_sizes: 6 sizes for 7 loops, got [1, 4, 3, 5, 5, 3]"),
    ({"loop_sizes": [1, 4, 3, 5, 5, 3, 0]}, "net.yaml: [0] c.loop_sizes: FX: out of range, got 0; allowed: 1 to 281474976710656"),
    ({"loop_sizes": [1, 4, 3, 5, 5, 3, "3"]}, "net.yaml: [0] c.loop_sizes: must be a list of whole numbers, got [1, 4, 3, 5, 5, 3, '3']"),
    ({"loop_dims": ["B", "K", "C", "OY", "OX", "FY", "b"]}, "net.yaml: [0] c.loop_dims: a loop twice, got 'b'"),
    ({"loop_sizes": [1, 4, 3, 5, 5, 3, 65]}, "net.yaml: c.FX: out of range, got 65; allowed: 1 to 64"),
    ({"operator_type": "conv"}, "net.yaml: [0] c.operator_type: not a type of ZigZag, got 'conv'; allowed: Conv, Conv_downsample, Gemm, "
                                "Add, Max, "
                                "MaxPool, AveragePool, GlobalAveragePool, Pooling, Pool; nearest: Conv"),
    ({"operator_type": []}, "net.yaml: [0] c.operator_type: not a type of ZigZag, got []; allowed: Conv, Conv_downsample, Gemm, Add, Max, "
                            "MaxPool, AveragePool, GlobalAveragePool, Pooling, Pool"),
    ({"operand_precision": {"W": 8, "X": 8}}, "net.yaml: [0] c.operand_precision: unknown key, got 'X'; allowed: W, I, O, O_final"),
    ({"operand_precision": {"W": 0}}, "net.yaml: [0] c.operand_precision.W: out of range, got 0; allowed: 1 to 64"),
    ({"operand_source": {"I": 3}}, "net.yaml: [0] c.operand_source.I: no such layer before this one, got 3; allowed: an earlier id, or "
                                   "its own (0) "
                                   "for data from outside"),
    ({"operand_sources": {}}, "net.yaml: [0]: unknown key, got 'operand_sources'; allowed: id, operator_type, equation, loop_dims, "
                              "loop_sizes, "
                              "operand_precision, name, dimension_relations, operand_source, pr_loop_dims, pr_loop_sizes, padding; "
                              "nearest: operand_source"),
    ({"name": 3}, "net.yaml: [0].name: must be a string, got 3"),
    ({"id": -1}, "net.yaml: [0] c.id: out of range, got -1; allowed: 0 to 281474976710656"),
    ({"id": True}, "net.yaml: [0] c.id: must be a whole number, got True; allowed: 0 to 281474976710656"),
    ({"padding": [[1, 1]]}, "net.yaml: [0] c.padding: must be as many as pr_loop_dims, got [[1, 1]]; allowed: 0"),
    ({"pr_loop_dims": ["IX"], "padding": [[1]]}, "net.yaml: [0] c.padding: must be pairs, got [1]; [before, after]"),
    ({"pr_loop_dims": ["IX"], "padding": [[1, -1]]}, "net.yaml: [0] c.padding: out of range, got -1; allowed: 0 to 281474976710656"),
    ({"pr_loop_dims": ["IX"], "pr_loop_sizes": [99], "padding": [[0, 0]]},
     "net.yaml: [0] c.pr_loop_sizes: IX: 99 and padding of 0 and 0 do not give 5 outputs of a filter of 3 at stride 1, got 99"),
    ({"pr_loop_dims": ["IY"], "padding": [[5, 5]]},
     "net.yaml: [0] c.pr_loop_sizes: IY: -3 and padding of 5 and 5 do not give 5 outputs of a filter of 3 at stride 1, got -3")])
def test_what_is_wrong_in_a_layer(change, what):
    assert message(PLAIN | change) == what


def test_what_is_wrong_in_a_file():
    assert message() == "net.yaml: must be a list of layers, got []; allowed: 1 to 10000"
    assert message(3) == ("net.yaml: [0]: must be a mapping, got 3; allowed: id, operator_type, equation, loop_dims, loop_sizes, "
                          "operand_precision, name, dimension_relations, operand_source, pr_loop_dims, pr_loop_sizes, padding")
    assert message(PLAIN, PLAIN) == "net.yaml: [1] c.id: an earlier layer has this id, got 0"
    assert message({key: value for key, value in PLAIN.items() if key != "loop_dims"}) == (
        "net.yaml: [0].loop_dims: missing; a layer has id, operator_type, equation, loop_dims, loop_sizes, operand_precision")
    assert message(RESNET[3] | {"operand_source": {}}) == "net.yaml: no convolution or linear layer"
