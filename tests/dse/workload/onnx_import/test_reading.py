"""Files that are models, and files that are not; tensors inside and outside."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dse.workload.onnx_import import reading
from dse.workload.onnx_import.importer import import_onnx
from dse.workload.onnx_import.reading import read_model, tensor_array
from tests.dse.workload.onnx_import.models import F32, message, model, node, save, value, zeros

GOOD = model([node("Conv", "x w", "y")], [value("x", (1, 3, 8, 8))], ["y"], {"w": zeros(4, 3, 3, 3)})


def test_what_is_no_file(tmp_path):
    assert message(read_model, "none.onnx") == "WORKLOAD: no such file, got 'none.onnx'"
    assert message(read_model, str(tmp_path)) == f"WORKLOAD: is a directory, not a file, got '{tmp_path}'"
    os.mkfifo(tmp_path / "pipe.onnx")
    assert "is not a regular file" in message(read_model, str(tmp_path / "pipe.onnx"))


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"", "empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a pointer of Git LFS, not the model; git lfs pull"),
        (b"hello, this is some text\n", "not a whole ONNX model: "),
        (b"\x7fELF\x02\x01\x01", "not a whole ONNX model: no protocol buffer at byte 0"),
        (b"\x08\x08", "not a whole ONNX model: a graph with nodes and an ir_version are missing"),
        (GOOD.SerializeToString()[:-5], "not a whole ONNX model: cut short at byte "),
        (GOOD.SerializeToString().replace(b"Conv", b"C\xffnv"), "not a whole ONNX model: a name is not a line of UTF-8 text"),
        (GOOD.SerializeToString().replace(b"Conv", b"C\nnv"), "not a whole ONNX model: a name is not a line of UTF-8 text"),
    ],
)
def test_what_is_no_model(content, wrong, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert message(read_model, str(path)).startswith(f"{path}: {wrong}")


def test_sizes_and_opsets(tmp_path, monkeypatch):
    path = save(tmp_path, GOOD)
    old = save(tmp_path, model([node("Relu", "x", "y")], [value("x", (1,))], ["y"], opset=6), "old.onnx")
    assert message(read_model, old) == f"{old}: opset too old, got 6; allowed: 7 and later; convert it with onnx.version_converter"
    monkeypatch.setattr(reading, "MAX_STRUCTURE_BYTES", 10)
    assert message(read_model, path).startswith(f"{path}: too large without its weights, got '")
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 10)
    assert message(read_model, path).startswith(f"{path}: file too large, got '") and "save its weights as external data" in message(
        read_model, path
    )


def test_without_the_package(tmp_path, monkeypatch):
    import sys

    path = save(tmp_path, GOOD)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert message(read_model, path) == f'{path}: needs the package onnx, which is not installed; pip install "nearmac[onnx]"'


# -- external data ----------------------------------------------------------------------------------------------------


def external(tmp_path, array: np.ndarray, *, name: str = "model.onnx", **entries: str) -> str:
    """A model whose weights are in the file ``weights``, where ``entries`` say."""
    (tmp_path / "weights").write_bytes(b"header.." + array.tobytes())
    tensor = TensorProto(name="w", data_type=helper.np_dtype_to_tensor_dtype(array.dtype), dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in {"location": "weights", "offset": "8", **entries}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text
    proto = model([node("Conv", "x w", "y")], [value("x", (1, 3, 8, 8))], ["y"], {"w": tensor})
    return save(tmp_path, proto, name)


def weights_of(path: str) -> np.ndarray:
    file = read_model(path)
    return file.array(file.proto.graph.initializer[0], "here")


def test_external_data_are_mapped(tmp_path):
    large = np.random.default_rng(0).normal(size=(40, 3, 3, 3)).astype(np.float32)
    found = weights_of(external(tmp_path, large, length=str(large.nbytes)))
    assert isinstance(found, np.memmap) and not found.flags.writeable
    np.testing.assert_array_equal(found, large)
    small = large[:2]
    np.testing.assert_array_equal(weights_of(external(tmp_path, small)), small)  # small ones are read with the model


def test_external_data_in_a_folder_below(tmp_path):
    (tmp_path / "data").mkdir()
    array = zeros(40, 3, 3, 3) + 1
    (tmp_path / "data" / "w.bin").write_bytes(array.tobytes())
    found = weights_of(external(tmp_path, array, location="data/w.bin", offset="0"))
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("entries", "wrong"),
    [
        ({"location": "../weights"}, "external data outside the model's folder, got '../weights'; allowed: a file in the model's folder"),
        ({"location": "a/../../weights"}, "external data outside the model's folder, got 'a/../../weights'"),
        ({"location": "/etc/passwd"}, "external data at an impossible place, got '/etc/passwd'"),
        ({"location": "C:\\w"}, "external data at an impossible place"),
        ({"location": "a\0b"}, "external data at an impossible place"),
        ({"location": ""}, "external data at an impossible place, got ''"),
        ({"location": "link"}, "external data outside the model's folder, got 'link'"),
        ({"offset": "-8"}, "external data with an impossible offset, got '-8'; allowed: a whole number of bytes"),
        ({"offset": "9" * 30}, "external data with an impossible offset"),
        ({"offset": "16"}, "external data beyond the end of its file, got 'weights: 16 + 4320 bytes'; allowed: 4328 bytes"),
        ({"length": "7"}, "external data of 7 bytes for a tensor of 4320, got (40, 3, 3, 3)"),
    ],
)
def test_external_data_elsewhere(entries, wrong, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "weights").write_bytes(bytes(10_000))
    (folder / "link").symlink_to(tmp_path / "weights")
    path = external(folder, zeros(40, 3, 3, 3), **entries)
    assert message(import_onnx, path).startswith(f"{path}: w: {wrong}")


def test_a_missing_file_does_for_shapes(tmp_path):
    path = external(tmp_path, zeros(40, 3, 3, 3), location="gone")
    assert import_onnx(path).network.weights == 40 * 27
    assert message(weights_of, path) == "here: no such file of external data, got 'gone'; allowed: a file in the model's folder"


# -- tensors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "wrong"),
    [
        (TensorProto(data_type=F32, dims=[-1, 3]), "impossible sizes of a tensor, got (-1, 3)"),
        (TensorProto(data_type=F32, dims=[1 << 40, 1 << 40]), "impossible sizes of a tensor, got (1099511627776, 1099511627776)"),
        (TensorProto(data_type=F32, dims=[2, 3], raw_data=b"1234"), "a damaged tensor: "),
        (TensorProto(data_type=F32, dims=[2], float_data=[1.0]), "a damaged tensor: "),
        (
            TensorProto(data_type=TensorProto.STRING, dims=[1], string_data=[b"a"]),
            "tensors of this type have no values to compute with, got 'STRING'",
        ),
        (TensorProto(data_type=99, dims=[1]), "tensors of this type have no values to compute with, got 99"),
        (TensorProto(dims=[1]), "tensors of this type have no values to compute with, got 'UNDEFINED'"),
    ],
)
def test_damaged_tensors(tensor, wrong):
    assert message(tensor_array, tensor, "m.onnx", "m.onnx: w").startswith(f"m.onnx: w: {wrong}")


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2])
def test_nibbles_in_external_files(kind, tmp_path):
    values = np.arange(-2, 2).repeat(2) if kind != TensorProto.UINT4 else np.arange(8)
    tensor = helper.make_tensor("w", kind, (8,), values, raw=False)
    raw = numpy_helper.from_array(numpy_helper.to_array(tensor), "w").raw_data
    (tmp_path / "w").write_bytes(raw)
    apart = TensorProto(name="w", data_type=kind, dims=[8], data_location=TensorProto.EXTERNAL)
    entry = apart.external_data.add()
    entry.key, entry.value = "location", "w"
    np.testing.assert_array_equal(tensor_array(apart, str(tmp_path / "m.onnx"), "w").astype(int), values)


def test_values_cannot_be_written(tmp_path):
    found = tensor_array(numpy_helper.from_array(zeros(3)), "m.onnx", "w")
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


def test_files_before_opsets_are_refused(tmp_path):
    proto = onnx.ModelProto()
    proto.CopyFrom(GOOD)
    del proto.opset_import[:]
    assert message(read_model, save(tmp_path, proto)).endswith(
        "opset too old, got 1; allowed: 7 and later; convert it with onnx.version_converter"
    )
