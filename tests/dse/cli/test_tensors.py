"""Files for --input: what is taken, and one message for what is not."""

from __future__ import annotations

import numpy as np
import pytest

from boards.errors import InputError
from dse.cli.tensors import complete_tensors, load_arrays
from hdl.design import Design
from hdl.layer import Layer
from sim.golden import random_tensors

LAYER = Layer.conv(K=3, C=2, OY=2, OX=2, FY=2, FX=2, input_zero_point=1)
DESIGN = Design(rows=2, cols=2)


def load(tmp_path, **arrays):
    path = tmp_path / "t.npz"
    np.savez(path, **arrays)
    return complete_tensors(load_arrays(str(path), LAYER), DESIGN, LAYER, 5, str(path))


def test_missing_tensors_are_random_by_seed(tmp_path):
    weight = np.arange(24, dtype=np.int8).reshape(3, 2, 2, 2)
    tensors = load(tmp_path, weight=weight, output=np.zeros((1, 3, 2, 2), np.uint16), lo=np.int64(-128))
    np.testing.assert_array_equal(tensors.weight, weight)
    np.testing.assert_array_equal(tensors.input, random_tensors(DESIGN, LAYER, 5).input)
    assert tensors.weight.dtype == np.int64


@pytest.mark.parametrize(("arrays", "message"), [
    ({"weights": np.zeros(1)}, "unknown array, got 'weights'; allowed: input, weight, bias, multiplier, shift, threshold, flip, "
                               "input_zero_point, output_zero_point, lo, hi, output; nearest: weight"),
    ({"bias": np.zeros(3)}, "bias: must hold integers, got 'float64'; allowed: int64"),
    ({"bias": np.zeros(3, bool)}, "bias: must hold integers, got 'bool'; allowed: int64"),
    ({"bias": np.zeros(2, int)}, "bias: wrong shape, got (2,); allowed: (3,)"),
    ({"bias": np.full(3, 1 << 63, np.uint64)}, "bias: out of range, got 9223372036854775808; allowed: int64"),
    ({"shift": np.array([0, 48, 0])}, "shift[1]: out of range, got 48; allowed: 0 to 47"),
    ({"input": np.full((1, 2, 3, 3), 128)}, "input[0, 0, 0, 0]: out of range, got 128; allowed: -128 to 127"),
    ({"input_zero_point": np.int64(2)}, "input_zero_point: the layer has input_zero_point=1, got 2; "
                                        "give the layer and precision that the file was written with"),
    ({"threshold": np.zeros(3, int)}, "threshold: only 1-bit outputs have one, and these are 8-bit; leave it out"),
])
def test_wrong_arrays(tmp_path, arrays, message):
    with pytest.raises(InputError) as caught:
        load(tmp_path, **arrays)
    separator = "" if message.startswith("unknown") else " "
    assert str(caught.value) == f"--input {tmp_path / 't.npz'}:{separator or ' '}{message}"


def whole_file(tmp_path) -> bytes:
    np.savez(tmp_path / "w.npz", bias=np.zeros(3, np.int64), shift=np.zeros(3, np.int64))
    return (tmp_path / "w.npz").read_bytes()


def test_damaged_files(tmp_path):
    whole = whole_file(tmp_path)
    path = tmp_path / "t.npz"
    np.savez(path, bias=np.array([object()]), allow_pickle=True)
    pickled = path.read_bytes()
    np.save(tmp_path / "single.npy", np.zeros(3))
    contents = [b"", b"PK", b"garbage", pickled, (tmp_path / "single.npy").read_bytes(), b"\x80\x04.",
                *(whole[:size] for size in range(1, len(whole), 41)),
                *(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1:] for at in range(0, len(whole), 7))]
    refused = 0
    for content in contents:
        path.write_bytes(content)
        try:
            load_arrays(str(path), LAYER)
        except InputError as error:
            refused += 1
            assert error.where is not None and error.where.startswith("--input")
    assert refused > len(contents) // 2


def test_not_a_file(tmp_path):
    for path, what in ((tmp_path, "is a directory, not a file"), (tmp_path / "none", "no such file"),
                       ("/dev/null", "is not a regular file")):
        with pytest.raises(InputError) as caught:
            load_arrays(str(path), LAYER)
        assert caught.value.what == what
