"""What a YAML file of a user holds: a small, unambiguous part of YAML, and one message for whatever is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from boards.errors import InputError

MAX_FILE_BYTES = 1 << 20
MAX_DEPTH = 16

_INT = re.compile(r"[-+]?[0-9]{1,300}\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars only: YAML 1.1 reads 1:30 as 90, 010 as 8, no as false and 1e3 as text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key_node.tag != "tag:yaml.org,2002:str":
                raise yaml.constructor.ConstructorError(None, None, "keys must be plain text", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {_short(key)}", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        return int(node.value)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        return float(re.sub(r"\.(?=inf|nan)", "", node.value.lower()))


for _tag, _regexp, _first in (("bool", _BOOL, list("tTfF")), ("int", _INT, list("-+0123456789")),
                              ("float", _FLOAT, list("-+0123456789.")), ("null", _NULL, ["~", "n", "N", ""])):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _regexp, _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def read_mapping(path: str | Path) -> dict[str, Any]:
    """The mapping that the YAML file ``path`` holds. Raises :class:`InputError` for anything else, and as :func:`read_document`."""
    data = read_document(path)
    if not isinstance(data, dict):
        raise InputError("the file must hold a mapping (key: value lines)", where=str(path), value=data)
    return data


def read_document(path: str | Path) -> Any:
    """The value that the YAML file ``path`` holds: plain values, lists, mappings with text keys.

    Raises :class:`InputError`, naming file and line, for anything else: no such file, a directory, an empty file, more than 1 MiB,
    bytes that are not UTF-8, bad syntax, several documents, aliases, tags, duplicate keys, nesting deeper than 16.
    """
    text = read_text(path)
    where = str(path)
    try:
        _check_events(text, where)
        data = yaml.load(text, Loader=_Loader)  # a SafeLoader: builds plain values only
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


def _check_events(text: str, where: str) -> None:
    """Refuse what could blow up or mean something else, before any value is built; the parser itself does not recurse."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = f"{where}:{event.start_mark.line + 1}" if event.start_mark else where
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InputError("anchors and aliases (& and *) are not allowed", where=line, suggestion="write the value out")
        tag = getattr(event, "tag", None)
        if tag:
            raise InputError("tags (!) are not allowed", where=line, value=tag, suggestion="write a plain value")
        if isinstance(event, yaml.ScalarEvent) and not _is_unicode(event.value):
            raise InputError("half of a surrogate pair in a text", where=line, value=event.value)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise InputError("nested too deeply", where=line, allowed=f"at most {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


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
