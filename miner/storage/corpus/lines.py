r"""Bytes to lines: their splitting, their decoding, and what is not text at all.

A line ends at ``b"\n"`` and nowhere else. Python's text mode and ``str.splitlines`` also end one at
``\r``, U+0085, U+2028 and others, which shifts every row number after it against other tools'.
"""

import codecs
import sys
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from miner.storage.corpus.joined import JoinedLines
from miner.storage.corpus.records import BATCH_ROWS, CorpusError, Rejected, Rejection, decoded
from miner.storage.places import AnyPath
from miner.storage.streams import PARQUET_MAGIC, is_text, read_chunks

# A longer line is rejected before it is decoded, and its rest is skipped, not held. It leaves room
# for MAX_CHARACTERS as JSON escapes (12 bytes each at most) and an id, a document and more.
MAX_LINE_BYTES = 1 << 20
_SAMPLE_BYTES = 64 << 10
# A shorter file is left to the rejections line by line, which name the rows to look at.
_ENOUGH_TO_JUDGE_BYTES = 1 << 10

# UTF-32's little-endian mark begins with UTF-16's, so it has to be looked for first.
_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def line_batches(path: AnyPath) -> Iterator[JoinedLines]:
    """Yield at most ``BATCH_ROWS`` of the file's lines at a time, as they are.

    A UTF-8 byte order mark at the start is left out. A line of more than ``MAX_LINE_BYTES`` may
    come cut, but stays longer than that. A CorpusError says that it is not UTF-8 text.
    """
    for block in _line_blocks(path):
        ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
        starts = np.concatenate([[0], ends + 1, [len(block) + 1]])
        for first in range(0, len(starts) - 1, BATCH_ROWS):
            own = starts[first : first + BATCH_ROWS + 1]
            yield JoinedLines(block[own[0] : own[-1] - 1], own - own[0])


def decode_lines(lines: JoinedLines) -> tuple[Sequence[str], Rejected]:
    r"""Decode lines, and reject by position those that cannot be; they are empty in the list.

    One ``\r`` at a line's end is removed. Without any of this, they are returned as they are.
    """
    rejected: Rejected = {}
    too_long = np.flatnonzero(lines.lengths > MAX_LINE_BYTES).tolist()
    if not _is_utf8(lines.data):
        texts = decoded(lines.data.split(b"\n"), rejected)
    elif lines.data and not too_long and b"\r" not in lines.data:
        return lines, rejected
    else:
        texts = [*lines]
    for position in too_long:
        texts[position] = ""
        rejected[position] = Rejection.TOO_LONG
    return [text.removesuffix("\r") for text in texts], rejected


def _is_utf8(joined: bytes) -> bool:
    """Return whether all can be decoded, by Arrow, if it is loaded: in half the time."""
    try:
        if arrow := sys.modules.get("pyarrow"):
            ends = arrow.py_buffer(np.array([0, len(joined)], dtype=np.int64))
            whole = arrow.LargeStringArray.from_buffers(1, ends, arrow.py_buffer(joined))
            whole.validate(full=True)
        else:
            joined.decode()
    except ValueError:
        return False
    return True


def _line_blocks(path: AnyPath) -> Iterator[bytes]:
    r"""Yield whole lines joined by ``b"\n"``: an empty block is one empty line."""
    chunks = read_chunks(path)
    rest = next(chunks, b"")
    _refuse_other_than_text(path, rest)
    rest = rest.removeprefix(codecs.BOM_UTF8)
    for chunk in chain(chunks, [b""]):
        whole, newline, rest = rest.rpartition(b"\n")
        if newline:
            yield whole
        rest = rest[: MAX_LINE_BYTES + 1] + chunk
    if rest:
        yield rest


def _refuse_other_than_text(path: AnyPath, head: bytes) -> None:
    """Refuse a file whose beginning shows that it is no UTF-8 text."""
    for mark, encoding in _OTHER_ENCODINGS.items():
        if head.startswith(mark):
            raise CorpusError(
                f"{path}: is {encoding}; convert it with iconv -f {encoding} -t UTF-8"
            )
    sample = head[:_SAMPLE_BYTES]
    if head.startswith(PARQUET_MAGIC) and not is_text(sample):
        raise CorpusError(f"{path}: is a Parquet file; read it with --input-format parquet")
    other = sum(len(line) for line in sample.split(b"\n") if not is_text(line))
    if len(sample) >= _ENOUGH_TO_JUDGE_BYTES and other > len(sample) / 2:
        raise CorpusError(
            f"{path}: is not UTF-8 text: of its first {len(sample)} bytes, {other} are in invalid "
            "lines; convert it with iconv, or unpack it if it is compressed"
        )
