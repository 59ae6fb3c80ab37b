"""Runs chunks in this process or in others; a process that dies costs the chunk it had in hand, which goes to another."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from sim.errors import SimulationError

ATTEMPTS = 3
"""Times that a chunk is begun before its workers' deaths are taken for its own doing (out of memory, mostly)."""
GRACE_S = 2.0

Compute = Callable[[Any, Any], bytes]
"""``compute(job, chunk)``; a function that other processes can import by its name."""


def run_here(compute: Compute, job: object, chunks: Sequence[object]) -> Generator[tuple[int, bytes], None, None]:
    """(position, result) of each chunk, in order, in this process."""
    for at, chunk in enumerate(chunks):
        yield at, compute(job, chunk)


def run_workers(compute: Compute, job: object, chunks: Sequence[object], workers: int,
                notify: Callable[[str], None] | None = None) -> Generator[tuple[int, bytes], None, None]:
    """(position, result) of each chunk, as they come, from ``workers`` processes (``spawn``).

    Each worker has one chunk at a time. When one dies, a new one is started and its chunk is begun again, ``ATTEMPTS`` times in all.
    Leaving the iterator early, for whatever reason, ends the workers; when this process is killed they end by themselves, with
    the chunk in hand. Raises SimulationError for a chunk that no worker survives, and whatever ``compute`` raises.
    """
    waiting = deque(range(len(chunks)))
    attempts: Counter[int] = Counter()
    crew: dict[Connection, _Worker] = {}
    try:
        while waiting or any(worker.at is not None for worker in crew.values()):
            while waiting and len(crew) < min(workers, len(chunks)):
                worker = _Worker(compute, job)
                crew[worker.connection] = worker
            for worker in crew.values():
                if worker.at is None and waiting:
                    worker.begin(waiting.popleft(), chunks)
            for ready in wait([worker.connection for worker in crew.values() if worker.at is not None]):
                assert isinstance(ready, Connection)
                worker = crew[ready]
                at = worker.at
                assert at is not None
                try:
                    result = worker.finish()
                except (EOFError, OSError):
                    attempts[at] += 1
                    crew.pop(ready).end()
                    waiting.appendleft(at)
                    if attempts[at] >= ATTEMPTS:
                        raise SimulationError(f"{ATTEMPTS} worker processes ended in the middle of the same part of the sweep "
                                              f"({worker.describe_end()}); is there enough memory?") from None
                    if notify:
                        notify(f"a worker process ended ({worker.describe_end()}); its part is begun again")
                    continue
                if isinstance(result, BaseException):
                    raise result
                yield at, result
    finally:
        for worker in crew.values():
            worker.end()


class _Worker:
    """One process, and the position of the chunk it has in hand."""

    def __init__(self, compute: Compute, job: object) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.at: int | None = None
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, compute, job), daemon=True)
        with _interrupts_held():
            self.process.start()
        theirs.close()  # so that the worker's end is the only one, and its death is heard

    def begin(self, at: int, chunks: Sequence[object]) -> None:
        self.at = at
        with suppress(OSError):  # a dead worker is found when its result is awaited
            self.connection.send(chunks[at])

    def finish(self) -> Any:
        """Its result, or the exception it ran into. Raises EOFError or OSError when it is dead."""
        result = self.connection.recv()
        self.at = None
        return result

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join(GRACE_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join(GRACE_S)

    def describe_end(self) -> str:
        code = self.process.exitcode
        return f"signal {-code}" if code is not None and code < 0 else f"status {code}"


def _serve(connection: Connection, compute: Compute, job: object) -> None:
    """A worker: chunks in, results out, until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal; the driver ends the workers
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, OSError):
            return
        try:
            result: bytes | Exception = compute(job, chunk)
        except Exception as error:
            result = error
        try:
            connection.send(result)
        except OSError:
            return


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A child that is started in here never sees SIGINT, not even before it could ignore it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
