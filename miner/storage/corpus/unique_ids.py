"""A check that ids of records are unique, by sorting digests on disk.

Memory contains a few blocks of digests, and disk at most 24 bytes per record, in an unnamed file.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from miner.storage.corpus.records import CorpusError, Records, place_of
from miner.storage.corpus.repeats import BLOCK, DIGEST, SortedRecords, digests_of, repeats_among
from miner.storage.places import Place

logger = logging.getLogger(__name__)


class RecordBatches(Protocol):
    """Batches of records of files, with the name and first row of each file."""

    names: list[str]
    starts: list[int]

    def __iter__(self) -> Iterator[Records]:
        """Yield the batches in order."""


class DuplicateId(NamedTuple):
    """An id, and the rows from 0 of the first two records that have it."""

    name: str
    first_row: int
    row: int


class UniqueIds:
    """An iterable over batches of ``corpus``, which can then check its ids.

    The id of a record without one is its number, from 1. Rejected records do not count. The check
    may read the corpus again. With ``within_documents``, an id may recur in another document.
    ``close`` removes the file in ``folder``. ``block`` ids are sorted in memory at a time.
    """

    def __init__(
        self,
        corpus: RecordBatches,
        folder: Path,
        *,
        within_documents: bool = False,
        block: int = BLOCK,
    ) -> None:
        self._corpus, self._within_documents = corpus, within_documents
        self._digests = SortedRecords(folder, DIGEST, block=block)
        self._has_unnamed = False
        self._trimmed: int | None = None
        self.close = self._digests.close

    def __iter__(self) -> Iterator[Records]:
        """Yield the batches in order, for one iteration only."""
        for records in self._corpus:
            if any(records.own_ids) or self._within_documents:
                self._add(records)
            else:
                self._has_unnamed = True
            if self._trimmed is None and records.trimmed is not None:
                self._trimmed = records.first_row + records.trimmed
            yield records

    def check(self, path: Place) -> None:
        """Check that the ids of the corpus are unique.

        Call it once, after the iteration. Messages begin with ``path``. If the ids are unique, and
        spaces around ids or documents were removed, a warning is logged.

        Raises:
            CorpusError: An id recurs. The message has the first such id and both of its places.
        """
        if (duplicate := self.first_duplicate()) is not None:
            first, second = map(self._place_of, (duplicate.first_row, duplicate.row))
            raise CorpusError(
                f"{path}: the id {duplicate.name!r} is in {first} and again in {second}; give each "
                "record its own id"
            )
        if self._trimmed is not None:
            place = self._place_of(self._trimmed)
            line = "%s: removed spaces around ids or documents, first in %s; use ids without them"
            logger.warning(line, path, place)

    def _place_of(self, row: int) -> str:
        return place_of(row, self._corpus.names, self._corpus.starts)

    def _add(self, records: Records) -> None:
        named = replace(records, texts=records.ids())
        self._digests.append(digests_of(named, self._within_documents))

    def first_duplicate(self) -> DuplicateId | None:
        """Return the first id that recurs, or None.

        Call it once, after the iteration, and only instead of ``check``.
        """
        if not len(self._digests):
            return None
        for records in self._corpus if self._has_unnamed else ():
            if not any(records.own_ids):
                self._add(records)
        repeats = [repeats_among(part) for part in self._digests.parts()]
        firsts = [part[part["row"].argmin()].tolist() for part in repeats if len(part)]
        if not firsts:
            return None
        row, first_row = min(firsts)
        batches = (batch for batch in self._corpus if batch.first_row + len(batch) > row)
        records = next(batches)
        return DuplicateId(records.ids()[row - records.first_row], first_row, row)
