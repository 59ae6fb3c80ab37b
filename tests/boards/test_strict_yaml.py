"""The YAML reader: what it accepts means one thing, what it refuses names the file and the line."""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boards import InputError
from boards.strict_yaml import MAX_FILE_BYTES, read_document, read_mapping

IN_TMP = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(tmp_path, content: bytes) -> dict:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    return read_mapping(path)


@pytest.mark.parametrize(("text", "value"), [
    ("1e2", 100.0), ("010", 10), ("1:30", "1:30"), ("no", "no"), ("on", "on"), ("2012-01-01", "2012-01-01"), ("-.5", -0.5),
    ("true", True), ("", None), ("~", None), ("'5'", "5"), ("0x10", "0x10"), ("1_000", "1_000"), ("-.inf", -math.inf), ("=", "="),
    ("{b: [1, x]}", {"b": [1, "x"]}), ("5.", 5.0),
])
def test_scalars_mean_one_thing(tmp_path, text, value):
    found = read(tmp_path, f"a: {text}".encode())["a"]
    assert found == value and type(found) is type(value)


def test_documents_of_any_kind(tmp_path):
    path = tmp_path / "x.yaml"
    for text, value in (("- 1\n- {a: b}", [1, {"a": "b"}]), ("5", 5), ("a: 1", {"a": 1}), ("no", "no")):
        path.write_text(text)
        assert read_document(path) == value
    path.write_text("# nothing")
    with pytest.raises(InputError, match="x.yaml: the file is empty$"):
        read_document(path)


def test_utf8_with_a_mark(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfa: \xc3\xa9") == {"a": "\u00e9"}


@pytest.mark.parametrize(("content", "message"), [
    (b"", ": the file is empty"),
    (b"# nothing", ": the file is empty"),
    (b"- 1", ": the file must hold a mapping (key: value lines), got [1]"),
    (b"5", ": the file must hold a mapping (key: value lines), got 5"),
    (b"a: 1\nb: [1", ":2: not valid YAML: expected ',' or ']', but got '<stream end>'"),
    (b"a: 1\nb: 2\na: 3", ":3: not valid YAML: duplicate key 'a'"),
    (b"a:\n  - b: 1\n    b: 2", ":3: not valid YAML: duplicate key 'b'"),
    (b"1: 2", ":1: not valid YAML: keys must be plain text"),
    (b"? [1]\n: 2", ":1: not valid YAML: keys must be plain text"),
    (b"a: &x 1\nb: *x", ":1: anchors and aliases (& and *) are not allowed; write the value out"),
    (b"a: 1\nb: *x", ":2: anchors and aliases (& and *) are not allowed; write the value out"),
    (b"a: !!python/object:os.system 1",
     ":1: tags (!) are not allowed, got 'tag:yaml.org,2002:python/object:os.system'; write a plain value"),
    (b"[" * 30_000, ":1: nested too deeply; allowed: at most 16 levels"),
    (b"--- 1\n--- 2", ":2: not valid YAML: but found another document"),
    (b"a: \xff", ": not a text file: byte 0xff at position 3 is not UTF-8; allowed: UTF-8 text"),
    (b"a: \x00", ": not a text file: character 0 at position 3; allowed: printable UTF-8 text"),
    (b'a: "\\U00110000"', ": not valid YAML: chr() arg not in range(0x110000)"),
    (b'a: 1\nb: "\\ud800"', r":2: half of a surrogate pair in a text, got '\ud800'"),
    (b"a: " + b"x" * MAX_FILE_BYTES, ": the file is too large; allowed: at most 1048576 bytes"),
])
def test_refused(tmp_path, content, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert str(caught.value) == f"{tmp_path / 'x.yaml'}{message}"


def test_what_is_not_a_file(tmp_path):
    fifo = tmp_path / "fifo.yaml"
    os.mkfifo(fifo)
    for path, message in ((tmp_path, "is a directory, not a file"), (tmp_path / "none.yaml", "no such file"),
                          (fifo, "is not a regular file")):
        with pytest.raises(InputError) as caught:
            read_mapping(path)
        assert str(caught.value) == f"{path}: {message}"
    with pytest.raises(InputError, match="cannot be read: "):
        read_mapping("a\0b")
    with pytest.raises(InputError, match="cannot be read: "):
        read_mapping("x" * 5000)


def only_input_errors(tmp_path, content: bytes) -> None:
    try:
        assert isinstance(read(tmp_path, content), dict)
    except InputError as error:
        assert str(error).startswith(str(tmp_path / "x.yaml"))


@IN_TMP
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path, content):
    only_input_errors(tmp_path, content)


@IN_TMP
@given(st.lists(st.sampled_from(["a", "b: ", ": ", "- ", "[", "]", "{", "}", ",", "\n", "  ", "? ", "&x ", "*x", "!!int ", "'",
                                 '"', "\\", "|", ">", "%", "#", "---", "...", "1", "1e9", ".nan", "\t", "<<: ", "~", "\u2028",
                                 "@"]), max_size=30).map("".join))
def test_any_yaml_soup(tmp_path, text):
    only_input_errors(tmp_path, text.encode())
