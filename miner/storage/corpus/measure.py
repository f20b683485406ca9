"""How large a corpus is, without reading its sentences."""

from __future__ import annotations

from dataclasses import dataclass

from miner.storage.corpus.formats import FORMAT_BY_SUFFIX
from miner.storage.corpus.reader import open_corpus
from miner.storage.places import AnyPath
from miner.storage.streams import open_binary, read_chunks, split_compression


@dataclass(frozen=True, kw_only=True)
class CorpusSize:
    """``rows`` are all records, those included that will be left out; ``text`` is in bytes."""

    rows: int
    text: int


def measure_corpus(path: AnyPath, *, input_format: str = "auto") -> CorpusSize:
    """Count a corpus's records and bytes: a pass over its bytes, or a look at Parquet's footer.

    Raises:
        CorpusError, ValueError: as ``open_corpus``.
    """
    next(open_corpus(path, input_format=input_format))  # says what is wrong with its beginning
    suffix, _ = split_compression(path)
    chosen = FORMAT_BY_SUFFIX.get(suffix) if input_format == "auto" else input_format
    if chosen == "parquet":
        return _measure_parquet(path)
    if chosen == "documents":
        return _measure_documents(path)
    lines, text, last = 0, 0, b"\n"
    for chunk in read_chunks(path):
        lines += chunk.count(b"\n")
        text += len(chunk)
        last = chunk[-1:]
    return CorpusSize(rows=lines + (last != b"\n"), text=text)


def _measure_documents(path: AnyPath) -> CorpusSize:
    rows = text = 0
    for records in open_corpus(path, input_format="documents"):
        rows += len(records)
        text += sum(len(sentence.encode()) for sentence in records.texts)
    return CorpusSize(rows=rows, text=text)


def _measure_parquet(path: AnyPath) -> CorpusSize:
    import pyarrow.parquet as pq

    with open_binary(path) as raw:
        metadata = pq.read_metadata(raw)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return CorpusSize(rows=metadata.num_rows, text=sum(group.total_byte_size for group in groups))
