"""Pairs as files contain them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from miner.storage.corpus.records import Rejection

Ids = tuple[str, ...]
Languages = tuple[str | None, str | None]

BLANK = Rejection.BLANK.value


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePair:
    """A pair as it is in a file, whose unknown fields are None or "".

    Attributes:
        place: The file and the line or record in it, for messages.
        texts: Source and target, None if a record lacks one. Bytes not in UTF-8 are surrogates.
        score: The score, or the negative of a cost that ``adit align`` wrote.
        probability: The probability that it is correct.
        corpus: The name of the corpus that it comes from.
        ids: For each side the ids of its sentences, empty in a gap, then of duplicates.
        originals: Source and target before their repair.
        raw: The line in the file, like ``texts``, if ``PairFile.has_lines``.
        problem: The reason why the line or record is not a pair, or "".
    """

    place: str
    texts: tuple[str, str] | None = None
    score: float | None = None
    probability: float | None = None
    corpus: str = ""
    ids: tuple[Ids, Ids] | None = None
    originals: tuple[str, str] | None = None
    raw: str | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class PairFile:
    """A file of pairs, and the function that reads it.

    Attributes:
        layout: The format and the columns or fields, for people.
        read: Yields all lines or records after the header, or raises CorpusError or PlaceError.
        languages: BCP 47 tags of source and target, None if the file does not name them.
        header: The line that names the columns, or None.
        has_lines: Whether each pair is a line of cells, which is in ``raw``.
    """

    layout: str
    read: Callable[[], Iterator[FilePair]]
    languages: Languages = (None, None)
    header: str | None = None
    has_lines: bool = False
