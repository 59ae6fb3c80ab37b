"""A sweep from end to end: enumerate, compute part by part, merge, verify."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boards.errors import InputError
from boards.plain import to_mapping
from boards.schema import Board
from dse.schedule.explore import Objective
from dse.schedule.kernel import library
from dse.sweep import inputs as made_from
from dse.sweep.chunks import CHUNK_POINTS, Chunk, Job, compute, cut, families_a_chunk
from dse.sweep.constraints import explain_none
from dse.sweep.directory import SweepDirectory
from dse.sweep.distributed import run_scheduler
from dse.sweep.family import Family
from dse.sweep.results import DESIGNS, PARETO, POINTS, SUMMARY, Tally, read_front, write_front, write_points
from dse.sweep.space import Space, default_space
from dse.sweep.verify import Verification, verify_front
from dse.sweep.workers import run_here, run_workers
from dse.sweep.workload import Workload
from dse.workload.line import lines
from dse.workload.network import Network
from hdl.layer import Layer

MAX_WORKERS = 1024


@dataclass(frozen=True)
class SweepReport:
    """What `nearmac sweep` found; the files in ``out`` say the same.

    ``mapping``: what each layer's mapping was chosen for. ``infeasible``: points by what limits them. ``dropped``: combinations of the
    space that no design can have, by the option that is refused. ``errors``: points whose evaluation failed; a sweep with some is
    done, and not right. ``front``: the rows of ``pareto.csv``. ``host_operators``: operators of the network that no time or byte here
    includes, and how many. ``explanation``: why no point is feasible. ``was_complete``: the directory held all this before.
    """

    out: Path
    workload: Workload = field(repr=False)
    mapping: Objective
    points: int
    feasible: int
    errors: int
    infeasible: dict[str, int]
    dropped: dict[str, int]
    objectives: tuple[str, ...]
    front: list[dict[str, Any]] = field(repr=False)
    host_operators: dict[str, int]
    explanation: str | None
    was_complete: bool = False
    verifications: tuple[Verification, ...] = ()

    @property
    def succeeded(self) -> bool:
        """No point failed, and every simulated one is as predicted."""
        return not self.errors and all(entry.matches for entry in self.verifications)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `nearmac sweep --json`."""
        return {
            "workload": self.workload.name, "directory": str(self.out), "files": [POINTS, PARETO, DESIGNS, SUMMARY],
            "points": self.points, "feasible": self.feasible, "errors": self.errors, "infeasible": self.infeasible,
            "dropped_combinations": self.dropped, "objectives": list(self.objectives), "mapping": str(self.mapping), "front": self.front,
            "host_operators_excluded": self.host_operators, "explanation": self.explanation, "was_complete": self.was_complete,
            "verifications": [{**vars(entry), "matches": entry.matches} for entry in self.verifications]}


def sweep(workload: Network | Layer | Workload, boards: Sequence[Board], space: Space | None, out: str | Path, *,
          precisions: Sequence[str] = (), workers: int = 1, scheduler: str | None = None, verify: int = 0, resume: bool = False,
          progress: Callable[[int, int], None] | None = None, notify: Callable[[str], None] | None = None,
          stage: Callable[[str], None] | None = None, verified: Callable[[Verification], None] | None = None,
          chunk_points: int = CHUNK_POINTS, chunk_families: int | None = None) -> SweepReport:
    """Evaluate every point of ``space`` on every board, and write the results into ``out``: the same bytes for the same inputs.

    Parameters
    ----------
    space: ``None`` takes the default space of each board.
    precisions: ``w8a8`` and so on, in place of the space's. Where neither says any: the least that every layer of a network works with.
    workers: processes, from 1 (this one). scheduler: the address of a dask.distributed scheduler whose workers compute instead.
    verify: points of the front to simulate, each on one layer.
    resume: go on where an interrupted sweep of the same inputs stopped, or read a complete one; in a new directory, begin.
    progress: called with the points that are done and all points. notify: called with remarks. stage: called with
        what comes after the evaluation, when it begins. verified: called with each simulated point, when it is done.
    chunk_points, chunk_families: most of either in a part, which is what an interrupt costs.

    Raises
    ------
    InputError: an input is wrong; ``out`` holds something else (:class:`SweepDirectory`); the space has no points.
    SimulationError: workers died again and again. SchedulerLost: the scheduler went away. What is finished is kept, for ``resume``.
    """
    spaces = _spaces(boards, space, precisions or _own_precision(workload, space))
    listed, host = _layers(workload)
    chunk_families = chunk_families or families_a_chunk(listed)
    inputs = _inputs(listed, host, spaces, chunk_points, chunk_families)
    directory = SweepDirectory(Path(out), inputs, resume=resume)
    _check_options(workers, verify)
    was_complete = directory.complete
    if not was_complete:
        chunks, dropped = _chunks(listed, spaces, chunk_points, chunk_families)
        with directory.opened():
            job = Job(listed, directory.key, tuple(made_from.versions().items()))
            library(build=True)  # once, not in every worker
            _compute_missing(directory, job, chunks, workers, scheduler, progress, notify)
            if stage:
                stage("merging")
            _write_results(directory, chunks, spaces[0][1], dropped)
            directory.finish()
    report = _read(directory, listed, spaces[0][1].mapping, was_complete=was_complete)
    if not verify or not report.front:
        return report
    if stage:
        stage("verifying")
    found: list[Verification] = []
    for entry in verify_front(report.front, listed, boards, report.mapping, verify, notify=notify):
        found.append(entry)
        if verified:
            verified(entry)
    return SweepReport(**{**vars(report), "verifications": tuple(found)})


# -- inputs -----------------------------------------------------------------------------------------------------------


def _spaces(boards: Sequence[Board], space: Space | None, precisions: Sequence[str]) -> list[tuple[Board, Space]]:
    if not boards:
        raise InputError("no board", where="--board", suggestion="name one or several of `nearmac boards`")
    for at, board in enumerate(boards):
        if board.name in [other.name for other in boards[:at]]:
            raise InputError("given twice", where="--board", value=board.name)
        board.offered_bytes_per_cycle()  # raises for a board without memory
    if space is None:
        return [(board, default_space(board, precisions or ("w8a8",))) for board in boards]
    if precisions:
        space = Space.from_dict({**space.to_dict(), "precision": list(precisions)}, where=space.where_from)
    return [(board, space) for board in boards]


def _own_precision(workload: Network | Layer | Workload, space: Space | None) -> list[str]:
    """The precision that serves every layer of a network, for a space that has none of its own."""
    if not isinstance(workload, Network) or space is not None and "precision" in space.axes:
        return []
    layers = workload.array_operators
    return [f"w{max(node.weight_bits for node in layers)}a{max(node.activation_bits for node in layers)}"]


def _layers(workload: Network | Layer | Workload) -> tuple[Workload, dict[str, int]]:
    """The layers that the array computes, and the operators that it does not, counted."""
    if isinstance(workload, Workload):
        return workload, {}
    if isinstance(workload, Layer):
        return Workload(workload.name, ((workload.name, workload, 1),)), {}
    layers = tuple((node.name, node.layer, node.repeat) for node in workload.array_operators)
    host = Counter(node.op for node in workload.host_operators() if not node.is_view)
    return Workload(workload.name, layers, tuple(lines(workload))), dict(host)


def _inputs(workload: Workload, host: Mapping[str, int], spaces: Sequence[tuple[Board, Space]], points: int,
            families: int) -> dict[str, Any]:
    """Everything that the results depend on, as plain values."""
    layers = [{"layer": str(layer), "name": name, "repeat": repeat} for name, layer, repeat in workload.layers]
    return {"format": made_from.FORMAT, "versions": made_from.versions(),
            "workload": {"name": workload.name, "layers": layers, "lines": [list(line) for line in workload.lines]},
            "host_operators": dict(host),
            "boards": {board.name: {"space": _plain(space), "board": to_mapping(board)} for board, space in spaces},
            "chunk_points": points, "chunk_families": families}


def _plain(space: Space) -> dict[str, Any]:
    """Without the names of boards, which may be paths, and are told beside it."""
    return {key: value for key, value in space.to_dict().items() if key != "board"}


def _check_options(workers: int, verify: int) -> None:
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError("out of range", where="--workers", value=workers, allowed=f"1 to {MAX_WORKERS}")
    if verify < 0:
        raise InputError("out of range", where="--verify", value=verify, allowed="0 or more points")


# -- computing --------------------------------------------------------------------------------------------------------


def _chunks(workload: Workload, spaces: Sequence[tuple[Board, Space]], points: int, families: int) -> tuple[list[Chunk], Counter[str]]:
    """The whole sweep in parts, and how many combinations no design can have. Raises InputError for an empty space."""
    listed: list[tuple[Board, Space, Sequence[Family]]] = []
    total, dropped, examples = 0, Counter[str](), dict[str, str]()
    for board, space in spaces:
        found = space.enumerate(board, workload, first_index=total)
        listed.append((board, space, found.families))
        total += found.points
        dropped.update(found.dropped)
        examples |= found.examples
    if not total:
        why = f": {next(iter(examples.values()))}" if examples else ""
        raise InputError(f"no design point in the space{why}", where=spaces[0][1].where_from, suggestion="widen its axes or conditions")
    return cut(listed, points=points, most_families=families), dropped


def _compute_missing(directory: SweepDirectory, job: Job, chunks: Sequence[Chunk], workers: int, scheduler: str | None,
                     progress: Callable[[int, int], None] | None, notify: Callable[[str], None] | None) -> None:
    missing = [chunks[at] for at in directory.store.missing(len(chunks))]
    total = sum(chunk.points for chunk in chunks)
    done = total - sum(chunk.points for chunk in missing)
    if notify and done:
        notify(f"{done:,} of {total:,} points are there already")
    results: Generator[tuple[int, bytes], None, None]
    if scheduler is not None:
        results = run_scheduler(compute, job, missing, scheduler, notify)
    elif workers > 1:
        results = run_workers(compute, job, missing, workers, notify)
    else:
        results = run_here(compute, job, missing)
    if progress:
        progress(done, total)
    try:
        with closing(results):
            for at, data in results:
                directory.store.write(missing[at].at, data)
                done += missing[at].points
                if progress:
                    progress(done, total)
    except KeyboardInterrupt:
        if progress:  # it may have come between writing a chunk and counting it
            progress(total - sum(chunks[at].points for at in directory.store.missing(len(chunks))), total)
        raise


# -- results ----------------------------------------------------------------------------------------------------------


def _write_results(directory: SweepDirectory, chunks: Sequence[Chunk], space: Space, dropped: Mapping[str, int]) -> None:
    def parts() -> Iterator[Any]:
        for at in range(len(chunks)):
            table = directory.store.read(at)
            if table is None:
                raise OSError(f"{directory.store.path(at).name} was damaged just now")
            yield table

    out, scratch = directory.out, directory.scratch
    tally = write_points(parts(), out, scratch, space.objectives)
    assert tally.front is not None
    write_front(tally.front, out, scratch)
    directory.write_summary(_summary(tally, space, dropped))


def _summary(tally: Tally, space: Space, dropped: Mapping[str, int]) -> dict[str, Any]:
    """What ``sweep.json`` holds beside the inputs."""
    assert tally.front is not None
    counts = tally.summary
    return {"points": counts.points, "feasible": counts.feasible, "errors": tally.errors, "front": tally.front.num_rows,
            "infeasible": dict(sorted((counts.removed or {}).items())), "dropped_combinations": dict(sorted(dropped.items())),
            "objectives": [str(goal) for goal in space.objectives],
            "explanation": explain_none(counts) if not counts.feasible else None}


def _read(directory: SweepDirectory, workload: Workload, mapping: Objective, *, was_complete: bool) -> SweepReport:
    data = json.loads((directory.out / SUMMARY).read_text(encoding="utf-8"))
    return SweepReport(
        out=directory.out, workload=workload, mapping=mapping, points=data["points"], feasible=data["feasible"], errors=data["errors"],
        infeasible=data["infeasible"], dropped=data["dropped_combinations"], objectives=tuple(data["objectives"]),
        front=read_front(directory.out), host_operators=data["inputs"]["host_operators"], explanation=data["explanation"],
        was_complete=was_complete)
