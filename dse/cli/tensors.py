"""Tensors from a file as `nearmac simulate --save-tensors` writes it."""

from __future__ import annotations

import os
from typing import IO

import numpy as np
from numpy.typing import NDArray

from boards.errors import InputError, nearest
from dse.cli.design_options import moved
from dse.cli.files import OutputFile
from hdl.compatibility import output_range
from hdl.design import Design
from hdl.layer import Layer
from sim.golden import LayerTensors, check_tensors, random_tensors

READ = ("input", "weight", "bias", "multiplier", "shift", "threshold", "flip")
SCALARS = ("input_zero_point", "output_zero_point", "lo", "hi")
KNOWN = (*READ, *SCALARS, "output")
OPTION = "--input"


def save_tensors(arrays: dict[str, NDArray[np.int64]], output: OutputFile) -> None:
    """Write ``arrays`` by name to an .npz; the same arrays give the same bytes."""
    try:
        with output.temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise output.unwritable(error) from None
    output.commit()


def load_arrays(path: str, layer: Layer) -> dict[str, NDArray[np.int64]]:
    """The arrays of an .npz, as int64; shapes are those that ``layer`` has. Raises InputError for anything else."""
    arrays = read_arrays(path)
    for name in arrays:
        if name not in KNOWN:
            near = nearest(name, KNOWN)
            raise InputError("unknown array", where=f"{OPTION} {path}", value=name, allowed=", ".join(KNOWN),
                             suggestion=f"nearest: {near}" if near else None)
    return {name: _integers(array, _shape(name, layer), f"{OPTION} {path}: {name}") for name, array in arrays.items()}


def read_arrays(path: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of an .npz as they are. Raises InputError for any other file."""
    try:
        if not os.path.isfile(path):  # a pipe would block
            wrong = ("is a directory, not a file" if os.path.isdir(path) else "is not a regular file" if os.path.exists(path)
                     else "no such file")
            raise InputError(wrong, where=OPTION, value=path)
        with open(path, "rb") as file:
            return _read(file, path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=OPTION, value=path) from None


def _read(file: IO[bytes], path: str) -> dict[str, NDArray[np.generic]]:
    try:
        loaded = np.load(file, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
        return {name: loaded[name] for name in loaded.files}
    except MemoryError:
        raise
    except Exception:  # zip, deflate, header and pickle errors: what a damaged file raises depends on where it is damaged
        raise InputError("not an .npz file of plain numeric arrays", where=OPTION, value=path,
                         suggestion="--save-tensors writes one") from None


def _shape(name: str, layer: Layer) -> tuple[int, ...]:
    return {"input": (layer.B, layer.C, layer.IY, layer.IX), "weight": (layer.K, layer.C // layer.G, layer.FY, layer.FX),
            "output": (layer.B, layer.K, layer.OY, layer.OX), **dict.fromkeys(SCALARS, ())}.get(name, (layer.K,))


def _integers(array: object, shape: tuple[int, ...], where: str) -> NDArray[np.int64]:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        found = array.dtype.name if isinstance(array, np.ndarray) else type(array).__name__
        raise InputError("must hold integers", where=where, value=found, allowed="int64")
    if array.shape != shape:
        raise InputError("wrong shape", where=where, value=array.shape, allowed=str(shape))
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError("out of range", where=where, value=int(array.max()), allowed="int64")
    return np.array(array, dtype=np.int64, order="C")


def complete_tensors(arrays: dict[str, NDArray[np.int64]], design: Design, layer: Layer, seed: int, path: str) -> LayerTensors:
    """The tensors that a run reads: ``arrays`` of the file ``path``, and random ones by ``seed`` for those it lacks."""
    low, high = output_range(design, layer)
    expected = {"input_zero_point": layer.input_zero_point, "output_zero_point": layer.output_zero_point, "lo": low, "hi": high}
    for name, value in expected.items():
        if name in arrays and int(arrays[name]) != value:
            raise InputError(f"the layer has {name}={value}", where=f"{OPTION} {path}: {name}", value=int(arrays[name]),
                             suggestion="give the layer and precision that the file was written with")
    given = {name: array for name, array in arrays.items() if name in READ}
    tensors = LayerTensors(**{**random_tensors(design, layer, seed).arrays(), **given})
    try:
        check_tensors(design, layer, tensors)
    except InputError as error:
        where = error.where or ""
        raise moved(error, f"{OPTION} {path}: {where.removeprefix('tensors.')}" if where.startswith("tensors.") else where) from None
    return tensors
