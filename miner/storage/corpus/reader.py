"""Reading corpora: plain lines, BUCC, TSV, JSON lines and Parquet, compressed or not."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain

from miner.storage.corpus.formats import FORMAT_BY_SUFFIX, INPUT_FORMATS, line_parser, sniff_format
from miner.storage.corpus.lines import decode_lines, line_batches
from miner.storage.corpus.parquet import read_parquet
from miner.storage.corpus.records import CorpusError, Records, checked_records
from miner.storage.places import AnyPath
from miner.storage.streams import split_compression


def open_corpus(
    path: AnyPath, *, input_format: str = "auto", first_row: int = 0
) -> Iterator[Records]:
    """Read a corpus, every record of it, in order and in batches of at most ``BATCH_ROWS``.

    What can be seen from the file's beginning is checked here, before the first batch is asked
    for; damage further on is raised by the batch that meets it. Memory is bounded by the batch,
    whatever the file holds, and the file is read once, so a pipe will do for text.

    Args:
        path: the file; ``.gz``, ``.xz``, ``.zst`` and ``.bz2`` are decompressed as it is read.
        input_format: one of ``INPUT_FORMATS`` (``miner.storage.corpus.formats`` describes them).
            ``auto`` goes by the suffix (below that of the compression) ``.jsonl``, ``.ndjson``,
            ``.parquet``, ``.tsv`` or those of documents, such as ``.html``, else by the first line
            that is not blank.
        first_row: the row of the first record, where other files of the corpus come before.

    Returns:
        The batches; texts verbatim, without the end of the line.

    Raises:
        CorpusError: the file is missing, unreadable, empty, damaged, or not of that format.
        ValueError: there is no such format.
    """
    if input_format not in INPUT_FORMATS:
        raise ValueError(
            f"input format {input_format!r} is unknown; use one of {', '.join(INPUT_FORMATS)}"
        )
    suffix, compression = split_compression(path)
    chosen = FORMAT_BY_SUFFIX.get(suffix, "auto") if input_format == "auto" else input_format
    if chosen == "parquet" and compression:
        raise CorpusError(
            f"{path}: Parquet is compressed inside; remove the {compression} around it"
        )
    if chosen == "parquet":
        batches = read_parquet(path, first_row)
    elif chosen == "documents":
        from miner.storage.documents.corpus import read_sentences  # which reads corpora, too

        batches = read_sentences(path, first_row)
    else:
        batches = _read_text(path, chosen, first_row)
    first = next(batches, None)
    if first is None:
        raise CorpusError(f"{path}: is empty; give a corpus of at least one sentence")
    return chain([first], batches)


def _read_text(path: AnyPath, text_format: str, first_row: int) -> Iterator[Records]:
    parse = None
    for joined in line_batches(path):
        lines, rejected = decode_lines(joined)
        if parse is None:
            chosen = sniff_format(lines) if text_format == "auto" else text_format
            parse = line_parser(path, chosen, lines)
        ids, docs, texts = parse(lines, rejected)
        yield checked_records(first_row, ids, docs, texts, rejected, _raw_lines(joined))
        first_row += len(lines)


def _raw_lines(joined: bytes) -> Callable[[int], bytes]:
    """Return what gives a line by its position; they are split when the first is asked for."""
    split = cache(partial(joined.split, b"\n"))
    return lambda position: split()[position]
