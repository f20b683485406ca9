"""Sealed artefacts: what a stage wrote, whole, and for which configuration and inputs.

An artefact is a folder of files. They are written under temporary names and renamed, and the file
``seal.json`` comes last; without it the folder is written again. The seal holds

- ``key``: a hash of everything that decides the content (stage, options, digests of the inputs), so
  that a changed option never meets a stale file;
- ``files``: the SHA-256 of each file, so that a damaged or exchanged file is refused by name;
- ``facts``: metadata of the stage (row counts, what was dropped and why).

Two workers may be at the same artefact: an engine that believes one lost starts another. Each
writes files of its own; who is done first names them, and the other takes what is sealed then.
Files of a remote artefact are written here first, and fetched and checked when asked for.
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
from miner.storage.atomic import TEMPORARY, atomic_file, naming_errors, write_text
from miner.storage.places import Place, RemotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEAL = "seal.json"
FORMAT = 2  # raised whenever a stage comes to write something else for the same key


class ArtefactError(ValueError):
    """An artefact is damaged; the message names the file and the way out."""


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A sealed artefact by its seal: a small reference that can travel between workers."""

    folder: Place
    files: Mapping[str, str]
    facts: Mapping[str, Any]

    def file(self, name: str) -> Path:
        """Return the path of one of its files on this machine; it may be gone ten minutes later.

        A remote file is ``checked``.
        """
        return self.checked(name) if isinstance(self.folder, RemotePath) else self.folder / name

    def checked(self, name: str) -> Path:
        """Return the same path, or raise an ArtefactError: the file is missing or damaged."""
        path, digest = self.folder / name, self.files[name]
        remedy = f"delete the folder {self.folder} to rebuild it"
        try:
            if isinstance(path, RemotePath):
                found = cache.fetch(path, digest)
            else:
                found = path if file_digest(path) == digest else None
        except (FileNotFoundError, IsADirectoryError):
            raise ArtefactError(f"{path}: file not found; {remedy}") from None
        if found is None:
            raise ArtefactError(f"{path}: checksum mismatch (damaged or replaced); {remedy}")
        return found


def content_key(stage: str, **decides: object) -> str:
    """Hash of all that decides what a stage writes; values must be JSON."""
    canonical = json.dumps([FORMAT, stage, decides], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def find(folder: Place, *, key: str) -> Artefact | None:
    """Return the artefact sealed in ``folder`` for ``key``, if there is one, ``checked``."""
    if found := _sealed(folder, key):
        for name in found.files:
            found.checked(name)
    return found


def produce(folder: Place, *, key: str, write: Callable[[Draft], Mapping[str, Any]]) -> Artefact:
    """Return the artefact sealed in ``folder`` for ``key``, calling ``write`` only if it is not.

    ``write`` adds files to the draft and returns the facts (JSON values). An ArtefactError says
    that a file of what is sealed was damaged.
    """
    if found := find(folder, key=key):
        return found
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _make(folder, key, write)
    except (_OvertakenError, OSError, ArtefactError):
        if found := find(folder, key=key):
            return found  # of another worker, which may have removed what this one still read
        raise


class _OvertakenError(Exception):
    """Another worker has sealed the same meanwhile."""


def _make(folder: Place, key: str, write: Callable[[Draft], Mapping[str, Any]]) -> Artefact:
    with ExitStack() as lock:
        draft = Draft(folder)
        with draft.names:
            facts = dict(write(draft))
            seal = {"key": key, "files": draft.digests, "facts": facts}
            text = json.dumps(seal, indent=1, sort_keys=True)
            _keep_others_out(folder, lock)
            if _sealed(folder, key):
                raise _OvertakenError
            (folder / SEAL).unlink(missing_ok=True)
        write_text(folder / SEAL, text)
    return Artefact(folder=folder, files=draft.digests, facts=facts)


def _keep_others_out(folder: Place, lock: ExitStack) -> None:
    """Keep others from naming files in the folder, where its file system has locks."""
    if not isinstance(folder, RemotePath):
        descriptor = os.open(folder, os.O_RDONLY)
        lock.callback(os.close, descriptor)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def open_artefact(folder: Place) -> Artefact:
    """Return the artefact sealed in ``folder``, whatever for; its files are not looked at.

    An ArtefactError says that nothing is sealed there.
    """
    if found := _sealed(folder):
        return found
    raise ArtefactError(
        f"{folder}: contains no finished run; run 'adit mine --work-dir {folder}' first"
    )


def _sealed(folder: Place, key: str | None = None) -> Artefact | None:
    """Return what is sealed in a folder, if anything is, and for ``key`` unless that is None."""
    path = folder / SEAL
    if not path.exists():
        return None
    seal = None
    with suppress(ValueError):
        seal = json.loads(path.read_text(encoding="utf-8"))
    match seal:
        case {"key": found, "files": dict(files), "facts": dict(facts), **more} if not more:
            artefact = Artefact(folder=folder, files=files, facts=facts)
            return artefact if key in (None, found) else None
    raise ArtefactError(f"{path}: not a seal of Adit; delete the folder {folder}")


def write_array(path: Path, values: NDArray[Any]) -> None:
    """Write an ``.npy`` file, in row-major order."""
    with npy_rows(path) as append:
        append(values)


@contextmanager
def npy_rows(path: Path) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write an ``.npy`` file of rows that come in one or more blocks (n, ...), by what it yields.

    Not by ``numpy.save``, whose error on a full disk has lost the reason.
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


class Draft:
    """The files of an artefact that is being written; they get their names as ``names`` ends."""

    def __init__(self, folder: Place) -> None:
        self._folder = folder
        self.digests: dict[str, str] = {}
        self.names = ExitStack()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make a temporary local folder for use while the artefact is made."""
        place = self._folder if isinstance(self._folder, Path) else cache.cache_folder()
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=place) as folder:
            with naming_errors(folder):
                yield Path(folder)

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """Yield a temporary path to write, which becomes the file ``name``."""
        temporary = self.names.enter_context(atomic_file(self._folder / name))
        yield temporary
        self.digests[name] = file_digest(temporary)
        if isinstance(self._folder, RemotePath):
            cache.store(temporary, self.digests[name])

    def array(self, name: str, values: NDArray[Any]) -> None:
        """Write an ``.npy`` file."""
        with self.rows(name) as append:
            append(values)

    @contextmanager
    def rows(self, name: str) -> Iterator[Callable[[NDArray[Any]], None]]:
        """Do as ``npy_rows``."""
        with self.file(name) as path, npy_rows(path) as append:
            yield append
