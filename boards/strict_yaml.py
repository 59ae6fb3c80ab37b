"""What a YAML file of a user holds: a small, unambiguous part of YAML, and one message for whatever is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from boards.errors import InputError

MAX_FILE_BYTES = 1 << 20
MAX_DEPTH = 16

_INT = re.compile(r"[-+]?[0-9]{1,300}\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_WORDS = {text: value for value, texts in ((True, "true True TRUE"), (False, "false False FALSE"), (None, "~ null Null NULL"))
          for text in texts.split()} | {"": None}
_NUMBER_STARTS = frozenset("-+.0123456789")

Event = Any
# libyaml reads in a tenth of the time; its messages say less, so what it refuses is read again by the parser in Python.
_PARSERS: tuple[Any, ...] = (*((yaml.CBaseLoader,) if yaml.__with_libyaml__ else ()), yaml.BaseLoader)


def read_mapping(path: str | Path) -> dict[str, Any]:
    """The mapping that the YAML file ``path`` holds. Raises :class:`InputError` for anything else, and as :func:`read_document`."""
    data = read_document(path)
    if not isinstance(data, dict):
        raise InputError("the file must hold a mapping (key: value lines)", where=str(path), value=data)
    return data


def read_document(path: str | Path) -> Any:
    """The value that the YAML file ``path`` holds: plain values, lists, mappings with text keys.

    Raises :class:`InputError`, naming file and line, for anything else: no such file, a directory, an empty file, more than 1 MiB,
    bytes that are not UTF-8, bad syntax, several documents, aliases, tags, duplicate keys, nesting deeper than 16. Of the scalars,
    those of YAML 1.2 alone are more than text: YAML 1.1 reads 1:30 as 90, 010 as 8, no as false.
    """
    text = read_text(path)
    where = str(path)
    try:
        data = _parse(text, where)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise InputError(f"not valid YAML: {error.problem or error.context}", where=where + line) from None
    except yaml.reader.ReaderError as error:
        raise InputError(f"not a text file: character {error.character!r} at position {error.position}", where=where,
                         allowed="printable UTF-8 text") from None
    except InputError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # ValueError: an escape beyond Unicode
        raise InputError(f"not valid YAML: {_first_line(error)}", where=where) from None
    if data is None:
        raise InputError("the file is empty", where=where)
    return data


def _parse(text: str, where: str) -> Any:
    for parser in _PARSERS[:-1]:
        try:
            return _document(yaml.parse(text, Loader=parser), where)
        except yaml.YAMLError:
            continue
    return _document(yaml.parse(text, Loader=_PARSERS[-1]), where)


def _document(events: Iterator[Event], where: str) -> Any:
    """The value of the one document, or ``None`` for no document. What could blow up or mean something else is refused on the way;
    neither the parser nor this recurses deeper than MAX_DEPTH."""
    next(events)  # start of the stream
    if isinstance(next(events), yaml.StreamEndEvent):
        return None
    value = _value(next(events), events, where, 0)
    next(events)  # end of the document
    another = next(events)
    if not isinstance(another, yaml.StreamEndEvent):
        raise InputError("not valid YAML: but found another document", where=_line(another, where))
    return value


def _value(event: Event, events: Iterator[Event], where: str, depth: int) -> Any:
    if isinstance(event, yaml.AliasEvent) or event.anchor:
        raise InputError("anchors and aliases (& and *) are not allowed", where=_line(event, where), suggestion="write the value out")
    if event.tag:
        raise InputError("tags (!) are not allowed", where=_line(event, where), value=event.tag, suggestion="write a plain value")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event, where)
    if depth == MAX_DEPTH:
        raise InputError("nested too deeply", where=_line(event, where), allowed=f"at most {MAX_DEPTH} levels")
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_value(event, events, where, depth + 1))
        return items
    return _mapping(events, where, depth)


def _mapping(events: Iterator[Event], where: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key = _value(event, events, where, depth + 1)
        if not isinstance(key, str):
            raise InputError("not valid YAML: keys must be plain text", where=_line(event, where))
        if key in found:
            raise InputError(f"not valid YAML: duplicate key {_short(key)}", where=_line(event, where))
        found[key] = _value(next(events), events, where, depth + 1)
    return found


def _scalar(event: Event, where: str) -> Any:
    text = event.value
    if not event.implicit[0]:  # in quotes, or a block of text
        if not _is_unicode(text):
            raise InputError("half of a surrogate pair in a text", where=_line(event, where), value=text)
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMBER_STARTS:
        if _INT.match(text):
            return int(text)
        if _FLOAT.match(text):
            return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    return text


def read_text(path: str | Path) -> str:
    """The text of a file that a user wrote, at most 1 MiB of UTF-8. Raises :class:`InputError` naming it."""
    path = Path(path)
    where = str(path)
    try:
        wrong = ("is a directory, not a file" if path.is_dir()
                 else "is not a regular file" if path.exists() and not path.is_file() else None)
        raw = b"" if wrong else _read_bytes(path)
    except FileNotFoundError:
        raise InputError("no such file", where=where) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", where=where if where.isprintable() else repr(where)) from None
    if wrong:
        raise InputError(wrong, where=where)
    if len(raw) > MAX_FILE_BYTES:
        raise InputError("the file is too large", where=where, allowed=f"at most {MAX_FILE_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not a text file: byte 0x{raw[error.start]:02x} at position {error.start} is not UTF-8",
                         where=where, allowed="UTF-8 text") from None


def _read_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def _line(event: Event, where: str) -> str:
    return f"{where}:{event.start_mark.line + 1}" if event.start_mark else where


def _is_unicode(text: str) -> bool:
    """An escape such as "\\ud800" makes text that no terminal or file takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _short(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
