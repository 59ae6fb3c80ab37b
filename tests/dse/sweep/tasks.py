"""What the tests' worker processes do; apart, so that they import nothing else."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def square(job, chunk):
    return b"%d" % (job + chunk**2)


def fail_on_three(job, chunk):
    if chunk == 3:
        raise ValueError("three")
    return b"%d" % chunk


def die_once(job, chunk):
    """Killed by the first attempt at chunk 2; the mark in the directory ``job`` remembers it."""
    mark = Path(job) / "died"
    if chunk == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return b"%d" % chunk


def always_die(job, chunk):
    os.kill(os.getpid(), signal.SIGKILL)


def note_and_wait(job, chunk):
    (Path(job) / str(os.getpid())).touch()
    time.sleep(0.4)
    return b""


def die_once_late(job, chunk):
    """As ``die_once``, with time for all workers to have something in hand."""
    time.sleep(0.1)
    return die_once(job, chunk)
