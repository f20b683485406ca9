import dataclasses
import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.storage.corpus.records import Rejection, checked_records
from miner.storage.corpus.repeats import find_repeats
from miner.storage.corpus.sentences import (
    CorpusCounts,
    duplicates_schema,
    duplicates_table,
    sentences_schema,
    sentences_table,
    unique_sentences,
)


def raw_of(texts):
    return lambda position: texts[position].encode()


def batches_of(texts, size=3):
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        ids = [f"id{row}" for row in range(start, start + len(part))]
        yield checked_records(start, ids, ["doc"] * len(part), part, {}, raw_of(part))


def columns(sentences, names):
    parts = ([getattr(batch, name) for name in names] for batch in sentences)
    return [row for part in parts for row in zip(*part, strict=True)]


def unique(batches, *, keep_duplicates=False):
    """What is left of all batches, with blocks so small that several are sorted."""
    batches = list(batches)
    with tempfile.TemporaryDirectory() as folder:
        found = nullcontext() if keep_duplicates else find_repeats(batches, Path(folder), block=4)
        with found as repeats:
            return list(unique_sentences(batches, repeats))


KEPT = ("rows", "ids", "texts")
REPEATED = ("duplicate_rows", "duplicate_ids", "duplicate_first_rows")


def test_first_occurrence_is_kept_across_batches():
    found = unique(batches_of(["a", "b", "a", "", "b", "A", "a ", "a"]))
    assert columns(found, KEPT) == [
        (0, "id0", "a"),
        (1, "id1", "b"),
        (5, "id5", "A"),
        (6, "id6", "a "),
    ]
    assert columns(found, REPEATED) == [(2, "id2", 0), (4, "id4", 1), (7, "id7", 0)]
    assert [batch.rejected for batch in found] == [{}, {3: Rejection.BLANK}, {}]
    assert [batch.read for batch in found] == [3, 3, 2]


def test_only_exactly_equal_texts_are_duplicates():
    texts = ["é", "e\u0301", "E\u0301", " é", "é\r", "é\u200b"]
    (found,) = unique(batches_of(texts, size=10))
    assert found.texts == texts


def test_keep_duplicates():
    found = unique(batches_of(["a", "a", " ", "a"]), keep_duplicates=True)
    assert columns(found, ("rows", "texts")) == [(0, "a"), (1, "a"), (3, "a")]
    assert columns(found, REPEATED) == []
    assert sum(batch.read for batch in found) == 4


def test_a_rejected_text_is_no_first_occurrence():
    records = checked_records(
        0, ["", ""], ["", ""], ["a", "a"], {0: Rejection.MALFORMED}, raw_of("{}")
    )
    (found,) = unique([records])
    assert (found.rows, found.duplicate_rows) == ([1], [])


@given(
    texts=st.lists(st.text("ab \0", max_size=2), max_size=30),
    size=st.integers(1, 7),
    keep_duplicates=st.booleans(),
)
def test_every_record_is_accounted_for(texts, size, keep_duplicates):
    found = unique(batches_of(texts, size), keep_duplicates=keep_duplicates)
    first_rows, kept, repeated, rejected = {}, [], [], {}
    for row, text in enumerate(texts):
        if "\0" in text:
            rejected[row] = "NUL"
        elif not text.strip():
            rejected[row] = "blank"
        elif text in first_rows and not keep_duplicates:
            repeated.append((row, f"id{row}", first_rows[text]))
        else:
            first_rows.setdefault(text, row)
            kept.append((row, f"id{row}", text))
    assert columns(found, KEPT) == kept
    assert columns(found, REPEATED) == repeated
    assert {row: why for batch in found for row, why in batch.rejected.items()} == rejected

    counts = sum((CorpusCounts.of(batch) for batch in found), CorpusCounts())
    assert counts.read == len(texts) == counts.kept + counts.duplicates + len(rejected)
    assert (counts.kept, counts.duplicates) == (len(kept), len(repeated))
    assert counts.rejected == Counter(rejected.values())
    first = {}
    for row, reason in rejected.items():
        first.setdefault(reason, row)
    assert counts.first_rejected == first


def test_counts_must_add_up():
    with pytest.raises(AssertionError):
        CorpusCounts(read=3, kept=1, duplicates=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        CorpusCounts().read = 1


def test_counts_add_in_any_order():
    left = CorpusCounts(read=2, kept=1, rejected={"NUL": 1}, first_rejected={"NUL": 9})
    right = CorpusCounts(
        read=3, rejected={"NUL": 2, "blank": 1}, first_rejected={"NUL": 4, "blank": 5}
    )
    assert left + right == right + left
    assert (left + right).rejected == {"NUL": 3, "blank": 1}
    assert (left + right).first_rejected == {"NUL": 4, "blank": 5}


def test_tables():
    (found,) = unique(batches_of(["a", "a", "b\u2028"]))
    assert sentences_table(found).schema == sentences_schema()
    assert sentences_table(found).to_pylist() == [
        {"row": 0, "id": "id0", "doc": "doc", "text": "a"},
        {"row": 2, "id": "id2", "doc": "doc", "text": "b\u2028"},
    ]
    assert duplicates_table(found).to_pylist() == [{"row": 1, "id": "id1", "first_row": 0}]


def test_empty_tables_keep_their_schema():
    (found,) = unique(batches_of([" "]))
    assert sentences_table(found) == sentences_schema().empty_table()
    assert duplicates_table(found) == duplicates_schema().empty_table()
    assert pa.types.is_int64(duplicates_schema().field("first_row").type)
