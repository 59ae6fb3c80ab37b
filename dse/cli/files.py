"""Files that appear under their names only when they are whole."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from types import TracebackType

from boards.errors import InputError


class OutputFile:
    """A file to be written at ``temporary`` and then put at its name by :meth:`commit`; without that, nothing is left.

    Making it checks that the name can be written, so that no long run ends in vain. Raises InputError, which names ``option``.
    """

    def __init__(self, path: str, *, option: str) -> None:
        self.path, self.option = path, option
        try:
            # Through a symbolic link: the file is replaced, the link stays.
            self._target = Path(os.path.realpath(path))
            self._check()
            handle, name = tempfile.mkstemp(prefix=".nearmac-", suffix=self._target.suffix[:16], dir=self._target.parent)
        except InputError:
            raise
        except (OSError, ValueError) as error:  # ValueError: a null character
            raise self.unwritable(error) from None
        os.close(handle)
        self.temporary = Path(name)

    def _check(self) -> None:
        wrong = None
        if self.path.endswith(os.sep) or self._target.is_dir():
            wrong = "is a directory, not a file"
        elif self._target.exists() and not stat.S_ISREG(self._target.stat().st_mode):
            wrong = "is not a regular file"
        elif not self._target.parent.is_dir():
            wrong = f"no such directory: {self._target.parent}"
        elif self._target.exists() and not os.access(self._target, os.W_OK):
            wrong = "cannot be written: the file is write-protected"
        if wrong:
            raise InputError(wrong, where=self.option, value=self.path)

    def commit(self) -> None:
        """Put the file at its name."""
        try:
            with self.temporary.open("rb+") as file:
                os.fsync(file.fileno())  # some file systems report a full disk only here
            self.temporary.chmod(0o666 & ~_umask())
            os.replace(self.temporary, self._target)
        except OSError as error:
            raise self.unwritable(error) from None

    def unwritable(self, error: Exception) -> InputError:
        return InputError(f"cannot be written: {getattr(error, 'strerror', None) or error}", where=self.option, value=self.path)

    def same_as(self, other: OutputFile) -> bool:
        return self._target == other._target

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
