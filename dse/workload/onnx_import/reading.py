"""Opens ONNX files: structure at once, tensors when they are asked for, each mapped from the file that holds it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError
from dse.workload.onnx_import.wire import LARGE_BYTES, Malformed, skeleton

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

MAX_FILE_BYTES = (1 << 31) - 1  # protocol buffers end there; more weights than that are external data
MAX_STRUCTURE_BYTES = 1 << 28
MAX_ELEMENTS = 1 << 40
OLDEST_OPSET = 7
NAMES = ("name", "input", "output", "op_type", "domain", "dim_param", "key")
EXTRA = 'pip install "nearmac[onnx]"'


@dataclass(frozen=True)
class ModelFile:
    """A model's structure, and where its tensors lie."""

    path: str
    proto: ModelProto

    def array(self, tensor: TensorProto, where: str) -> NDArray[Any]:
        """The values of ``tensor``: read-only and mapped from the file where they are many. Raises InputError."""
        return tensor_array(tensor, self.path, where)


def read_model(path: str) -> ModelFile:
    """The model of a file; its weights are not read.

    Raises InputError: no ``onnx`` package, no such file, not a model, cut short, too large, an opset before 7.
    """
    try:
        from google.protobuf.message import DecodeError
        from onnx import ModelProto
    except ImportError:
        raise InputError("needs the package onnx, which is not installed", where=path, suggestion=EXTRA) from None
    text = _structure(path)
    model = ModelProto()
    try:
        model.ParseFromString(text)
        _check_text(model)
    except (DecodeError, RecursionError):
        raise _no_model(path) from None
    except UnicodeDecodeError:
        raise _no_model(path, "a name is not a line of UTF-8 text") from None
    if not model.graph.node or not model.ir_version:
        raise _no_model(path, "a graph with nodes and an ir_version are missing")
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)
    if opset is None and all(node.domain in ("", "ai.onnx") for node in model.graph.node):
        opset = 1  # the rule of files older than opsets
    if opset is not None and opset < OLDEST_OPSET:
        raise InputError("opset too old", where=path, value=opset, allowed=f"{OLDEST_OPSET} and later",
                         suggestion="convert it with onnx.version_converter")
    found = ModelFile(path, model)
    for tensor in model.graph.initializer:
        check_dims(tensor.dims, f"{path}: {tensor.name}")
        if tensor.data_location == tensor.EXTERNAL:
            _read_small(tensor, path)
    return found


def _structure(path: str) -> bytes:
    try:
        if not os.path.isfile(path):  # a pipe would block
            raise InputError("is a directory, not a file" if os.path.isdir(path) else "is not a regular file" if os.path.exists(path)
                             else "no such file", where="WORKLOAD", value=path)
        size = os.path.getsize(path)
        if size > MAX_FILE_BYTES:
            raise InputError("file too large", where=path, value=f"{size} bytes", allowed=f"at most {MAX_FILE_BYTES} bytes",
                             suggestion="save its weights as external data")
        if not size:
            raise InputError("empty file", where=path)
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content[:24] == b"version https://git-lfs.":
                raise InputError("a pointer of Git LFS, not the model", where=path, suggestion="git lfs pull")
            with memoryview(content) as data:
                text = skeleton(data, os.path.basename(path))
    except Malformed as error:
        raise _no_model(path, str(error)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where="WORKLOAD", value=path) from None
    if len(text) > MAX_STRUCTURE_BYTES:
        raise InputError("too large without its weights", where=path, value=f"{len(text)} bytes",
                         allowed=f"at most {MAX_STRUCTURE_BYTES} bytes")
    return text


def _check_text(message: Any) -> None:
    """Raise UnicodeDecodeError where a text field holds other bytes, which readers of the field would meet one by one.

    So do names of several lines: messages are of one.
    """
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if field.is_repeated else (value,):
                _check_text(inner)
        elif field.type == field.TYPE_STRING:
            for text in value if field.is_repeated else (value,):
                if isinstance(text, bytes):
                    text.decode()
                elif field.name in NAMES and len(f"{text}.".splitlines()) > 1:
                    raise UnicodeDecodeError("utf-8", text.encode(), 0, 1, "a line break")


def _no_model(path: str, why: str = "") -> InputError:
    return InputError(f"not a whole ONNX model{': ' if why else ''}{why}", where=path)


# -- tensors ----------------------------------------------------------------------------------------------------------


def check_dims(dims: Any, where: str) -> tuple[int, ...]:
    """The sizes of a tensor in a file. Raises InputError for negative and impossible ones."""
    shape = tuple(int(size) for size in dims)
    if any(size < 0 for size in shape) or prod(shape) > MAX_ELEMENTS:
        raise InputError("impossible sizes of a tensor", where=where, value=shape, allowed=f"none below 0, at most {MAX_ELEMENTS} elements")
    return shape


def element_type(tensor_type: int, where: str) -> tuple[np.dtype[Any], int]:
    """NumPy's type of an ONNX element type, and the bits of one element in a file. Raises InputError."""
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_np_dtype

    known = {value: name for name, value in TensorProto.DataType.items()}
    if tensor_type not in known or known[tensor_type] in ("UNDEFINED", "STRING"):
        raise InputError("tensors of this type have no values to compute with", where=where, value=known.get(tensor_type, tensor_type))
    name, dtype = known[tensor_type], np.dtype(tensor_dtype_to_np_dtype(tensor_type))
    for bits, names in ((4, ("UINT4", "INT4", "FLOAT4E2M1")), (2, ("UINT2", "INT2"))):
        if name in names:
            return dtype, bits
    return dtype, 8 * dtype.itemsize


def tensor_array(tensor: TensorProto, model_path: str, where: str) -> NDArray[Any]:
    from onnx import numpy_helper

    shape = check_dims(tensor.dims, where)
    dtype, bits = element_type(tensor.data_type, where)
    if tensor.data_location == tensor.EXTERNAL:
        file, offset, size = external_range(tensor, model_path, where)
        if bits == 8 * dtype.itemsize:
            if not size:
                return np.zeros(shape, dtype)
            try:
                return np.memmap(file, dtype, "r", offset, shape)
            except (OSError, ValueError) as error:
                raise InputError(f"cannot be mapped: {error}", where=where, value=str(file)) from None
        tensor = _with_data(tensor, file, offset, size)
    try:
        array = numpy_helper.to_array(tensor)
    except Exception as error:  # what a damaged tensor raises depends on where it is damaged
        raise InputError(f"a damaged tensor: {' '.join(str(error).split())[:100]}", where=where, value=shape) from None
    if array.shape != shape:
        raise InputError("holds another number of values than its sizes say", where=where, value=array.shape, allowed=str(shape))
    array.flags.writeable = False
    return array


def external_file(tensor: TensorProto, model_path: str, where: str) -> Path:
    """The file of a tensor that is stored apart, there or not. Raises InputError for any outside the model's folder."""
    given = {entry.key: entry.value for entry in tensor.external_data}
    folder = Path(os.path.realpath(os.path.dirname(model_path) or "."))
    location = given.get("location", "")
    inside = "a file in the model's folder"
    if not location or "\0" in location or os.path.isabs(location) or "\\" in location or ":" in location:
        raise InputError("external data at an impossible place", where=where, value=location, allowed=inside)
    # With links resolved: what the name says is not where it leads.
    file = Path(os.path.realpath(folder / location))
    if not file.is_relative_to(folder):
        raise InputError("external data outside the model's folder", where=where, value=location, allowed=inside)
    return file


def external_range(tensor: TensorProto, model_path: str, where: str) -> tuple[Path, int, int]:
    """File, offset and bytes of a tensor that is stored apart. Raises InputError."""
    file = external_file(tensor, model_path, where)
    given = {entry.key: entry.value for entry in tensor.external_data}
    if not file.is_file():
        raise InputError("no such file of external data", where=where, value=given["location"], allowed="a file in the model's folder")
    _, bits = element_type(tensor.data_type, where)
    expected = -(-prod(check_dims(tensor.dims, where)) * bits // 8)
    offset, length = (_whole(given, key, default, where) for key, default in (("offset", 0), ("length", expected)))
    if length != expected:
        raise InputError(f"external data of {length} bytes for a tensor of {expected}", where=where, value=tuple(tensor.dims))
    if offset + length > file.stat().st_size:
        raise InputError("external data beyond the end of its file", where=where, value=f"{file.name}: {offset} + {length} bytes",
                         allowed=f"{file.stat().st_size} bytes")
    return file, offset, length


def _whole(given: Mapping[str, str], key: str, default: int, where: str) -> int:
    text = given.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError(f"external data with an impossible {key}", where=where, value=text, allowed="a whole number of bytes")
    return int(text)


def _with_data(tensor: TensorProto, file: Path, offset: int, size: int) -> TensorProto:
    """A copy of ``tensor`` that holds its data itself."""
    from onnx import TensorProto

    with open(file, "rb") as stream:
        stream.seek(offset)
        data = stream.read(size)
    return TensorProto(dims=tensor.dims, data_type=tensor.data_type, name=tensor.name, raw_data=data)


def _read_small(tensor: TensorProto, path: str) -> None:
    """Shape inference looks at the values of small tensors, but not into other files. Where a file is missing, shapes may do."""
    where = f"{path}: {tensor.name}"
    if external_file(tensor, path, where).is_file():
        file, offset, size = external_range(tensor, path, where)
        if size < LARGE_BYTES:
            tensor.CopyFrom(_with_data(tensor, file, offset, size))
