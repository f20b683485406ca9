"""Which rows of a corpus repeat the text of an earlier one, found by sorting digests on disk.

Memory holds one block of them, whatever the corpus; the disk holds 24 bytes for each record and 16
for each repeated one, in unnamed files that are gone when the process is.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miner.storage.corpus.records import Records

# Two of Python's hashes of 64 bits (SipHash), which are keyed anew in each process that does not
# ask for others: among 10**10 sentences, the odds that any two differing ones collide are 10**-19.
DIGEST = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<i8")])
REPEAT = np.dtype([("row", "<i8"), ("first_row", "<i8")])
BLOCK = 1 << 19  # records that are sorted at a time
BLOCK_BYTES = 150  # of each of them then


class SortedRecords:
    """Records on disk in the order of their first field, equal ones in the order they came.

    One file holds block after block, each sorted; a range of keys is gathered from all of them.
    """

    def __init__(self, folder: Path, dtype: np.dtype[Any], *, block: int) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)
        self._dtype, self._block = dtype, block
        self._key = next(iter(dtype.fields or ()))
        self._waiting: NDArray[np.void] = np.empty(block, dtype=dtype)
        self._filled = self._written = 0

    def __len__(self) -> int:
        return self._written + self._filled

    def append(self, records: NDArray[np.void]) -> None:
        """Add some at the end."""
        while len(records):
            piece = records[: self._block - self._filled]
            self._waiting[self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            records = records[len(piece) :]
            if self._filled == self._block:
                self._write()

    def between(self, low: int, high: int) -> NDArray[np.void]:
        """Those whose keys are from ``low`` to ``high``, both included; none can be added then."""
        self._write()
        if not self._written:
            return self._waiting[:0]
        written = np.memmap(self._file, dtype=self._dtype, mode="r")
        bounds = np.array([low, high], dtype=self._dtype[self._key])
        parts = []
        for start in range(0, self._written, self._block):
            block = written[start : start + self._block]
            first = np.searchsorted(block[self._key], bounds[0])
            last = np.searchsorted(block[self._key], bounds[1], side="right")
            parts.append(block[first:last])
        return _sorted(np.concatenate(parts), self._key)

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    def _write(self) -> None:
        self._file.write(_sorted(self._waiting[: self._filled], self._key).tobytes())
        self._file.flush()
        self._written, self._filled = len(self), 0


class Repeats:
    """The repeated records of a corpus; ``unique`` others can be mined."""

    def __init__(self, repeats: SortedRecords, *, unique: int) -> None:
        self.unique = unique
        self._repeats = repeats

    def of(self, records: Records) -> dict[int, int]:
        """Position to the first row with the same text, of those in a batch that repeat one."""
        first_row = records.first_row
        found = self._repeats.between(first_row, first_row + len(records) - 1)
        positions = found["row"] - first_row
        return dict(zip(positions.tolist(), found["first_row"].tolist(), strict=True))


@contextmanager
def find_repeats(
    batches: Iterable[Records],
    folder: Path,
    *,
    within_documents: bool = False,
    key: Callable[[str], str] = str,
    block: int = BLOCK,
) -> Iterator[Repeats]:
    """Find the records whose text an earlier one has; all others are the first of theirs.

    Two texts are the same if all the characters of their keys are; rejected records have none.

    Args:
        batches: what ``open_corpus`` gives, all of it.
        folder: where to sort.
        within_documents: look for repeated texts in each document by itself.
        key: what of a text is compared; all of it as it is if left out.
        block: how many records are in memory at a time.
    """
    with closing(SortedRecords(folder, REPEAT, block=block)) as repeats:
        with closing(SortedRecords(folder, DIGEST, block=block)) as digests:
            for records in batches:
                digests.append(_digests(records, within_documents, key))
            for low, high in _ranges(-(-len(digests) // block)):
                repeats.append(repeats_among(digests.between(low, high)))
            unique = len(digests) - len(repeats)
        yield Repeats(repeats, unique=unique)


def repeats_among(digests: NDArray[np.void]) -> NDArray[np.void]:
    """Of ``DIGEST`` records, those that are equal to one of a smaller row, as ``REPEAT``.

    They come in order of ``high``; nearly all of them differ in it, and need no sorting.
    """
    same = digests["high"][1:] == digests["high"][:-1]
    met = np.zeros(len(digests), dtype=np.bool_)
    met[1:] |= same
    met[:-1] |= same
    alike = digests[met]
    ordered = alike[np.lexsort((alike["row"], alike["low"], alike["high"]))]
    is_first = np.ones(len(ordered), dtype=bool)
    high, low = ordered["high"], ordered["low"]
    is_first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    first_rows = ordered["row"][is_first][np.cumsum(is_first) - 1]
    repeats = np.empty(len(ordered) - np.count_nonzero(is_first), dtype=REPEAT)
    repeats["row"], repeats["first_row"] = ordered["row"][~is_first], first_rows[~is_first]
    return repeats


def _digests(
    records: Records, within_documents: bool, key: Callable[[str], str]
) -> NDArray[np.void]:
    kept = np.ones(len(records), dtype=np.bool_)
    kept[np.fromiter(records.rejected, np.int64)] = False
    texts = [*map(key, compress(records.texts, kept))]
    if within_documents:  # a text has no NUL
        docs = compress(records.docs, kept)
        texts = [f"{text}\0{doc}" for text, doc in zip(texts, docs, strict=True)]
    digests = np.empty(len(texts), dtype=DIGEST)
    for half, salt in (("high", "\1"), ("low", "\2")):
        hashes = np.fromiter(map(hash, map(salt.__add__, texts)), np.int64, len(texts))
        digests[half] = hashes.view(np.uint64)
    digests["row"] = np.flatnonzero(kept) + records.first_row
    return digests


def _ranges(count: int) -> Iterator[tuple[int, int]]:
    """Yield all keys in equal ranges, which have about as many digests each."""
    for number in range(count):
        yield (number << 64) // count, ((number + 1) << 64) // count - 1


def _sorted(records: NDArray[np.void], key: str) -> NDArray[np.void]:
    return records[np.argsort(records[key], kind="stable")]
