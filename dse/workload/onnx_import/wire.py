"""The structure of an ONNX file without its weights: large tensors stay in the file and are found by offset.

A model of hundreds of megabytes is a few kilobytes of structure around tensors. Protocol-buffer libraries copy all of it, twice; this
walk over the wire format copies the structure only. Each long ``raw_data`` (or ``float_data``, ``double_data``, which lie in the file the
same way) becomes an entry of ONNX's external data that names the model file itself, so that there is one way to read any large tensor.

The wire format: protobuf.dev/programming-guides/encoding. Field numbers: ``onnx.proto`` of the ONNX project.
"""

from __future__ import annotations

from collections.abc import Iterator

LARGE_BYTES = 1024
"""Tensors from this size on stay in the file."""
MAX_DEPTH = 100  # of messages in messages, as in protobuf itself
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

# Fields that lead to tensors, by message: field number -> message. What is not here is copied as it is.
CHILDREN = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
DATA_FIELDS = (4, 9, 10)
"""Of a tensor: float_data (packed), raw_data, double_data (packed)."""
EXTERNAL_DATA, DATA_LOCATION, EXTERNAL = 13, 14, 1


class Malformed(ValueError):
    """Not the wire format; the message says where."""


def skeleton(data: memoryview, location: str) -> bytes:
    """``data``, a serialised ModelProto, with large tensors as external data in the file ``location``. Raises Malformed."""
    return _message(data, 0, len(data), "model", location, 0)


def _message(data: memoryview, start: int, stop: int, kind: str, location: str, depth: int) -> bytes:
    if depth > MAX_DEPTH:
        raise Malformed(f"messages nested more than {MAX_DEPTH} deep at byte {start}")
    children = CHILDREN[kind]
    pieces: list[bytes | memoryview] = []
    kept = start  # what follows is copied in one piece
    for number, wire, begin, value, end in _fields(data, start, stop):
        if wire != LENGTH or end - value < LARGE_BYTES:
            continue
        if number in children:
            inner = _message(data, value, end, children[number], location, depth + 1)
            if len(inner) == end - value:
                continue
            new = _field(number, inner)
        elif kind == "tensor" and number in DATA_FIELDS:
            new = _external(location, value, end - value)
        else:
            continue
        pieces += [data[kept:begin], new]
        kept = end
    pieces.append(data[kept:stop])
    return b"".join(pieces)


def _fields(data: memoryview, start: int, stop: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, wire type, first byte of the field, first byte of its value, end) of each field in [start, stop)."""
    at = start
    while at < stop:
        begin = at
        key, at = _varint(data, at, stop)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value = at
            _, at = _varint(data, at, stop)
        elif wire == LENGTH:
            size, value = _varint(data, at, stop)
            at = value + size
        elif wire in (FIXED64, FIXED32):
            value, at = at, at + (8 if wire == FIXED64 else 4)
        else:
            raise Malformed(f"no protocol buffer at byte {begin}")
        if not number or at > stop:
            raise Malformed(f"cut short at byte {begin}" if number else f"no protocol buffer at byte {begin}")
        yield number, wire, begin, value, at


def _varint(data: memoryview, at: int, stop: int) -> tuple[int, int]:
    """A number of up to 64 bits, seven a byte, and the first byte after it."""
    result = 0
    for shift in range(0, 70, 7):
        if at >= stop:
            raise Malformed(f"cut short at byte {at}")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
    raise Malformed(f"no protocol buffer at byte {at}")


def _encoded(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def _field(number: int, payload: bytes) -> bytes:
    return _encoded(number << 3 | LENGTH) + _encoded(len(payload)) + payload


def _external(location: str, offset: int, size: int) -> bytes:
    """The fields of a TensorProto whose data are elsewhere."""
    entries = (("location", location), ("offset", str(offset)), ("length", str(size)))
    fields = [_field(EXTERNAL_DATA, _field(1, key.encode()) + _field(2, value.encode())) for key, value in entries]
    return b"".join(fields) + _encoded(DATA_LOCATION << 3 | VARINT) + _encoded(EXTERNAL)
