"""Small models with numbers in them, and ONNX Runtime's outputs."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime

from dse.onnx_layer.prepare import LayerValues, Prepared, find_layer, prepare
from dse.onnx_layer.run import golden_design
from dse.onnx_layer.runtime import Runtime, split_samples
from dse.workload.onnx_import.importer import Imported, import_onnx
from sim.golden import check_tensors, golden
from tests.dse.workload.onnx_import.models import save

F = np.float32


def run_onnx(proto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    if any(value.type.tensor_type.elem_type == onnx.TensorProto.UINT8 for value in proto.graph.input):
        options.add_session_config_entry("session.x64quantprecision", "1")  # else its sums saturate on some processors
    else:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def open_layer(tmp_path, proto, feeds: dict[str, np.ndarray], label: str = "c") -> tuple[Imported, LayerValues]:
    found = import_onnx(save(tmp_path, proto))
    return found, find_layer(found, label, Runtime(found, split_samples(found, feeds, "--input x.npz")))


def computed(tmp_path, proto, feeds: dict[str, np.ndarray], label: str = "c",
             bits=(None, None)) -> tuple[Prepared, np.ndarray, LayerValues]:
    """The layer as integers, and the golden model's outputs for it."""
    _, values = open_layer(tmp_path, proto, feeds, label)
    made = prepare(values, *bits)
    design = golden_design(made)
    check_tensors(design, made.layer, made.tensors)
    return made, golden(design, made.layer, made.tensors), values
