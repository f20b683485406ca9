"""Reading corpora (lines, BUCC, TSV, JSON lines, Parquet), and lists of pairs of documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from miner.storage.corpus.formats import INPUT_FORMATS, format_of, line_parser
from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.records import BATCH_ROWS, CorpusError, Records, Rejection, decoded
from miner.storage.places import AnyPath, Place, PlaceError
from miner.storage.streams import (
    HEAD_BYTES,
    open_binary,
    read_chunks,
    refuse_container,
    split_compression,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class CorpusSize(NamedTuple):
    """``rows`` are all records, those included that will be left out; ``text`` is in bytes."""

    rows: int
    text: int


def measure_files(files: Sequence[Place], *, input_format: str = "auto") -> CorpusSize:
    """Count the records and bytes of all files together, in a pass over their bytes.

    Of Parquet only the footer is read. One of several that cannot be read counts as one record;
    a CorpusError is raised where it is the only one.
    """
    sizes = []
    for file in files:
        try:
            sizes.append(_measure(file, input_format))
        except CorpusError:
            if len(files) == 1:
                raise
            sizes.append(CorpusSize(rows=1, text=0))
    return CorpusSize(*map(sum, zip(*sizes, strict=True)))


def _measure(path: Place, input_format: str) -> CorpusSize:
    next(open_corpus(path, input_format=input_format))  # says what is wrong with its beginning
    rows = text = 0
    chosen, last = format_of(path, input_format), b"\n"
    if chosen == "parquet":
        import pyarrow.parquet as pq

        with open_binary(path) as raw:
            metadata = pq.read_metadata(raw)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        return CorpusSize(metadata.num_rows, sum(group.total_byte_size for group in groups))
    if chosen == "documents":
        for records in open_corpus(path, input_format=chosen):
            rows += len(records)
            text += sum(len(sentence.encode()) for sentence in records.texts)
        return CorpusSize(rows, text)
    for chunk in read_chunks(path):
        rows += chunk.count(b"\n")
        text += len(chunk)
        last = chunk[-1:]
    return CorpusSize(rows + (last != b"\n"), text)


def open_corpus(
    path: AnyPath, *, input_format: str = "auto", first_row: int = 0, name: str | None = None
) -> Iterator[Records]:
    """Read a corpus, every record of it, in order and in batches of at most ``BATCH_ROWS``.

    What can be seen from the file's beginning is checked here, before the first batch is asked
    for; damage further on is raised by the batch that meets it. The file is read once, so a pipe
    will do for text, which is verbatim, without the end of the line. What is compressed is known by
    the suffix; of ``INPUT_FORMATS`` ``auto`` goes by the suffix below that, or the first line that
    is not blank. Other files of the corpus may come before the ``first_row``. Documents are called
    by the file's ``name`` in the corpus (default: the last part of its path).

    Raises:
        CorpusError: the file is missing, unreadable, empty, damaged, or not of that format.
        ValueError: there is no such format.
    """
    if input_format not in INPUT_FORMATS:
        raise ValueError(
            f"input format {input_format!r} is unknown; use one of {', '.join(INPUT_FORMATS)}"
        )
    chosen = format_of(path, input_format)
    if chosen == "parquet":
        if compression := split_compression(path)[1]:
            raise CorpusError(
                f"{path}: Parquet is compressed inside; remove the {compression} around it"
            )
        batches = _read_parquet(path, first_row)
    elif chosen == "documents":
        from miner.storage.documents.sentences import read_sentences  # which reads corpora, too

        batches = read_sentences(path, name or PurePath(str(path)).name, first_row)
    else:
        batches = _read_text(path, chosen, first_row, is_given=input_format != "auto")
    first = next(batches, None)
    if first is None:
        raise CorpusError(f"{path}: is empty; pass a corpus with at least one sentence")
    return chain([first], batches)


def _read_text(
    path: AnyPath, text_format: str, first_row: int, *, is_given: bool
) -> Iterator[Records]:
    parse = None
    for batch in line_batches(path):
        lines, rejected = decode_lines(batch)
        if parse is None:
            parse = line_parser(path, text_format, lines, is_given=is_given)
        yield Records.checked(first_row, parse(lines, rejected), rejected, batch.raw)
        first_row += len(lines)


def _read_parquet(path: AnyPath, first_row: int) -> Iterator[Records]:
    """Yield the records of a Parquet file; ``text`` is a string, ``id`` and ``doc`` may be integer.

    A row whose text is null is malformed; one whose strings are not UTF-8 is undecodable. A
    CorpusError says that the file is no Parquet file, or lacks such columns.
    """
    with parquet_file(path, "; write it again, or set its format with --input-format") as file:
        columns = _columns(path, file.schema_arrow)
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
            if len(batch):
                yield _records(batch, first_row)
            first_row += len(batch)


@contextmanager
def parquet_file(path: AnyPath, remedy: str = "") -> Iterator[pq.ParquetFile]:
    """Open a Parquet file as by ``open_binary``, and report what fails while it is read.

    That is a CorpusError, whose line ends in ``remedy``, or a PlaceError.
    """
    import pyarrow.parquet as pq

    with open_binary(path) as raw:
        try:
            yield pq.ParquetFile(raw)
        except (CorpusError, PlaceError):
            raise
        except (OSError, ValueError) as error:  # Arrow's own errors are of these two kinds.
            with open_binary(path) as again:
                refuse_container(path, again.read(HEAD_BYTES))
            cause = str(error).partition("\n")[0]
            raise CorpusError(f"{path}: is not a whole Parquet file ({cause}){remedy}") from error


def _columns(path: AnyPath, schema: pa.Schema) -> list[str]:
    """Return the columns to read, or the error that says what is wrong with them."""
    import pyarrow.types as pt

    if "text" not in schema.names:
        raise CorpusError(
            f"{path}: has no column 'text', only {', '.join(schema.names) or 'none'}; rename one"
        )
    columns = [column for column in ("id", "doc", "text") if column in schema.names]
    for column in columns:
        if schema.names.count(column) > 1:
            raise CorpusError(f"{path}: has more than one column '{column}'; keep one")
        kind = schema.field(column).type
        kind = kind.value_type if pt.is_dictionary(kind) else kind
        is_text = str(kind) in {"string", "large_string", "string_view"}
        if not is_text and (column == "text" or not pt.is_integer(kind)):
            expected = "string" if column == "text" else "string or integer"
            raise CorpusError(f"{path}: column '{column}' is {kind}, expected {expected}; cast it")
    return columns


def _records(batch: pa.RecordBatch, first_row: int) -> Records:
    import pyarrow as pa

    columns = {name: _plain(batch.column(name)) for name in batch.schema.names}
    rejected: dict[int, Rejection] = {}
    ids, docs, texts = (
        _strings(columns[name], rejected) if name in columns else [""] * len(batch)
        for name in ("id", "doc", "text")
    )
    for position, is_null in enumerate(columns["text"].is_null().to_pylist()):
        if is_null:
            rejected.setdefault(position, Rejection.MALFORMED)

    def raw(position: int) -> bytes:
        return columns["text"].slice(position, 1).cast(pa.large_binary())[0].as_py() or b""

    return Records.checked(first_row, (ids, docs, texts), rejected, raw)


def _plain(column: pa.Array) -> pa.Array:
    """Return a column of strings."""
    import pyarrow as pa
    import pyarrow.types as pt

    column = column.dictionary_decode() if pt.is_dictionary(column.type) else column
    return column.cast(pa.string()) if pt.is_integer(column.type) else column


def _strings(column: pa.Array, rejected: dict[int, Rejection]) -> list[str]:
    """Return a column's values, empty ones for null; one that is not UTF-8 is rejected.

    Parquet does not check what a string column holds, and neither does Arrow on reading it.
    """
    import pyarrow as pa

    try:
        return [value or "" for value in column.to_pylist()]
    except UnicodeDecodeError:
        values = column.cast(pa.large_binary()).to_pylist()
        return decoded((value or b"" for value in values), rejected)


def read_document_pairs(path: AnyPath) -> list[tuple[str, str]]:
    """Return the pairs of a source and a target document, each once, in order.

    A line has the ids of both with a tab between them; a score may follow, after another tab.
    Blank lines mean nothing. A CorpusError names a line that is something else.
    """
    pairs: dict[tuple[str, str], None] = {}
    lines = (
        "not text" if position in rejected else text
        for texts, rejected in map(decode_lines, line_batches(path))
        for position, text in enumerate(texts)
    )
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                pairs[_pair(line)] = None
        except ValueError:
            raise CorpusError(
                f"{path}: line {number} is not a source and a target document with "
                "a tab between them"
            ) from None
    if not pairs:
        raise CorpusError(f"{path}: contains no document pairs")
    return list(pairs)


def _pair(line: str) -> tuple[str, str]:
    source, target, *score = line.split("\t", 2)
    if not (source and target):
        raise ValueError(line)
    if any(score):
        float(*score)
    return source, target
