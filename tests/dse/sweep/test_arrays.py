from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from dse.sweep.arrays import to_arrow, to_numpy, to_texts


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.float64(), pa.bool_()])
@pytest.mark.parametrize("count", [0, 1, 8, 9])
def test_numbers_are_as_arrow_makes_them(kind: pa.DataType, count: int) -> None:
    values, there = np.arange(count) % 3, np.arange(count) % 2 == 0
    values = values > 1 if kind == pa.bool_() else values
    for some in (None, there, np.ones(count, bool)):
        made = to_arrow(values, kind, some)
        made.validate(full=True)
        assert made.equals(pa.array(values.tolist(), kind, mask=None if some is None else ~some))


@pytest.mark.parametrize("there", [None, np.array([True, False, True])])
def test_texts(there: np.ndarray | None) -> None:
    made = to_texts(np.array([1, 0, 1], np.int32), ["a", "zwölf"], there)
    made.validate(full=True)
    assert made.to_pylist() == (["zwölf", "a", "zwölf"] if there is None else ["zwölf", None, "zwölf"])


def test_a_column_with_several_chunks_and_a_cut_one() -> None:
    column = pa.chunked_array([pa.array([1.5, 2.5, 3.5])[1:], pa.array([], pa.float64()), pa.array([4.5])])
    assert to_numpy(column).tolist() == [2.5, 3.5, 4.5]
    assert to_numpy(pa.chunked_array([], pa.int64())).tolist() == []
    with pytest.raises(ValueError, match="empty places"):
        to_numpy(pa.chunked_array([pa.array([1, None])]))


def test_a_sweep_does_not_import_pandas() -> None:
    """Whether or not it is installed: here a module of that name that cannot be imported."""
    program = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        assert name.split(".")[0] != "pandas", "pandas is imported"
sys.meta_path.insert(0, Refuse())
import tempfile
from boards.loader import load_board
from dse.sweep.run import sweep
from dse.sweep.space import Space
from hdl.layer import Layer
space = Space.from_dict({"rows": [1, 2], "cols": 2})
with tempfile.TemporaryDirectory() as out:
    assert sweep(Layer.linear(K=4, C=8), [load_board("papilio-pro")], space, out + "/x").feasible == 2
"""
    subprocess.run([sys.executable, "-c", program], check=True)
