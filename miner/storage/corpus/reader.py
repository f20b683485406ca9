"""Reading of corpora, and of lists of pairs of documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from miner.storage import streams
from miner.storage.corpus.formats import INPUT_FORMATS, format_of, line_parser
from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.records import BATCH_ROWS, CorpusError, Records, Rejection, decode_utf8
from miner.storage.places import AnyPath, Place, PlaceError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class CorpusSize(NamedTuple):
    """The numbers of records, rejected ones included, and of bytes.

    ``text`` counts decompressed bytes of text files, Parquet's columns, or documents' sentences.
    """

    rows: int
    text: int


def measure_files(files: Sequence[Place], *, input_format: str = "auto") -> CorpusSize:
    """Count the records and bytes of at least one file.

    Of Parquet, only the first records and the footer are read. An unreadable file among several
    counts as one record without bytes. Other errors of ``open_corpus`` are raised.

    Raises:
        CorpusError: The only file cannot be read.
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
    batches = open_corpus(path, input_format=input_format)  # raises if the first ones are invalid
    rows = text = 0
    chosen, last_byte = format_of(path, input_format), b"\n"
    if chosen == "parquet":
        import pyarrow.parquet as pq

        with streams.open_binary(path) as raw:
            metadata = pq.read_metadata(raw)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        return CorpusSize(metadata.num_rows, sum(group.total_byte_size for group in groups))
    if chosen == "documents":
        for records in batches:
            rows += len(records)
            text += sum(len(sentence.encode()) for sentence in records.texts)
        return CorpusSize(rows, text)
    for chunk in streams.read_chunks(path):
        rows += chunk.count(b"\n")
        text += len(chunk)
        last_byte = chunk[-1:]
    return CorpusSize(rows + (last_byte != b"\n"), text)


def open_corpus(
    path: AnyPath, *, input_format: str = "auto", first_row: int = 0, name: str | None = None
) -> Iterator[Records]:
    """Read all records of a corpus, in batches of at most ``BATCH_ROWS``.

    Batches of documents contain whole ones, and so may be larger. Errors at the file's beginning
    are raised at once, later ones by the batch that has them. Text may come from a pipe.

    Args:
        path: A file. Its suffix shows a compression.
        input_format: One of ``INPUT_FORMATS``. For ``auto``, the suffix before the compression's
            decides, or the first line that is not blank.
        first_row: The number of records in earlier files of the corpus.
        name: The file's name in ids of its documents. Default: the last part of ``path``.

    Raises:
        CorpusError: The file is missing, unreadable, empty, damaged, or has another format.
        PlaceError: A remote file cannot be reached.
        ValueError: The format is unknown.
        ModuleNotFoundError: Documents need the extra ``documents``, which is not installed.
    """
    if input_format not in INPUT_FORMATS:
        raise ValueError(
            f"input format {input_format!r} is unknown; use one of {', '.join(INPUT_FORMATS)}"
        )
    chosen = format_of(path, input_format)
    if chosen == "parquet":
        if compression := streams.split_compression(path)[1]:
            raise CorpusError(
                f"{path}: Parquet within {compression} is not read; decompress the file"
            )
        batches = _read_parquet(path, first_row)
    elif chosen == "documents":
        from miner.storage.documents.sentences import read_sentences  # imports this package

        batches = read_sentences(path, name or PurePath(str(path)).name, first_row)
    else:
        batches = _read_text(path, chosen, first_row, is_given=input_format != "auto")
    first = next(batches, None)
    if first is None and chosen == "documents":
        raise CorpusError(
            f"{path}: contains no documents; pass text, web pages, an archive of them (WARC, WET), "
            "or a dump of MediaWiki with articles"
        )
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
        yield Records.from_columns(first_row, parse(lines, rejected), rejected, batch.raw)
        first_row += len(lines)


def _read_parquet(path: AnyPath, first_row: int) -> Iterator[Records]:
    with parquet_file(path, "; write it again, or set its format with --input-format") as file:
        columns = record_columns(path, file.schema_arrow)
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
            if len(batch):
                yield _records(batch, first_row)
            first_row += len(batch)


@contextmanager
def parquet_file(
    path: AnyPath, remedy: str = "; fetch or write it again"
) -> Iterator[pq.ParquetFile]:
    """Yield an open Parquet file to a ``with`` block.

    Raises:
        CorpusError: The file cannot be opened, or the block raised another OSError or ValueError,
            which mean damage. The message then ends in ``remedy``, or names the kind of the file.
        PlaceError: A remote file cannot be read.
    """
    import pyarrow.parquet as pq

    with streams.open_binary(path) as raw:
        try:
            yield pq.ParquetFile(raw)
        except (CorpusError, PlaceError):
            raise
        except (OSError, ValueError) as error:  # Arrow's errors are of these two classes
            with streams.open_binary(path) as stream:
                streams.refuse_container(path, stream.read(streams.HEAD_BYTES))
            cause = str(error).partition("\n")[0]
            raise CorpusError(f"{path}: is not a whole Parquet file ({cause}){remedy}") from error


def record_columns(path: AnyPath, schema: pa.Schema) -> list[str]:
    """Return which of ``id``, ``doc``, ``text`` a schema has, in this order.

    ``text`` has strings, ``id`` and ``doc`` strings, integers or only nulls. Errors name ``path``.

    Raises:
        CorpusError: ``text`` is missing, or one of these is duplicate or of another type.
    """
    import pyarrow.types as pt

    if "text" not in schema.names:
        raise CorpusError(
            f"{path}: has no column 'text', only {', '.join(schema.names) or 'none'}; rename one "
            "to text"
        )
    columns = [column for column in ("id", "doc", "text") if column in schema.names]
    for column in columns:
        if schema.names.count(column) > 1:
            raise CorpusError(f"{path}: has more than one column '{column}'; keep one")
        kind = schema.field(column).type
        kind = kind.value_type if pt.is_dictionary(kind) else kind
        is_text = str(kind) in {"string", "large_string", "string_view"}
        if not is_text and (column == "text" or not (pt.is_integer(kind) or pt.is_null(kind))):
            expected = "string" if column == "text" else "string or integer"
            raise CorpusError(
                f"{path}: column '{column}' is {kind}, expected {expected}; convert it"
            )
    return columns


def _records(batch: pa.RecordBatch, first_row: int) -> Records:
    import pyarrow as pa

    columns = {name: _string_column(batch.column(name)) for name in batch.schema.names}
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

    return Records.from_columns(first_row, (ids, docs, texts), rejected, raw)


def _string_column(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.types as pt

    column = column.dictionary_decode() if pt.is_dictionary(column.type) else column
    return column.cast(pa.string()) if pt.is_integer(column.type) else column


def _strings(column: pa.Array, rejected: dict[int, Rejection]) -> list[str]:
    # Parquet does not check that strings are UTF-8, and neither does Arrow when it reads them.
    import pyarrow as pa

    try:
        return [value or "" for value in column.to_pylist()]
    except UnicodeDecodeError:
        values = column.cast(pa.large_binary()).to_pylist()
        return decode_utf8((value or b"" for value in values), rejected)


def read_document_pairs(path: AnyPath) -> list[tuple[str, str]]:
    """Return the pairs of a source and a target document, each once, in order.

    A line has the ids of both, which are not stripped, and an optional number, separated by tabs.
    Blank lines are ignored. Errors of ``read_lines`` are raised.

    Raises:
        CorpusError: The list has no pairs, or a line is something else.
    """
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(streams.read_lines(path), 1):
        try:
            if line.strip():
                pairs[_pair(line)] = None
        except ValueError:
            raise CorpusError(
                f"{path} line {number}: expected SOURCE_DOCUMENT TAB TARGET_DOCUMENT, maybe TAB "
                f"NUMBER, not {line[:60]!r}"
            ) from None
    if not pairs:
        raise CorpusError(f"{path}: contains no document pairs; expected SOURCE TAB TARGET lines")
    return list(pairs)


def _pair(line: str) -> tuple[str, str]:
    source, target, *score = line.split("\t", 2)
    if not (source and target):
        raise ValueError(line)
    if any(score):
        float(*score)
    return source, target
