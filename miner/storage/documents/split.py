"""Files of documents to a corpus of sentences, one file after the other, in bounded memory."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from miner.languages import language_of
from miner.storage.corpus.filesets import (
    CorpusReader,
    corpus_files,
    folder_files,
    may_hold_corpus,
    named,
)
from miner.storage.corpus.formats import DOCUMENT_SUFFIXES
from miner.storage.corpus.records import CorpusError, Rejection
from miner.storage.documents.corpus import sentence_tables
from miner.storage.documents.formats import FORMATS, reader_of
from miner.storage.documents.records import Document, Found, read_found
from miner.storage.places import Place, RemotePath
from miner.storage.streams import split_compression

SHOWN_LANGUAGES = 3
# Of the sentences that ``adit split`` writes.
SPLIT_FIELDS = pa.schema(dict.fromkeys(("id", "doc", "text", "language"), pa.string()))

NamedPlace = tuple[str, Place]
"""A file and its name in the corpus."""


@dataclass(kw_only=True)
class SplitCounts:
    """What became of documents: ``documents`` = those split + all of ``broken``.

    ``languages`` counts the sentences of each.
    """

    documents: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    broken: Counter[Rejection] = field(default_factory=Counter)

    def describe(self) -> str:
        """Return a line for people."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.broken.items())
        left_out = f"; left out: {reasons}" if reasons else ""
        shares = ", ".join(
            f"{count / self.sentences:.0%} {language}"
            for language, count in self.languages.most_common(SHOWN_LANGUAGES)
        )
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
    files = folder_files(path)[0] if path.is_dir() else [path]
    return bool(files) and all(split_compression(file)[0] in DOCUMENT_SUFFIXES for file in files)


def describe_documents(folder: Place) -> str:
    """Return a line that says which files of a folder are read."""
    files = named([name for name, _ in document_files(folder)])
    return f"{folder}: reads {files} as documents, which are split into sentences"


def document_files(path: Place) -> list[NamedPlace]:
    """Return the files of documents at a place with their names: itself, or all below a folder.

    Hidden files and folders, files about the corpus, such as README.md, and those of unknown
    suffixes are left out.

    Raises:
        CorpusError: there is none.
    """
    if path.is_dir():
        files = list(_below(path, ""))
    else:
        files = [(path.name, path)] if reader_of(path) else []
    if not files:
        known = " ".join(FORMATS)
        raise CorpusError(f"{path}: no documents; give files that end in one of {known}")
    return files


def open_side(path: Place, input_format: str) -> CorpusReader:
    """Return what reads a corpus: files of sentences, or the documents at a place and below it.

    Raises:
        CorpusError: there is no file.
    """
    if is_documents(path, input_format):
        files = [file for _, file in document_files(path)]
        return CorpusReader(files, input_format="documents")
    return CorpusReader(corpus_files(path, input_format=input_format), input_format=input_format)


def _below(folder: Place, prefix: str, above: frozenset[str] = frozenset()) -> Iterator[NamedPlace]:
    """Yield the files below a folder; a link to a folder that it is in leads nowhere."""
    real = str(folder) if isinstance(folder, RemotePath) else str(folder.resolve())
    if real in above:
        return
    entries: list[Place] = sorted(folder.iterdir(), key=lambda entry: entry.name)
    for entry in entries:
        if not may_hold_corpus(entry):
            continue
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/", above | {real})
        elif entry.is_file() and reader_of(entry):
            yield prefix + entry.name, entry


def find_documents(
    files: Sequence[NamedPlace], *, is_only_file: bool
) -> Iterator[tuple[int, Found]]:
    """Yield the documents of files, each with its file's number.

    A file that is damaged is a broken document, unless it is the only one.

    Raises:
        CorpusError: the only file is damaged.
        ModuleNotFoundError: a library that the format needs is not installed.
    """
    for number, (name, path) in enumerate(files):
        reader = reader_of(path)
        assert reader is not None
        try:
            for found in reader(path, name):
                yield number, found
        except CorpusError:
            if is_only_file:
                raise
            yield number, Document(name=name, broken=Rejection.UNREADABLE)


def read_documents(files: Sequence[NamedPlace]) -> Iterator[Document]:
    """Yield the documents of files; see ``find_documents``."""
    for _, found in find_documents(files, is_only_file=len(files) == 1):
        yield read_found(found)


def split_documents(
    documents: Iterator[Document], counts: SplitCounts, *, language: str | None = None
) -> Iterator[pa.Table]:
    """Yield the sentences in tables of ``SPLIT_FIELDS``, and count.

    ``language`` (ISO 639-1) decides how they are split; each sentence's own is identified.
    """

    def whole() -> Iterator[tuple[int, Document]]:
        for document in documents:
            counts.documents += 1
            if document.broken:
                counts.broken[document.broken] += 1
            else:
                yield 0, document

    for table in sentence_tables(whole(), language):
        languages = [language_of(text) for text in table["text"].to_pylist()]
        counts.languages.update(languages)
        columns = [*table.select(SPLIT_FIELDS.names[:-1]).columns, languages]
        yield pa.table(columns, schema=SPLIT_FIELDS)
