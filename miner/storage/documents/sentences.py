"""Splitting of documents into a corpus of clean sentences."""

import re
import statistics
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from miner.storage.corpus.records import CorpusError, Records, Rejection
from miner.storage.documents.cleaning import INVISIBLE, CleanText
from miner.storage.documents.foreign import foreign_sentences
from miner.storage.documents.records import FORMATS, WIDE_BREAK, Document, extract, reader_of
from miner.storage.documents.splitting import sentence_spans
from miner.storage.places import AnyPath

BATCH_ROWS = 8192  # of tables of sentences
PLACE = "#char="  # in a sentence's id, between its document's name and its position
SENTENCE_TABLE = pa.schema(  # of ``sentence_tables``
    {"file": pa.int32(), **dict.fromkeys(("id", "doc", "text", "why"), pa.string())}
)

_PARAGRAPH = re.compile(r"\S.*?(?=\n[^\S\n]*\n|\Z)", re.DOTALL)
_LINE = re.compile(r"\S[^\n]*")
# Inner lines of a wrapped paragraph have a median width in this range, and end within a sentence.
MIN_WRAPPED, MAX_WRAPPED = 30, 130
_ENDED = re.compile(r"[.!?…。！？:;\"'”’»)]\s*$")

_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")

# Quotation marks whose form differs between copies of a sentence.
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‘’‚‛‹›′", "'"))


class Sentence(NamedTuple):
    """A sentence, its document characters [start, end), and paragraph from 0."""

    text: str
    start: int  # in characters
    end: int
    paragraph: int = 0  # from 0


def read_sentences(path: AnyPath, name: str, first_row: int) -> Iterator[Records]:
    """Yield the sentences of a file's documents as batches of records.

    A broken document is a rejected record. ``name`` names the file. Rows begin at ``first_row``.
    Errors of ``reader_of`` and of the reader are raised.

    Raises:
        CorpusError: The suffix is unknown.
    """
    reader = reader_of(path)
    if reader is None:
        raise CorpusError(
            f"{path}: unknown document format; use a file that ends in one of {' '.join(FORMATS)}"
        )
    documents = reader(path, name)
    for table in sentence_tables((0, extract(document)) for document in documents):
        yield table_records(table, first_row)
        first_row += len(table)


def sentence_tables(
    documents: Iterable[tuple[int, Document]],
    language: str | None = None,
    *,
    only: str | None = None,
) -> Iterator[pa.Table]:
    """Yield the sentences of documents in tables of ``SENTENCE_TABLE``.

    ``documents`` are pairs of a file's number and a document. ``why`` is null or a ``Rejection``.
    An id is the document's name and the sentence's offsets: ``guide.txt#char=120,188`` (RFC 5147).
    A broken document is a row with its reason as ``why``, and the error, if any, as ``text``.
    ``language`` (ISO 639-1) is for splitting. Sentences in other languages than ``only``, a
    ``known_label``, get ``Rejection.FOREIGN``.
    """
    rows: list[tuple[int, str, str, str, str | None]] = []
    for file, document in documents:
        name = document.name
        if document.broken:
            rows.append((file, name, name, document.text, document.broken))
            continue
        sentences = list(document_sentences(document, language))
        texts, starts, ends, paragraphs = zip(*sentences, strict=True) if sentences else [()] * 4
        foreign = foreign_sentences(paragraphs, texts, only) if only else [False] * len(texts)
        for text, start, end, is_foreign in zip(texts, starts, ends, foreign, strict=True):
            why = Rejection.FOREIGN if is_foreign else None
            rows.append((file, f"{name}{PLACE}{start},{end}", name, text, why))
        if len(rows) >= BATCH_ROWS:
            yield pa.table([*map(list, zip(*rows, strict=True))], schema=SENTENCE_TABLE)
            rows = []
    if rows:
        yield pa.table([*map(list, zip(*rows, strict=True))], schema=SENTENCE_TABLE)


def table_records(table: pa.Table | pa.RecordBatch, first_row: int) -> Records:
    """Convert a table from ``sentence_tables`` to records from ``first_row``."""
    ids, docs, texts, reasons = (table[name].to_pylist() for name in SENTENCE_TABLE.names[1:])
    rejected = {place: Rejection(why) for place, why in enumerate(reasons) if why}
    columns = ids, docs, texts
    return Records.from_columns(
        first_row, columns, rejected, lambda place: (texts[place] or docs[place]).encode()
    )


def document_sentences(document: Document, language: str | None = None) -> Iterator[Sentence]:
    """Yield the sentences of an unbroken document in order, maybe none.

    ``language`` (ISO 639-1) helps to tell ordinals from sentences that end in a number. An empty
    line ends a paragraph. So does every line's end, unless the text ``is_wrapped``.
    """
    text = document.text.replace("\r\n", " \n").replace("\r", "\n")
    has_wrapped_lines = is_wrapped(text)
    clean = CleanText.from_text(text, is_wrapped=has_wrapped_lines)
    paragraphs = (_PARAGRAPH if has_wrapped_lines else _LINE).finditer(clean.text)
    for number, match in enumerate(paragraphs):
        for first_character, last_character in sentence_spans(match[0], language):
            start, end = match.start() + first_character, match.start() + last_character
            if sentence := clean_sentence(clean.text[start:end]):
                yield Sentence(sentence, *clean.origin(start, end), number)


def is_wrapped(text: str) -> bool:
    """Return whether the lines of a text are wrapped at a width.

    It is true if most lines of paragraphs, except for each last one, are unfinished sentences, and
    their median width is from 30 to 130 characters. It is false without such lines.
    """
    text = INVISIBLE.sub("", text)
    lines = [line for match in _PARAGRAPH.finditer(text) for line in match[0].split("\n")[:-1]]
    if not lines:
        return False
    open_ended = sum(not _ENDED.search(line) for line in lines)
    width = statistics.median(len(line.strip()) for line in lines)
    return MIN_WRAPPED <= width <= MAX_WRAPPED and open_ended > len(lines) / 2


def clean_sentence(text: str) -> str:
    """Return a sentence in NFC, on one line, stripped, with single spaces.

    Invisible characters are removed, except for joiners and variants within words. So are line
    feeds between Chinese or Japanese characters. Control characters become spaces.
    """
    text = WIDE_BREAK.sub("", INVISIBLE.sub("", text))
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()


def repeat_key(text: str) -> str:
    """Return a sentence with straight quotes, by which duplicates are found."""
    return text.translate(_QUOTES)
