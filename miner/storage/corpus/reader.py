"""Reading corpora: plain lines, BUCC, TSV, JSON lines and Parquet, compressed or not."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from miner.storage.corpus.formats import INPUT_FORMATS, format_of, line_parser
from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.parquet import read_parquet
from miner.storage.corpus.records import CorpusError, Records, checked_records
from miner.storage.places import AnyPath, Place
from miner.storage.streams import open_binary, read_chunks, split_compression


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
    path: AnyPath, *, input_format: str = "auto", first_row: int = 0
) -> Iterator[Records]:
    """Read a corpus, every record of it, in order and in batches of at most ``BATCH_ROWS``.

    What can be seen from the file's beginning is checked here, before the first batch is asked
    for; damage further on is raised by the batch that meets it. The file is read once, so a pipe
    will do for text, which is verbatim, without the end of the line.

    Args:
        path: the file; ``.gz``, ``.xz``, ``.zst`` and ``.bz2`` are decompressed as it is read.
        input_format: one of ``INPUT_FORMATS`` (``miner.storage.corpus.formats`` describes them).
            ``auto`` goes by the suffix (below that of the compression), ``FORMAT_BY_SUFFIX``, else
            by the first line that is not blank.
        first_row: the row of the first record, where other files of the corpus come before.

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
        batches = read_parquet(path, first_row)
    elif chosen == "documents":
        from miner.storage.documents.sentences import read_sentences  # which reads corpora, too

        batches = read_sentences(path, first_row)
    else:
        batches = _read_text(path, chosen, first_row)
    first = next(batches, None)
    if first is None:
        raise CorpusError(f"{path}: is empty; give a corpus of at least one sentence")
    return chain([first], batches)


def _read_text(path: AnyPath, text_format: str, first_row: int) -> Iterator[Records]:
    parse = None
    for batch in line_batches(path):
        lines, rejected = decode_lines(batch)
        if parse is None:
            parse = line_parser(path, text_format, lines)
        ids, docs, texts = parse(lines, rejected)
        yield checked_records(first_row, ids, docs, texts, rejected, batch.raw)
        first_row += len(lines)
