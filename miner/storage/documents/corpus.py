"""Documents read as a corpus: their sentences are its records, and so are the broken documents."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

import pyarrow as pa

from miner.storage.corpus.records import CorpusError, Records, Rejection, checked_records
from miner.storage.documents.formats import FORMATS, reader_of
from miner.storage.documents.records import Document, read_found
from miner.storage.documents.sentences import BATCH_ROWS, PLACE, document_sentences
from miner.storage.places import AnyPath

# A sentence, or a broken document: its file's number, id, document, text and why it is left out.
Row = tuple[int, str, str, str, str | None]

# Of ``sentence_tables``.
SENTENCE_TABLE = pa.schema(
    {"file": pa.int32(), **dict.fromkeys(("id", "doc", "text", "why"), pa.string())}
)


def read_sentences(path: AnyPath, first_row: int) -> Iterator[Records]:
    """Yield the sentences of a file's documents, with a rejected record for each broken one.

    Raises:
        CorpusError: the file is of no such format, or damaged.
    """
    reader = reader_of(path)
    if reader is None:
        raise CorpusError(f"{path}: documents are in files that end in one of {' '.join(FORMATS)}")
    found = (read_found(found) for found in reader(path, PurePath(str(path)).name))
    for table in sentence_tables((0, document) for document in found):
        yield table_records(table, first_row)
        first_row += len(table)


def sentence_tables(
    documents: Iterable[tuple[int, Document]], language: str | None = None
) -> Iterator[pa.Table]:
    """Yield the sentences of documents, which come with their files' numbers.

    The columns are ``file``, ``id``, ``doc``, ``text`` and ``why``. An id is the document's name
    and where the sentence is in its text, in characters: ``guide.txt#char=120,188`` (RFC 5147). A
    broken document is a row with the reason (a ``Rejection``) and without text.
    """
    rows: list[Row] = []
    for file, document in documents:
        name = document.name
        if document.broken:
            rows.append((file, name, name, "", document.broken))
        for found in document_sentences(document, language):
            rows.append((file, f"{name}{PLACE}{found.start},{found.end}", name, found.text, None))
        if len(rows) >= BATCH_ROWS:
            yield _table(rows)
            rows = []
    if rows:
        yield _table(rows)


def table_records(table: pa.Table | pa.RecordBatch, first_row: int) -> Records:
    """Return the records of a table of ``sentence_tables``; the first is row ``first_row``."""
    ids, docs, texts, reasons = (table[name].to_pylist() for name in ("id", "doc", "text", "why"))
    rejected = {place: Rejection(why) for place, why in enumerate(reasons) if why}
    return checked_records(
        first_row,
        ids,
        docs,
        texts,
        rejected,
        lambda position: (texts[position] or docs[position]).encode(),
    )


def _table(rows: Sequence[Row]) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(columns, schema=SENTENCE_TABLE)
