"""SCALE-Sim topologies: one row a layer, no padding, no groups but ``DP`` rows, one stride for both axes.

    Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,
    conv3, 15, 15, 3, 3, 192, 192, 1,

or, for matrix products, ``Layer, M, N, K,``. SCALE-Sim wants the header (it skips the first line unread) and a comma at the end of every
row (it drops what follows the last comma); here both may be missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from boards.errors import InputError
from boards.strict_yaml import read_text
from dse.estimate.compat import scale_sim_outputs
from dse.workload.interop.assembly import Assembly
from dse.workload.interop.nest import matrix_rows
from dse.workload.interop.scalesim_padding import PaddedRow, padding_remarks
from dse.workload.network import MAX_NODES, Network
from hdl.layer import MAX_KERNEL

CONV_COLUMNS = ("IFMAP Height", "IFMAP Width", "Filter Height", "Filter Width", "Channels", "Num Filter", "Strides")
GEMM_COLUMNS = ("M", "N", "K")
LAYOUT_NUMBERS = 20
MAX_ROWS = MAX_NODES // 3
MAX_DIGITS = 10
DEPTHWISE = "DP"
"""SCALE-Sim runs a row with this anywhere in its name once a channel."""


@dataclass(frozen=True)
class Row:
    """A line of the file: its numbers, the sparsity ``N:M`` that it ends with, and whether other text follows."""

    where: str
    name: str
    numbers: tuple[int, ...]
    sparsity: str | None
    has_text: bool


def load_topology(path: str, weight_bits: int | None = None, activation_bits: int | None = None) -> Network:
    """The network of a topology CSV; SCALE-Sim knows no bits, so it is w8a8 unless told otherwise.

    A row that reads exactly what the row before writes is connected to it; any other has an input of its own. Raises InputError: file,
    line and column.
    """
    rows, has_header = _rows(path)
    assembly = Assembly(path, weight_bits=weight_bits or 8, activation_bits=activation_bits or 8)
    if not has_header:
        assembly.remark(f"no header: SCALE-Sim itself would skip the first row, {rows[0].name}")
    is_gemm = len(rows[0].numbers) == len(GEMM_COLUMNS)
    padded: list[PaddedRow] = []
    last: str | None = None
    for at, row in enumerate(rows, 1):
        name = assembly.name(row.name, otherwise=f"layer{at}")
        if row.sparsity:
            assembly.remark("sparsity N:M is not modelled: all weights are stored and multiplied", name)
        if row.has_text:
            assembly.remark("text after the numbers is ignored", name)
        shape, dimensions = _product(row) if is_gemm else _convolution(row, name, assembly)
        is_linear = "FY" not in dimensions
        source = None if last is None else assembly.reads(last, shape, is_linear=is_linear)
        last = assembly.layer(name, shape, dimensions, source=source)
        if not is_gemm:
            outputs = assembly.builder.tensor(last).shape
            padded.append(PaddedRow(name, row.numbers[0:2], row.numbers[2:4], _strides(row), shape[1], outputs[1], outputs[2:]))
    for what, names in padding_remarks(padded):
        for name in names:
            assembly.remark(what, name)
    return assembly.build()


# -- rows -------------------------------------------------------------------------------------------------------------


def _rows(path: str) -> tuple[list[Row], bool]:
    """The rows, all of one kind, and whether a header is above them."""
    lines = [(number, line) for number, line in enumerate(read_text(path).splitlines(), 1) if line.strip(" \t,")]
    if not lines:
        raise InputError("the file is empty", where=path)
    head = _cells(lines[0][1])
    has_header = not any(_is_number(cell) for cell in head[1:])
    lines = lines[1:] if has_header else lines
    if not lines:
        raise InputError("no row below the header", where=path)
    if len(lines) > MAX_ROWS:
        raise InputError("too many rows", where=path, value=len(lines), allowed=f"at most {MAX_ROWS}")
    first = _cells(lines[0][1])[1:]
    count = next((at for at, cell in enumerate(first) if not _is_number(cell)), len(first))
    if count >= LAYOUT_NUMBERS:
        raise InputError(f"a row of {count} numbers: a layout, no topology", where=f"{path}:{lines[0][0]}")
    is_gemm = count == len(GEMM_COLUMNS) or has_header and [cell.upper() for cell in head[1:4]] == list(GEMM_COLUMNS)
    columns = GEMM_COLUMNS if is_gemm else CONV_COLUMNS
    return [_row(path, number, line, columns) for number, line in lines], has_header


def _row(path: str, line: int, text: str, columns: tuple[str, ...]) -> Row:
    name, *cells = _cells(text)
    where = f"{path}:{line}: {name or 'row'}"
    kind = f"{len(columns)} numbers: {', '.join(columns)}"
    numbers = []
    for column, cell in zip(columns, cells, strict=False):
        if not _is_number(cell):
            raise InputError("not a whole number" if cell else "missing", where=f"{where}: {column}", **({"value": cell} if cell else {}),
                             suggestion=f"a row has a name and {kind}")
        numbers.append(_number(cell, f"{where}: {column}"))
    if len(numbers) < len(columns):
        raise InputError("missing", where=f"{where}: {columns[len(numbers)]}", suggestion=f"a row has a name and {kind}")
    rest = cells[len(columns):]
    if columns is CONV_COLUMNS and rest and _is_number(rest[0]):  # SCALE-Sim's own writer: stride height, stride width
        numbers.append(_number(rest.pop(0), f"{where}: Stride width"))
    sparsity = rest.pop(0) if rest and ":" in rest[0] else None
    if sparsity is not None:
        found = re.fullmatch(r"([0-9]{1,4}) ?: ?([0-9]{1,4})", sparsity)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError("not a sparsity", where=where, value=sparsity, allowed="N:M with N of 1 to M")
    extra = [cell for cell in rest if cell]
    if extra and _is_number(extra[0]):
        raise InputError("more numbers than columns", where=where, value=extra[0], suggestion=f"a row has a name and {kind}")
    return Row(where, name, tuple(numbers), sparsity, bool(extra) and not extra[0].startswith("#"))


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in line.split(",")]
    while len(cells) > 1 and not cells[-1]:
        cells.pop()
    return cells


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", cell) is not None


def _number(cell: str, where: str) -> int:
    if len(cell) > MAX_DIGITS or int(cell) < 1:
        raise InputError("out of range", where=where, value=cell, allowed=f"at least 1, at most {MAX_DIGITS} digits")
    return int(cell)


# -- layers -----------------------------------------------------------------------------------------------------------


def _product(row: Row) -> tuple[tuple[int, int, int, int], dict[str, Any]]:
    """An (M x K) by (K x N) product: N filters of 1x1 on M pixels of K channels."""
    m, n, k = row.numbers
    height, width = matrix_rows(m, where=f"{row.where}: M")
    return (1, k, height, width), {"K": n, **({"FY": 1, "FX": 1} if m > 1 else {})}


def _convolution(row: Row, name: str, assembly: Assembly) -> tuple[tuple[int, int, int, int], dict[str, Any]]:
    height, width, fy, fx, channels, filters = row.numbers[:6]
    sy, sx = _strides(row)
    for size, filter_, column in ((height, fy, "Filter Height"), (width, fx, "Filter Width")):
        if filter_ > size:
            raise InputError(f"larger than the input of {size}", where=f"{row.where}: {column}", value=filter_)
    groups = channels if DEPTHWISE in row.name else 1
    if groups > 1 and filters == channels:
        assembly.remark(f"a {DEPTHWISE} row has Num Filter for each channel, so this is {filters} times {channels} filters, as SCALE-Sim "
                        "counts them; a plain depthwise layer has Num Filter 1", name)
    if groups > 1 and not re.search(rf"(?<![A-Za-z]){DEPTHWISE}(?![A-Za-z])", row.name):
        assembly.remark(f"depthwise, as SCALE-Sim takes every row with {DEPTHWISE} in its name", name)
    if channels == filters == 1 and re.search(r"dw|depth", row.name, re.IGNORECASE):
        assembly.remark(f"one channel alone, as SCALE-Sim counts it; a depthwise layer has {DEPTHWISE} in its name, all its channels and "
                        "Num Filter 1", name)
    if any(scale_sim_outputs(size, taps, stride) != (size - taps) // stride + 1
           for size, taps, stride in ((height, fy, sy), (width, fx, sx))):
        assembly.remark("SCALE-Sim rounds output sizes up, and counts a row or column more than there is", name)
    if max(fy, fx) > MAX_KERNEL and groups == 1:
        # A filter as large as the input does not move: its taps are channels.
        if fx == width and fy in (1, height):
            channels, width, fx, sx = channels * width, 1, 1, 1
        if fy == height and fx in (1, width):
            channels, height, fy, sy = channels * height, 1, 1, 1
    if height == width == 1:
        return (1, channels, 1, 1), {"K": filters * groups, **({"G": groups} if groups > 1 else {})}
    return (1, channels, height, width), {"K": filters * groups, "G": groups, "FY": fy, "FX": fx, "SY": sy, "SX": sx}


def _strides(row: Row) -> tuple[int, int]:
    return row.numbers[6], row.numbers[-1]
