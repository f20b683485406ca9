"""Repeated texts, whatever the blocks they are found in, and what a line of them costs."""

import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from miner.storage.corpus.records import checked_records
from miner.storage.corpus.repeats import BLOCK_BYTES, DIGEST, find_repeats, repeats_among

BATCH = 1000


def records_of(first_row, texts, docs):
    return checked_records(first_row, [""] * len(texts), docs, texts, {}, lambda _: b"")


@given(
    lines=st.lists(st.tuples(st.text("ab ", max_size=2), st.sampled_from("xy")), max_size=40),
    size=st.integers(1, 9),
    block=st.integers(1, 50),
    within_documents=st.booleans(),
)
def test_first_rows(lines, size, block, within_documents):
    texts, docs = [text for text, _ in lines], [doc for _, doc in lines]
    starts = range(0, len(lines), size)
    batches = [records_of(row, texts[row : row + size], docs[row : row + size]) for row in starts]
    with (
        tempfile.TemporaryDirectory() as folder,
        find_repeats(
            batches, Path(folder), within_documents=within_documents, block=block
        ) as repeats,
    ):
        assert not list(Path(folder).iterdir())
        found = {
            batch.first_row + position: first
            for batch in batches
            for position, first in repeats.of(batch).items()
        }
    first_rows, expected = {}, {}
    for row, line in enumerate(lines):
        if line[0].strip():
            first = first_rows.setdefault(line if within_documents else line[0], row)
            if first != row:
                expected[row] = first
    assert found == expected
    assert repeats.unique == len(first_rows)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=20))
def test_digests_are_equal_if_both_halves_are(halves):
    digests = np.array([(*pair, row) for row, pair in enumerate(halves)], dtype=DIGEST)
    backwards = digests[::-1]
    found = repeats_among(backwards[np.argsort(backwards["high"], kind="stable")])
    expected = [(row, halves.index(pair)) for row, pair in enumerate(halves)]
    assert sorted(found.tolist()) == [(row, first) for row, first in expected if first != row]


class Numbers:
    """Lines that are made as they are read; each comes twice."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        for start in range(0, self.count, BATCH):
            texts = [str(row % (self.count // 2)) for row in range(start, start + BATCH)]
            yield records_of(start, texts, [""] * BATCH)


def peak_bytes(lines, block, folder):
    tracemalloc.start()
    try:
        with find_repeats(Numbers(lines), folder, block=block) as repeats:
            left = lines - sum(len(repeats.of(batch)) for batch in Numbers(lines))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert left == repeats.unique == lines // 2
    return peak


def test_memory_is_that_of_one_block(tmp_path):
    block = 20_000
    small, large = (peak_bytes(lines, block, tmp_path) for lines in (40_000, 100_000))
    assert max(small, large) < BLOCK_BYTES * block
    assert (large - small) / (100_000 - 40_000) < 1  # byte a line
