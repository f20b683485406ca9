"""Division of records into unique sentences, duplicates and rejections."""

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
# ``first_row`` is the row of the first sentence with the text.
DUPLICATE_FIELDS = pa.schema({"row": pa.int64(), "id": pa.string(), "first_row": pa.int64()})
# ``text`` is the text or the line in the file.
REJECTED_FIELDS = pa.schema({"row": pa.int64(), "why": pa.string(), "text": pa.string()})


class Sentences(NamedTuple):
    """Tables of the kept, the duplicate and the rejected records of a batch.

    They have ``SENTENCE_FIELDS``, ``DUPLICATE_FIELDS`` and ``REJECTED_FIELDS``.
    """

    kept: pa.Table
    duplicates: pa.Table
    rejected: pa.Table


@dataclass(kw_only=True)
class CorpusCounts:
    """Numbers of the kept, duplicate and rejected records of a corpus.

    ``rejected`` counts by ``Rejection``. ``first_rejected`` has the first row of each, from 0.
    """

    kept: int = 0
    duplicates: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    first_rejected: dict[str, int] = field(default_factory=dict)

    def add(self, sentences: Sentences) -> None:
        """Count the records of the next batch."""
        self.kept += len(sentences.kept)
        self.duplicates += len(sentences.duplicates)
        for record in sentences.rejected.select(["row", "why"]).to_pylist():
            self.rejected[record["why"]] += 1
            self.first_rejected.setdefault(record["why"], record["row"])

    def facts(self) -> dict[str, Any]:
        """Return the counts as JSON values, by name.

        They are ``read`` (all records), ``duplicates``, and by reason ``rejected`` and
        ``first_rejected``. Reasons are in the order of ``Rejection``, absent without records.
        """
        reasons = [str(reason) for reason in Rejection if reason in self.rejected]
        return {
            "read": self.kept + self.duplicates + self.rejected.total(),
            "duplicates": self.duplicates,
            "rejected": {reason: self.rejected[reason] for reason in reasons},
            "first_rejected": {reason: self.first_rejected[reason] for reason in reasons},
        }


def unique_sentences(batches: Iterable[Records], repeats: Repeats | None) -> Iterator[Sentences]:
    """Yield the kept, duplicate and rejected records of each batch as tables.

    ``repeats`` has the duplicates of all batches. If it is None, no record counts as a duplicate.
    """
    for records in batches:
        yield _sentences(records, repeats.first_rows(records) if repeats else {})


def _sentences(records: Records, repeats: dict[int, int]) -> Sentences:
    first_row, own_ids = records.first_row, records.own_ids
    dropped = np.fromiter({*repeats, *records.rejected}, np.int64)

    def table(positions: Iterable[int], *columns: Iterable[object], schema: pa.Schema) -> pa.Table:
        rows = [first_row + position for position in positions]
        return pa.table([rows, *map(list, columns)], schema=schema)

    repeat_ids = [own_ids[position] or str(first_row + position + 1) for position in repeats]
    why = map(str, records.rejected.values())
    return Sentences(
        _kept(records, dropped),
        table(repeats, repeat_ids, repeats.values(), schema=DUPLICATE_FIELDS),
        table(records.rejected, why, records.rejected_texts.values(), schema=REJECTED_FIELDS),
    )


def _kept(records: Records, dropped: NDArray[np.int64]) -> pa.Table:
    rows = np.arange(len(records)) + records.first_row
    kept = np.ones(len(records), dtype=np.bool_)
    kept[dropped] = False
    if isinstance(records.texts, JoinedLines):  # lines have neither ids nor documents
        ids = pc.cast(pa.array(rows + 1), pa.string())
        columns = [rows, ids, pa.repeat("", len(rows)), records.texts.column()]
        table = pa.table(columns, schema=SENTENCE_FIELDS)
        return table.filter(pa.array(kept)) if len(dropped) else table
    columns = [[*compress(column, kept)] for column in (records.ids(), records.docs, records.texts)]
    return pa.table([rows[kept], *columns], SENTENCE_FIELDS)
