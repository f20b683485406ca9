"""Files that are either complete or absent.

A local file is written next to its final name, and renamed over it when it is on disk. A run that
fails, is interrupted or loses power keeps the earlier file.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from miner.commandline import error_line, explain_errno
from miner.storage import cache
from miner.storage.places import AnyPath, PlaceError, RemotePath

TEMPORARY = ".adit-"  # prefix of the names of unfinished files


class OutputError(OSError):
    """An error about an output that cannot be written, with path and cause."""


@contextmanager
def atomic_file(path: AnyPath, *, is_probe: bool = False) -> Iterator[Path]:
    """Yield the path of an empty file, renamed to ``path`` after the block.

    The file has a hidden name with the suffix of ``path`` in its folder, or that of its target if
    ``path`` is a symbolic link. An existing file and its permissions are replaced, and links stay.
    If the block raises, or if ``is_probe``, the file is removed and ``path`` is unchanged.
    For a remote ``path``, the file is in the cache, and is copied at the end even if ``is_probe``.

    Raises:
        OutputError: A local ``path`` cannot be created or replaced, or its block raised an OSError
            with an ``errno``, such as a full disk. A block's other errors are raised unchanged.
        PlaceError: A remote ``path`` cannot be written. An unusable cache raises OSError.
    """
    if isinstance(path, RemotePath):
        with cache.temporary_file(path.suffix) as temporary:
            yield temporary
            path.receive(temporary)
        return
    final = Path(os.path.realpath(path))
    temporary = final.with_name(f"{TEMPORARY}{secrets.token_hex(8)}{final.suffix}")
    try:
        # Renaming would fail on these, or replace a device.
        if final.is_dir():
            raise OutputError(f"{final}: is a folder; pass a file in it")
        if final.exists() and not final.is_file():
            raise OutputError(f"{final}: is a device or a pipe; pass a regular file")
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        if is_probe:
            temporary.unlink()
            return
        _flush_to_disk(temporary)
        os.replace(temporary, final)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # An error without a number is a message of Adit, for example about an input.
        if isinstance(error, OSError) and error.errno is not None:
            names_other_file = str(error.filename or temporary) != str(temporary)
            cause = error_line(error) if names_other_file else explain_errno(error)
            raise OutputError(f"{os.fspath(path)}: cannot be written: {cause}") from error
        raise
    with suppress(OSError):  # Some file systems cannot sync a folder. The file is on disk.
        _flush_to_disk(final.parent)


@contextmanager
def naming_errors(place: object) -> Iterator[None]:
    """Name ``place`` in errors of a ``with`` block, such as a full disk.

    Raises:
        OutputError: The block raised an OSError that names no file.
        OSError: The block's own error, if it names a file, has no ``errno``, or is a broken pipe.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise OutputError(f"{place}: cannot be written: {explain_errno(error)}") from error


def write_text(path: AnyPath, text: str) -> None:
    """Write or replace a UTF-8 file by ``atomic_file``, with its errors."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def check_writable(path: AnyPath) -> None:
    """Check that a file could be written at ``path``, and change no file.

    Raises:
        OutputError: No file can be written in its folder, a local folder does not exist, or a local
            ``path`` is a folder or a device. An unusable cache for a remote one raises OSError.
    """
    if isinstance(path, RemotePath):
        probe = path.parent / f"{TEMPORARY}{secrets.token_hex(8)}"
        try:
            write_text(probe, "")
            probe.unlink()
        except PlaceError as error:
            raise OutputError(f"{path}: cannot be written: {error}") from error
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        problem = f"folder not found: {folder}; create it first"
        if folder.exists():
            problem = f"{folder} is a file; name a path in a folder"
        raise OutputError(f"{os.fspath(path)}: {problem}")
    # os.access knows nothing of quotas, and root passes all its checks.
    with atomic_file(path, is_probe=True):
        pass


def check_folder(path: AnyPath) -> None:
    """Check that files could be written in a folder that may not exist yet.

    Raises:
        OutputError: A local path or a parent of it is a file, or as in ``check_writable``.
    """
    if isinstance(path, RemotePath):
        check_writable(path / TEMPORARY)
        return
    final = Path(os.path.realpath(path))
    existing = next(place for place in (final, *final.parents) if place.exists())
    if not existing.is_dir():
        raise OutputError(f"{os.fspath(path)}: {existing} is a file; name a folder")
    check_writable(existing / TEMPORARY)


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
