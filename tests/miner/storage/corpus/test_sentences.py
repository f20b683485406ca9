import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from miner.storage.corpus.joined import JoinedLines
from miner.storage.corpus.records import Records, Rejection
from miner.storage.corpus.repeats import find_repeats
from miner.storage.corpus.sentences import (
    DUPLICATE_FIELDS,
    SENTENCE_FIELDS,
    CorpusCounts,
    unique_sentences,
)


def raw_of(texts):
    return lambda position: texts[position].encode()


def batches_of(texts, size=3):
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        ids = [f"id{row}" for row in range(start, start + len(part))]
        yield Records.from_columns(start, (ids, ["doc"] * len(part), part), {}, raw_of(part))


def rows(tables, *names):
    return [tuple(row[name] for name in names) for table in tables for row in table.to_pylist()]


def kept_of(sentences):
    return rows([batch.kept for batch in sentences], "row", "id", "text")


def repeated_of(sentences):
    return rows([batch.duplicates for batch in sentences], "row", "id", "first_row")


def rejected_of(sentences):
    return rows([batch.rejected for batch in sentences], "row", "why")


def unique(batches, *, keep_duplicates=False):
    """What is left of all batches, with blocks so small that several are sorted."""
    batches = list(batches)
    with tempfile.TemporaryDirectory() as folder:
        found = nullcontext() if keep_duplicates else find_repeats(batches, Path(folder), block=4)
        with found as repeats:
            return list(unique_sentences(batches, repeats))


def test_first_occurrence_is_kept_across_batches():
    found = unique(batches_of(["a", "b", "a", "", "b", "A", "a ", "a"]))
    assert kept_of(found) == [
        (0, "id0", "a"),
        (1, "id1", "b"),
        (5, "id5", "A"),
        (6, "id6", "a "),
    ]
    assert repeated_of(found) == [(2, "id2", 0), (4, "id4", 1), (7, "id7", 0)]
    assert [rejected_of([batch]) for batch in found] == [[], [(3, "blank")], []]
    assert [sum(map(len, batch)) for batch in found] == [3, 3, 2]


def test_only_exactly_equal_texts_are_duplicates():
    texts = ["é", "e\u0301", "E\u0301", " é", "é\r", "é\u200b"]
    (found,) = unique(batches_of(texts, size=10))
    assert found.kept["text"].to_pylist() == texts


def test_keep_duplicates():
    found = unique(batches_of(["a", "a", " ", "a"]), keep_duplicates=True)
    assert [(row, text) for row, _, text in kept_of(found)] == [(0, "a"), (1, "a"), (3, "a")]
    assert repeated_of(found) == []
    assert sum(len(table) for batch in found for table in batch) == 4


def test_a_rejected_text_is_no_first_occurrence():
    records = Records.from_columns(
        0, (["", ""], ["", ""], ["a", "a"]), {0: Rejection.MALFORMED}, raw_of("{}")
    )
    found = unique([records])
    assert (kept_of(found), repeated_of(found)) == ([(1, "2", "a")], [])


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
    assert kept_of(found) == kept
    assert repeated_of(found) == repeated
    assert dict(rejected_of(found)) == rejected

    counts = CorpusCounts()
    for batch in found:
        counts.add(batch)
    facts = counts.facts()
    assert facts["read"] == len(texts) == counts.kept + counts.duplicates + len(rejected)
    assert (counts.kept, facts["duplicates"]) == (len(kept), len(repeated))
    assert facts["rejected"] == Counter(rejected.values())
    first = {}
    for row, reason in rejected.items():
        first.setdefault(reason, row)
    assert facts["first_rejected"] == first
    assert [*facts["rejected"]] == [why for why in Rejection if why in rejected.values()]


def test_tables():
    (found,) = unique(batches_of(["a", "a", "b\u2028"]))
    assert found.kept.schema == SENTENCE_FIELDS
    assert found.kept.to_pylist() == [
        {"row": 0, "id": "id0", "doc": "doc", "text": "a"},
        {"row": 2, "id": "id2", "doc": "doc", "text": "b\u2028"},
    ]
    assert found.duplicates.to_pylist() == [{"row": 1, "id": "id1", "first_row": 0}]


def test_empty_tables_keep_their_schema():
    (found,) = unique(batches_of([" "]))
    assert found.kept == SENTENCE_FIELDS.empty_table()
    assert found.duplicates == DUPLICATE_FIELDS.empty_table()
    assert pa.types.is_int64(DUPLICATE_FIELDS.field("first_row").type)


LINES = st.lists(
    st.text(st.sampled_from("ab\0 \x85\u3000\u00e9\u4e2d\U0001f600"), max_size=4), min_size=1
)


@given(texts=LINES, first_row=st.integers(0, 2))
def test_lines_become_what_their_texts_do(texts, first_row):
    nothing, lines = [""] * len(texts), JoinedLines.from_texts(texts)
    one, other = (
        unique([Records.from_columns(first_row, (nothing, nothing, column), {}, raw_of(texts))])
        for column in (texts, lines)
    )
    assert one == other
    assert [*lines] == texts
    assert [lines.raw(place).decode() for place in range(len(lines))] == texts
