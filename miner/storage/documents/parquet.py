"""Parquet with whole documents in ``text``."""

from __future__ import annotations

from collections.abc import Iterator

from miner.storage.corpus.records import CorpusError
from miner.storage.documents.jsonl import NAMES
from miner.storage.documents.records import Broken, Document, checked
from miner.storage.places import AnyPath
from miner.storage.remote import PlaceError
from miner.storage.streams import open_binary

READ_ROWS = 256


def read(path: AnyPath, name: str) -> Iterator[Document]:
    """Yield a document for each row."""
    import pyarrow.parquet as pq

    with open_binary(path) as raw:
        try:
            file = pq.ParquetFile(raw)
            columns = [column for column in (*NAMES, "text") if column in file.schema_arrow.names]
            if "text" not in columns:
                raise CorpusError(f"{path}: has no column 'text'; rename one")
            number = 0
            for batch in file.iter_batches(batch_size=READ_ROWS, columns=columns):
                for record in batch.to_pylist():
                    number += 1
                    yield _document(record, f"{name}:{number}")
        except (CorpusError, PlaceError):
            raise
        except (OSError, ValueError) as error:  # Arrow's own errors are of these two kinds
            cause = str(error).partition("\n")[0]
            raise CorpusError(f"{path}: is not a whole Parquet file ({cause})") from error


def _document(record: dict[str, object], place: str) -> Document:
    text = record["text"]
    if not isinstance(text, str):
        return Document(name=place, broken=Broken.MALFORMED)
    named = (record.get(key) for key in NAMES)
    return checked(next((str(own) for own in named if own is not None), place), text)
