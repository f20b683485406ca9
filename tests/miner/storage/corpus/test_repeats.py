"""Repeated texts, whatever the blocks they are found in, and what a line of them costs."""

import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.storage.corpus import repeats as module
from miner.storage.corpus.compiled import digest_lines
from miner.storage.corpus.joined import JoinedLines
from miner.storage.corpus.records import Records
from miner.storage.corpus.repeats import BLOCK_BYTES, DIGEST, find_repeats, repeats_among

BATCH = 1000


def records_of(first_row, texts, docs):
    return Records.from_columns(first_row, ([""] * len(texts), docs, texts), {}, lambda _: b"")


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
            for position, first in repeats.first_rows(batch).items()
        }
    first_rows, expected = {}, {}
    for row, line in enumerate(lines):
        if line[0].strip():
            first = first_rows.setdefault(line if within_documents else line[0], row)
            if first != row:
                expected[row] = first
    assert found == expected
    assert repeats.unique == len(first_rows)


TEXT = st.text(st.sampled_from("abcdefgh\u00e9\u4e2d\U0001f600"), max_size=9)


@given(texts=st.lists(TEXT, min_size=1, max_size=40), size=st.integers(1, 9))
def test_first_rows_of_many_lines(texts, size):
    """Batches of lines as they are in a file, and batches of texts: their digests agree."""
    starts = range(0, len(texts), size)
    parts = [texts[row : row + size] for row in starts]
    columns = [
        part if place % 2 else JoinedLines.from_texts(part) for place, part in enumerate(parts)
    ]
    found = []
    for least in (1, 1 << 60):
        batches = [
            records_of(row, column, [""] * len(column))
            for row, column in zip(starts, columns, strict=True)
        ]
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
            patch.setattr(module, "MIN_RECORDS_TO_COMPILE", least)
            with find_repeats(batches, Path(folder)) as repeats:
                found.append(([repeats.first_rows(batch) for batch in batches], repeats.unique))
    assert found[0] == found[1]


@given(texts=st.lists(TEXT, max_size=3))
def test_joined_lines_are_their_texts(texts):
    lines = JoinedLines.from_texts(texts)
    assert (list(lines), len(lines)) == (texts, len(texts))


@given(texts=st.lists(TEXT, min_size=1, max_size=9), seed=st.integers(0, 99))
def test_digests_are_sums_of_products(texts, seed):
    lines = JoinedLines.from_texts(texts)
    keys = np.random.default_rng(seed).integers(1 << 64, size=(20, 4), dtype=np.uint64)
    kept = np.array([place % 3 < 2 for place in range(len(texts))])
    found = np.zeros((2, len(texts)), dtype=np.uint64)
    data = lines.data + bytes(4)
    words = np.ndarray(len(data) - 3, dtype="<u4", buffer=data, strides=(1,))
    digest_lines(np.frombuffer(data, np.uint8), words, lines.starts, keys, kept, *found)
    for place, text in enumerate(texts):
        padded = text.encode() + b"\1"
        numbers = np.frombuffer(padded + bytes(-len(padded) % 4), "<u4").tolist()
        sums = [
            (key[0] + sum(map(int.__mul__, key[1:], numbers))) % (1 << 64) >> 32
            for key in keys.T.tolist()
        ]
        expected = [sums[0] << 32 | sums[1], sums[2] << 32 | sums[3]] if kept[place] else [0, 0]
        assert found[:, place].tolist() == expected


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
            left = lines - sum(len(repeats.first_rows(batch)) for batch in Numbers(lines))
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
