"""Documents to a corpus of their sentences: paragraphs, wrapped lines, and what is cleaned away."""

import re
import statistics
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from miner.storage.corpus.records import CorpusError, Records, Rejection
from miner.storage.documents.cleaning import INVISIBLE, CleanText
from miner.storage.documents.foreign import foreign_sentences
from miner.storage.documents.records import FORMATS, Document, read_found, reader_of
from miner.storage.documents.splitting import sentence_spans
from miner.storage.places import AnyPath

BATCH_ROWS = 8192  # of tables of sentences
PLACE = "#char="  # between a sentence's document and where it is there, in its id
# Of ``sentence_tables``.
SENTENCE_TABLE = pa.schema(
    {"file": pa.int32(), **dict.fromkeys(("id", "doc", "text", "why"), pa.string())}
)

_PARAGRAPH = re.compile(r"\S.*?(?=\n[^\S\n]*\n|\Z)", re.DOTALL)
_LINE = re.compile(r"\S[^\n]*")
# An inner line of a paragraph that its writer wrapped is long, and ends within a sentence.
MIN_WRAPPED, MAX_WRAPPED = 30, 130
_ENDED = re.compile(r"[.!?…。！？:;\"'”’»)]\s*$")

_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_WIDE = r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
_WIDE_BREAK = re.compile(rf"(?<={_WIDE})\n\s*(?={_WIDE})")

# Marks that the same sentence has in one document and not in the other.
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‘’‚‛‹›′", "'"))


class Sentence(NamedTuple):
    """A sentence, and where it is in the text of its document, in characters from 0.

    ``paragraph`` is the number of its paragraph.
    """

    text: str
    start: int
    end: int
    paragraph: int = 0


def read_sentences(path: AnyPath, name: str, first_row: int) -> Iterator[Records]:
    """Yield the sentences of a file's documents; a broken document is a rejected record.

    ``name`` is that of the file in its corpus.
    """
    reader = reader_of(path)
    if reader is None:
        raise CorpusError(
            f"{path}: unknown document format; use a file that ends in one of {' '.join(FORMATS)}"
        )
    found = reader(path, name)
    for table in sentence_tables((0, read_found(one)) for one in found):
        yield table_records(table, first_row)
        first_row += len(table)


def sentence_tables(
    documents: Iterable[tuple[int, Document]],
    language: str | None = None,
    *,
    only: str | None = None,
) -> Iterator[pa.Table]:
    """Yield the sentences of documents, which come with their files' numbers.

    The columns are ``file``, ``id``, ``doc``, ``text`` and ``why``. An id is the document's name
    and where the sentence is in its text, in characters: ``guide.txt#char=120,188`` (RFC 5147). A
    broken document is a row with the reason (a ``Rejection``), and the error as its text, if any.
    Sentences that are not in the language ``only``, by its ``known_label``, have a reason, too.
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
    """Return the records of a table of ``sentence_tables``; the first is row ``first_row``."""
    ids, docs, texts, reasons = (table[name].to_pylist() for name in SENTENCE_TABLE.names[1:])
    rejected = {place: Rejection(why) for place, why in enumerate(reasons) if why}
    columns = ids, docs, texts
    return Records.checked(
        first_row, columns, rejected, lambda place: (texts[place] or docs[place]).encode()
    )


def document_sentences(document: Document, language: str | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a document in order.

    ``language`` (ISO 639-1) helps to tell ordinals from sentences that end in a number. An empty
    line ends a paragraph. So does every line's end, unless the text is wrapped.
    """
    text = document.text.replace("\r\n", " \n").replace("\r", "\n")
    wrapped = is_wrapped(text)
    clean = CleanText.of(text, is_wrapped=wrapped)
    paragraphs = (_PARAGRAPH if wrapped else _LINE).finditer(clean.text)
    for number, match in enumerate(paragraphs):
        for first, last in sentence_spans(match[0], language):
            start, end = match.start() + first, match.start() + last
            if sentence := cleaned(clean.text[start:end]):
                yield Sentence(sentence, *clean.origin(start, end), number)


def is_wrapped(text: str) -> bool:
    """Return whether most lines that others follow are long, and end within a sentence."""
    text = INVISIBLE.sub("", text)
    inner = [line for match in _PARAGRAPH.finditer(text) for line in match[0].split("\n")[:-1]]
    if not inner:
        return False
    open_ended = sum(not _ENDED.search(line) for line in inner)
    width = statistics.median(len(line.strip()) for line in inner)
    return MIN_WRAPPED <= width <= MAX_WRAPPED and open_ended > len(inner) / 2


def cleaned(text: str) -> str:
    """Return a sentence in NFC, on one line, without invisible or control characters."""
    text = _WIDE_BREAK.sub("", INVISIBLE.sub("", text))
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def repeat_key(text: str) -> str:
    """Return what two sentences have in common that differ in the form of their quotes only."""
    return text.translate(_QUOTES)
