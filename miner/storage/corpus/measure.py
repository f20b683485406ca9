"""How large a corpus is, without reading its sentences."""

from collections.abc import Sequence
from typing import NamedTuple

from miner.storage.corpus.formats import FORMAT_BY_SUFFIX
from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import CorpusError
from miner.storage.places import Place
from miner.storage.streams import open_binary, read_chunks, split_compression


class CorpusSize(NamedTuple):
    """``rows`` are all records, those included that will be left out; ``text`` is in bytes."""

    rows: int
    text: int


def measure_files(files: Sequence[Place], *, input_format: str = "auto") -> CorpusSize:
    """Count the records and bytes of all files together, in a pass over their bytes.

    Of Parquet only the footer is read. One of several that cannot be read counts as one record.

    Raises:
        CorpusError: the only file cannot be read.
        ValueError: there is no such format.
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


def _measure_documents(path: Place) -> CorpusSize:
    rows = text = 0
    for records in open_corpus(path, input_format="documents"):
        rows += len(records)
        text += sum(len(sentence.encode()) for sentence in records.texts)
    return CorpusSize(rows=rows, text=text)


def _measure_parquet(path: Place) -> CorpusSize:
    import pyarrow.parquet as pq

    with open_binary(path) as raw:
        metadata = pq.read_metadata(raw)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return CorpusSize(rows=metadata.num_rows, text=sum(group.total_byte_size for group in groups))
