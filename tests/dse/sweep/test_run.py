"""Sweeps with real processes: the same bytes whoever computes and whatever is killed, and what is in them."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import distributed
import pyarrow.parquet as pq
import pytest

import dse.sweep.chunks
from boards.errors import InputError
from boards.loader import load_board
from dse.sweep.distributed import SchedulerLost
from dse.sweep.evaluate import evaluate_family
from dse.sweep.space import Space
from tests.dse.sweep.example import BOARDS, SPACE, contents, run_example, workload

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """(report, directory, bytes of every file) of one process that nobody disturbs."""
    out = tmp_path_factory.mktemp("sweep") / "deep" / "out"
    report = run_example(out)
    return report, out, contents(out)


def start(out: Path, workers: int = 2, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.dse.sweep.example", str(out), str(workers), *more]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)


def chunk_files(out: Path) -> int:
    return len(list(out.glob(".chunks/*.parquet")))


def wait_for_chunks(out: Path, count: int, process: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while chunk_files(out) < count and process.poll() is None:
        assert time.monotonic() < end, "no progress"
        time.sleep(0.005)


def children(pid: int) -> list[int]:
    """Worker processes of ``pid``: those that multiprocessing spawned, without its resource tracker."""
    found = [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [child for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


# -- what is in the files ---------------------------------------------------------------------------------------------


def test_rows_are_those_of_the_families_in_order(undisturbed):
    _, out, _ = undisturbed
    space, expected, first = Space.from_dict(SPACE), [], 0
    for name in BOARDS:
        found = space.enumerate(load_board(name), workload(), first_index=first)
        first += found.points
        for family in found.families:
            expected += evaluate_family(family, workload(), load_board(name), space.constraints, space.mapping).to_pylist()
    rows = pq.read_table(out / "points.parquet").to_pylist()
    assert rows == expected
    assert [row["index"] for row in rows] == list(range(first))


def test_the_front_is_what_nothing_beats(undisturbed):
    report, out, _ = undisturbed
    rows = [row for row in pq.read_table(out / "points.parquet").to_pylist() if row["feasible"]]
    assert rows and report.feasible == len(rows)

    def key(row):
        return tuple(row[name] for name in report.objectives)

    def rivals(row):
        return (key(other) for other in rows if (other["board"], other["precision"]) == (row["board"], row["precision"]))

    best = [row for row in rows if not any(other != key(row) and all(a <= b for a, b in zip(other, key(row), strict=True))
                                           for other in rivals(row))]
    firsts = {(row["board"], row["precision"], key(row)): row for row in reversed(best)}
    assert report.front == sorted(firsts.values(), key=lambda row: row["index"])
    assert {row["precision"] for row in report.front} == {"w8a8", "w1a1"} and {row["board"] for row in report.front} == set(BOARDS)


def test_each_design_of_the_front_is_a_file_that_design_options_take(undisturbed):
    from dse.workload.layer_file import load_design
    from hdl.design import Design

    report, out, _ = undisturbed
    assert {path.name for path in (out / "designs").iterdir()} == {f"{row['index']:06d}-{row['board']}.yaml" for row in report.front}
    for row in report.front:
        design = load_design(out / "designs" / f"{row['index']:06d}-{row['board']}.yaml")
        assert isinstance(design, Design)
        assert all(row[name] == value for name, value in design.to_dict().items() if name in row)
        assert (design.precision, design.dsps, design.block_rams) == (row["precision"], row["dsps"], row["block_rams"])


def test_the_summary_counts_and_names_no_paths_or_times(undisturbed):
    report, out, files = undisturbed
    text = files["sweep.json"].decode()
    assert report.points == report.feasible + sum(report.infeasible.values())
    assert str(out) not in text and str(Path.home()) not in text and not re.search(r"20\d\d-|seconds\"?: [0-9]|workers", text)
    assert set(files) == {"points.parquet", "pareto.csv", "sweep.json", *(name for name in files if name.startswith("designs/"))}


# -- the same bytes ---------------------------------------------------------------------------------------------------


def test_two_workers_give_the_same_bytes(undisturbed, tmp_path):
    run_example(tmp_path, workers=2)
    assert contents(tmp_path) == undisturbed[2]


def test_a_driver_killed_at_any_moment_gives_the_same_bytes(undisturbed, tmp_path):
    draw = random.Random(time.time_ns())
    out = tmp_path / "out"
    process = start(out)
    wait_for_chunks(out, draw.randint(0, 12), process)
    time.sleep(draw.random() * 0.05)
    process.kill()
    process.communicate()
    run_example(out, resume=True)
    assert contents(out) == undisturbed[2]


def test_a_driver_killed_while_it_merges_gives_the_same_bytes(undisturbed, tmp_path, monkeypatch):
    """At every write of a result, and after the last one."""
    class Killed(BaseException):
        pass

    run_example(tmp_path, boards=BOARDS, workers=1)
    files = contents(tmp_path)
    assert files == undisturbed[2]
    real = os.replace
    for stop_at in ("points.parquet", "pareto.csv", sorted(files)[0].split("/")[-1], "sweep.json"):
        out = tmp_path / f"stopped at {stop_at}"

        def replace(source, target, stop_at=stop_at):
            if Path(target).name == stop_at:
                raise Killed
            real(source, target)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(Killed):
            run_example(out)
        monkeypatch.setattr(os, "replace", real)
        assert not (out / "sweep.json").exists()
        assert not run_example(out, resume=True).was_complete
        assert contents(out) == files


def test_a_killed_worker_costs_nothing_but_time(undisturbed, tmp_path):
    process = start(tmp_path / "out")
    wait_for_chunks(tmp_path / "out", 2, process)
    victims = children(process.pid)
    assert victims
    os.kill(victims[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    assert contents(tmp_path / "out") == undisturbed[2]


def test_a_cluster_that_loses_a_worker_gives_the_same_bytes(undisturbed, tmp_path):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None,
                                  silence_logs=50) as cluster:
        victim = cluster.workers[0].process.pid
        killed = []

        def kill_one(done: int, total: int) -> None:
            if done and not killed:
                os.kill(victim, signal.SIGKILL)
                killed.append(done)

        run_example(tmp_path / "out", scheduler=cluster.scheduler_address, progress=kill_one)
        assert killed
    assert contents(tmp_path / "out") == undisturbed[2]


SCHEDULER = """
import sys, time, distributed
cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp",
                                   host="127.0.0.1", dashboard_address=None)
print(cluster.scheduler_address, flush=True)
time.sleep(600)
"""


def test_a_scheduler_that_dies_is_one_message_and_what_is_finished_goes_on(undisturbed, tmp_path, capfd):
    """Scheduler and worker are one process, which is killed in the middle."""
    out = tmp_path / "out"
    command = [sys.executable, "-c", SCHEDULER]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        address = process.stdout.readline().strip()

        def kill(done: int, total: int) -> None:
            if 0 < done < total and process.poll() is None:
                process.kill()

        with pytest.raises(SchedulerLost) as caught:
            run_example(out, scheduler=address, progress=kill)
    assert str(caught.value) == f"the scheduler at {address} is gone: the connection to it was lost"
    assert capfd.readouterr() == ("", "")  # none of the client's own words
    assert 0 < chunk_files(out) < 16 and not (out / "sweep.json").exists()
    remarks: list[str] = []
    run_example(out, resume=True, notify=remarks.append)
    assert len(remarks) == 1 and remarks[0].endswith(" of 128 points are there already")
    assert contents(out) == undisturbed[2]


# -- going on ---------------------------------------------------------------------------------------------------------


def stopped(out: Path, after: int = 3) -> None:
    """A sweep that was interrupted when it had some chunks."""
    class Stop(Exception):
        pass

    def progress(done: int, total: int) -> None:
        if chunk_files(out) >= after:
            raise Stop

    with pytest.raises(Stop):
        run_example(out, progress=progress)


def test_only_what_is_missing_is_computed(undisturbed, tmp_path):
    stopped(tmp_path)
    assert chunk_files(tmp_path) == 3
    first = tmp_path / ".chunks" / "000000.parquet"
    first.write_bytes(first.read_bytes()[:-20])
    counts: list[tuple[int, int]] = []
    remarks: list[str] = []
    report = run_example(tmp_path, resume=True, progress=lambda *count: counts.append(count), notify=remarks.append)
    assert remarks == [f"{counts[0][0]:,} of {report.points:,} points are there already"]
    assert counts[0][0] == 2 * 2 * 4  # two of the three chunks, of two families each
    assert counts[-1] == (report.points, report.points)
    assert contents(tmp_path) == undisturbed[2]


def test_a_complete_directory_is_read_and_not_touched(undisturbed):
    report, out, files = undisturbed
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    again = run_example(out, resume=True, workers=2)
    assert again.was_complete and not report.was_complete
    assert {**vars(again), "was_complete": False} == vars(report)
    assert contents(out) == files and {path: path.stat().st_mtime_ns for path in out.rglob("*")} == times


def message(out: Path, **options) -> str:
    before = contents(out)
    with pytest.raises(InputError) as caught:
        run_example(out, **options)
    assert contents(out) == before
    return str(caught.value)


def test_a_finished_or_unfinished_sweep_is_not_overwritten(undisturbed, tmp_path):
    out = undisturbed[1]
    assert message(out) == (f"--out: the directory holds a finished sweep, got {str(out)!r}; keep it and give another directory, "
                            "or remove it")
    stopped(tmp_path)
    assert message(tmp_path) == (f"--out: the directory holds an unfinished sweep, got {str(tmp_path)!r}; go on with it by --resume, "
                                 "or remove it")


def test_other_inputs_are_refused_and_named(undisturbed, tmp_path):
    stopped(tmp_path)
    for out in (undisturbed[1], tmp_path):
        text = message(out, resume=True, space={**SPACE, "lanes": [1, 4]})
        assert text == (f"--out: made from other inputs: boards.papilio-pro.space.lanes was [1, 2], is [1, 4]; "
                        f"boards.atlys.space.lanes was [1, 2], is [1, 4], got {str(out)!r}; give the same inputs, or another directory")
        text = message(out, resume=True, boards=("papilio-pro",))
        assert text.startswith("--out: made from other inputs: boards.atlys was {")


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    assert message(tmp_path).startswith("--out: the directory holds other files: thesis.tex, got ")
    assert message(tmp_path, resume=True).startswith("--out: the directory holds other files: thesis.tex, got ")
    with pytest.raises(InputError, match="^--out: not a directory, got "):
        run_example(tmp_path / "thesis.tex")
    with pytest.raises(InputError, match="^--out: cannot be written: Not a directory, got "):
        run_example(tmp_path / "thesis.tex" / "out")


def test_two_sweeps_do_not_share_a_directory(tmp_path):
    second: list[str] = []

    def progress(done: int, total: int) -> None:
        if not second:
            second.append("")
            with pytest.raises(InputError) as caught:
                run_example(tmp_path, resume=True)
            second[0] = str(caught.value)

    run_example(tmp_path, progress=progress)
    assert second == [f"--out: another sweep is writing into this directory, got {str(tmp_path)!r}"]


# -- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_family_that_fails_is_rows_that_say_so(undisturbed, tmp_path, monkeypatch):
    def evaluate(family, *more):
        if family.design.array == "2x3x1" and family.board == "atlys":
            raise ZeroDivisionError("no such luck")
        return evaluate_family(family, *more)

    monkeypatch.setattr(dse.sweep.chunks, "evaluate_family", evaluate)
    report = run_example(tmp_path)
    rows = pq.read_table(tmp_path / "points.parquet").to_pylist()
    failed = [row for row in rows if row["limiting"] == "error"]
    assert report.errors == len(failed) == 8 and not report.succeeded
    assert {row["reason"] for row in failed} == {"error: ZeroDivisionError: no such luck"}
    assert {(row["board"], row["rows"], row["cols"], row["lanes"], row["feasible"]) for row in failed} == {("atlys", 2, 3, 1, False)}
    before = pq.read_table(undisturbed[1] / "points.parquet").to_pylist()
    assert [row for row in rows if row["limiting"] != "error"] == \
        [row for row in before if (row["board"], row["rows"], row["cols"], row["lanes"]) != ("atlys", 2, 3, 1)]
    for row in failed:  # the design is there, so that it can be looked into
        assert {name: row[name] for name in ("input_bytes", "weight_bytes", "clock_mhz")} == \
            {name: before[row["index"]][name] for name in ("input_bytes", "weight_bytes", "clock_mhz")}


def test_when_no_point_is_feasible_the_report_says_why(tmp_path):
    report = run_example(tmp_path, space={**SPACE, "rows": [1], "cols": [1, 2], "constraints": {"min_fps": 1e9}})
    assert (report.feasible, report.front, report.succeeded) == (0, [], True)
    assert report.explanation.startswith(f"None of the {report.points} points is feasible. Removed by:")
    assert (tmp_path / "pareto.csv").read_text().startswith('"index","board"')
    assert run_example(tmp_path, resume=True, space={**SPACE, "rows": [1], "cols": [1, 2], "constraints": {"min_fps": 1e9}}).front == []


@pytest.mark.parametrize("options, text", [
    ({"workers": 0}, "--workers: out of range, got 0; allowed: 1 to 1024"),
    ({"verify": -1}, "--verify: out of range, got -1; allowed: 0 or more points"),
    ({"boards": ("atlys", "atlys")}, "--board: given twice, got 'atlys'"),
    ({"boards": ()}, "--board: no board; name one or several of `nearmac boards`"),
    ({"space": {**SPACE, "where": "rows > 99"}}, "space: no design point in the space; widen its axes or conditions"),
])
def test_wrong_options_leave_no_directory(options, text, tmp_path):
    with pytest.raises(InputError) as caught:
        run_example(tmp_path / "out", **options)
    assert str(caught.value) == text
    assert not (tmp_path / "out").exists()
