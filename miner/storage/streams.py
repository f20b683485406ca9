"""Opening and decompression of files, with errors in one line."""

import bz2
import codecs
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, cast

from miner.storage.corpus.records import CorpusError
from miner.storage.places import AnyPath, PlaceError, RemotePath

if TYPE_CHECKING:
    from typing_extensions import Buffer

# The first bytes and the name of each compression, by suffix.
COMPRESSIONS = {
    ".gz": (b"\x1f\x8b", "gzip"),
    ".xz": (b"\xfd7zXZ\0", "xz"),
    ".zst": (b"\x28\xb5\x2f\xfd", "zstd"),
    ".bz2": (b"BZh", "bzip2"),
}
PARQUET_MAGIC = b"PAR1"
ZIP_MAGIC = b"PK\x03\x04"

# Archives and documents that Adit cannot read, by their first bytes.
_CONTAINERS = {
    ZIP_MAGIC: "is a zip archive; unpack it",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive; unpack it",
    b"Rar!\x1a\x07": "is a rar archive; unpack it",
    b"!<arch>\n": "is an ar archive; unpack it",
    b"\xed\xab\xee\xdb": "is an RPM package; unpack it",
    b"070701": "is a cpio archive; unpack it",
    b"MSCF\0\0\0\0": "is a cab archive; unpack it",
    b"LZIP\x01": "is compressed with lzip; decompress it",
    b"\x04\x22\x4d\x18": "is compressed with lz4; decompress it",
    b"\x1f\x9d": "is compressed with compress; decompress it",
    b"\xff\xff\xff\xff": "is an Arrow stream; save it as Parquet",
    b"ARROW1": "is an Arrow file; save it as Parquet",
    b"%PDF-": "is a PDF document; save its text",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "is an Office document; save its text",
}
# The first file in a zip archive that is an office document or an e-book.
_DOCUMENTS_IN_ZIP = (b"mimetype", b"[Content_Types].xml", b"_rels/.rels")

CHUNK_BYTES = 4 << 20
HEAD_BYTES = 1 << 20  # bzip2 decompresses blocks of up to 900,000 bytes
_SAMPLE_BYTES = 64 << 10
_MAX_LEVELS = 5
# Archives that are compressed record by record, under any name.
_COMPRESSED_INSIDE = (".warc", ".wet")

# The exceptions that readers raise for damaged files.
DAMAGE_ERRORS = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


def split_compression(path: AnyPath) -> tuple[str, str]:
    """Return the lower-case suffixes of a file's format and compression.

    Either is "" if missing. ``a.txt.gz`` has ``.txt`` and ``.gz``.
    """
    name = PurePath(str(path).lower())
    if name.suffix not in COMPRESSIONS:
        return name.suffix, ""
    return name.with_suffix("").suffix, name.suffix


def read_chunks(path: AnyPath) -> Iterator[bytes]:
    """Yield a file's bytes, decompressed by its suffix, in ``CHUNK_BYTES``.

    The last chunk may be shorter. The file is opened once and read forward only, so ``path`` may be
    a pipe. Errors of ``refuse_container`` are raised.

    Raises:
        CorpusError: The file is damaged or cannot be read.
        PlaceError: A remote file cannot be reached.
    """
    compression = split_compression(path)[1]
    with open_binary(path) as raw:
        try:
            buffered = BufferedReader(cast(RawIOBase, raw), HEAD_BYTES)
            refuse_container(path, buffered.peek(HEAD_BYTES))
            stream = _open_decompressed(buffered, compression)
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
        except (CorpusError, PlaceError):  # not damage
            raise
        except DAMAGE_ERRORS as error:
            cause = str(error).partition("\n")[0]
            if not compression:
                cause = getattr(error, "strerror", None) or cause  # without "[Errno 5]"
                raise CorpusError(f"{path}: cannot be read ({cause}); check its disk") from error
            raise CorpusError(
                f"{path}: is not a whole {compression} file ({cause}); fetch or compress it again"
            ) from error


def check_directory(directory: Path) -> None:
    """Check that a folder exists.

    Raises:
        ValueError: It does not, or is a file.
    """
    if not directory.is_dir():
        is_file, missing = "is a file; pass its folder", "folder not found; check its path"
        raise ValueError(f"{directory}: {is_file if directory.exists() else missing}")


def read_lines(path: AnyPath) -> list[str]:
    r"""Read the lines of a UTF-8 file, blank ones included.

    Ends (``\n``, ``\r\n``) and a byte order mark are removed. Errors of ``read_chunks`` are raised.

    Raises:
        CorpusError: The file is not UTF-8.
    """
    data = b"".join(read_chunks(path))
    try:
        *lines, last = data.decode().removeprefix("\ufeff").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"{path} line {line}: not UTF-8 ({error.reason}); convert it with iconv"
        ) from error
    return [line.removesuffix("\r") for line in (*lines, *filter(None, [last]))]


def refuse_container(path: AnyPath, head: bytes) -> None:
    """Reject an archive, a binary document, or an unexpected compression.

    ``head`` are the file's first bytes. ``.warc`` and ``.wet`` files may be compressed once.

    Raises:
        CorpusError: The file is compressed, but not as its suffix shows, or more than once. Or it
            is an archive or a binary document (PDF, Office, Arrow), maybe compressed.
    """
    suffix, ending = split_compression(path)
    levels, refusal = look_into(head)
    if refusal:
        raise CorpusError(f"{path}: {refusal}")
    if len(levels) > 1:
        names = " within ".join(COMPRESSIONS[level][1] for level in reversed(levels))
        raise CorpusError(f"{path}: is compressed more than once ({names}); decompress it")
    if levels not in ([], [ending]) and suffix not in _COMPRESSED_INSIDE:
        name = COMPRESSIONS[levels[0]][1]
        raise CorpusError(f"{path}: is compressed with {name}; rename it to end in {levels[0]}")


def look_into(head: bytes) -> tuple[list[str], str]:
    """Recognise a file's compressions and container by its first bytes.

    The result is the suffixes of up to five compressions, outermost first, and the problem of an
    archive or binary document within them, with a remedy, or "".
    """
    levels: list[str] = []
    magic = {first_bytes: suffix for suffix, (first_bytes, _) in COMPRESSIONS.items()}
    while (level := _kind_of(head, magic)) and len(levels) < _MAX_LEVELS:
        levels.append(level)
        head = _beginning(head, level)
    return levels, _container(head)


def is_text(data: bytes) -> bool:
    """Return whether bytes, maybe cut in a character, are UTF-8 without NUL."""
    try:
        codecs.utf_8_decode(data, "strict", False)
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _kind_of(head: bytes, kinds: Mapping[bytes, str]) -> str:
    kind = next((kind for magic, kind in kinds.items() if head.startswith(magic)), "")
    return "" if kind and is_text(head[:_SAMPLE_BYTES]) else kind


def _beginning(head: bytes, suffix: str) -> bytes:
    data = bytearray()
    with suppress(*DAMAGE_ERRORS):
        stream = _open_decompressed(BytesIO(head), suffix)
        while len(data) < _SAMPLE_BYTES and (block := stream.read(tarfile.BLOCKSIZE)):
            data += block
    return bytes(data)


def _container(head: bytes) -> str:
    with suppress(tarfile.TarError, ValueError):  # raised for a wrong checksum
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
        return "is a tar archive; unpack it"
    refusal = _kind_of(head, _CONTAINERS)
    if "zip" in refusal and any(name in head[:256] for name in _DOCUMENTS_IN_ZIP):
        return "is an office document or an e-book; save its text"
    return refusal


def open_binary(path: AnyPath) -> IO[bytes]:
    """Open a corpus to read its bytes without decompression.

    Raises:
        CorpusError: The file cannot be opened.
        PlaceError: A remote file cannot be reached.
    """
    try:
        return path.open() if isinstance(path, RemotePath | Pipe) else open(path, "rb")
    except FileNotFoundError:
        raise CorpusError(f"{path}: file not found; check its path") from None
    except IsADirectoryError:
        raise CorpusError(f"{path}: is a folder; pass a file in it") from None
    except PermissionError:
        raise CorpusError(f"{path}: cannot be read; check its permissions") from None
    except PlaceError:
        raise
    except OSError as error:
        raise CorpusError(f"{path}: cannot be opened ({error.strerror}); check its path") from error


class Pipe:
    """A ``stream``, such as standard input, that can be opened repeatedly.

    Bytes read before ``release`` stay in memory. ``name`` acts as a path, whose suffix counts.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
        self._stream = stream
        self._kept = bytearray()
        self._is_kept = True

    def __fspath__(self) -> str:
        return self.name

    __str__ = __fspath__

    def open(self) -> IO[bytes]:
        """Open the stream at its beginning, after ``release`` only once more."""
        return BufferedReader(ChunkStream(self._chunks()), HEAD_BYTES)

    def release(self) -> None:
        """Stop keeping read bytes, before the stream is opened for the last time."""
        self._is_kept = False

    def read(self, start: int, size: int) -> bytes:
        """Return at most ``size`` bytes, b"" at the end.

        They begin at position ``start`` of the kept bytes, or else come next in the stream.
        """
        if start < len(self._kept):
            return bytes(self._kept[start : start + size])
        data = self._stream.read(size)
        if self._is_kept:
            self._kept += data
        return data

    def _chunks(self) -> Iterator[bytes]:
        start = 0
        while data := self.read(start, HEAD_BYTES):
            start += len(data)
            yield data


class ChunkStream(RawIOBase):
    """A binary stream that reads ``chunks`` of bytes from an iterator."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True, as ``io`` requires."""
        return True

    def readinto(self, buffer: "Buffer") -> int:
        """Fill the buffer from a chunk, and return the bytes read, 0 at the end."""
        while not self._rest:
            if (chunk := next(self._chunks, None)) is None:
                return 0
            self._rest = memoryview(chunk)
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _open_decompressed(raw: IO[bytes], compression: str) -> IO[bytes]:
    match compression:
        case ".gz":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=raw, mode="rb"))
        case ".xz":
            return lzma.LZMAFile(raw)
        case ".bz2":
            return bz2.BZ2File(raw)
        case ".zst":
            import pyarrow as pa

            # Buffered, because the stream itself may return fewer bytes than requested.
            return BufferedReader(cast(RawIOBase, pa.CompressedInputStream(raw, "zstd")))
        case _:
            return raw
