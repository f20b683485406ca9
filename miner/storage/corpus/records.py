"""What reading a corpus gives: batches of records, each with its row, good or rejected."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import eq
from typing import Self

# No sentence is longer. What is, is a document or a table, and would slow its whole batch down.
MAX_CHARACTERS = 10_000

# 32,768 texts of MAX_CHARACTERS four-byte characters stay below the 2 GiB of an Arrow column.
BATCH_ROWS = 32_768


class CorpusError(ValueError):
    """A corpus that cannot be read, in one line with the remedy."""


class Rejection(StrEnum):
    """Why one record is left out; the value is what reports say."""

    BLANK = "blank"
    UNDECODABLE = "undecodable"
    NUL = "NUL"
    TOO_LONG = "too long"
    MALFORMED = "malformed"
    UNREADABLE = "unreadable file"
    FOREIGN = "in another language"


Columns = tuple[list[str], list[str], Sequence[str]]
"""Ids, documents and texts; an empty id or document is one that is not known."""

Rejected = dict[int, Rejection]
"""By the position."""


@dataclass(frozen=True, slots=True)
class Records:
    """Consecutive records of a corpus, as columns of equal length.

    Position ``i`` is row ``first_row + i`` of the file, counted from 0 over all its records,
    rejected ones included. ``own_ids`` holds a record's own id, or an empty string; ``docs`` its
    document, likewise. ``rejected`` maps positions to be left out, in order, to the reason, and
    ``rejected_texts`` to the beginning of what was found there; the columns mean nothing there.
    ``trimmed`` is the first position whose id or document had spaces at its ends, now removed.
    """

    first_row: int
    own_ids: list[str]
    docs: list[str]
    texts: Sequence[str]
    rejected: Rejected
    rejected_texts: dict[int, str]
    trimmed: int | None = None

    @classmethod
    def checked(
        cls, first_row: int, columns: Columns, rejected: Rejected, raw: Callable[[int], bytes]
    ) -> Self:
        r"""Reject the texts that cannot be mined beside those that reading has, for its reasons.

        ``raw`` gives what stands at a position of the file, to name what is rejected; bytes that
        are not UTF-8 are shown as ``\xff``.
        """
        from miner.storage.corpus.joined import doubtful_texts  # loads NumPy

        for position, text in doubtful_texts(columns[2], longest=MAX_CHARACTERS):
            if reason := _reason(text):
                rejected.setdefault(position, reason)
        rejected = dict(sorted(rejected.items()))
        starts = ((position, raw(position)[: 4 * MAX_CHARACTERS]) for position in rejected)
        shown = {
            position: start.decode(errors="backslashreplace")[:MAX_CHARACTERS]
            for position, start in starts
        }
        named, texts = columns[:2], columns[2]
        ids, docs = ([*map(str.strip, names)] if any(names) else names for names in named)
        trimmed = None
        if (ids, docs) != named:
            same = map(eq, zip(*named, strict=True), zip(ids, docs, strict=True))
            trimmed = [*same].index(False)
        return cls(first_row, ids, docs, texts, rejected, shown, trimmed)

    def ids(self) -> list[str]:
        """Return the id of each record, or its number, from 1, where it has none."""
        return [own or str(row) for row, own in enumerate(self.own_ids, self.first_row + 1)]

    def kept_texts(self) -> list[str]:
        """Return the texts of those that are not rejected."""
        return [text for row, text in enumerate(self.texts) if row not in self.rejected]

    def __len__(self) -> int:
        return len(self.texts)


def place_of(row: int, names: Sequence[str], starts: Sequence[int]) -> str:
    """Return the line of a row, and its file if there are several.

    ``starts`` are the rows at which the files called ``names`` begin.
    """
    file = bisect_right(starts, row) - 1
    line = f"line {row - starts[file] + 1}"
    return line if len(names) == 1 else f"{names[file]} {line}"


def decoded(values: Iterable[bytes], rejected: Rejected) -> list[str]:
    """Decode UTF-8; of what is none the position is rejected, and empty in the list."""
    texts = []
    for position, value in enumerate(values):
        try:
            texts.append(value.decode())
        except UnicodeDecodeError:
            texts.append("")
            rejected.setdefault(position, Rejection.UNDECODABLE)
    return texts


def _reason(text: str) -> Rejection | None:
    if len(text) > MAX_CHARACTERS:
        return Rejection.TOO_LONG
    if "\0" in text:
        return Rejection.NUL
    return None if text and not text.isspace() else Rejection.BLANK
