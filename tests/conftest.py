"""Shared by all tests: settings of the random tests, and no silent skips in CI."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false", "no")

# No deadline: the machine is shared, and a slow example is not a wrong one. In CI the same commit draws the same examples.
settings.register_profile("nearmac", deadline=None, derandomize=IN_CI, print_blob=not IN_CI,
                          **({"database": None} if IN_CI else {}))
settings.load_profile("nearmac")

# A shell's background job ignores Ctrl-C, and so would the processes that tests interrupt: they inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skipped test is a failure in CI. Under xdist the controller alone has the reports, and this runs there too."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if IN_CI and skipped and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if IN_CI and skipped:
        terminalreporter.section("skipped tests fail the run in CI", red=True)
        for report in skipped:
            terminalreporter.line(f"{report.nodeid}: {_reason(report)}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
