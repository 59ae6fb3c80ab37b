"""A cache of built files by key: safe when several processes build the same thing, and when a file in it was damaged."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

MAX_FILES = 400  # a model is about 0.5 MB
PROBE_BYTES = 1 << 16  # written to find out whether a directory takes files: a full disk takes empty ones


def digest(*parts: str | bytes) -> str:
    """A key from texts; their boundaries count."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:40]


class ArtifactCache:
    """Files named ``<key>.<hash of the content>.<suffix>``: complete or not there (renamed into place), and verified when
    they are read, so a damaged one counts as missing and is built again. The least recently used go when there are many."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, key: str, suffix: str) -> Path | None:
        """The file of ``key``, whole."""
        for path in sorted(self.root.glob(f"{key}.*{suffix}")):
            try:
                if path.name == self._name(key, path.read_bytes(), suffix):
                    os.utime(path)
                    return path
                path.unlink()
            except OSError:  # another process removed it, or it is not ours to touch
                continue
        return None

    def has(self, key: str, suffix: str) -> bool:
        """Whether there is a file of ``key``; it may turn out to be damaged."""
        return any(self.root.glob(f"{key}.*{suffix}"))

    def add(self, key: str, data: bytes, suffix: str) -> Path:
        """Store ``data``; the path it has from now on."""
        target = self.root / self._name(key, data, suffix)
        handle, name = tempfile.mkstemp(dir=self.root, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(name, target)
        except BaseException as error:
            Path(name).unlink(missing_ok=True)
            if isinstance(error, OSError):
                error.filename = str(self.root)  # not the temporary name, and writes give none
            raise
        self._prune()
        return target

    @staticmethod
    def _name(key: str, data: bytes, suffix: str) -> str:
        return f"{key}.{hashlib.sha256(data).hexdigest()[:20]}{suffix}"

    def _prune(self) -> None:
        def age(path: Path) -> float:
            try:
                return path.stat().st_mtime
            except OSError:
                return 0.0

        files = [path for path in self.root.iterdir() if path.is_file()]
        if len(files) > MAX_FILES:
            for path in sorted(files, key=age)[: len(files) - MAX_FILES * 3 // 4]:
                path.unlink(missing_ok=True)


def open_cache(notify: Callable[[str], None]) -> ArtifactCache:
    """The user's cache (``NEARMAC_CACHE_DIR``, else ``nearmac`` in ``XDG_CACHE_HOME`` or ``~/.cache``), or a directory for this
    process alone when that one cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    named = os.environ.get("NEARMAC_CACHE_DIR")
    root = Path(named) if named else (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "nearmac"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        if root not in _replacements:
            notify(f"cannot write the cache {root} ({error.strerror or error}): models are built for this process only")
            _replacements[root] = Path(tempfile.mkdtemp(prefix="nearmac-"))
            atexit.register(shutil.rmtree, _replacements[root], ignore_errors=True)
        return ArtifactCache(_replacements[root])
    return ArtifactCache(root)


_replacements: dict[Path, Path] = {}
