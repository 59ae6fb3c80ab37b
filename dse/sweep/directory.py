"""The directory of a sweep: new, unfinished or complete; and what may go on in it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boards.errors import InputError
from dse.sweep.chunks import ChunkStore, write_file
from dse.sweep.inputs import describe_differences, digest
from dse.sweep.results import SUMMARY

SCRATCH, MANIFEST, LOCK = ".chunks", "manifest.json", "lock"


class SweepDirectory:
    """Results of one sweep at ``out``, which is made from ``inputs`` (plain values) and from nothing else.

    Raises InputError, before anything is written: the directory holds a sweep and ``resume`` is not set; or a sweep of other inputs
    (which, and how they differ); or other files.
    """

    def __init__(self, out: Path, inputs: Mapping[str, Any], *, resume: bool) -> None:
        self.out, self.inputs, self.scratch = out, inputs, out / SCRATCH
        self.key = digest(inputs)
        self.store = ChunkStore(self.scratch, self.key)
        with self._named_errors():
            if out.exists() and not out.is_dir():
                raise self._refused("not a directory")
            present = set(os.listdir(out)) if out.exists() else set()
            self.complete = SUMMARY in present
            found = next((path for path in (out / SUMMARY, self.scratch / MANIFEST) if path.exists()), None)
            if found is not None:
                self._check_same(found, resume)
            else:
                foreign = sorted(present - {SCRATCH})
                if foreign:
                    raise self._refused(f"the directory holds other files: {foreign[0]}",
                                        allowed="a new or empty directory, or with --resume one of the same sweep")

    def _check_same(self, found: Path, resume: bool) -> None:
        if not resume:
            state = "a finished sweep" if self.complete else "an unfinished sweep"
            more = "keep it and give another directory, or remove it" if self.complete else "go on with it by --resume, or remove it"
            raise self._refused(f"the directory holds {state}", suggestion=more)
        try:
            was = json.loads(found.read_text(encoding="utf-8"))["inputs"]
        except (ValueError, KeyError, TypeError):
            raise self._refused(f"{found.name} is damaged", suggestion="remove the directory, or give another") from None
        differences = describe_differences(was, self.inputs)
        if differences:
            raise self._refused(f"made from other inputs: {differences}", suggestion="give the same inputs, or another directory")

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make what is not there, and keep other sweeps out meanwhile."""
        with self._named_errors():
            self.scratch.mkdir(parents=True, exist_ok=True)
            lock = (self.scratch / LOCK).open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise self._refused("another sweep is writing into this directory") from None
            with self._named_errors():
                for left in self.scratch.glob("*.tmp"):  # by one that was killed
                    left.unlink()
                write_file(self.scratch / MANIFEST, json_bytes({"key": self.key, "inputs": self.inputs}), self.scratch)
            yield

    def write_summary(self, data: Mapping[str, Any]) -> None:
        """``sweep.json``, which is written last: where it is, everything else is."""
        write_file(self.out / SUMMARY, json_bytes({**data, "inputs": self.inputs}), self.scratch)

    def finish(self) -> None:
        """The results are there: what they were made from is not needed any more."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _refused(self, what: str, **more: str) -> InputError:
        return InputError(what, where="--out", value=str(self.out), **more)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._refused(f"cannot be written: {error.strerror or error}") from None


def json_bytes(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()
