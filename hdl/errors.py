"""What stops a run besides the hardware itself: bad user input, and external tools that fail."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from boards.errors import InputError, nearest

__all__ = ["InputError", "ToolError", "nearest"]


class ToolError(RuntimeError):
    """An external tool failed.

    Parameters
    ----------
    command: the command line as it was run.
    status: exit status (127: it could not be started).
    last_lines: the end of what it printed, standard error included.
    """

    def __init__(self, command: Sequence[str], status: int, last_lines: str) -> None:
        self.command, self.status, self.last_lines = tuple(command), status, last_lines
        super().__init__(f"external tool failed with status {status}: {shlex.join(command)}\n{last_lines}".rstrip())
