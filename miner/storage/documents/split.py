"""Splitting of files of documents into sentences, in bounded memory."""

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
from miner.storage.documents.records import FORMATS, AnyDocument, Document, extract, reader_of
from miner.storage.documents.sentences import is_wrapped, sentence_tables
from miner.storage.documents.splitting import sentence_spans
from miner.storage.places import Place
from miner.storage.streams import split_compression
from miner.wording import counted

SHOWN_LANGUAGES = 3
SPLIT_FIELDS = pa.schema(dict.fromkeys(("id", "doc", "text", "language"), pa.string()))

# Each file with one of these suffixes is one document. A .txt may have one sentence per line.
MARKUP_SUFFIXES = (".md", ".mdx", ".markdown", ".html", ".htm", ".xhtml")
SAMPLED_FILES = 20
SAMPLED_BYTES = 1 << 16
MIN_SENTENCES = 1.5  # mean number of sentences per line
MIN_FILLED = 0.8  # share of lines that had no space for the first word of the next line
MAX_WORD = 30  # characters; a longer word is text without spaces

_MEDIA_TYPE = re.compile(r"(image|audio|video|font)/|(text|application)/(css|javascript)$")
_HTML = re.compile(r"\s*(<!doctype\s+html|<html)", re.IGNORECASE)


@dataclass(kw_only=True)
class SplitCounts:
    """Numbers of split documents, sentences and broken documents.

    ``documents`` includes broken ones. ``languages`` counts sentences by ``language_of``, and
    ``broken`` documents by reason.
    """

    documents: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    broken: Counter[Rejection] = field(default_factory=Counter)

    def describe(self) -> str:
        """Return the counts as one line for people."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.broken.items())
        rejected = f"; rejected: {reasons}" if reasons else ""
        top = self.languages.most_common(SHOWN_LANGUAGES)
        shares = ", ".join(f"{count / self.sentences:.0%} {language}" for language, count in top)
        languages = f" ({shares})" if shares else ""
        counts = f"{counted(self.documents, 'documents')}, {counted(self.sentences, 'sentences')}"
        return f"{counts}{languages}{rejected}"

    @property
    def sentences(self) -> int:
        """The number of sentences in all languages."""
        return self.languages.total()


def is_documents(path: Place, input_format: str) -> bool:
    """Return whether a corpus consists of documents.

    It does if ``input_format`` is ``documents``, or is ``auto`` and all suffixes are in
    ``DOCUMENT_SUFFIXES`` (HTML, WARC, WET and XML). In a folder, media and styles do not count, and
    unknown suffixes only if more than half of the other files have one. Errors of ``folder_files``
    are raised.
    """
    if input_format != "auto":
        return input_format == "documents"
    suffixes = {*_files_by_suffix(path)} if path.is_dir() else {split_compression(path)[0]}
    return bool(suffixes) and suffixes <= {*DOCUMENT_SUFFIXES}


def holds_documents(folder: Place) -> bool:
    """Return whether each file of a folder is one document.

    All suffixes that ``is_documents`` counts must be of text or markup, and at least half of a
    sample of ``.txt`` files must pass ``looks_like_a_document``. It is false for an empty folder.
    Errors of both functions are raised.
    """
    suffixes = _files_by_suffix(folder)
    if not suffixes or not {*suffixes} <= {*MARKUP_SUFFIXES, ".txt"}:
        return False
    texts = suffixes.get(".txt", [])
    sample = texts[:: max(1, len(texts) // SAMPLED_FILES)]
    return sum(map(looks_like_a_document, sample)) * 2 >= len(sample)


def _files_by_suffix(folder: Place) -> dict[str, list[Place]]:
    """Return the files of a folder that ``is_documents`` counts, by suffix."""
    files_by_suffix: dict[str, list[Place]] = {}
    for _, file in filesets.folder_files(folder)[0]:
        if not _MEDIA_TYPE.match(guess_type(file.name)[0] or ""):
            files_by_suffix.setdefault(split_compression(file)[0], []).append(file)
    known_files = {suffix: files for suffix, files in files_by_suffix.items() if suffix in FORMATS}
    is_known = sum(map(len, known_files.values())) * 2 >= sum(map(len, files_by_suffix.values()))
    return known_files if is_known else files_by_suffix


def looks_like_a_document(path: Place) -> bool:
    """Return whether a text is wrapped, has long paragraphs, or is a web page.

    The first 64 KiB decide. An unreadable file gives False, an unreachable store PlaceError.
    """
    try:
        data = read_bytes(path, SAMPLED_BYTES)
    except ValueError:  # reported when the corpus is read
        return False
    text = data[:SAMPLED_BYTES].decode("utf-8", errors="replace").replace("\r\n", "\n")
    text = INVISIBLE.sub("", text)
    if _HTML.match(text):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    sentences = sum(1 for line in lines for _ in sentence_spans(line))
    return sentences > MIN_SENTENCES * len(lines) or (is_wrapped(text) and _is_filled(text))


def _is_filled(text: str) -> bool:
    """Return whether most lines had no space for the next line's first word."""
    pairs = [
        (len(line.rstrip()), len(next_line.split()[0]))
        for line, next_line in pairwise(text.split("\n"))
        if line.strip() and next_line.strip()
    ]
    width = max((length for length, _ in pairs), default=0)
    filled = sum(length + (1 if word > MAX_WORD else word + 1) >= width for length, word in pairs)
    return filled >= MIN_FILLED * len(pairs) > 0


def describe_documents(folder: Place) -> str:
    """Describe ``document_files`` of a folder in one line, with its errors."""
    files = filesets.summarise_names([name for name, _ in document_files(folder)])
    return f"{folder}: reads {files} as documents, which are split into sentences"


def document_files(path: Place) -> list[NamedPlace]:
    """Return pairs of name and place of the files of documents at a path.

    In a folder, they are at any depth, named by paths below it, without hidden files, files such as
    README.md and unknown suffixes. Errors of ``folder_files`` and ``reader_of`` are raised.

    Raises:
        CorpusError: ``path`` is missing, or has no file of documents.
    """
    if not path.exists():
        raise CorpusError(f"{path}: file not found; check its path")
    files = filesets.folder_files(path)[0] if path.is_dir() else [(path.name, path)]
    files = [file for file in files if reader_of(file[1])]
    if not files:
        endings = " ".join(FORMATS)
        raise CorpusError(f"{path}: contains no documents; pass files that end in one of {endings}")
    return files


def open_side(path: Place, input_format: str, *, escapes: int = 0) -> filesets.CorpusReader:
    """Return the reader of a corpus of sentences or documents.

    ``input_format`` and ``escapes`` are as in ``CorpusReader``. Errors of ``is_documents``,
    ``document_files`` and ``corpus_files`` are raised.
    """
    if is_documents(path, input_format):
        files, input_format = document_files(path), "documents"
    else:
        files = filesets.corpus_files(path, input_format=input_format)
    return filesets.CorpusReader(files, input_format=input_format, escapes=escapes)


def find_documents(
    files: Sequence[NamedPlace], *, is_only_file: bool
) -> Iterator[tuple[int, AnyDocument]]:
    """Yield pairs of a file's position and one of its documents, in order.

    ``files`` are from ``document_files``, and ``extract`` parses a document. A damaged file gives a
    broken one, unless ``is_only_file``. Other errors of ``open_corpus`` are raised.

    Raises:
        CorpusError: The only file is damaged.
    """
    for number, (name, path) in enumerate(files):
        reader = reader_of(path)
        assert reader is not None
        try:
            for document in reader(path, name):
                yield number, document
        except CorpusError as error:
            if is_only_file:
                raise
            yield number, Document(name=name, text=str(error), broken=Rejection.UNREADABLE)


def read_documents(files: Sequence[NamedPlace]) -> Iterator[Document]:
    """Yield the parsed documents of ``find_documents``, with its errors."""
    return (extract(raw) for _, raw in find_documents(files, is_only_file=len(files) == 1))


def split_documents(
    documents: Iterator[Document], counts: SplitCounts, *, language: str | None = None
) -> Iterator[pa.Table]:
    """Yield all sentences of documents in tables of ``SPLIT_FIELDS``.

    ``language_of`` fills the column ``language``. ``counts`` is updated. Broken documents are only
    counted. ``language`` (ISO 639-1) is for splitting. A name's second document is ``NAME (2)``.
    """
    name_counts: Counter[int] = Counter()  # by hash, which needs less memory than the name

    def numbered() -> Iterator[tuple[int, Document]]:
        for document in documents:
            counts.documents += 1
            if document.broken:
                counts.broken[document.broken] += 1
                continue
            name_counts[hash(document.name)] += 1
            if (number := name_counts[hash(document.name)]) > 1:
                document = replace(document, name=f"{document.name} ({number})")
            yield 0, document

    for table in sentence_tables(numbered(), language):
        languages = [language_of(text) for text in table["text"].to_pylist()]
        counts.languages.update(languages)
        columns = [*table.select(SPLIT_FIELDS.names[:-1]).columns, languages]
        yield pa.table(columns, schema=SPLIT_FIELDS)
