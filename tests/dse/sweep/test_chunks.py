"""Chunks: nothing lost or moved by the cut, and files that are whole or not there."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boards.errors import InputError
from dse.sweep.chunks import ChunkStore, Job, compute, cut, to_parquet
from dse.sweep.inputs import versions
from tests.dse.sweep.example import workload

SPACE = SimpleNamespace(constraints="constraints", mapping="mapping")
TABLE = pa.table({"index": list(range(500)), "name": ["a", None] * 250})
KEY = "0123"


@given(st.lists(st.lists(st.integers(1, 30), max_size=12), max_size=3), st.integers(1, 40), st.integers(1, 5))
def test_the_cut_keeps_order_and_limits(sizes, points, families):
    boards = [(f"board{at}", SPACE, [range(size) for size in members]) for at, members in enumerate(sizes)]
    chunks = cut(boards, points=points, most_families=families)
    assert [chunk.at for chunk in chunks] == list(range(len(chunks)))
    assert [(chunk.board, family) for chunk in chunks for family in chunk.families] == \
        [(board, family) for board, _, members in boards for family in members]
    for chunk in chunks:
        assert 1 <= len(chunk.families) <= families
        assert chunk.points <= points or len(chunk.families) == 1
    for one, two in zip(chunks, chunks[1:], strict=False):  # no chunk is cut too early
        assert one.board != two.board or len(one.families) == families or one.points + len(two.families[0]) > points


@pytest.fixture
def store(tmp_path) -> ChunkStore:
    store = ChunkStore(tmp_path, KEY)
    store.write(3, to_parquet(TABLE, KEY, 3))
    return store


def test_a_chunk_comes_back(store, tmp_path):
    assert store.read(3).equals(TABLE)
    assert store.read(3).schema.metadata is None
    assert store.missing(5) == [0, 1, 2, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["000003.parquet"]


def test_a_truncated_chunk_is_missing(store):
    whole = store.path(3).read_bytes()
    for length in {0, 1, 4, 100, len(whole) // 2, len(whole) - 9, len(whole) - 1}:
        store.path(3).write_bytes(whole[:length])
        assert store.read(3) is None
    store.path(3).write_bytes(whole)
    assert store.read(3) is not None


def test_a_flipped_bit_in_the_data_makes_a_chunk_missing(store):
    whole = bytearray(store.path(3).read_bytes())
    at = whole.index(b"\x28\xb5\x2f\xfd") + 8  # into the first compressed page
    whole[at] ^= 4
    store.path(3).write_bytes(whole)
    assert store.read(3) is None


def test_a_chunk_of_another_sweep_or_place_is_missing(store, tmp_path):
    assert ChunkStore(tmp_path, "4567").read(3) is None
    store.path(3).rename(store.path(2))
    assert store.missing(4) == [0, 1, 2, 3]


def test_equal_tables_are_equal_files():
    pieces = pa.concat_tables([TABLE.slice(0, 77), TABLE.slice(77)]).combine_chunks()
    assert to_parquet(pieces, KEY, 3) == to_parquet(TABLE, KEY, 3)


def test_a_machine_with_other_versions_computes_nothing():
    job = Job(workload(), KEY, tuple({**versions(), "numpy": "1.0"}.items()))
    with pytest.raises(InputError) as caught:
        compute(job, None)
    assert str(caught.value) == (f"--scheduler: a worker has another version of numpy: {versions()['numpy']}, not 1.0; "
                                 "install the same versions on every machine")
