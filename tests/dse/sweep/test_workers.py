"""Worker processes: all results, whoever computes; deaths cost an attempt; nobody is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dse.sweep.workers import ATTEMPTS, run_here, run_workers
from sim.errors import SimulationError
from tests.dse.sweep.tasks import always_die, die_once, fail_on_three, note_and_wait, square

ROOT = Path(__file__).parents[3]


def alive(pid: int) -> bool:
    """Running, not gone or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_workers_give_what_this_process_gives():
    chunks = list(range(7))
    here = list(run_here(square, 10, chunks))
    assert here == [(at, b"%d" % (10 + at * at)) for at in range(7)]
    assert sorted(run_workers(square, 10, chunks, 2)) == here


def test_no_chunks_need_no_worker():
    assert list(run_workers(square, 0, [], 2)) == []


def test_an_exception_of_the_function_comes_out():
    with pytest.raises(ValueError, match="^three$"):
        list(run_workers(fail_on_three, None, [1, 3], 1))


def test_a_killed_worker_costs_only_an_attempt(tmp_path):
    remarks: list[str] = []
    assert sorted(run_workers(die_once, str(tmp_path), [0, 1, 2, 3], 2, remarks.append)) == [(n, b"%d" % n) for n in range(4)]
    assert remarks == ["a worker process ended (signal 9); its part is begun again"]


def test_a_chunk_that_kills_every_worker_ends_the_run():
    remarks: list[str] = []
    with pytest.raises(SimulationError) as caught:
        list(run_workers(always_die, None, [0], 1, remarks.append))
    assert str(caught.value) == ("3 worker processes ended in the middle of the same part of the sweep (signal 9); "
                                 "is there enough memory?")
    assert len(remarks) == ATTEMPTS - 1


def test_leaving_early_ends_the_workers(tmp_path):
    results = run_workers(note_and_wait, str(tmp_path), list(range(20)), 2)
    next(results)
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) == 2 and all(map(alive, pids))
    results.close()
    assert not any(map(alive, pids))


def test_workers_end_by_themselves_when_their_driver_is_killed(tmp_path):
    code = ("import sys; from tests.dse.sweep.tasks import note_and_wait; from dse.sweep.workers import run_workers\n"
            "if __name__ == '__main__': list(run_workers(note_and_wait, sys.argv[1], list(range(50)), 2))")
    script = tmp_path / "driver.py"
    script.write_text(code)
    (tmp_path / "pids").mkdir()
    driver = subprocess.Popen([sys.executable, script, str(tmp_path / "pids")], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        wait_until(lambda: len(list((tmp_path / "pids").iterdir())) == 2)
    finally:
        driver.kill()
        driver.wait()
    pids = [int(path.name) for path in (tmp_path / "pids").iterdir()]
    wait_until(lambda: not any(map(alive, pids)))
