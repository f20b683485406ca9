"""A check that ids of records are unique, by sorting hashes on disk.

Memory contains one block of hashes, for any corpus. Disk contains 16 bytes per record of a corpus
with ids, in an unnamed file.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from miner.storage.corpus.records import CorpusError, Records, place_of
from miner.storage.corpus.repeats import BLOCK, SortedRecords
from miner.storage.places import Place

logger = logging.getLogger(__name__)

HASH = np.dtype([("hash", "<u8"), ("row", "<i8")])
MAX_SUSPECTS = 1000  # pairs of records with equal hashes, whose ids are compared


class RecordBatches(Protocol):
    """Batches of records of files, with the row at which each file begins."""

    names: list[str]
    starts: list[int]

    def __iter__(self) -> Iterator[Records]:
        """Yield the batches in order."""


class DuplicateId(NamedTuple):
    """An id, and the rows of the first two records that have it."""

    name: str
    first_row: int
    row: int


class UniqueIds:
    """An iterable over a corpus, which can then check that ids are unique.

    A record without an id has its number as an id, and is stored only if another record has an id.
    ``within_documents``, an id may be repeated in another document.
    """

    def __init__(
        self,
        corpus: RecordBatches,
        folder: Path,
        *,
        within_documents: bool = False,
        block: int = BLOCK,
    ) -> None:
        self._corpus, self._block = corpus, block
        self._within_documents = within_documents
        self._hashes = SortedRecords(folder, HASH, block=block)
        self._unnamed_rows: list[tuple[int, int]] = []  # ranges of rows without ids
        self._trimmed: int | None = None
        self.close = self._hashes.close

    def __iter__(self) -> Iterator[Records]:
        """Yield the batches in order."""
        for records in self._corpus:
            self._add(records)
            if self._trimmed is None and records.trimmed is not None:
                self._trimmed = records.first_row + records.trimmed
            yield records

    def check(self, path: Place) -> None:
        """Check that the ids of the corpus at ``path`` are unique.

        Raises:
            CorpusError: One line with the first duplicate id and both of its places.
        """
        if (duplicate := self.first_duplicate()) is not None:
            first, second = map(self._place_of, (duplicate.first_row, duplicate.row))
            raise CorpusError(
                f"{path}: the id {duplicate.name!r} is in {first} and again in {second}; give each "
                "record its own id"
            )
        if self._trimmed is not None:
            place = self._place_of(self._trimmed)
            logger.warning("%s: removed spaces at the ends of ids, first in %s", path, place)

    def _place_of(self, row: int) -> str:
        return place_of(row, self._corpus.names, self._corpus.starts)

    def _add(self, records: Records) -> None:
        start, end = records.first_row, records.first_row + len(records)
        if any(records.own_ids) or self._within_documents:
            kept = np.ones(len(records), dtype=np.bool_)
            kept[np.fromiter(records.rejected, np.int64)] = False
            self._append(self._keys(records), np.arange(start, end), kept)
        elif self._unnamed_rows and self._unnamed_rows[-1][1] == start:
            self._unnamed_rows[-1] = self._unnamed_rows[-1][0], end
        else:
            self._unnamed_rows.append((start, end))

    def first_duplicate(self) -> DuplicateId | None:
        """Return the first duplicate id, if any."""
        if not len(self._hashes):
            return None
        for first, last_row in self._unnamed_rows:
            for start in range(first, last_row, self._block):
                rows = np.arange(start, min(last_row, start + self._block))
                self._append([str(row + 1) for row in rows.tolist()], rows)
        suspects = sorted(self._suspects(), key=lambda rows: rows[1])[:MAX_SUSPECTS]
        return self._first_equal(suspects) if suspects else None

    def _keys(self, records: Records) -> list[str]:
        ids = records.ids()
        if not self._within_documents:
            return ids
        return [f"{name}\0{doc}" for name, doc in zip(ids, records.docs, strict=True)]

    def _append(
        self, ids: Sequence[str], rows: NDArray[np.int64], kept: NDArray[np.bool_] | None = None
    ) -> None:
        hashes = np.empty(len(rows), dtype=HASH)
        hashes["hash"] = np.fromiter(map(hash, ids), np.int64, len(rows)).view(np.uint64)
        hashes["row"] = rows
        self._hashes.append(hashes if kept is None else hashes[kept])

    def _suspects(self) -> Iterator[tuple[int, int]]:
        for hashes in self._hashes.parts():
            shared = np.zeros(len(hashes), dtype=np.bool_)
            shared[1:] = hashes["hash"][1:] == hashes["hash"][:-1]
            shared[:-1] |= shared[1:]
            hashes = hashes[shared]
            hashes = hashes[np.lexsort((hashes["row"], hashes["hash"]))]
            second = np.flatnonzero(hashes["hash"][1:] == hashes["hash"][:-1])
            rows = hashes["row"][second + 1]
            second = second[np.argsort(rows, kind="stable")[:MAX_SUSPECTS]]
            yield from zip(
                hashes["row"][second].tolist(), hashes["row"][second + 1].tolist(), strict=True
            )

    def _first_equal(self, suspects: Sequence[tuple[int, int]]) -> DuplicateId | None:
        wanted = {row for pair in suspects for row in pair}
        last_row, keys = max(wanted), dict[int, str]()
        for records in self._corpus:
            start, names = records.first_row, self._keys(records)
            items = [row - start for row in wanted if start <= row < start + len(records)]
            keys |= {item + start: names[item] for item in items if item not in records.rejected}
            if start + len(records) > last_row:
                break
        for first, row in suspects:
            if first in keys and keys[first] == keys.get(row):
                return DuplicateId(keys[row].partition("\0")[0], first, row)
        return None
