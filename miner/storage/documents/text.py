"""Plain text: a file is a document."""

from collections.abc import Iterator

from miner.storage.documents.records import MAX_BYTES, Document, decoded
from miner.storage.places import AnyPath
from miner.storage.streams import read_chunks


def read(path: AnyPath, name: str) -> Iterator[Document]:
    """Yield the file's document."""
    yield decoded(name, read_bytes(path))


def read_bytes(path: AnyPath, most: int = MAX_BYTES) -> bytes:
    """Return a file's bytes, decompressed; of one with more than ``most`` only somewhat more."""
    data = bytearray()
    for chunk in read_chunks(path):
        data += chunk
        if len(data) > most:
            break
    return bytes(data)
