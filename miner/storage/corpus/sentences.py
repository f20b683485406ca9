"""Records to the sentences that are mined: each text once, and everything else accounted for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from miner.storage.corpus.records import Records, Rejection

if TYPE_CHECKING:
    import pyarrow as pa

    from miner.storage.corpus.repeats import Repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """What one batch of records comes to; the three parts together are its ``read`` records.

    The kept are ``rows``, ``ids``, ``docs`` and ``texts``; the repeated are ``duplicate_rows``
    and ``duplicate_ids``, with the row of the kept sentence of the same text (of this batch or an
    earlier one) in ``duplicate_first_rows``; ``rejected`` maps rows to the reason,
    ``rejected_texts`` to what was found there.
    """

    read: int
    rows: list[int]
    ids: list[str]
    docs: list[str]
    texts: list[str]
    duplicate_rows: list[int]
    duplicate_ids: list[str]
    duplicate_first_rows: list[int]
    rejected: dict[int, Rejection]
    rejected_texts: dict[int, str]


@dataclass(frozen=True, kw_only=True)
class CorpusCounts:
    """What became of a corpus's records: read = kept + duplicates + rejected.

    ``rejected`` counts by reason, without the reasons that did not occur; ``first_rejected`` is
    the row (from 0) of each reason's first. Counts of parts of a corpus add up with ``+``.
    """

    read: int = 0
    kept: int = 0
    duplicates: int = 0
    rejected: Mapping[Rejection, int] = field(default_factory=dict)
    first_rejected: Mapping[Rejection, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.read == self.kept + self.duplicates + sum(self.rejected.values())

    @classmethod
    def of(cls, sentences: Sentences) -> CorpusCounts:
        """Return the counts of one batch."""
        rejected: dict[Rejection, int] = {}
        first: dict[Rejection, int] = {}
        for row, reason in sentences.rejected.items():
            rejected[reason] = rejected.get(reason, 0) + 1
            first[reason] = min(first.get(reason, row), row)
        return cls(
            read=sentences.read,
            kept=len(sentences.rows),
            duplicates=len(sentences.duplicate_rows),
            rejected=rejected,
            first_rejected=first,
        )

    def __add__(self, other: CorpusCounts) -> CorpusCounts:
        reasons = [reason for reason in Rejection if reason in {*self.rejected, *other.rejected}]
        return CorpusCounts(
            read=self.read + other.read,
            kept=self.kept + other.kept,
            duplicates=self.duplicates + other.duplicates,
            rejected={
                reason: self.rejected.get(reason, 0) + other.rejected.get(reason, 0)
                for reason in reasons
            },
            first_rejected={
                reason: min(
                    part.first_rejected[reason]
                    for part in (self, other)
                    if reason in part.first_rejected
                )
                for reason in reasons
            },
        )


def unique_sentences(batches: Iterable[Records], repeats: Repeats | None) -> Iterator[Sentences]:
    """Leave out what is rejected or repeated, a batch at a time.

    Args:
        batches: what ``open_corpus`` gives.
        repeats: what ``find_repeats`` found in the same batches; None keeps repeated texts, too.

    Yields:
        One ``Sentences`` for each batch; ``CorpusCounts.of`` counts it.
    """
    for records in batches:
        yield _sentences(records, repeats.of(records) if repeats else {})


def _sentences(records: Records, repeats: dict[int, int]) -> Sentences:
    ids, left_out = records.ids(), {*repeats, *records.rejected}
    kept = [position for position in range(len(records)) if position not in left_out]

    def those_kept(column: list[str]) -> list[str]:
        return [column[position] for position in kept] if left_out else column

    return Sentences(
        read=len(records),
        rows=[records.first_row + position for position in kept],
        ids=those_kept(ids),
        docs=those_kept(records.docs),
        texts=those_kept(records.texts),
        duplicate_rows=[records.first_row + position for position in repeats],
        duplicate_ids=[ids[position] for position in repeats],
        duplicate_first_rows=list(repeats.values()),
        rejected={
            records.first_row + position: reason for position, reason in records.rejected.items()
        },
        rejected_texts={
            records.first_row + position: text for position, text in records.rejected_texts.items()
        },
    )


def sentences_schema() -> pa.Schema:
    """Return the Arrow schema of the kept sentences."""
    import pyarrow as pa

    return pa.schema(
        {"row": pa.int64(), "id": pa.string(), "doc": pa.string(), "text": pa.string()}
    )


def duplicates_schema() -> pa.Schema:
    """The Arrow schema of the repeated sentences: row, id, and the row that stands for it."""
    import pyarrow as pa

    return pa.schema({"row": pa.int64(), "id": pa.string(), "first_row": pa.int64()})


def sentences_table(sentences: Sentences) -> pa.Table:
    """Return the kept sentences of a batch, of ``sentences_schema``."""
    import pyarrow as pa

    columns = [sentences.rows, sentences.ids, sentences.docs, sentences.texts]
    return pa.table(columns, schema=sentences_schema())


def duplicates_table(sentences: Sentences) -> pa.Table:
    """Return the repeated sentences of a batch, of ``duplicates_schema``."""
    import pyarrow as pa

    columns = [
        sentences.duplicate_rows,
        sentences.duplicate_ids,
        sentences.duplicate_first_rows,
    ]
    return pa.table(columns, schema=duplicates_schema())


def rejected_schema() -> pa.Schema:
    """The Arrow schema of what was rejected: row, why, and the text or line that was found."""
    import pyarrow as pa

    return pa.schema({"row": pa.int64(), "why": pa.string(), "text": pa.string()})


def rejected_table(sentences: Sentences) -> pa.Table:
    """Return what was rejected of a batch, of ``rejected_schema``."""
    import pyarrow as pa

    columns = [
        list(sentences.rejected),
        [str(why) for why in sentences.rejected.values()],
        list(sentences.rejected_texts.values()),
    ]
    return pa.table(columns, schema=rejected_schema())
