"""ONNX's own test cases for these operators: sizes of all, and values of the integer ones through the golden model."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from onnx.backend.test.case import node as collected

from boards.errors import InputError
from dse.onnx_layer.prepare import find_layer, prepare
from dse.onnx_layer.run import golden_design, ratio_db
from dse.onnx_layer.runtime import Runtime
from dse.workload.onnx_import.importer import import_onnx
from sim.golden import accumulate, check_tensors, golden
from tests.dse.workload.onnx_import.models import save

MODULES = ("conv", "convinteger", "convtranspose", "qlinearconv", "gemm", "matmul", "matmulinteger", "qlinearmatmul", "lstm", "gru", "rnn",
           "deformconv", "attention")


def cases() -> dict[str, object]:
    for module in MODULES:  # each adds its own; importing all of them takes 40 s
        importlib.import_module(f"onnx.backend.test.case.node.{module}")
    return {case.name: case for case in collected._NodeTestCases}


CASES = cases()


def of(*kinds: str) -> list[str]:
    """Cases of one operator among ``kinds``."""
    return [name for name, case in CASES.items() if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in kinds]


def sizes(name: str) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Shapes of a case's inputs and outputs, by its data."""
    inputs, outputs = CASES[name].data_sets[0]
    return [np.shape(array) for array in inputs], [np.shape(array) for array in outputs]


def test_all_are_there():
    """What follows would pass if ONNX moved its cases."""
    count = {kind: len(of(kind)) for kind in ("Conv", "ConvInteger", "ConvTranspose", "QLinearConv", "Gemm", "MatMul", "MatMulInteger",
                                              "QLinearMatMul", "LSTM", "GRU", "RNN")}
    assert all(count[kind] >= least for kind, least in zip(count, (6, 2, 11, 1, 11, 7, 1, 8, 6, 6, 6), strict=True)), count


@pytest.mark.parametrize("name", of("Conv", "ConvInteger", "QLinearConv"))
def test_convolutions(name, tmp_path):
    case = CASES[name]
    inputs, outputs = sizes(name)
    weight = inputs[3] if case.model.graph.node[0].op_type == "QLinearConv" else inputs[1]
    operator, = import_onnx(save(tmp_path, case.model)).network.array_operators
    assert operator.output.shape == outputs[0]
    assert operator.macs == np.prod(outputs[0]) * np.prod(weight[1:]) and operator.weights == np.prod(weight)


@pytest.mark.parametrize("name", of("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"))
def test_products(name, tmp_path):
    node, (inputs, outputs) = CASES[name].model.graph.node[0], sizes(name)
    first = inputs[0]
    inner = first[-2] if any(attribute.name == "transA" and attribute.i for attribute in node.attribute) else first[-1]
    operator, = import_onnx(save(tmp_path, CASES[name].model)).network.array_operators
    assert operator.output.elements == np.prod(outputs[0], dtype=int)
    assert operator.macs == np.prod(outputs[0], dtype=int) * inner


@pytest.mark.parametrize("name", of("LSTM", "GRU", "RNN"))
def test_recurrent(name, tmp_path):
    inputs, _ = sizes(name)
    data, weight, state = inputs[:3]
    network = import_onnx(save(tmp_path, CASES[name].model)).network
    assert network.macs == data[0] * data[1] * weight[0] * weight[1] * (weight[2] + state[2])


@pytest.mark.parametrize("name", of("ConvTranspose", "DeformConv"))
def test_what_is_counted_by_name_alone(name, tmp_path):
    with pytest.raises(InputError, match="no layer that the array computes, .* are counted, not run on the array"):
        import_onnx(save(tmp_path, CASES[name].model))


@pytest.mark.parametrize("name", ["test_attention_4d", "test_attention_3d_gqa", "test_attention_4d_diff_heads_sizes",
                                  "test_attention_4d_causal", "test_attention_4d_with_past_and_present"])
def test_attention_by_its_definition(name, tmp_path):
    """Queries by keys and weights by values, for every head of the queries."""
    (query, key, values, *others), _ = sizes(name)
    past = others[1][2] if "past" in name else 0
    attributes = {attribute.name: attribute.i for attribute in CASES[name].model.graph.node[0].attribute}
    heads = attributes.get("q_num_heads", query[1])
    wide = query[-1] if len(query) == 4 else query[-1] // heads
    wide_values = values[-1] if len(values) == 4 else values[-1] // attributes["kv_num_heads"]
    products = import_onnx(save(tmp_path, CASES[name].model)).network.array_operators
    assert [product.macs for product in products] == [
        query[0] * heads * query[-2] * (key[-2] + past) * size for size in (wide, wide_values)]


# -- values -------------------------------------------------------------------------------------------------------------


def prepared(name: str, tmp_path, bits: int | None = None):
    case = CASES[name]
    found = import_onnx(save(tmp_path, case.model))
    names = [value.name for value in case.model.graph.input]
    arrays, expected = case.data_sets[0]
    label, = found.network.array_layers()
    # The expected output is given too: nothing is left to be run, and ONNX's numbers are the truth.
    names.append(case.model.graph.output[0].name)
    samples = [dict(zip(names, (np.asarray(array) for array in (*arrays, expected[0])), strict=True))]
    values = find_layer(found, label, Runtime(found, samples))
    return values, prepare(values, bits, bits), values.place.output(np.asarray(expected[0]))


@pytest.mark.parametrize("name", of("ConvInteger", "MatMulInteger"))
def test_sums_of_integers(name, tmp_path):
    values, made, expected = prepared(name, tmp_path)
    check_tensors(golden_design(made), made.layer, made.tensors)
    np.testing.assert_array_equal(accumulate(made.layer, made.tensors), expected)
    written = golden(golden_design(made), made.layer, made.tensors)
    assert np.abs(written - made.output.encode(expected)).max() <= 1


@pytest.mark.parametrize("name", of("QLinearConv", "QLinearMatMul"))
def test_requantised_integers(name, tmp_path):
    _, made, expected = prepared(name, tmp_path)
    check_tensors(golden_design(made), made.layer, made.tensors)
    written = golden(golden_design(made), made.layer, made.tensors)
    assert np.abs(written - expected.astype(int)).max() <= 1
    assert (written != expected).mean() <= 0.1  # ONNX rounds halves to even


@pytest.mark.parametrize("name", [name for name in of("Conv", "Gemm", "MatMul") if "matrix_bias" not in name])
def test_floats_with_sixteen_bits(name, tmp_path):
    """Sizes alone would not show swapped axes; 16 bits leave no room for them."""
    _, made, expected = prepared(name, tmp_path, 16)
    decibels = ratio_db(expected.astype(float), made.decode(golden(golden_design(made), made.layer, made.tensors)))
    assert decibels is None or decibels > 80
