"""Plain text: a file is a document."""

from collections.abc import Iterator

from miner.storage.documents.records import MAX_BYTES, Document, decoded
from miner.storage.places import AnyPath
from miner.storage.streams import read_chunks


def read(path: AnyPath, name: str) -> Iterator[Document]:
    """Yield the file's document."""
    yield decoded(name, read_bytes(path))


def read_bytes(path: AnyPath) -> bytes:
    """Return a file's bytes, decompressed; of one that is too long only somewhat more than that."""
    data = bytearray()
    for chunk in read_chunks(path):
        data += chunk
        if len(data) > MAX_BYTES:
            break
    return bytes(data)
