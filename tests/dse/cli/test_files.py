"""Output files: whole or not there."""

from __future__ import annotations

import os

import pytest

from boards.errors import InputError
from dse.cli.files import OutputFile


def test_appears_when_committed(tmp_path):
    path = tmp_path / "a.bin"
    path.write_text("old")
    with OutputFile(str(path), option="--out") as file:
        file.temporary.write_text("new")
        assert path.read_text() == "old"
        file.commit()
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["a.bin"]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_nothing_is_left_without_commit(tmp_path):
    with pytest.raises(KeyboardInterrupt), OutputFile(str(tmp_path / "a"), option="--out") as file:
        file.temporary.write_text("part")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_symbolic_link_stays(tmp_path):
    (tmp_path / "link").symlink_to("real")
    with OutputFile(str(tmp_path / "link"), option="--out") as file:
        file.temporary.write_text("x")
        file.commit()
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "x"


@pytest.mark.parametrize(("name", "what"), [
    (".", "is a directory, not a file"), ("new/", "is a directory, not a file"), ("none/a", "no such directory: {}/none"),
    ("file/a", "no such directory: {}/file"), ("\0", "cannot be written: embedded null byte"), ("fifo", "is not a regular file"),
])
def test_refused_before_anything_runs(tmp_path, name, what):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError) as caught:
        OutputFile(f"{tmp_path}/{name}", option="--vcd")
    assert (caught.value.where, caught.value.what) == ("--vcd", what.format(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["fifo", "file"]


def test_unwritable_directory(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dse.cli.files.tempfile.mkstemp", refused)  # root may write anywhere
    with pytest.raises(InputError, match="^--vcd: cannot be written: Permission denied, got"):
        OutputFile(str(tmp_path / "a"), option="--vcd")
