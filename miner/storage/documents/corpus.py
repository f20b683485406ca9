"""Documents read as a corpus: their sentences are its records, and so are the broken documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from miner.storage.corpus.records import CorpusError, Records, Rejection, checked_records
from miner.storage.documents.formats import FORMATS, reader_of
from miner.storage.documents.records import Broken
from miner.storage.documents.split import BATCH_ROWS, sentence_rows
from miner.storage.places import AnyPath

_REJECTIONS = {
    Broken.EMPTY: Rejection.BLANK,
    Broken.TOO_LONG: Rejection.TOO_LONG,
    Broken.UNDECODABLE: Rejection.UNDECODABLE,
    Broken.MALFORMED: Rejection.MALFORMED,
    Broken.UNREADABLE: Rejection.UNREADABLE,
}


def read_sentences(path: AnyPath, first_row: int) -> Iterator[Records]:
    """Yield the sentences of a file's documents, with a rejected record for each broken one.

    Raises:
        CorpusError: the file is of no such format, or damaged.
    """
    reader = reader_of(path)
    if reader is None:
        raise CorpusError(f"{path}: documents are in files that end in one of {' '.join(FORMATS)}")
    rows: list[tuple[str, str, str]] = []
    rejected: dict[int, Rejection] = {}
    for document in reader(path, PurePath(str(path)).name):
        if document.broken:
            rejected[len(rows)] = _REJECTIONS[document.broken]
            rows.append((document.name, document.name, ""))
        else:
            rows += sentence_rows(document)
        if len(rows) >= BATCH_ROWS:
            yield _records(rows, rejected, first_row)
            first_row += len(rows)
            rows, rejected = [], {}
    if rows:
        yield _records(rows, rejected, first_row)


def _records(
    rows: list[tuple[str, str, str]], rejected: dict[int, Rejection], first_row: int
) -> Records:
    ids, docs, texts = (list(column) for column in zip(*rows, strict=True))
    return checked_records(
        first_row,
        ids,
        docs,
        texts,
        rejected,
        lambda position: (texts[position] or docs[position]).encode(),
    )
