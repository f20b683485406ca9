"""Sealed artefacts, which are folders of complete files with a key.

A stage writes files under temporary names, renames them, and writes ``seal.json`` last. The next
run writes a folder without a seal again. The seal has

- ``key``: a hash of the stage, its options and the digests of its inputs, so that a run with a
  changed option never uses an old file;
- ``files``: the SHA-256 of each file, by which ``Artefact.checked`` finds damaged files;
- ``facts``: metadata of the stage, such as row counts and reasons of rejections.

Two workers may write the same artefact, if an engine restarts a slow one. Where the file system can
lock a folder, the first to finish renames its files, and the other uses these.
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
FORMAT = 2  # raised when a stage changes the content that it writes for a key
_RERUN = "delete it, and rerun the command of the run"


class ArtefactError(ValueError):
    """An error about a missing or damaged artefact, with path and remedy."""


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A sealed folder of files, as a small object to send to workers.

    ``files`` are the SHA-256 (hexadecimal) of files by name, and ``facts`` metadata as JSON values.
    """

    folder: Place
    files: Mapping[str, str]
    facts: Mapping[str, Any]

    def file(self, name: str) -> Path:
        """Return a file's local path, without checking a local file.

        ``checked`` fetches a remote file, with its errors. A copy may be removed after ten minutes.
        """
        return self.checked(name) if isinstance(self.folder, RemotePath) else self.folder / name

    def checked(self, name: str) -> Path:
        """Return a file's local path after comparing its checksum.

        A remote file is fetched, unless the cache has it. An unreadable file or cache raises
        OSError (``PlaceError`` for a remote file), and an unknown ``name`` KeyError.

        Raises:
            ArtefactError: The file is missing or damaged.
        """
        path, digest = self.folder / name, self.files[name]
        remedy = f"delete the folder {self.folder} to rebuild it"
        try:
            if isinstance(path, RemotePath):
                local = cache.fetch(path, digest)
            else:
                local = path if file_digest(path) == digest else None
        except (FileNotFoundError, IsADirectoryError):
            raise ArtefactError(f"{path}: file not found; {remedy}") from None
        if local is None:
            raise ArtefactError(f"{path}: was changed since it was written; {remedy}")
        return local


def content_key(stage: str, **decides: object) -> str:
    """Hash the name of a stage and the JSON values that decide its files.

    The result is a SHA-256 in hexadecimal. The order of keywords does not matter.
    """
    canonical = json.dumps([FORMAT, stage, decides], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def find(folder: Place, *, key: str) -> Artefact | None:
    """Return the artefact sealed in ``folder`` for ``key``, or None.

    Its files are ``checked``, with its errors, which an invalid or unreadable seal also raises.
    """
    if artefact := _read_seal(folder, key):
        for name in artefact.files:
            artefact.checked(name)
    return artefact


def produce(folder: Place, *, key: str, write: Callable[[Draft], Mapping[str, Any]]) -> Artefact:
    """Return the artefact for ``key`` in ``folder``, or write it first.

    ``write`` adds files to its draft and returns the facts (JSON values). The folder is made. The
    seal of another key is replaced. Errors of ``find`` and ``write`` are raised. Instead of the two
    below, the artefact is returned if another worker has sealed it meanwhile.

    Raises:
        ArtefactError: A file of the artefact is missing or damaged, or its seal is invalid.
        OSError: A file cannot be written, or a remote one cannot be read.
    """
    if artefact := find(folder, key=key):
        return artefact
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return _write_sealed(folder, key, write)
    except (OSError, ArtefactError):
        if artefact := find(folder, key=key):
            return artefact  # another worker sealed it, and may have removed files in use here
        raise


def _write_sealed(folder: Place, key: str, write: Callable[[Draft], Mapping[str, Any]]) -> Artefact:
    with ExitStack() as lock:
        draft = Draft(folder)
        with draft.names:
            facts = dict(write(draft))
            seal = {"key": key, "files": draft.digests, "facts": facts}
            text = json.dumps(seal, indent=1, sort_keys=True)
            _lock_folder(folder, lock)
            if _read_seal(folder, key):
                raise FileExistsError(f"{folder}: sealed by another worker")
            (folder / SEAL).unlink(missing_ok=True)
        write_text(folder / SEAL, text)
    return Artefact(folder=folder, files=draft.digests, facts=facts)


def _lock_folder(folder: Place, lock: ExitStack) -> None:
    """Lock the folder against renames by others, if its file system can."""
    if not isinstance(folder, RemotePath):
        descriptor = os.open(folder, os.O_RDONLY)
        lock.callback(os.close, descriptor)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def open_artefact(folder: Place) -> Artefact:
    """Return the artefact in ``folder``, without comparing checksums.

    Raises:
        ArtefactError: The folder has no seal, or an invalid one.
        OSError: The seal cannot be read.
    """
    if artefact := _read_seal(folder):
        return artefact
    raise ArtefactError(f"{folder}: missing or unfinished; rerun the command of the run")


def _read_seal(folder: Place, key: str | None = None) -> Artefact | None:
    path = folder / SEAL
    if not path.exists():
        return None
    with suppress(ValueError):
        match json.loads(path.read_text(encoding="utf-8")):
            case {"key": sealed, "files": dict(files), "facts": dict(facts), **more} if not more:
                artefact = Artefact(folder=folder, files=files, facts=facts)
                return artefact if key in (None, sealed) else None
    raise ArtefactError(f"{path}: is damaged; delete the folder {folder} to rebuild it")


class _Fields(dict[str, Any]):
    """A JSON object whose missing keys raise ValueError with the file's path."""

    path: object = "a file of the work folder"

    def __missing__(self, key: str) -> Any:  # noqa: ANN401
        raise ValueError(f"{self.path}: lacks the key {key!r}; {_RERUN}")


def read_json(path: Place) -> Any:  # noqa: ANN401 - JSON has values of many types
    """Read the JSON object in a file of a work folder.

    To look up a missing key in it, or in an object within, also raises ValueError.

    Raises:
        ValueError: The file is damaged, or has another JSON value.
        OSError: The file is missing, or cannot be read.
    """

    def fields(values: dict[str, Any]) -> _Fields:
        named = _Fields(values)  # without an argument more, as copies of it are made
        named.path = path
        return named

    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_hook=fields)
    except ValueError as error:
        raise ValueError(f"{path}: is damaged ({error}); {_RERUN}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path}: is not a JSON object; {_RERUN}")
    return value


def write_array(path: Path, values: NDArray[Any]) -> None:
    """Write or replace an ``.npy`` file of numbers (n, ...), row-major."""
    with npy_rows(path) as append:
        append(values)


@contextmanager
def npy_rows(path: Path) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Yield a function that appends arrays to a new ``.npy`` file.

    Call it at least once, with arrays (n, ...) of the same dtype and shape after the first axis. An
    existing file is emptied first. The new one is complete only after the ``with`` block.
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
        np.lib.format.write_array_header_1_0(stream, header)  # has space for any number of rows
        assert stream.tell() == start


class Draft:
    """The files of an artefact being written to an existing ``folder``.

    They get their names as the context ``names`` ends without an error. ``digests`` are the SHA-256
    (hexadecimal) of written files by name.
    """

    def __init__(self, folder: Place) -> None:
        self._folder = folder
        self.digests: dict[str, str] = {}
        self.names = ExitStack()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a temporary local folder for the block, with ``naming_errors``."""
        place = self._folder if isinstance(self._folder, Path) else cache.cache_folder()
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=place) as name, naming_errors(name):
            yield Path(name)

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """Yield a temporary path, to which the ``with`` block writes a file.

        It becomes the artefact's file ``name`` as ``names`` ends. Errors are as in ``atomic_file``.
        """
        temporary = self.names.enter_context(atomic_file(self._folder / name))
        yield temporary
        self.digests[name] = file_digest(temporary)
        if isinstance(self._folder, RemotePath):
            cache.store(temporary, self.digests[name])

    def array(self, name: str, values: NDArray[Any]) -> None:
        """Write an array as the ``.npy`` file ``name`` of the artefact."""
        with self.rows(name) as append:
            append(values)

    @contextmanager
    def rows(self, name: str) -> Iterator[Callable[[NDArray[Any]], None]]:
        """Yield the function of ``npy_rows`` for the artefact's file ``name``."""
        with self.file(name) as path, npy_rows(path) as append:
            yield append
