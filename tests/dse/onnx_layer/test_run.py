"""The comparison with ONNX Runtime, and the noise at each precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dse.onnx_layer.run import compare, noise, ratio_db
from tests.dse.onnx_layer.quantised import F, computed
from tests.dse.onnx_layer.test_prepare import qdq
from tests.dse.workload.onnx_import.models import model, node, value


def test_ratio():
    signal = np.array([3.0, 4.0])
    assert ratio_db(signal, signal + np.array([0.3, 0.4])) == pytest.approx(20)
    assert ratio_db(signal, signal) is None and ratio_db(0 * signal, signal) is None


def test_a_quantised_layer(tmp_path):
    x = np.random.default_rng(4).normal(size=(1, 4, 8, 8)).astype(F) * 2
    made, written, values = computed(tmp_path, qdq(np.random.default_rng(3)), {"x": x})
    found = compare(values, made, written)
    assert (found.tensor, found.is_quantised, found.noise, found.outputs) == ("y", True, (), 320) and found.largest_lsb <= 1
    assert found.matches and found.reference.startswith("ONNX Runtime ") and found.to_dict()["within_tolerance"]
    far = written.copy()
    far[0, 1, 2, 3] += 2
    far[0, 0, 0, 0] -= 1
    worse = compare(values, made, far)
    assert not worse.matches and worse.largest_lsb >= 2
    assert worse.differing - found.differing in (0, 1, 2)


def test_noise_falls_with_bits(tmp_path):
    """About 6 dB a bit between 4 and 16 bits, whatever the layer."""
    rng = np.random.default_rng(0)
    proto = model([node("Conv", "x w b", "k", "c", pads=[1, 1, 1, 1]), node("Relu", "k", "y")], [value("x", (1, 8, 12, 12))], ["y"],
                  {"w": rng.normal(size=(6, 8, 3, 3)).astype(F), "b": rng.normal(size=6).astype(F)})
    made, written, values = computed(tmp_path, proto, {"x": rng.normal(size=(2, 8, 12, 12)).astype(F)})
    found = compare(values, made, written)
    assert [row.bits for row in found.noise] == [16, 8, 4, 2, 1] and found.samples == 2 and found.matches
    decibels = {row.bits: row for row in found.noise}
    assert found.output_db == decibels[8].output_db
    for bits in (16, 8):
        gained = decibels[bits].operands_db - decibels[bits // 2].operands_db
        assert gained == pytest.approx(20 * math.log10(2) * bits / 2, abs=6)
        assert decibels[bits].operands_db > decibels[bits].output_db > decibels[bits // 2].output_db
    assert all(row.refused == "" for row in found.noise)


def test_what_the_array_cannot_have_is_a_row_with_its_reason(tmp_path):
    rng = np.random.default_rng(0)
    proto = model([node("MatMul", "x w", "p", "c"), node("Mul", "p k", "y")], [value("x", (1, 16))], ["y"],
                  {"w": rng.normal(size=(16, 2)).astype(F), "k": np.array([0, 1], F)})
    _, _, values = computed(tmp_path, proto, {"x": rng.random((1, 16)).astype(F)})
    assert noise(values, 8).refused == ""
    row = noise(values, 1)
    assert row.operands_db is None and row.refused.endswith("c: a channel that is constant, and 1-bit weights know no 0")
    assert row.to_dict()["refused"] == row.refused
