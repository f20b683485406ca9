"""Ids that come twice, whatever the batches, files and blocks; and what looking costs."""

import tempfile
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from miner.arrays import Mask
from miner.storage.corpus import repeats
from miner.storage.corpus import unique_ids as module
from miner.storage.corpus.records import CorpusError, Records
from miner.storage.corpus.repeats import BLOCK_BYTES
from miner.storage.corpus.unique_ids import DuplicateId, UniqueIds


class Corpus:
    """Records in batches: (id, document, text)."""

    def __init__(self, lines: Sequence[tuple[str, str, str]], size: int) -> None:
        self.lines, self.size = lines, size
        self.names, self.starts = ["a.tsv", "b.tsv"], [0, len(lines) // 2]

    def __iter__(self) -> Iterator[Records]:
        for row in range(0, len(self.lines), self.size):
            ids, docs, texts = map(list, zip(*self.lines[row : row + self.size], strict=True))
            yield Records.from_columns(row, (ids, docs, texts), {}, lambda _: b"")


def first_duplicate(corpus: Corpus, block: int, *, within_documents: bool = False) -> object:
    with tempfile.TemporaryDirectory() as folder:
        ids = UniqueIds(corpus, Path(folder), within_documents=within_documents, block=block)
        with closing(ids):
            assert [*map(len, ids)] == [*map(len, corpus)]
            assert not list(Path(folder).iterdir())
            return ids.first_duplicate()


@given(
    lines=st.lists(
        st.tuples(
            st.sampled_from(["", "1", "2", " 3", "x", "y "]),
            st.sampled_from("de"),
            st.sampled_from(["", "text"]),
        ),
        min_size=1,
        max_size=30,
    ),
    size=st.integers(1, 7),
    block=st.integers(1, 9),
    within_documents=st.booleans(),
)
def test_the_first_id_that_comes_again(lines, size, block, within_documents) -> None:  # type: ignore[no-untyped-def]
    rows: dict[str, int] = {}
    expected = None
    for row, (own, doc, text) in enumerate(lines):
        name = own.strip() or str(row + 1)
        key = f"{name}\0{doc}" if within_documents else name
        if text and rows.setdefault(key, row) != row:
            expected = DuplicateId(name, rows[key], row)
            break
    found = first_duplicate(Corpus(lines, size), block, within_documents=within_documents)
    assert found == expected


def _half_equal(hashes: repeats.Hashes) -> repeats.Hashes:
    def halves(names: Sequence[str], kept: Mask) -> list[NDArray[np.uint64]]:
        high, low = hashes(names, kept)
        return [np.zeros_like(high), low]

    return halves


def test_ids_that_share_half_of_a_digest_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = repeats._python_hashes
    monkeypatch.setattr(
        module, "digests_of", lambda *texts: repeats.digests_of(*texts, _half_equal(hashes))
    )
    lines = [(name, "", "text") for name in ("a", "b", "c", "dd", "ee", "b")]
    assert first_duplicate(Corpus(lines[:-1], 2), 3) is None
    assert first_duplicate(Corpus([*lines[:2], lines[-1]], 2), 3) == DuplicateId("b", 1, 2)


def test_both_places_are_named(tmp_path: Path) -> None:
    corpus = Corpus([("s1", "", "a"), (" s2 ", "", "b"), ("s3", "", "c"), ("s2", "", "d")], 3)
    ids = UniqueIds(corpus, tmp_path)
    assert len([*ids]) == 2
    place = "folder: the id 's2' is in a.tsv line 2 and again in b.tsv line 2; give each record"
    with pytest.raises(CorpusError, match=place):
        ids.check(Path("folder"))


def test_trimmed_ids_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = Corpus([("s1", "", "a"), ("s2", " d", "b"), ("s3", "", "c")], 2)
    ids = UniqueIds(corpus, tmp_path)
    assert [records.own_ids for records in ids] == [["s1", "s2"], ["s3"]]
    ids.check(Path("folder"))
    [message] = caplog.messages
    assert message.startswith("folder: removed spaces around ids or documents, first in b.tsv line")


def test_memory_is_that_of_a_block(tmp_path: Path) -> None:
    rows, block = 400_000, 20_000

    class Large(Corpus):
        def __iter__(self) -> Iterator[Records]:
            for row in range(0, rows, 10_000):
                names = [f"id-{number}" for number in range(row, row + 10_000)]
                yield Records(row, names, [""] * 10_000, names, {}, {})

    ids = UniqueIds(Large([], 1), tmp_path, block=block)
    tracemalloc.start()
    for _ in ids:
        pass
    assert ids.first_duplicate() is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < BLOCK_BYTES * block + 4_000_000
