"""What the user sees: results on stdout, progress and remarks on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where it is used: lists of names and JSON need none of it
    from rich.console import RenderableType
    from rich.progress import Progress

PLAIN_WIDTH = 132  # of tables that go to a file or a pipe


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on stdout, in one piece."""
    _write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def print_text(text: str) -> None:
    """Text on stdout, in one piece."""
    _write(text)


def print_tables(*tables: RenderableType) -> None:
    """Tables on stdout, as wide as the terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    console = Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for table in tables:
            console.print(table)
    _write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def print_remarks(remarks: Iterable[str]) -> None:
    """What an importer has to say, on stderr."""
    for remark in remarks:
        print(f"nearmac: {remark}", file=sys.stderr)


class Reporter:
    """Progress on stderr while a command works, none when stderr is no terminal; and remarks, which always come."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Reporter:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

            console = Console(stderr=True, markup=False, emoji=False, highlight=False)
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()

    def stage(self, text: str, total: int | None = None) -> None:
        """The next thing that takes a while; ``total``: its steps, when they will be counted."""
        if self._progress:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(text, total=total)

    def counter(self, text: str, total: int | None) -> Callable[[int], None] | None:
        """A function that takes the steps done so far; its first call begins the stage ``text``."""
        if not self._progress:
            return None
        progress, started = self._progress, False

        def count(done: int) -> None:
            nonlocal started
            if not started and done:
                self.stage(text, total)
                started = True
            if started:
                progress.update(self._task, completed=done)

        return count

    def notify(self, message: str) -> None:
        """A remark for the user."""
        if self._progress:
            from rich.text import Text

            self._progress.console.print(Text(f"nearmac: {message}"), soft_wrap=True)
        else:
            print(f"nearmac: {message}", file=sys.stderr)
