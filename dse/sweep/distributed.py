"""Runs chunks on a dask.distributed scheduler's workers: many machines, the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from boards.errors import InputError
from sim.errors import SimulationError

CONNECT_S = 10
AHEAD = 3
"""Chunks a thread of the cluster has been given, at most: enough that none is idle, few enough that an interrupt is quick."""
RETRIES = 3


def run_scheduler(compute: Callable[[Any, Any], bytes], job: object, chunks: Sequence[object], address: str,
                  notify: Callable[[str], None] | None = None) -> Generator[tuple[int, bytes], None, None]:
    """(position, result) of each chunk, as they come, from the workers of the scheduler at ``address`` (``tcp://host:port``).

    A chunk whose worker dies is run by another. Leaving the iterator early cancels what is not done. Raises InputError without the
    extra, or when no scheduler answers; SimulationError when the cluster gives up; and whatever ``compute`` raises.
    """
    try:
        from distributed import Client, as_completed
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise InputError("needs the package `distributed`", where="--scheduler", value=address,
                         suggestion="pip install 'nearmac[distributed]'") from None
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"no scheduler answers ({error})", where="--scheduler", value=address,
                         suggestion="start one with `dask scheduler`, and workers with `dask worker ADDRESS`") from None
    with client:
        if notify and not client.nthreads():
            notify(f"the scheduler at {address} has no workers yet: waiting for some")
        positions = iter(range(len(chunks)))
        where: dict[Any, int] = {}
        running = as_completed(loop=client.loop)

        def submit() -> bool:
            at = next(positions, None)
            if at is None:
                return False
            future = client.submit(compute, job, chunks[at], pure=False, retries=RETRIES)
            where[future.key] = at
            running.add(future)
            return True

        try:
            while len(where) < max(1, sum(client.nthreads().values())) * AHEAD and submit():
                pass
            for future in running:
                try:
                    result = future.result()
                except (KilledWorker, FutureCancelledError, OSError) as error:
                    raise SimulationError(f"the scheduler at {address} gave up on a part of the sweep: {error}") from None
                yield where.pop(future.key), result
                future.release()
                while len(where) < max(1, sum(client.nthreads().values())) * AHEAD and submit():
                    pass
        finally:
            client.cancel(list(running.futures))
