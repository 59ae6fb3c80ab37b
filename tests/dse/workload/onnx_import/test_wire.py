"""Structure of a file without its weights."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from dse.workload.onnx_import.reading import read_model
from dse.workload.onnx_import.wire import LARGE_BYTES, MAX_DEPTH, Malformed, skeleton
from tests.dse.workload.onnx_import.models import F32, model, node, save, value


def random_tensor(seed: int, kind=np.float32) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(20, 30)).astype(kind)


def example() -> onnx.ModelProto:
    """Large and small tensors as raw and as typed data, in initialisers, attributes and the graphs of control flow."""
    branch = helper.make_graph(
        [node("Constant", "", "inner", value=numpy_helper.from_array(random_tensor(4)))], "g", [], [value("inner", None)]
    )
    return model(
        [
            node("Constant", "", "c", value=numpy_helper.from_array(random_tensor(3))),
            node("If", "flag", "i", then_branch=branch, else_branch=branch),
            node("MatMul", "x raw", "y"),
        ],
        [value("x", (1, 20)), value("flag", (), onnx.TensorProto.BOOL)],
        [value("y", (1, 30)), "i", "c"],
        {
            "raw": random_tensor(1),
            "typed": helper.make_tensor("typed", F32, (20, 30), random_tensor(2).ravel()),
            "doubles": helper.make_tensor("doubles", onnx.TensorProto.DOUBLE, (20, 30), random_tensor(5).ravel()),
            "small": np.arange(5, dtype=np.float32),
        },
    )


EXAMPLE = example().SerializeToString()


def test_large_tensors_stay_in_the_file_and_are_found_there(tmp_path):
    proto = example()
    path = save(tmp_path, proto)
    file = read_model(path)
    assert file.proto.ByteSize() < proto.ByteSize() / 6
    for ours, theirs in zip(file.proto.graph.initializer, proto.graph.initializer, strict=True):
        large = len(theirs.raw_data) + 4 * len(theirs.float_data) + 8 * len(theirs.double_data) >= LARGE_BYTES
        assert (ours.data_location == ours.EXTERNAL) == large
        found = file.array(ours, "here")
        assert isinstance(found, np.memmap) == large
        np.testing.assert_array_equal(found, numpy_helper.to_array(theirs))
    attribute = file.proto.graph.node[0].attribute[0].t
    np.testing.assert_array_equal(file.array(attribute, "here"), random_tensor(3))
    inner = file.proto.graph.node[1].attribute[0].g.node[0].attribute[0].t
    np.testing.assert_array_equal(file.array(inner, "here"), random_tensor(4))


def test_what_is_small_is_copied_as_it_is():
    proto = model([node("Relu", "x", "y")], [value("x", (1, 3))], [value("y", (1, 3))], {"w": np.ones(3, np.float32)})
    data = proto.SerializeToString()
    assert skeleton(memoryview(data), "m") == data


@given(st.integers(0, 10_000))
def test_a_file_that_is_cut_anywhere_is_malformed_or_smaller(at):
    cut = EXAMPLE[: at % len(EXAMPLE)]
    try:
        text = skeleton(memoryview(cut), "m")
    except Malformed as error:
        assert "byte" in str(error)
    else:
        assert len(text) <= len(cut)


@given(st.binary(max_size=300))
def test_arbitrary_bytes(data):
    try:
        assert skeleton(memoryview(data), "m") == data
    except Malformed:
        pass


def test_depth_is_bounded():
    """Graphs in attributes of nodes of graphs, each long enough to be looked into."""

    def field(number: int, payload: bytes) -> bytes:
        size, length = len(payload), bytearray()
        while size >= 0x80:
            length.append(size & 0x7F | 0x80)
            size >>= 7
        return bytes((number << 3 | 2,)) + bytes((*length, size)) + payload

    inner = field(10, b"d" * 2000)  # doc_string
    for _ in range(MAX_DEPTH):
        inner = field(1, field(5, field(6, inner)))
    with pytest.raises(Malformed, match="nested more than 100 deep"):
        skeleton(memoryview(field(7, inner)), "m")


LARGE = """
import re, sys
from pathlib import Path
from dse.workload.onnx_import.importer import import_onnx
network = import_onnx(sys.argv[1]).network
peak_kib = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]  # ru_maxrss begins with the parent's
print(network.weights, peak_kib)
"""


def test_a_gigabyte_of_weights_is_not_read(tmp_path):
    """A file with holes: its bytes are zeros that take no space, and must take none in memory."""
    rows, columns = 1 << 14, 1 << 14  # 1 GiB as float32
    marker = b"0123456789abcdef" * 256
    proto = model(
        [node("MatMul", "x w", "y")],
        [value("x", (1, 16, rows))],
        [value("y", (1, 16, columns))],
        {"w": onnx.TensorProto(name="w", data_type=F32, dims=[rows, columns], raw_data=marker)},
    )
    size = 4 * rows * columns
    path = tmp_path / "large.onnx"
    head, tail = hollow(proto, marker, size)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
        file.seek(len(head) + size)
        file.write(tail)
    done = subprocess.run([sys.executable, "-c", LARGE, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    weights, peak_kib = map(int, done.stdout.split())
    assert weights == rows * columns
    assert peak_kib < 400 * 1024


def hollow(proto: onnx.ModelProto, marker: bytes, size: int) -> tuple[bytes, bytes]:
    """What comes before and after ``size`` bytes in the place of ``marker``, which is data of a graph's one initialiser."""

    def varint(number: int) -> bytes:
        found = bytearray()
        while number >= 0x80:
            found.append(number & 0x7F | 0x80)
            number >>= 7
        return bytes((*found, number))

    tensor = proto.graph.initializer[0].SerializeToString()
    before, after = tensor.split(varint(len(marker)) + marker)
    tensor_head = before + varint(size)
    rest = onnx.GraphProto()
    rest.CopyFrom(proto.graph)
    del rest.initializer[:]
    graph_head = rest.SerializeToString() + b"\x2a" + varint(len(tensor_head) + size + len(after)) + tensor_head
    outer = onnx.ModelProto()
    outer.CopyFrom(proto)
    outer.ClearField("graph")
    return outer.SerializeToString() + b"\x3a" + varint(len(graph_head) + size + len(after)) + graph_head, after
