"""Chunks on a real scheduler with two worker processes, on loopback."""

from __future__ import annotations

import builtins
import gc

import distributed
import pytest

from boards.errors import InputError
from dse.sweep.distributed import run_scheduler
from tests.dse.sweep.tasks import die_once_late, fail_on_three, square


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
                                  silence_logs=50) as cluster:
        yield cluster.scheduler_address


def test_the_cluster_gives_what_this_process_gives(address):
    found = sorted(run_scheduler(square, 10, list(range(9)), address))
    assert found == [(at, b"%d" % (10 + at * at)) for at in range(9)]


def test_an_exception_of_the_function_comes_out(address):
    with pytest.raises(ValueError, match="^three$"):
        list(run_scheduler(fail_on_three, None, [1, 3], address))


def test_a_killed_worker_costs_only_time(address, tmp_path):
    assert sorted(run_scheduler(die_once_late, str(tmp_path), list(range(6)), address)) == [(n, b"%d" % n) for n in range(6)]
    assert (tmp_path / "died").exists()


def test_leaving_early_leaves_the_cluster_usable(address):
    results = run_scheduler(square, 0, list(range(40)), address)
    next(results)
    results.close()
    assert list(run_scheduler(square, 1, [2], address)) == [(0, b"5")]


def test_an_address_where_nobody_answers(monkeypatch):
    monkeypatch.setattr("dse.sweep.distributed.CONNECT_S", 0.3)
    with pytest.raises(InputError) as caught:
        list(run_scheduler(square, 0, [1], "tcp://127.0.0.1:9"))
    assert str(caught.value).startswith("--scheduler: no scheduler answers (")
    assert str(caught.value).endswith("got 'tcp://127.0.0.1:9'; start one with `dask scheduler`, and workers with `dask worker ADDRESS`")


@pytest.mark.parametrize("address", ["", "tcp://", "nonsense://host:1", "127.0.0.1:notaport"])
def test_what_is_no_address(address):
    with pytest.raises(InputError, match="^--scheduler: no scheduler answers"):
        list(run_scheduler(square, 0, [1], address))


def test_a_client_that_failed_is_gone():
    """It would close itself whenever it is collected: while another starts, in the same thread, for ever."""
    before = {id(found) for found in gc.get_objects() if isinstance(found, distributed.Client)}
    gc.disable()
    try:
        with pytest.raises(InputError) as caught:
            list(run_scheduler(square, 0, [1], "nonsense://host:1"))
        left = [found for found in gc.get_objects() if isinstance(found, distributed.Client) and id(found) not in before]
    finally:
        gc.enable()
    assert not left and caught.value.__context__ is None


def test_without_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "distributed" or name.startswith("distributed."):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError) as caught:
        list(run_scheduler(square, 0, [1], "tcp://127.0.0.1:8786"))
    assert str(caught.value) == ("--scheduler: needs the package `distributed`, got 'tcp://127.0.0.1:8786'; "
                                 "pip install 'nearmac[distributed]'")
