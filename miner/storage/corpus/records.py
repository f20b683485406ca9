"""Batches of records of a corpus, and the reasons for rejections."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import eq
from typing import Self

# A longer text is a document or a table, and would slow down its whole batch.
MAX_CHARACTERS = 10_000

# A longer line is rejected before it is decoded, and its end is skipped. MAX_CHARACTERS as JSON
# escapes (at most 12 bytes each) fit, with an id, a document and more.
MAX_LINE_BYTES = 1 << 20

# 32,768 texts of MAX_CHARACTERS four-byte characters stay below the 2 GiB of an Arrow column.
BATCH_ROWS = 32_768


class CorpusError(ValueError):
    """An error about an unreadable corpus, in one line with the remedy."""


class Rejection(StrEnum):
    """Reasons to reject a record, in the words of reports."""

    BLANK = "blank"
    UNDECODABLE = "undecodable"
    NUL = "NUL"
    TOO_LONG = "too long"
    MALFORMED = "malformed"
    UNREADABLE = "unreadable file"
    FOREIGN = "in another language"


Columns = tuple[list[str], list[str], Sequence[str]]
"""Ids, documents and texts. An empty id or document is unknown."""

Rejected = dict[int, Rejection]
"""The reason for each rejected position."""


@dataclass(frozen=True, slots=True)
class Records:
    """Consecutive records of a corpus, as columns of equal length.

    Position ``i`` is row ``first_row + i`` of the corpus. Rows count from 0, and include rejected
    records, whose ids, documents and texts have no meaning. Unknown ids and documents are "".

    Attributes:
        rejected: the reasons by position, in ascending order.
        rejected_texts: the data at each rejected position, at most ``MAX_CHARACTERS``.
        trimmed: the first position whose id or document had spaces removed at its ends, or None.
        texts: a list, or maybe ``JoinedLines`` if the file has only lines.
    """

    first_row: int
    own_ids: list[str]
    docs: list[str]
    texts: Sequence[str]
    rejected: Rejected
    rejected_texts: dict[int, str]
    trimmed: int | None = None

    @classmethod
    def from_columns(
        cls, first_row: int, columns: Columns, rejected: Rejected, raw: Callable[[int], bytes]
    ) -> Self:
        r"""Build records, and reject texts that cannot be mined.

        White space at the ends of ids and documents is removed.

        Args:
            first_row: The row of position 0 in the corpus.
            columns: Ids, documents and texts, one per record.
            rejected: Reasons by position, completed in place by results of ``rejection_of``.
            raw: Returns the file's bytes at a position, for ``rejected_texts``. Bytes that are not
                UTF-8 are written as ``\xff``.
        """
        from miner.storage.corpus.joined import doubtful_texts  # loads NumPy

        for position, text in doubtful_texts(columns[2], max_length=MAX_CHARACTERS):
            if reason := rejection_of(text):
                rejected.setdefault(position, reason)
        rejected = dict(sorted(rejected.items()))
        rejected_texts = {
            key: raw(key)[: 4 * MAX_CHARACTERS].decode(errors="backslashreplace")[:MAX_CHARACTERS]
            for key in rejected
        }
        names, texts = columns[:2], columns[2]
        ids, docs = ([*map(str.strip, column)] if any(column) else column for column in names)
        trimmed = None
        if (ids, docs) != names:
            is_equal = map(eq, zip(*names, strict=True), zip(ids, docs, strict=True))
            trimmed = [*is_equal].index(False)
        return cls(first_row, ids, docs, texts, rejected, rejected_texts, trimmed)

    def ids(self) -> list[str]:
        """Return each record's own id, or else its number in the corpus, from 1."""
        return [own or str(row) for row, own in enumerate(self.own_ids, self.first_row + 1)]

    def kept_texts(self) -> list[str]:
        """Return the texts of the records that are not rejected, in order."""
        return [text for row, text in enumerate(self.texts) if row not in self.rejected]

    def __len__(self) -> int:
        return len(self.texts)


def place_of(row: int, names: Sequence[str], starts: Sequence[int]) -> str:
    """Name a row as ``line 3``, or of several files as ``a.txt line 3``.

    ``row`` counts from 0, lines from 1. The files ``names`` begin at the rows ``starts``.
    """
    file = bisect_right(starts, row) - 1
    line = f"line {row - starts[file] + 1}"
    return line if len(names) == 1 else f"{names[file]} {line}"


def decode_utf8(values: Iterable[bytes], rejected: Rejected) -> list[str]:
    """Decode values as UTF-8, or as "" if they are invalid.

    Positions of invalid values are added to ``rejected`` as undecodable, unless they have a reason.
    """
    texts = []
    for position, value in enumerate(values):
        try:
            texts.append(value.decode())
        except UnicodeDecodeError:
            texts.append("")
            rejected.setdefault(position, Rejection.UNDECODABLE)
    return texts


def is_encodable(*texts: str) -> bool:
    """Return whether no text has a surrogate, which UTF-8 cannot express."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def rejection_of(text: str) -> Rejection | None:
    """Return why a text is too long, has NUL or is blank, or None if usable."""
    if len(text) > MAX_CHARACTERS:
        return Rejection.TOO_LONG
    if "\0" in text:
        return Rejection.NUL
    return None if text and not text.isspace() else Rejection.BLANK
