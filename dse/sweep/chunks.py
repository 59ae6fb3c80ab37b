"""A sweep in parts: how it is cut, how a part is computed, and where finished parts wait for the others."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from boards.errors import InputError
from boards.schema import Board
from dse.schedule.explore import Objective
from dse.sweep.constraints import Constraints
from dse.sweep.evaluate import evaluate_family, unevaluated
from dse.sweep.family import Family
from dse.sweep.inputs import versions
from dse.sweep.space import Space
from dse.sweep.workload import Workload

CHUNK_POINTS = 20_000
CHUNK_SEARCHES = 120
"""Families of a chunk times layers that differ: each is one search for the best mappings, of a few milliseconds."""
PARQUET = {"compression": "zstd", "compression_level": 3, "version": "2.6", "write_page_checksum": True}
"""Fixed, so that equal tables are equal files."""
MARK = b"nearmac.chunk"


ERROR = "error"
"""What limits a point whose evaluation failed in a way that nobody foresaw."""


@dataclass(frozen=True)
class Job:
    """What all chunks of a sweep share. ``key``: of its inputs. ``versions``: what every machine must have, for equal bytes."""

    workload: Workload
    key: str
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Chunk:
    """Consecutive families of one board; ``at``: its position in the sweep. ``mapping``: what layers' mappings are chosen for."""

    at: int
    board: Board
    constraints: Constraints
    mapping: Objective
    families: tuple[Family, ...]

    @property
    def points(self) -> int:
        return sum(len(family) for family in self.families)


def families_a_chunk(workload: Workload) -> int:
    """How many make a chunk of a second, which is what an interrupt costs at most."""
    return max(1, CHUNK_SEARCHES // len({replace(layer, name="layer") for _, layer, _ in workload.layers}))


def cut(families: Sequence[tuple[Board, Space, Sequence[Family]]], *, points: int = CHUNK_POINTS,
        most_families: int) -> list[Chunk]:
    """Chunks of up to ``points`` points (a larger family is one by itself) and ``most_families`` families, in order.

    Families and limits alone decide, never who computes: so every machine cuts alike.
    """
    chunks: list[Chunk] = []
    for board, space, members in families:
        part: list[Family] = []
        size = 0
        for family in members:
            if part and (size + len(family) > points or len(part) == most_families):
                chunks.append(Chunk(len(chunks), board, space.constraints, space.mapping, tuple(part)))
                part, size = [], 0
            part.append(family)
            size += len(family)
        if part:
            chunks.append(Chunk(len(chunks), board, space.constraints, space.mapping, tuple(part)))
    return chunks


def compute(job: Job, chunk: Chunk) -> bytes:
    """The file of a chunk. A family whose evaluation fails becomes rows that say so; the others are not touched by it.

    Raises InputError where this machine's versions are not the driver's.
    """
    here = versions()
    for name, wanted in job.versions:
        if here.get(name) != wanted:
            raise InputError(f"a worker has another version of {name}: {here.get(name)}, not {wanted}", where="--scheduler",
                             suggestion="install the same versions on every machine")
    tables = [_evaluate(family, job.workload, chunk) for family in chunk.families]
    return to_parquet(pa.concat_tables(tables).combine_chunks(), job.key, chunk.at)


def at_bits(workload: Workload, activation_bits: int) -> Workload:
    """The workload for outputs of so many bits: 1-bit ones are +1 or -1, and a threshold takes the place of any clamp."""
    if activation_bits > 1:
        return workload
    return replace(workload, layers=tuple((name, replace(layer, lo=None, hi=None), times) for name, layer, times in workload.layers))


def _evaluate(family: Family, workload: Workload, chunk: Chunk) -> pa.Table:
    workload = at_bits(workload, family.design.activation_bits)
    try:
        return evaluate_family(family, workload, chunk.board, chunk.constraints, chunk.mapping)
    except MemoryError:
        raise  # of this machine, not of the point
    except Exception as error:
        reason = f"{ERROR}: {type(error).__name__}: {' '.join(str(error).split())}"
        return unevaluated(family, workload, chunk.board, chunk.constraints, ERROR, reason)


class ChunkStore:
    """Finished chunks as files ``<position>.parquet`` in a directory: whole or not there, and checked when they are read.

    ``key``: of the sweep's inputs; a file that another sweep left counts as missing.
    """

    def __init__(self, directory: Path, key: str) -> None:
        self.directory, self.key = directory, key

    def path(self, at: int) -> Path:
        return self.directory / f"{at:06d}.parquet"

    def write(self, at: int, data: bytes) -> None:
        write_file(self.path(at), data, self.directory)

    def read(self, at: int) -> pa.Table | None:
        """The chunk's table without metadata; ``None`` when it is missing, damaged or another sweep's."""
        try:
            with pq.ParquetFile(self.path(at), page_checksum_verification=True) as file:
                if (file.schema_arrow.metadata or {}).get(MARK) != mark(self.key, at):
                    return None
                return file.read(use_threads=False).replace_schema_metadata(None)
        except (OSError, pa.ArrowException):
            return None

    def missing(self, count: int) -> list[int]:
        """Positions below ``count`` that are still to be computed."""
        return [at for at in range(count) if self.read(at) is None]


def mark(key: str, at: int) -> bytes:
    return f"{key} {at}".encode()


def write_file(path: Path, data: bytes, scratch: Path) -> None:
    """Write ``path`` at once: in ``scratch`` (on the same file system) first, then put at its name."""
    temporary = scratch / f"{path.name}.tmp"
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # some file systems report a full disk only here
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def to_parquet(table: pa.Table, key: str, at: int) -> bytes:
    """The file of a chunk."""
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({MARK: mark(key, at)}), buffer, row_group_size=max(1, table.num_rows), **PARQUET)
    return buffer.getvalue()
