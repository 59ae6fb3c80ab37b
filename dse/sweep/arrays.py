"""NumPy arrays as Arrow arrays and back, by their buffers.

pyarrow's own conversions import pandas wherever it is installed, which takes longer than a small sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Booleans = NDArray[np.bool_]


def to_arrow(values: NDArray[Any], kind: pa.DataType, there: Booleans | None = None) -> pa.Array:
    """An array of numbers or truth values; empty where not ``there``. ``kind``: one that has the name of a NumPy type."""
    valid = None if there is None or there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    data = np.packbits(values, bitorder="little") if pa.types.is_boolean(kind) else np.ascontiguousarray(values, str(kind))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(data)])


def to_texts(codes: NDArray[np.int32], words: Sequence[str], there: Booleans | None = None) -> pa.Array:
    """The words with these codes, as a dictionary array."""
    encoded = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    dictionary = pa.StringArray.from_buffers(len(words), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
    return pa.DictionaryArray.from_arrays(to_arrow(codes, pa.int32(), there), dictionary)


def to_numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column of numbers without empty places."""
    if column.null_count:
        raise ValueError("the column has empty places")
    kind = str(column.type)
    parts = [np.frombuffer(chunk.buffers()[1], kind)[chunk.offset:chunk.offset + len(chunk)] for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.zeros(0, kind)
