"""Places of files, as local paths or URIs of Arrow's file systems.

URIs begin with a scheme such as s3, gs, abfs or hdfs. ``RemotePath`` has the methods of
``pathlib.Path`` that Adit uses, so most code accepts either. Its methods raise PlaceError if the
store cannot be reached. Files that are mapped into memory must be local; ``miner.storage.cache``
fetches them.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias, cast
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs
    from typing_extensions import Buffer

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
COPY_BYTES = 8 << 20
READ_BYTES = 1 << 20  # minimum per request while a file is read from its beginning
# File systems on which an object appears only when it is complete.
_WHOLE_OBJECTS = {"s3", "gcs", "abfs"}
# Google's client otherwise retries for 15 minutes, even without credentials. With its option,
# Amazon's client writes a small file in one request instead of three.
_DEFAULT_OPTIONS = {
    "gs": "retry_limit_seconds=60",
    "gcs": "retry_limit_seconds=60",
    "s3": "allow_delayed_open=true",
}


class PlaceError(OSError):
    """An error of a remote file system, with the file's URI and the cause."""


class Stat(NamedTuple):
    """A remote file's bytes, time of change in nanoseconds, and 0 as inode."""

    st_size: int
    st_mtime_ns: int
    st_ino: int = 0


class RemotePath:
    """A file or folder at a URI, built by ``place``.

    In ``s3://bucket/folder?region=eu-west-1``, the options of Arrow's file system follow ``?``, and
    apply to all paths below. ``str`` shows neither these nor a key and secret before ``@``.
    """

    # Not a dataclass, because ``asdict`` would show credentials.
    def __init__(self, root: str, inner: PurePosixPath, query: str) -> None:
        self._root, self._inner, self._query = root, inner, query

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._root, self._inner, self._query))

    def __str__(self) -> str:
        scheme, _, authority = self._root.partition("://")
        return f"{scheme}://{authority.rpartition('@')[2]}/{self._key}".rstrip("/")

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(self._root, self._inner / name, self._query)

    @property
    def _key(self) -> str:
        return "" if self._inner == PurePosixPath() else str(self._inner)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._inner.name

    @property
    def suffix(self) -> str:
        """The suffix of the name with its dot, or ""."""
        return self._inner.suffix

    @property
    def parent(self) -> RemotePath:
        """The path of the folder that contains the file or folder."""
        return RemotePath(self._root, self._inner.parent, self._query)

    def absolute(self) -> RemotePath:
        """Return the path itself, which is always absolute."""
        return self

    resolve = absolute

    def exists(self) -> bool:
        """Return whether a file or folder exists at the path."""
        return bool(self._info().type.name != "NotFound")

    def is_file(self) -> bool:
        """Return whether the path is an existing file."""
        return bool(self._info().is_file)

    def is_dir(self) -> bool:
        """Return whether the path is an existing folder."""
        return bool(self._info().type.name == "Directory")

    def stat(self) -> Stat:
        """Return a file's size and time, each 0 if unknown or without a file."""
        info = self._info()
        return Stat(st_size=int(info.size or 0), st_mtime_ns=int(info.mtime_ns or 0))

    def _info(self) -> fs.FileInfo:
        with self._connected() as (filesystem, path):
            return filesystem.get_file_info(path)

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the files and folders in a folder, if it exists, in any order."""
        return (entry for entry, _ in self._entries(recursive=False))

    def _entries(self, *, recursive: bool) -> list[tuple[RemotePath, fs.FileInfo]]:
        from pyarrow import fs

        with self._connected() as (filesystem, path):
            selector = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
            infos = filesystem.get_file_info(selector)
        return [(self / info.path[len(path) :].strip("/"), info) for info in infos]

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open a file for random reading (``rb``), or raise FileNotFoundError."""
        assert mode == "rb"
        with self._connected() as (filesystem, path):
            return BufferedReader(_RemoteFile(self, filesystem.open_input_file(path)), READ_BYTES)

    @contextmanager
    def reading(self) -> Iterator[IO[bytes]]:
        """Yield a byte stream to a ``with`` block, with errors of ``open``.

        In the block, ValueError and OSError without ``errno`` also become PlaceError, and
        FileNotFoundError of any file names this one.
        """
        with (
            self._connected() as (filesystem, path),
            filesystem.open_input_stream(path, compression=None) as stream,
        ):
            yield cast("IO[bytes]", stream)

    def read_bytes(self) -> bytes:
        """Return all bytes of the file, with errors of ``open``."""
        with self.reading() as stream:
            return stream.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the file's text, with errors of ``open`` and of decoding."""
        return self.read_bytes().decode(encoding)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing, because folders exist with their files."""

    def receive(self, local: Path) -> None:
        """Copy a local file over this one, if any, completely or not at all."""

        def copy() -> None:  # with errors that Arrow's ``copy_files`` ignores
            with local.open("rb") as file, filesystem.open_output_stream(target) as stream:
                shutil.copyfileobj(file, stream, COPY_BYTES)

        with self._connected() as (filesystem, path):
            target, folder = path, path.rpartition("/")[0]
            if filesystem.type_name not in _WHOLE_OBJECTS:
                filesystem.create_dir(folder, recursive=True)
                target = f"{folder}/.{secrets.token_hex(8)}"
            # In a thread, because an interrupt of the main thread would close a partial file.
            with ThreadPoolExecutor(1) as executor:
                executor.submit(copy).result()
            if target != path:
                filesystem.move(target, path)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove a file, or raise FileNotFoundError, unless ``missing_ok``."""
        allowed = suppress(FileNotFoundError) if missing_ok else nullcontext()
        with allowed, self._connected() as (filesystem, path):
            filesystem.delete_file(path)

    @contextmanager
    def _connected(self) -> Iterator[tuple[fs.FileSystem, str]]:
        try:
            filesystem, base = _filesystem(self._root, self._query)
            yield filesystem, f"{base.rstrip('/')}/{self._key}".rstrip("/") or "/"
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except (OSError, ValueError) as error:  # Arrow's errors are of these two classes
            if isinstance(error, OSError) and error.errno is not None:  # an error of a local file
                raise
            cause = " ".join(str(error).partition("\n")[0].split())
            raise PlaceError(
                f"{self}: {cause}; check the URI, its options and the credentials"
            ) from error


Place: TypeAlias = Path | RemotePath
AnyPath: TypeAlias = str | os.PathLike[str] | RemotePath


def place(text: str) -> Place:
    """Convert a path or URI to a place, without checking it.

    A URI gives a ``RemotePath``, except for ``file://``, a ``Path`` like any other text.
    """
    if not _URI.match(text):
        return Path(text)
    if text.lower().startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    address, _, query = text.partition("?")
    scheme, _, rest = address.partition("://")
    authority, _, inner = rest.partition("/")
    return RemotePath(f"{scheme}://{authority}", PurePosixPath(unquote(inner)), query)


def file_state(path: Place) -> tuple[int, ...]:
    """Return numbers that are likely to change when the file changes.

    They are inode (0 if remote), bytes, and time of change in nanoseconds, all 0 for a missing
    remote file. A missing local file raises FileNotFoundError.
    """
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


def same_file(one: Place, other: Place) -> bool:
    """Return whether existing local paths are one file, or URIs are equal."""
    if isinstance(one, RemotePath) or isinstance(other, RemotePath):
        return one == other
    return one.samefile(other)


def lies_in(path: Place, folder: Place) -> bool:
    """Return whether a path, links resolved, is ``folder`` or lies below it."""
    if isinstance(path, RemotePath) and isinstance(folder, RemotePath):
        return path._root == folder._root and path._inner.is_relative_to(folder._inner)
    if isinstance(path, RemotePath) or isinstance(folder, RemotePath):
        return False
    return path.resolve().is_relative_to(folder.resolve())


def remove_tree(folder: Place) -> None:
    """Remove a folder tree, if it exists, ignoring errors unless it is remote."""
    if not isinstance(folder, RemotePath):
        shutil.rmtree(folder, ignore_errors=True)
    elif folder.is_dir():
        # On Google's file system, a folder disappears with its last file.
        with suppress(FileNotFoundError), folder._connected() as (filesystem, path):
            filesystem.delete_dir(path)


def tree_files(folder: Place) -> list[tuple[Place, int]]:
    """Return files below a folder, if any, unordered, with sizes in bytes."""
    if isinstance(folder, RemotePath):
        entries = folder._entries(recursive=True)
        return [(entry, info.size) for entry, info in entries if info.is_file]
    return [(path, path.stat().st_size) for path in folder.rglob("*") if path.is_file()]


class _RemoteFile(RawIOBase):
    """A file of Arrow as a file of Python, whose errors name the URI."""

    def __init__(self, place: RemotePath, file: pa.NativeFile) -> None:
        self._place, self._file = place, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        with self._place._connected():
            # Some servers refuse to read past the end.
            remaining = self._file.size() - self._file.tell()
            return int(self._file.readinto(memoryview(buffer)[:remaining])) if remaining > 0 else 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()
        super().close()


@cache
def _filesystem(root: str, query: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI, and the beginning of its paths."""
    from pyarrow import fs

    connect: Callable[[str], tuple[fs.FileSystem, str]] = fs.FileSystem.from_uri
    default = _DEFAULT_OPTIONS.get(root.partition("://")[0].lower(), "")
    if default.partition("=")[0] not in query:
        with suppress(ValueError):  # an invalid option, or an Arrow without the default option
            return connect(f"{root}/?" + f"{query}&{default}".lstrip("&"))
    return connect(f"{root}/?{query}".rstrip("?"))
