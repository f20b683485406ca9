"""Which rows of a corpus repeat the text of an earlier one, found by sorting digests on disk.

Memory holds one block of them, whatever the corpus; the disk holds 24 bytes for each record and 16
for each repeated one, in unnamed files that are gone when the process is.
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

# Two hashes of 64 bits: of few texts Python's (SipHash), which are keyed anew in each process that
# does not ask for others, of many compiled ones, keyed anew each time: among 10**10 sentences, the
# odds that any two differing ones collide are 10**-19.
DIGEST = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<i8")])
REPEAT = np.dtype([("row", "<i8"), ("first_row", "<i8")])
COMPILED_FROM = 1 << 13  # records in a batch: for fewer, loading Numba takes longer than it saves
BLOCK = 1 << 19  # records that are sorted at a time
BLOCK_BYTES = 150  # of each of them then


class SortedRecords:
    """Records on disk in the order of their first field, equal ones in the order they came.

    One file holds block after block, each sorted; a range of keys is gathered from all of them.
    """

    def __init__(self, folder: Path, dtype: np.dtype[Any], *, block: int) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)
        self.close = self._file.close
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

    def _write(self) -> None:
        self._file.write(_sorted(self._waiting[: self._filled], self._key).tobytes())
        self._file.flush()
        self._written, self._filled = len(self), 0


class Repeats(NamedTuple):
    """The repeated records of a corpus; ``unique`` others can be mined."""

    repeats: SortedRecords
    unique: int

    def of(self, records: Records) -> dict[int, int]:
        """Position to the first row with the same text, of those in a batch that repeat one."""
        first_row = records.first_row
        found = self.repeats.between(first_row, first_row + len(records) - 1)
        found["row"] -= first_row
        return dict(found.tolist())


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

    Two texts are the same if all the characters of what ``key`` makes of them are; rejected records
    have none. ``within_documents``, each document is looked at by itself. They are sorted in the
    folder, ``block`` of them at a time in memory.
    """
    with closing(SortedRecords(folder, REPEAT, block=block)) as repeats:
        with closing(SortedRecords(folder, DIGEST, block=block)) as digests:
            hashes = None
            for records in batches:
                if hashes is None:  # one way for all batches
                    is_plain = key is str and not within_documents
                    is_large = len(records) >= COMPILED_FROM
                    hashes = _compiled_hashes() if is_plain and is_large else _hashes
                digests.append(_digests(records, within_documents, key, hashes))
            count = -(-len(digests) // block)
            for part in range(count):  # equal ranges of keys, which have about as many digests each
                low, high = (part << 64) // count, ((part + 1) << 64) // count - 1
                repeats.append(repeats_among(digests.between(low, high)))
            unique = len(digests) - len(repeats)
        yield Repeats(repeats, unique)


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
    records: Records, within_documents: bool, key: Callable[[str], str], hashes: Hashes
) -> NDArray[np.void]:
    kept = np.ones(len(records), dtype=np.bool_)
    kept[np.fromiter(records.rejected, np.int64)] = False
    texts, chosen = records.texts, kept
    if key is not str or within_documents:
        texts = [*map(key, compress(texts, kept))]
        chosen = np.ones(len(texts), dtype=np.bool_)
    if within_documents:  # a text has no NUL
        docs = compress(records.docs, kept)
        texts = [f"{text}\0{doc}" for text, doc in zip(texts, docs, strict=True)]
    digests = np.empty(np.count_nonzero(kept), dtype=DIGEST)
    digests["high"], digests["low"] = hashes(texts, chosen)
    digests["row"] = np.flatnonzero(kept) + records.first_row
    return digests


def _hashes(texts: Sequence[str], kept: Mask) -> list[NDArray[np.uint64]]:
    chosen = [*compress(texts, kept)]
    return [
        np.fromiter(map(hash, map(salt.__add__, chosen)), np.int64, len(chosen)).view(np.uint64)
        for salt in ("\1", "\2")
    ]


def _compiled_hashes() -> Hashes:
    from miner.storage.corpus.compiled import digest_lines  # loads Numba

    numbers = secrets.token_bytes(8 * 4 * (MAX_CHARACTERS + 2))  # of up to four bytes each
    keys = np.frombuffer(numbers, np.uint64).reshape(-1, 4)

    def hashes(texts: Sequence[str], kept: Mask) -> list[NDArray[np.uint64]]:
        if not isinstance(texts, JoinedLines):
            texts = JoinedLines.of(compress(texts, kept))
            kept = np.ones(len(texts), dtype=np.bool_)
        data = texts.data + bytes(4)
        words = np.ndarray(len(data) - 3, dtype="<u4", buffer=data, strides=(1,))
        found = np.zeros((2, len(texts)), dtype=np.uint64)
        digest_lines(np.frombuffer(data, np.uint8), words, texts.starts, keys, kept, *found)
        return [*found[:, kept]]

    return hashes


def _sorted(records: NDArray[np.void], key: str) -> NDArray[np.void]:
    # As an index, the order takes 15 times as long.
    return records.take(np.argsort(records[key], kind="stable"))
