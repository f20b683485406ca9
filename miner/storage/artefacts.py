"""Sealed artefacts: what a stage wrote, whole, and for which configuration and inputs.

An artefact is a folder of files. They are written under temporary names and renamed, and the file
``seal.json`` comes last; without it the folder is unfinished and is written again. The seal holds

- ``key``: a hash of everything that decides the content (stage, options, digests of the inputs), so
  that a changed option never meets a stale file;
- ``files``: the SHA-256 of each file, so that a damaged or exchanged file is refused by name;
- ``facts``: metadata of the stage (row counts, what was dropped and why).

Two workers may be at the same artefact: an engine that believes one lost starts another. Each
writes files of its own; who is done first names them, and the other takes what is sealed then.

The folder may be on any file system (``miner.storage.places``). Files are written here first, and
read from here: those of a remote artefact are fetched when they are asked for, and checked then.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage import cache
from miner.storage.atomic import TEMPORARY, atomic_file, write_text
from miner.storage.places import Place
from miner.storage.remote import RemotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEAL = "seal.json"
FORMAT = 2  # raised whenever a stage comes to write something else for the same key


class ArtefactError(ValueError):
    """An artefact is damaged; the message names the file and the way out."""


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A sealed artefact: a small reference that can travel between workers.

    ``files`` maps the name of each of its files to its SHA-256; ``facts`` its stage reports.
    """

    folder: Place
    files: Mapping[str, str]
    facts: Mapping[str, Any]

    def file(self, name: str) -> Path:
        """Return the path of one of its files on this machine; it may be gone ten minutes later.

        Raises:
            ArtefactError: it is remote, and missing or damaged.
        """
        return _local(self.folder, name, self.files[name])

    def checked(self, name: str) -> Path:
        """Return the path of one of its files after comparing its content with the seal.

        Raises:
            ArtefactError: the file is missing or damaged.
        """
        _check_files(self.folder, {name: self.files[name]})
        return self.file(name)


def content_key(stage: str, **decides: object) -> str:
    """Hash of all that decides what a stage writes; values must be JSON."""
    canonical = json.dumps([FORMAT, stage, decides], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def find(folder: Place, *, key: str) -> Artefact | None:
    """Return the artefact sealed in ``folder`` for ``key``, if there is one.

    Raises:
        ArtefactError: there is, but a file of it was damaged.
    """
    found = _read_seal(folder / SEAL)
    if found is None or found["key"] != key:
        return None
    _check_files(folder, found["files"])
    return Artefact(folder=folder, files=found["files"], facts=found["facts"])


def produce(folder: Place, *, key: str, write: Callable[[Draft], Mapping[str, Any]]) -> Artefact:
    """Return the artefact sealed in ``folder`` for ``key``, calling ``write`` only if it is not.

    ``write`` adds files to the draft and returns the facts (JSON values).

    Raises:
        ArtefactError: the folder is sealed for this key, but a file of it was damaged.
    """
    found = find(folder, key=key)
    if found is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _make(folder, key, write)
    except (_OvertakenError, OSError, ArtefactError):
        found = find(folder, key=key)
        if found is None:
            raise
        return found  # of another worker, which may have removed what this one still read


class _OvertakenError(Exception):
    """Another worker has sealed the same meanwhile."""


def _make(folder: Place, key: str, write: Callable[[Draft], Mapping[str, Any]]) -> Artefact:
    seal_path = folder / SEAL
    with ExitStack() as lock:
        draft = Draft(folder)
        with draft.names:
            facts = dict(write(draft))
            seal = {"key": key, "files": draft.digests, "facts": facts}
            text = json.dumps(seal, indent=1, sort_keys=True)
            lock.enter_context(_naming(folder))
            sealed = _read_seal(seal_path)
            if sealed is not None and sealed["key"] == key:
                raise _OvertakenError
            seal_path.unlink(missing_ok=True)
        write_text(seal_path, text)
    return Artefact(folder=folder, files=draft.digests, facts=facts)


@contextmanager
def _naming(folder: Place) -> Iterator[None]:
    """Keep others from naming files in the folder, where its file system has locks."""
    if isinstance(folder, RemotePath):
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_array(path: Path, values: NDArray[Any]) -> None:
    """Write an ``.npy`` file, in row-major order."""
    with npy_rows(path) as append:
        append(values)


@contextmanager
def npy_rows(path: Path) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write an ``.npy`` file of rows that come in blocks (n, ...), by the function it yields.

    At least one block must come; memory holds one at a time. Not by ``numpy.save``, whose error on
    a full disk has lost the reason.
    """
    import numpy as np

    rows = start = 0
    header: dict[str, Any] = {"fortran_order": False}
    with path.open("wb") as stream:

        def append(block: NDArray[Any]) -> None:
            nonlocal rows, start
            rows += len(block)
            header["descr"] = np.lib.format.dtype_to_descr(block.dtype)
            header["shape"] = (rows, *block.shape[1:])
            if not start:
                np.lib.format.write_array_header_1_0(stream, header)
                start = stream.tell()
            stream.write(np.ascontiguousarray(block).data)

        yield append
        stream.seek(0)
        np.lib.format.write_array_header_1_0(stream, header)  # there is room for any number of rows
        assert stream.tell() == start


def open_artefact(folder: Place) -> Artefact:
    """Return the artefact sealed in ``folder``, whatever for; its files are not looked at.

    Raises:
        ArtefactError: nothing is sealed there.
    """
    found = _read_seal(folder / SEAL)
    if found is None:
        raise ArtefactError(f"{folder}: holds nothing finished; run mine-corpus with --work-dir")
    return Artefact(folder=folder, files=found["files"], facts=found["facts"])


class Draft:
    """The files of an artefact that is being written; they get their names as ``names`` ends."""

    def __init__(self, folder: Place) -> None:
        self._folder = folder
        self.digests: dict[str, str] = {}
        self.names = ExitStack()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder on this machine for what is needed while the artefact is made."""
        place = self._folder if isinstance(self._folder, Path) else cache.cache_folder()
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=place) as folder:
            yield Path(folder)

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """A temporary path to write; it gets its name when the whole artefact is written."""
        temporary = self.names.enter_context(atomic_file(self._folder / name))
        yield temporary
        self.digests[name] = file_digest(temporary)
        if isinstance(self._folder, RemotePath):
            cache.keep(temporary, self.digests[name])

    def array(self, name: str, values: NDArray[Any]) -> None:
        """Write ``values`` as an ``.npy`` file."""
        with self.file(name) as path:
            write_array(path, values)

    @contextmanager
    def rows(self, name: str) -> Iterator[Callable[[NDArray[Any]], None]]:
        """Write rows that come in blocks as an ``.npy`` file, see ``npy_rows``."""
        with self.file(name) as path, npy_rows(path) as append:
            yield append


def _read_seal(path: Place) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        seal = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        seal = None
    if (
        isinstance(seal, dict)
        and set(seal) == {"key", "files", "facts"}
        and isinstance(seal["files"], dict)
        and isinstance(seal["facts"], dict)
    ):
        return seal
    raise ArtefactError(f"{path} is not a seal of this program; remove the folder {path.parent}")


def _check_files(folder: Place, digests: Mapping[str, str]) -> None:
    for name, digest in digests.items():
        path = _local(folder, name, digest)
        if isinstance(folder, RemotePath):
            continue  # the copy was checked when it was made
        if not path.is_file():
            raise _missing(folder, name)
        if file_digest(path) != digest:
            raise _damaged(folder, name)


def _local(folder: Place, name: str, digest: str) -> Path:
    """Return the path of a file; if it is remote, that of a checked copy."""
    if not isinstance(folder, RemotePath):
        return folder / name
    try:
        path = cache.fetch(folder / name, digest)
    except FileNotFoundError:
        raise _missing(folder, name) from None
    if path is None:
        raise _damaged(folder, name)
    return path


def _missing(folder: Place, name: str) -> ArtefactError:
    return ArtefactError(f"{folder / name} is missing; remove the folder {folder} to make it again")


def _damaged(folder: Place, name: str) -> ArtefactError:
    return ArtefactError(
        f"{folder / name} is not what was sealed (damaged or exchanged); "
        f"remove the folder {folder} to make it again"
    )
