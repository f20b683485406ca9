"""Duplicate texts of a corpus, found by sorting digests on disk.

Memory contains a few blocks of digests, for any corpus. Disk contains at most 24 bytes per record
and 16 per duplicate, in unnamed files that end with the process.
"""

import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miner.arrays import Mask
from miner.storage.corpus.joined import JoinedLines
from miner.storage.corpus.records import MAX_CHARACTERS, Records

Hashes = Callable[[Sequence[str], Mask], Sequence[NDArray[np.uint64]]]

# Two hashes of 64 bits with random keys. For few texts, they are Python's (SipHash); for many, they
# are compiled. Among 10**10 different sentences, the probability of a collision is 10**-19.
DIGEST = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<i8")])
REPEAT = np.dtype([("row", "<i8"), ("first_row", "<i8")])
MIN_RECORDS_TO_COMPILE = 1 << 13  # per batch; for fewer, loading Numba takes more than it saves
BLOCK = 1 << 19  # records that are sorted at a time
BLOCK_BYTES = 150  # bytes of memory per record while a block is sorted


class SortedRecords:
    """Records with a 64-bit key, sorted in blocks on disk.

    The first field of ``dtype`` is the key. An unnamed file in ``folder`` stores them until
    ``close``, in sorted blocks of ``block`` records. Call ``append`` only before the other methods.
    """

    def __init__(self, folder: Path, dtype: np.dtype[Any], *, block: int) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)
        self.close = self._file.close
        self._dtype, self._block = dtype, block
        self._key = next(iter(dtype.fields or ()))
        self._buffer: NDArray[np.void] = np.empty(block, dtype=dtype)
        self._buffered = self._written = 0

    def __len__(self) -> int:
        return self._written + self._buffered

    def append(self, records: NDArray[np.void]) -> None:
        """Add records of the given ``dtype``, in any order."""
        while len(records):
            part = records[: self._block - self._buffered]
            self._buffer[self._buffered : self._buffered + len(part)] = part
            self._buffered += len(part)
            records = records[len(part) :]
            if self._buffered == self._block:
                self._write()

    def between(self, low: int, high: int) -> NDArray[np.void]:
        """Return the records with keys in [``low``, ``high``], sorted by key."""
        self._write()
        if not self._written:
            return self._buffer[:0]
        written = np.memmap(self._file, dtype=self._dtype, mode="r")
        bounds = np.array([low, high], dtype=self._dtype[self._key])
        parts = []
        for start in range(0, self._written, self._block):
            block = written[start : start + self._block]
            first = np.searchsorted(block[self._key], bounds[0])
            last = np.searchsorted(block[self._key], bounds[1], side="right")
            parts.append(block[first:last])
        return _sort_by(np.concatenate(parts), self._key)

    def parts(self) -> Iterator[NDArray[np.void]]:
        """Yield all records, sorted by key, about a block at a time.

        Keys must be random uint64: each part has an equal range of keys, and may be empty.
        """
        count = -(-len(self) // self._block)
        for part in range(count):
            yield self.between((part << 64) // count, ((part + 1) << 64) // count - 1)

    def _write(self) -> None:
        self._file.write(_sort_by(self._buffer[: self._buffered], self._key).tobytes())
        self._file.flush()
        self._written, self._buffered = len(self), 0


class Repeats(NamedTuple):
    """The duplicate records of a corpus, and the number of unique ones.

    ``repeats`` has a ``REPEAT`` record per duplicate: its row, and the row of the first record with
    its text. ``unique`` is the number of records that are neither duplicates nor rejected.
    """

    repeats: SortedRecords
    unique: int

    def first_rows(self, records: Records) -> dict[int, int]:
        """Map each duplicate in a batch to the first record with its text.

        Keys are positions in the batch, ascending, and values rows of the corpus, both from 0.
        """
        first_row = records.first_row
        repeats_of_batch = self.repeats.between(first_row, first_row + len(records) - 1)
        repeats_of_batch["row"] -= first_row
        return dict(repeats_of_batch.tolist())


@contextmanager
def find_repeats(
    batches: Iterable[Records],
    folder: Path,
    *,
    within_documents: bool = False,
    key: Callable[[str], str] = str,
    block: int = BLOCK,
) -> Iterator[Repeats]:
    """Yield the ``Repeats`` among records for a ``with`` block.

    A duplicate has the text of an earlier record. The result is valid only in the block.

    Args:
        batches: Batches of all records in order. Rejected ones are ignored.
        folder: For temporary files. If it does not exist or is full, OSError is raised.
        within_documents: Compare only texts of the same document. All unknown ones count as one.
        key: Returns the form in which texts are compared.
        block: How many records are sorted in memory at a time.
    """
    with closing(SortedRecords(folder, REPEAT, block=block)) as repeats:
        with closing(SortedRecords(folder, DIGEST, block=block)) as digests:
            hashes = None
            for records in batches:
                if hashes is None:  # all batches use the same hashes
                    is_plain = key is str and not within_documents
                    is_large = len(records) >= MIN_RECORDS_TO_COMPILE
                    hashes = _compiled_hashes() if is_plain and is_large else _python_hashes
                digests.append(digests_of(records, within_documents, hashes, key))
            for part in digests.parts():
                repeats.append(repeats_among(part))
            unique = len(digests) - len(repeats)
        yield Repeats(repeats, unique)


def repeats_among(digests: NDArray[np.void]) -> NDArray[np.void]:
    """Return a ``REPEAT`` record per repeat of a digest, sorted by digest.

    ``digests`` are ``DIGEST`` records, sorted by ``high``. Of n equal ones, the lowest row is
    ``first_row``, and each of the other n - 1 is the ``row`` of a record.
    """
    is_equal = digests["high"][1:] == digests["high"][:-1]
    is_shared = np.zeros(len(digests), dtype=np.bool_)
    is_shared[1:] |= is_equal
    is_shared[:-1] |= is_equal
    candidates = digests[is_shared]
    ordered = candidates[np.lexsort((candidates["row"], candidates["low"], candidates["high"]))]
    is_first = np.ones(len(ordered), dtype=bool)
    high, low = ordered["high"], ordered["low"]
    is_first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    first_rows = ordered["row"][is_first][np.cumsum(is_first) - 1]
    repeats = np.empty(len(ordered) - np.count_nonzero(is_first), dtype=REPEAT)
    repeats["row"], repeats["first_row"] = ordered["row"][~is_first], first_rows[~is_first]
    return repeats


def _python_hashes(texts: Sequence[str], kept: Mask) -> list[NDArray[np.uint64]]:
    subset = [*compress(texts, kept)]
    return [
        np.fromiter(map(hash, map(salt.__add__, subset)), np.int64, len(subset)).view(np.uint64)
        for salt in ("\1", "\2")
    ]


def digests_of(
    records: Records,
    within_documents: bool,
    hashes: Hashes = _python_hashes,
    key: Callable[[str], str] = str,
) -> NDArray[np.void]:
    """Return a ``DIGEST``, 128 bits and the row, of each record not rejected.

    ``within_documents`` and ``key`` are as in ``find_repeats``. ``hashes`` returns two uint64
    arrays (K,) for N texts and a mask (N,) of K. By default, hashes differ between processes.
    """
    kept, texts = np.ones(len(records), dtype=np.bool_), records.texts
    kept[np.fromiter(records.rejected, np.int64)] = False
    if key is not str:
        texts = [*map(key, texts)]
    if within_documents:  # NUL separates them, because texts have none
        texts = [f"{text}\0{doc}" for text, doc in zip(texts, records.docs, strict=True)]
    digests = np.empty(np.count_nonzero(kept), dtype=DIGEST)
    digests["high"], digests["low"] = hashes(texts, kept)
    digests["row"] = np.flatnonzero(kept) + records.first_row
    return digests


def _compiled_hashes() -> Hashes:
    from miner.storage.corpus.compiled import digest_lines  # loads Numba

    numbers = secrets.token_bytes(8 * 4 * (MAX_CHARACTERS + 2))  # a character has up to 4 bytes
    keys = np.frombuffer(numbers, np.uint64).reshape(-1, 4)

    def hashes(texts: Sequence[str], kept: Mask) -> list[NDArray[np.uint64]]:
        if not isinstance(texts, JoinedLines):
            texts = JoinedLines.from_texts(compress(texts, kept))
            kept = np.ones(len(texts), dtype=np.bool_)
        data = texts.data + bytes(4)
        words = np.ndarray(len(data) - 3, dtype="<u4", buffer=data, strides=(1,))
        digests = np.zeros((2, len(texts)), dtype=np.uint64)
        digest_lines(np.frombuffer(data, np.uint8), words, texts.starts, keys, kept, *digests)
        return [*digests[:, kept]]

    return hashes


def _sort_by(records: NDArray[np.void], key: str) -> NDArray[np.void]:
    # Indexing by the order instead of ``take`` takes 15 times as long.
    return records.take(np.argsort(records[key], kind="stable"))
