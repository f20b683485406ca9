"""Records to the sentences that are mined: each text once, and everything else accounted for."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from miner.storage.corpus.joined import JoinedLines
from miner.storage.corpus.records import Records, Rejection
from miner.storage.corpus.repeats import Repeats

SENTENCE_FIELDS = pa.schema(
    {"row": pa.int64(), "id": pa.string(), "doc": pa.string(), "text": pa.string()}
)
# ``first_row`` is that of the sentence that stands for a repeated one.
DUPLICATE_FIELDS = pa.schema({"row": pa.int64(), "id": pa.string(), "first_row": pa.int64()})
# ``text`` is the text or the line that was found.
REJECTED_FIELDS = pa.schema({"row": pa.int64(), "why": pa.string(), "text": pa.string()})


class Sentences(NamedTuple):
    """What a batch of records comes to, each of them in one of three tables of those fields."""

    kept: pa.Table
    duplicates: pa.Table
    rejected: pa.Table


@dataclass(kw_only=True)
class CorpusCounts:
    """What became of a corpus's records: read = kept + duplicates + rejected.

    ``rejected`` counts by reason; ``first_rejected`` is the row (from 0) of each reason's first.
    """

    kept: int = 0
    duplicates: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    first_rejected: dict[str, int] = field(default_factory=dict)

    def add(self, sentences: Sentences) -> None:
        """Add those of the next batch."""
        self.kept += len(sentences.kept)
        self.duplicates += len(sentences.duplicates)
        for record in sentences.rejected.select(["row", "why"]).to_pylist():
            self.rejected[record["why"]] += 1
            self.first_rejected.setdefault(record["why"], record["row"])

    def facts(self) -> dict[str, Any]:
        """Return them as JSON values: ``read`` and all but ``kept``, reasons in a fixed order."""
        reasons = [str(reason) for reason in Rejection if reason in self.rejected]
        return {
            "read": self.kept + self.duplicates + self.rejected.total(),
            "duplicates": self.duplicates,
            "rejected": {reason: self.rejected[reason] for reason in reasons},
            "first_rejected": {reason: self.first_rejected[reason] for reason in reasons},
        }


def unique_sentences(batches: Iterable[Records], repeats: Repeats | None) -> Iterator[Sentences]:
    """Leave out what is rejected and, unless ``repeats`` is None, repeated, batch by batch."""
    for records in batches:
        yield _sentences(records, repeats.of(records) if repeats else {})


def _sentences(records: Records, repeats: dict[int, int]) -> Sentences:
    first, own = records.first_row, records.own_ids
    left_out = np.fromiter({*repeats, *records.rejected}, np.int64)

    def table(positions: Iterable[int], *columns: Iterable[object], schema: pa.Schema) -> pa.Table:
        rows = [first + position for position in positions]
        return pa.table([rows, *map(list, columns)], schema=schema)

    again = [own[position] or str(first + position + 1) for position in repeats]
    why = map(str, records.rejected.values())
    return Sentences(
        _kept(records, left_out),
        table(repeats, again, repeats.values(), schema=DUPLICATE_FIELDS),
        table(records.rejected, why, records.rejected_texts.values(), schema=REJECTED_FIELDS),
    )


def _kept(records: Records, left_out: NDArray[np.int64]) -> pa.Table:
    rows = np.arange(len(records)) + records.first_row
    kept = np.ones(len(records), dtype=np.bool_)
    kept[left_out] = False
    if isinstance(records.texts, JoinedLines):  # which have neither ids nor documents
        ids = pc.cast(pa.array(rows + 1), pa.string())
        columns = [rows, ids, pa.repeat("", len(rows)), records.texts.column()]
        whole = pa.table(columns, schema=SENTENCE_FIELDS)
        return whole.filter(pa.array(kept)) if len(left_out) else whole
    texts = (records.ids(), records.docs, records.texts)
    return pa.table([rows[kept], *(list(compress(each, kept)) for each in texts)], SENTENCE_FIELDS)
