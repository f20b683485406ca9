"""Where files lie: local paths, or URIs of the other file systems that Arrow knows.

These are s3, gs, abfs and hdfs. ``RemotePath`` has those of ``pathlib.Path``'s methods that this
product needs, so most code takes either. Only what is mapped into memory has to be local;
``miner.storage.cache`` fetches it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
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
READ_BYTES = 1 << 20  # a request, at least, while a file is read from its beginning
# Where an object is there as soon as all of it is, and never in part.
_WHOLE_OBJECTS = {"s3", "gcs", "abfs"}
# Google's client tries for a quarter of an hour, even to find out that there are no credentials.
# Amazon's writes a small file by one request in place of three.
_DEFAULTS = {
    "gs": "retry_limit_seconds=60",
    "gcs": "retry_limit_seconds=60",
    "s3": "allow_delayed_open=true",
}


class PlaceError(OSError):
    """A file system that cannot be reached or refuses: one line that names the URI and says why."""


class Stat(NamedTuple):
    """What is known of a remote file, by the names of ``os.stat_result``."""

    st_size: int
    st_mtime_ns: int
    st_ino: int = 0


class RemotePath:
    """A file or folder named by a URI such as ``s3://bucket/folder?region=eu-west-1``.

    What follows ``?`` are options of Arrow's file system, which the paths below share. ``str``
    shows neither these nor a key and secret before ``@``, so it can be shown to anyone.
    """

    # No dataclass, of which ``asdict`` would show all.
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
        """The last part."""
        return self._inner.name

    @property
    def suffix(self) -> str:
        """The name's, with its dot."""
        return self._inner.suffix

    @property
    def parent(self) -> RemotePath:
        """The folder."""
        return RemotePath(self._root, self._inner.parent, self._query)

    def with_suffix(self, suffix: str) -> RemotePath:
        """Return the same place under a name with that suffix."""
        return RemotePath(self._root, self._inner.with_suffix(suffix), self._query)

    def absolute(self) -> RemotePath:
        """Return itself."""
        return self

    resolve = absolute

    def exists(self) -> bool:
        """Return whether anything is there."""
        return bool(self._info().type.name != "NotFound")

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return bool(self._info().is_file)

    def is_dir(self) -> bool:
        """Return whether it is a folder; object stores have those in which something lies."""
        return bool(self._info().type.name == "Directory")

    def stat(self) -> Stat:
        """Size and time of the last change of a file."""
        info = self._info()
        return Stat(st_size=int(info.size or 0), st_mtime_ns=int(info.mtime_ns or 0))

    def _info(self) -> fs.FileInfo:
        with self._found() as (filesystem, path):
            return filesystem.get_file_info(path)

    def files(self, *, recursive: bool = False) -> list[tuple[RemotePath, int]]:
        """Return the files in a folder, or in it and all below, with their sizes."""
        entries = self._entries(recursive=recursive)
        return [(entry, info.size) for entry, info in entries if info.is_file]

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the files and folders in a folder."""
        return (entry for entry, _ in self._entries(recursive=False))

    def _entries(self, *, recursive: bool) -> list[tuple[RemotePath, fs.FileInfo]]:
        from pyarrow import fs

        with self._found() as (filesystem, path):
            selector = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
            found = filesystem.get_file_info(selector)
        return [(self / info.path[len(path) :].strip("/"), info) for info in found]

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open a file to read bytes; it can seek, and what fails is a ``PlaceError``, too."""
        assert mode == "rb"
        with self._found() as (filesystem, path):
            return BufferedReader(_RemoteFile(self, filesystem.open_input_file(path)), READ_BYTES)

    @contextmanager
    def reading(self) -> Iterator[IO[bytes]]:
        """Open a stream of the file's bytes; read errors are reported like others."""
        with (
            self._found() as (filesystem, path),
            filesystem.open_input_stream(path, compression=None) as stream,
        ):
            yield cast("IO[bytes]", stream)

    def read_bytes(self) -> bytes:
        """Return all of a file."""
        with self.reading() as stream:
            return stream.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return all of a text file."""
        return self.read_bytes().decode(encoding)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: folders come with their files."""

    def receive(self, local: Path) -> None:
        """Become a copy of a local file, whole or not at all."""
        with self._found() as (filesystem, path):
            target, folder = path, path.rpartition("/")[0]
            if filesystem.type_name not in _WHOLE_OBJECTS:
                filesystem.create_dir(folder, recursive=True)
                target = f"{folder}/.{secrets.token_hex(8)}"
            # What an interrupt ends is closed, with half a file in it; it is for the main thread.
            with ThreadPoolExecutor(1) as alone:
                alone.submit(_copy, local, filesystem, target).result()
            if target != path:
                filesystem.move(target, path)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove a file."""
        leniently = suppress(FileNotFoundError) if missing_ok else nullcontext()
        with leniently, self._found() as (filesystem, path):
            filesystem.delete_file(path)

    @contextmanager
    def _found(self) -> Iterator[tuple[fs.FileSystem, str]]:
        """Arrow's file system, and the path in it; what fails within is reported in one line."""
        try:
            filesystem, base = _filesystem(self._root, self._query)
            yield filesystem, f"{base.rstrip('/')}/{self._key}".rstrip("/") or "/"
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except (OSError, ValueError) as error:  # Arrow's own errors are of these two kinds
            if isinstance(error, OSError) and error.errno is not None:  # of a local file
                raise
            cause = " ".join(str(error).partition("\n")[0].split())
            raise PlaceError(
                f"{self}: {cause}; check the URI, its options and the credentials"
            ) from error


Place: TypeAlias = Path | RemotePath
AnyPath: TypeAlias = str | os.PathLike[str] | RemotePath


def place(text: str) -> Place:
    """Return a local path, or what a URI names; ``file://`` URIs are local paths.

    What Arrow cannot make of a URI is reported when it is used.
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
    """Return what is likely to tell a file from what it was before, without reading it."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def same_file(one: Place, other: Place) -> bool:
    """Return whether two places that there are are one."""
    if isinstance(one, RemotePath) or isinstance(other, RemotePath):
        return one == other
    return one.samefile(other)


def lies_in(path: Place, folder: Place) -> bool:
    """Return whether a path is below a folder, or is it."""
    if isinstance(path, RemotePath) and isinstance(folder, RemotePath):
        return path._root == folder._root and path._inner.is_relative_to(folder._inner)
    if isinstance(path, RemotePath) or isinstance(folder, RemotePath):
        return False
    return path.resolve().is_relative_to(folder.resolve())


def remove_tree(folder: Place) -> None:
    """Remove a folder and all in it, if it is there."""
    if not isinstance(folder, RemotePath):
        shutil.rmtree(folder, ignore_errors=True)
    elif folder.is_dir():
        # Google's folders are there no longer when all in them has gone.
        with suppress(FileNotFoundError), folder._found() as (filesystem, path):
            filesystem.delete_dir(path)


def tree_files(folder: Place) -> list[tuple[Place, int]]:
    """Return the files in a folder and all below, with their sizes; none if there is none."""
    if isinstance(folder, RemotePath):
        return [*folder.files(recursive=True)]
    return [(path, path.stat().st_size) for path in folder.rglob("*") if path.is_file()]


class _RemoteFile(RawIOBase):
    """Arrow's file as one of Python's, whose errors name the URI."""

    def __init__(self, place: RemotePath, file: pa.NativeFile) -> None:
        self._place, self._file = place, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        with self._place._found():
            left = self._file.size() - self._file.tell()  # some servers refuse to read past the end
            return int(self._file.readinto(memoryview(buffer)[:left])) if left > 0 else 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()
        super().close()


def _copy(local: Path, filesystem: fs.FileSystem, target: str) -> None:
    """Copy a local file; Arrow's own ``copy_files`` ignores that the end could not be written."""
    with local.open("rb") as file, filesystem.open_output_stream(target) as stream:
        while block := file.read(COPY_BYTES):
            stream.write(block)


@cache
def _filesystem(root: str, query: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URI without a path, and what its paths begin with."""
    default = _DEFAULTS.get(root.partition("://")[0].lower(), "")
    if default.partition("=")[0] not in query:
        with suppress(ValueError):  # options that are wrong, or this one this Arrow does not know
            return _opened(root, f"{query}&{default}".lstrip("&"))
    return _opened(root, query)


def _opened(root: str, options: str) -> tuple[fs.FileSystem, str]:
    from pyarrow import fs

    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(f"{root}/?{options}".rstrip("?"))
    return found
