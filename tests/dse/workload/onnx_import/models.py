"""Models for tests: made on the spot, or read from the packages of tests/model-packages.txt."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from boards.errors import InputError
from dse.workload.onnx_import.importer import Imported, import_onnx

F32, U8, I8, I32, I64 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32, TensorProto.INT64
QONNX = "qonnx.custom_op.general"


def node(op: str, inputs: str, outputs: str, name: str = "", domain: str = "", **attributes):
    """``node("Conv", "x w", "y")``; a left-out input is ``_``."""
    names = ["" if word == "_" else word for word in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name, domain=domain, **attributes)


def value(name: str, shape, kind: int = F32):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, constants=None, *, opset: int = 17, ir_version: int = 8, functions=(), value_info=()):
    """A model; ``inputs`` and ``outputs`` are values, ``constants`` arrays by name, or tensors. Outputs may be names alone."""
    tensors = [numpy_helper.from_array(array, name) if isinstance(array, np.ndarray) else array
               for name, array in (constants or {}).items()]
    outputs = [helper.make_value_info(out, helper.make_tensor_type_proto(F32, None)) if isinstance(out, str) else out for out in outputs]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), outputs, tensors, value_info=list(value_info))
    domains = {"": opset, **dict.fromkeys({entry.domain for entry in nodes if entry.domain}, 1)}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*entry) for entry in domains.items()], ir_version=ir_version,
                             functions=list(functions))


def save(tmp_path: Path, proto: onnx.ModelProto, name: str = "model.onnx") -> str:
    path = tmp_path / name
    path.write_bytes(proto.SerializeToString())
    return str(path)


def imported(tmp_path: Path, *parts, shapes=None, bits=(None, None), **options) -> Imported:
    """The import of ``model(*parts, **options)``."""
    return import_onnx(save(tmp_path, model(*parts, **options)), *bits, shapes)


def message(call, *arguments, **options) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def packaged(package: str, file: str) -> str:
    """Path of a file of an installed package, which is not imported."""
    path = Path(str(metadata.distribution(package).locate_file(file)))
    assert path.is_file(), path
    return str(path)


def zeros(*shape: int, kind=np.float32) -> np.ndarray:
    return np.zeros(shape, kind)
