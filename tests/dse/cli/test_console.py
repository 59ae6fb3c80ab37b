"""Progress and remarks go to stderr, results to stdout."""

from __future__ import annotations

import io
import sys

from dse.cli.console import Reporter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(reporter: Reporter) -> None:
    reporter.stage("choosing")
    count = reporter.counter("simulating", 1000)
    if count:
        for done in (0, 250, 1000):
            count(done)
    reporter.notify("a [red]remark[/red]")


def test_terminal_shows_progress_and_remarks(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Reporter() as reporter:
        work(reporter)
    shown = terminal.getvalue()
    assert "simulating" in shown and "100%" in shown and "nearmac: a [red]remark[/red]" in shown
    assert capsys.readouterr().out == ""


def test_elsewhere_only_remarks(capsys):
    with Reporter() as reporter:
        work(reporter)
    assert capsys.readouterr() == ("", "nearmac: a [red]remark[/red]\n")
