"""A document's text to its sentences: paragraphs, wrapped lines, and what is cleaned away."""

import re
import statistics
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from miner.storage.documents.records import Document
from miner.storage.documents.splitting import sentence_spans

BATCH_ROWS = 8192  # of tables of sentences
PLACE = "#char="  # between a sentence's document and where it is there, in its id

_PARAGRAPH = re.compile(r"\S.*?(?=\n[^\S\n]*\n|\Z)", re.DOTALL)
_LINE = re.compile(r"\S[^\n]*")
# An inner line of a paragraph that its writer wrapped is long, and ends within a sentence.
MIN_WRAPPED, MAX_WRAPPED = 30, 130
_ENDED = re.compile(r"[.!?…。！？:;\"'”’»)]\s*$")

# Soft hyphens, characters without width, byte order marks, and marks of direction.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_WIDE_BREAK = re.compile(
    r"(?<=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])\n\s*(?=[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])"
)

# Marks that the same sentence has in one document and not in the other.
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‘’‚‛‹›′", "'"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence, and where it is in the text of its document, in characters from 0."""

    text: str
    start: int
    end: int


def document_sentences(document: Document, language: str | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a document in order.

    ``language`` (ISO 639-1) helps to tell ordinals from sentences that end in a number.
    """
    text = document.text.replace("\r\n", " \n").replace("\r", "\n")
    for first, last in paragraph_spans(text):
        for start, end in sentence_spans(text[first:last], language):
            sentence = cleaned(text[first + start : first + end])
            if sentence:
                yield Sentence(text=sentence, start=first + start, end=first + end)


def paragraph_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where paragraphs begin and end.

    An empty line ends one. So does every line's end, unless the text is wrapped: most lines that
    others follow are long, and end within a sentence.
    """
    pattern = _PARAGRAPH if is_wrapped(text) else _LINE
    for match in pattern.finditer(text):
        yield match.span()


def is_wrapped(text: str) -> bool:
    """Whether line ends within paragraphs mean nothing."""
    inner = [line for match in _PARAGRAPH.finditer(text) for line in match[0].split("\n")[:-1]]
    if not inner:
        return False
    open_ended = sum(not _ENDED.search(line) for line in inner)
    width = statistics.median(len(line.strip()) for line in inner)
    return MIN_WRAPPED <= width <= MAX_WRAPPED and open_ended > len(inner) / 2


def cleaned(text: str) -> str:
    """Return a sentence in NFC, on one line, without invisible or control characters."""
    text = _WIDE_BREAK.sub("", _INVISIBLE.sub("", text))
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def repeat_key(text: str) -> str:
    """Return what two sentences have in common that differ in the form of their quotes only."""
    return text.translate(_QUOTES)
