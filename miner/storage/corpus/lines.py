r"""Splitting of files into lines, decoding, and rejection of other data.

A line ends at ``b"\n"`` only, as in most tools, and not at ``\r`` or U+2028.
"""

import codecs
import sys
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from miner.storage.corpus.joined import JoinedLines
from miner.storage.corpus.records import (
    BATCH_ROWS,
    MAX_LINE_BYTES,
    CorpusError,
    Rejected,
    Rejection,
    decode_utf8,
)
from miner.storage.places import AnyPath
from miner.storage.streams import PARQUET_MAGIC, is_text, read_chunks

_SAMPLE_BYTES = 64 << 10
# In a shorter file, invalid lines are rejected one by one, with their rows.
_MIN_SAMPLE_BYTES = 1 << 10

# UTF-32's little-endian mark comes first, because it begins with UTF-16's.
_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def line_batches(path: AnyPath) -> Iterator[JoinedLines]:
    """Yield the lines of a file as bytes, at most ``BATCH_ROWS`` at a time.

    An empty file has none. A UTF-8 byte order mark at the start is removed. A line of more than
    ``MAX_LINE_BYTES`` may be cut, but stays longer than that. Errors of ``read_chunks`` are raised.
    CorpusError also says that the file has the mark of UTF-16 or UTF-32, is Parquet, or has 1 KiB
    or more, and most of its first 64 KiB are in lines that are not UTF-8 or contain NUL.
    """
    for block in _line_blocks(path):
        ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
        starts = np.concatenate([[0], ends + 1, [len(block) + 1]])
        for first in range(0, len(starts) - 1, BATCH_ROWS):
            bounds = starts[first : first + BATCH_ROWS + 1]
            yield JoinedLines(block[bounds[0] : bounds[-1] - 1], bounds - bounds[0])


def text_lines(path: AnyPath) -> Iterator[tuple[str, str]]:
    r"""Yield each line of a text file, and why it is rejected, or "".

    The reason is ``blank``, ``undecodable`` or ``too long`` (above ``MAX_LINE_BYTES``). Undecodable
    bytes become surrogates (PEP 383), a too long line may be cut, and one ``\r`` at a line's end is
    removed. Errors of ``line_batches`` are raised.
    """
    for batch in line_batches(path):
        lines, rejected = decode_lines(batch)
        for position, line in enumerate(lines):
            if reason := rejected.get(position):
                raw = batch.raw(position).removesuffix(b"\r")
                yield raw.decode(errors="surrogateescape"), reason.value
            else:
                yield line, "" if line.strip() else Rejection.BLANK.value


def decode_lines(lines: JoinedLines) -> tuple[Sequence[str], Rejected]:
    r"""Decode lines, and return the texts and the reasons of rejected ones.

    Reasons are by position. A line above ``MAX_LINE_BYTES`` or not in UTF-8 is rejected, and its
    text is empty. One ``\r`` at a line's end is removed. The texts may be ``lines``.
    """
    rejected: Rejected = {}
    too_long = np.flatnonzero(lines.lengths > MAX_LINE_BYTES).tolist()
    if not _is_utf8(lines.data):
        texts = decode_utf8(lines.data.split(b"\n"), rejected)
    elif lines.data and not too_long and b"\r" not in lines.data:
        return lines, rejected
    else:
        texts = [*lines]
    for position in too_long:
        texts[position] = ""
        rejected[position] = Rejection.TOO_LONG
    return [text.removesuffix("\r") for text in texts], rejected


def _is_utf8(joined: bytes) -> bool:
    """Return whether all bytes can be decoded, by Arrow in half the time."""
    try:
        if arrow := sys.modules.get("pyarrow"):
            ends = arrow.py_buffer(np.array([0, len(joined)], dtype=np.int64))
            column = arrow.LargeStringArray.from_buffers(1, ends, arrow.py_buffer(joined))
            column.validate(full=True)
        else:
            joined.decode()
    except ValueError:
        return False
    return True


def _line_blocks(path: AnyPath) -> Iterator[bytes]:
    r"""Yield blocks of the lines of ``line_batches``, joined by ``b"\n"``."""
    chunks = read_chunks(path)
    unfinished = next(chunks, b"")
    _refuse_other_than_text(path, unfinished)
    unfinished = unfinished.removeprefix(codecs.BOM_UTF8)
    for chunk in chain(chunks, [b""]):
        lines, newline, unfinished = unfinished.rpartition(b"\n")
        if newline:
            yield lines
        unfinished = unfinished[: MAX_LINE_BYTES + 1] + chunk
    if unfinished:
        yield unfinished


def _refuse_other_than_text(path: AnyPath, head: bytes) -> None:
    for mark, encoding in _OTHER_ENCODINGS.items():
        if head.startswith(mark):
            raise CorpusError(
                f"{path}: is {encoding}; convert it with iconv -f {encoding} -t UTF-8"
            )
    sample = head[:_SAMPLE_BYTES]
    if head.startswith(PARQUET_MAGIC) and not is_text(sample):
        raise CorpusError(f"{path}: is a Parquet file; read it with --input-format parquet")
    bad = sum(len(line) for line in sample.split(b"\n") if not is_text(line))
    if len(sample) >= _MIN_SAMPLE_BYTES and bad > len(sample) / 2:
        raise CorpusError(
            f"{path}: is not UTF-8 text: of its first {len(sample)} bytes, {bad} are in invalid "
            "lines; convert it with iconv, or unpack it if it is compressed"
        )
