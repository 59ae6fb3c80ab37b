"""Runs chunks on a dask.distributed scheduler's workers: many machines, the same bytes."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from boards.errors import InputError
from sim.errors import SimulationError, ToolError

CONNECT_S = 10
AHEAD = 3
"""Chunks a thread of the cluster has been given, at most: enough that none is idle, few enough that an interrupt is quick."""
RETRIES = 3


class SchedulerLost(ToolError):
    """The connection to the scheduler broke in the middle of a sweep."""

    def __init__(self, address: str) -> None:
        RuntimeError.__init__(self, f"the scheduler at {address} is gone: the connection to it was lost")


def run_scheduler(compute: Callable[[Any, Any], bytes], job: object, chunks: Sequence[object], address: str,
                  notify: Callable[[str], None] | None = None) -> Generator[tuple[int, bytes], None, None]:
    """(position, result) of each chunk, as they come, from the workers of the scheduler at ``address`` (``tcp://host:port``).

    A chunk whose worker dies is run by another. Leaving the iterator early cancels what is not done. Raises InputError without the
    extra, or when no scheduler answers; SchedulerLost when it goes away; SimulationError when it gives a chunk up; and whatever
    ``compute`` raises.
    """
    try:
        from distributed import Client, as_completed
        from distributed.client import FutureCancelledError
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise InputError("needs the package `distributed`", where="--scheduler", value=address,
                         suggestion="pip install 'nearmac[distributed]'") from None
    with _quiet():
        client, reason = None, ""
        try:
            client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = _first_line(error)
        if client is None:
            # The client that failed closes itself when it is collected. While another one starts, that would wait for a lock that the same
            # thread holds: so it goes here, and no exception keeps it.
            gc.collect()
            raise InputError(f"no scheduler answers ({reason})", where="--scheduler", value=address,
                             suggestion="start one with `dask scheduler`, and workers with `dask worker ADDRESS`")
        positions = iter(range(len(chunks)))
        where: dict[Any, int] = {}
        running = as_completed(loop=client.loop)

        def submit_some() -> None:
            most = max(1, sum(client.nthreads().values())) * AHEAD
            while len(where) < most and (at := next(positions, None)) is not None:
                future = client.submit(compute, job, chunks[at], pure=False, retries=RETRIES)
                where[future.key] = at
                running.add(future)

        try:
            if notify and not client.nthreads():
                notify(f"the scheduler at {address} has no workers yet: waiting for some")
            submit_some()
            for future in running:
                try:
                    result = future.result()
                except (KilledWorker, OSError) as error:
                    if isinstance(error, CommClosedError):
                        raise
                    raise SimulationError(f"the scheduler at {address} gave up on a part of the sweep: {error}") from None
                yield where.pop(future.key), result
                future.release()
                submit_some()
        except (FutureCancelledError, CommClosedError, TimeoutError):
            raise SchedulerLost(address) from None
        finally:
            with suppress(Exception):  # there may be nobody to tell
                client.cancel(list(running.futures))
            with suppress(Exception):
                client.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the client logs of lost connections, traceback and all: what matters is raised."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in ("distributed", "tornado")]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
