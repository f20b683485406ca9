"""Files to bytes: opening and decompression, with every failure as one clear line."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from pathlib import PurePath
from typing import IO, cast

from miner.storage.corpus.records import CorpusError
from miner.storage.places import AnyPath, PlaceError, RemotePath

# By suffix: the first bytes of what is compressed so, and the compression's name.
COMPRESSIONS = {
    ".gz": (b"\x1f\x8b", "gzip"),
    ".xz": (b"\xfd7zXZ\0", "xz"),
    ".zst": (b"\x28\xb5\x2f\xfd", "zstd"),
    ".bz2": (b"BZh", "bzip2"),
}
PARQUET_MAGIC = b"PAR1"

CHUNK_BYTES = 4 << 20

# What readers raise because of what they read: each has its own way to say so.
_DAMAGE = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


def split_compression(path: AnyPath) -> tuple[str, str]:
    """Return the file's lower-case suffix below its compression suffix, and that one (or "")."""
    name = PurePath(str(path).lower())
    if name.suffix not in COMPRESSIONS:
        return name.suffix, ""
    return name.with_suffix("").suffix, name.suffix


def read_chunks(path: AnyPath) -> Iterator[bytes]:
    """Yield the file's bytes, decompressed by its suffix, ``CHUNK_BYTES`` at a time.

    It is opened once and read forward only, so a pipe will do. Raises as ``open_binary``, and a
    CorpusError where it is a damaged archive.
    """
    compression = split_compression(path)[1]
    with open_binary(path) as raw:
        stream = _decompressed(raw, compression)
        try:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
        except PlaceError:  # no damage: another try may succeed
            raise
        except _DAMAGE as error:
            cause = str(error).partition("\n")[0]
            if not compression:
                raise CorpusError(f"{path}: cannot be read: {cause}") from error
            raise CorpusError(
                f"{path}: is not a whole {compression} file ({cause}); fetch or compress it again"
            ) from error


def open_binary(path: AnyPath) -> IO[bytes]:
    """Open a corpus to read its bytes as they are, or raise a CorpusError or a PlaceError."""
    try:
        return path.open() if isinstance(path, RemotePath) else open(path, "rb")
    except FileNotFoundError:
        raise CorpusError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise CorpusError(f"{path}: is a folder; name a file in it") from None
    except PermissionError:
        raise CorpusError(f"{path}: may not be read; check its permissions") from None
    except PlaceError:
        raise
    except OSError as error:
        raise CorpusError(f"{path}: cannot be opened: {error.strerror}") from error


def _decompressed(raw: IO[bytes], compression: str) -> IO[bytes]:
    match compression:
        case ".gz":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=raw, mode="rb"))
        case ".xz":
            return lzma.LZMAFile(raw)
        case ".bz2":
            return bz2.BZ2File(raw)
        case ".zst":
            import pyarrow as pa

            # Buffered, because the stream itself may return less than it is asked for.
            return BufferedReader(cast(RawIOBase, pa.CompressedInputStream(raw, "zstd")))
        case _:
            return raw
