"""The progress of a sweep on stderr: a bar with points a second and the time to go, on a terminal; elsewhere nothing."""

from __future__ import annotations

import sys
from contextlib import suppress

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class SweepProgress:
    """Context manager; ``stage`` names what takes a while, ``count`` takes points that are done and points in all."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self.done = self.total = 0

    def __enter__(self) -> SweepProgress:
        if sys.stderr.isatty():
            console = Console(stderr=True, markup=False, emoji=False, highlight=False)
            self._progress = Progress(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), _Rate(),
                                      TimeRemainingColumn(), console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()

    def stage(self, text: str) -> None:
        if self._progress:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(text, total=None)

    def count(self, done: int, total: int) -> None:
        """The first call of a run tells what is done already; rate and estimate are of what comes after it."""
        first, self.done, self.total = not self.total, done, total
        if self._progress:
            if first:
                self.stage("")
                assert self._task is not None
                self._progress.reset(self._task, total=total, completed=done, description=f"evaluating {total:,} points")
            assert self._task is not None
            self._progress.update(self._task, completed=done)

    def notify(self, message: str) -> None:
        if self._progress:
            self._progress.console.print(Text(f"nearmac: {message}"), soft_wrap=True)
        else:
            with suppress(OSError, ValueError):
                print(f"nearmac: {message}", file=sys.stderr, flush=True)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} points/s" if task.speed else "", style="progress.data.speed")


