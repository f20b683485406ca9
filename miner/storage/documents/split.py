"""Files of documents to a corpus of sentences, one file after the other, in bounded memory."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from mimetypes import guess_type

import pyarrow as pa

from miner.languages import language_of
from miner.storage.corpus import filesets
from miner.storage.corpus.filesets import NamedPlace
from miner.storage.corpus.formats import DOCUMENT_SUFFIXES
from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.documents.cleaning import INVISIBLE
from miner.storage.documents.files import read_bytes
from miner.storage.documents.records import FORMATS, Document, Found, read_found, reader_of
from miner.storage.documents.sentences import is_wrapped, sentence_tables
from miner.storage.documents.splitting import sentence_spans
from miner.storage.places import Place
from miner.storage.streams import split_compression

SHOWN_LANGUAGES = 3
SPLIT_FIELDS = pa.schema(dict.fromkeys(("id", "doc", "text", "language"), pa.string()))

# A file of these is one document; a .txt may as well hold a sentence a line.
MARKED = (".md", ".mdx", ".markdown", ".html", ".htm", ".xhtml")
SAMPLED_FILES, SAMPLED_BYTES = 20, 1 << 16
MIN_SENTENCES = 1.5  # in a line, on average
MIN_FILLED = 0.8  # of the lines that the next line's first word would not have fitted into
MAX_WORD = 30  # characters; longer ones are text without spaces

_SHOWN = re.compile(r"(image|audio|video|font)/|(text|application)/(css|javascript)$")
_HTML = re.compile(r"\s*(<!doctype\s+html|<html)", re.IGNORECASE)


@dataclass(kw_only=True)
class SplitCounts:
    """How many ``documents`` were split or ``broken``, and sentences are of each language."""

    documents: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    broken: Counter[Rejection] = field(default_factory=Counter)

    def describe(self) -> str:
        """Return a line for people."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.broken.items())
        left_out = f"; rejected: {reasons}" if reasons else ""
        most = self.languages.most_common(SHOWN_LANGUAGES)
        shares = ", ".join(f"{count / self.sentences:.0%} {language}" for language, count in most)
        languages = f" ({shares})" if shares else ""
        return f"{self.documents:,} documents, {self.sentences:,} sentences{languages}{left_out}"

    @property
    def sentences(self) -> int:
        """All sentences."""
        return self.languages.total()


def is_documents(path: Place, input_format: str) -> bool:
    """Return whether a corpus is of documents: it is said to be, or can be nothing else."""
    if input_format != "auto":
        return input_format == "documents"
    suffixes = {*_suffixes(path)} if path.is_dir() else {split_compression(path)[0]}
    return bool(suffixes) and suffixes <= {*DOCUMENT_SUFFIXES}


def holds_documents(folder: Place) -> bool:
    """Return whether each file of a folder is a document, by suffixes and a sample of texts."""
    suffixes = _suffixes(folder)
    if not suffixes or not {*suffixes} <= {*MARKED, ".txt"}:
        return False
    texts = suffixes.get(".txt", [])
    sample = texts[:: max(1, len(texts) // SAMPLED_FILES)]
    return sum(map(looks_like_a_document, sample)) * 2 >= len(sample)


def _suffixes(folder: Place) -> dict[str, list[Place]]:
    """Return the files of a folder by suffix, without pictures and styles.

    These are pictures and the like, and files of unknown suffixes where most have a known one.
    """
    found: dict[str, list[Place]] = {}
    for _, file in filesets.folder_files(folder)[0]:
        if not _SHOWN.match(guess_type(file.name)[0] or ""):
            found.setdefault(split_compression(file)[0], []).append(file)
    known = {suffix: files for suffix, files in found.items() if suffix in FORMATS}
    is_known = sum(map(len, known.values())) * 2 >= sum(map(len, found.values()))
    return known if is_known else found


def looks_like_a_document(path: Place) -> bool:
    """Return whether a text is wrapped, has lines of several sentences, or is a web page."""
    try:
        data = read_bytes(path, SAMPLED_BYTES)
    except ValueError:  # reported by whoever reads it
        return False
    text = data[:SAMPLED_BYTES].decode("utf-8", errors="replace").replace("\r\n", "\n")
    text = INVISIBLE.sub("", text)
    if _HTML.match(text):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    sentences = sum(1 for line in lines for _ in sentence_spans(line))
    return sentences > MIN_SENTENCES * len(lines) or (is_wrapped(text) and _is_filled(text))


def _is_filled(text: str) -> bool:
    """Return whether lines end where the next one's first word would have made them too long."""
    pairs = [
        (len(one.rstrip()), len(other.split()[0]))
        for one, other in pairwise(text.split("\n"))
        if one.strip() and other.strip()
    ]
    width = max((length for length, _ in pairs), default=0)
    filled = sum(length + (1 if word > MAX_WORD else word + 1) >= width for length, word in pairs)
    return filled >= MIN_FILLED * len(pairs) > 0


def describe_documents(folder: Place) -> str:
    """Return a line that says which files of a folder are read."""
    files = filesets.summarise_names([name for name, _ in document_files(folder)])
    return f"{folder}: reads {files} as documents, which are split into sentences"


def document_files(path: Place) -> list[NamedPlace]:
    """Return the files of documents at a place with their names: itself, or all below a folder.

    Hidden files and folders, files about the corpus, such as README.md, and those of unknown
    suffixes are left out; if there is no other, a CorpusError says so.
    """
    if path.is_dir():
        files = [file for file in filesets.folder_files(path)[0] if reader_of(file[1])]
    else:
        files = [(path.name, path)] if reader_of(path) else []
    if not files:
        known = " ".join(FORMATS)
        raise CorpusError(f"{path}: contains no documents; pass files that end in one of {known}")
    return files


def open_side(path: Place, input_format: str, *, escapes: int = 0) -> filesets.CorpusReader:
    """Return what reads a corpus: files of sentences, or the documents at a place and below it.

    ``escapes`` are the levels of HTML entities that its texts have.
    """
    if is_documents(path, input_format):
        files, input_format = document_files(path), "documents"
    else:
        files = filesets.corpus_files(path, input_format=input_format)
    return filesets.CorpusReader(files, input_format=input_format, escapes=escapes)


def find_documents(
    files: Sequence[NamedPlace], *, is_only_file: bool
) -> Iterator[tuple[int, Found]]:
    """Yield the documents of files, each with its file's number.

    A file that is damaged is a broken document, or a CorpusError if it is the only one. A
    ModuleNotFoundError names a library that the format needs and that is not installed.
    """
    for number, (name, path) in enumerate(files):
        reader = reader_of(path)
        assert reader is not None
        try:
            for found in reader(path, name):
                yield number, found
        except CorpusError as error:
            if is_only_file:
                raise
            yield number, Document(name=name, text=str(error), broken=Rejection.UNREADABLE)


def read_documents(files: Sequence[NamedPlace]) -> Iterator[Document]:
    """Yield the documents of files; see ``find_documents``."""
    return (read_found(one) for _, one in find_documents(files, is_only_file=len(files) == 1))


def split_documents(
    documents: Iterator[Document], counts: SplitCounts, *, language: str | None = None
) -> Iterator[pa.Table]:
    """Yield the sentences in tables of ``SPLIT_FIELDS``, and count.

    ``language`` (ISO 639-1) decides how they are split; each sentence's own is identified. A
    document with the name of an earlier one is numbered, ``NAME (2)``, so that ids are unique.
    """
    named: Counter[int] = Counter()  # by hashes of names, which take less memory

    def whole() -> Iterator[tuple[int, Document]]:
        for document in documents:
            counts.documents += 1
            if document.broken:
                counts.broken[document.broken] += 1
                continue
            named[hash(document.name)] += 1
            if (number := named[hash(document.name)]) > 1:
                document = replace(document, name=f"{document.name} ({number})")
            yield 0, document

    for table in sentence_tables(whole(), language):
        languages = [language_of(text) for text in table["text"].to_pylist()]
        counts.languages.update(languages)
        columns = [*table.select(SPLIT_FIELDS.names[:-1]).columns, languages]
        yield pa.table(columns, schema=SPLIT_FIELDS)
