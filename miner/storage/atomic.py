"""Files that are either whole or not there.

A file is written beside its final name and renamed over it once it is on the disk, so that a run
that fails, is interrupted or loses power leaves what was there before.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from miner.storage import cache
from miner.storage.places import AnyPath, PlaceError, RemotePath

TEMPORARY = ".adit-"  # how the names of unfinished files begin


class OutputError(OSError):
    """An output that cannot be written: one line that names it and says why."""


class _OnlyTriedError(Exception):
    """A file could be written, and is not to be."""


@contextmanager
def atomic_file(path: AnyPath) -> Iterator[Path]:
    """Yield the path of an empty temporary file that becomes ``path`` when the block succeeds.

    It lies in the folder of ``path``, under a hidden name with the same suffix (so that
    ``numpy.save`` and others that go by the suffix write to it and not beside it), with the
    permissions of any new file. When the block raises anything at all, it is removed and ``path``
    stays as it was. A symbolic link is followed: the file it points to is replaced, the link is
    kept. For a remote ``path`` it lies on this machine, and is copied.

    Raises:
        OutputError: ``path`` cannot be created or replaced, or the block failed with an error of
            the operating system's (such as a full disk).
        PlaceError: the copy cannot be made.
    """
    if isinstance(path, RemotePath):
        with cache.temporary_file(path.suffix) as temporary:
            yield temporary
            path.receive(temporary)
        return
    final = Path(os.path.realpath(path))
    temporary = final.with_name(f"{TEMPORARY}{secrets.token_hex(8)}{final.suffix}")
    try:
        _refuse_special(final)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        _flush_to_disk(temporary)
        os.replace(temporary, final)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # An error without a number is a message of our own (of an input's, say): leave it be.
        if isinstance(error, OSError) and error.errno is not None:
            names_other_file = str(error.filename or temporary) != str(temporary)
            cause = str(error) if names_other_file else os.strerror(error.errno)
            raise OutputError(f"{os.fspath(path)}: cannot be written: {cause}") from error
        raise
    with suppress(OSError):  # Some file systems cannot sync a folder; the file itself is safe.
        _flush_to_disk(final.parent)


@contextmanager
def naming_errors(place: object) -> Iterator[None]:
    """Name the place in errors that name no file, such as a full disk's."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise OutputError(f"{place}: cannot be written: {os.strerror(error.errno)}") from error


def write_text(path: AnyPath, text: str) -> None:
    """Write ``text`` in UTF-8, whole or not at all, as ``atomic_file`` does."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def check_writable(path: AnyPath) -> None:
    """Check that a file could be written at ``path``, or raise an OutputError."""
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
        raise OutputError(f"{os.fspath(path)}: folder not found: {folder}; create it first")
    # os.access knows nothing of quotas, and root passes all its checks.
    with suppress(_OnlyTriedError), atomic_file(path):
        raise _OnlyTriedError


def check_folder(path: AnyPath) -> None:
    """Check the same of files in a folder; it and those above it may have to be made."""
    if isinstance(path, RemotePath):
        check_writable(path / TEMPORARY)
        return
    final = Path(os.path.realpath(path))
    above = next(place for place in (final, *final.parents) if place.exists())
    if not above.is_dir():
        raise OutputError(f"{os.fspath(path)}: {above} is a file; name a folder")
    check_writable(above / TEMPORARY)


def _refuse_special(final: Path) -> None:
    """Refuse what renaming would fail on (a folder) or destroy (a device such as /dev/null)."""
    if final.is_dir():
        raise OutputError(f"{final}: is a folder; pass a file in it")
    if final.exists() and not final.is_file():
        raise OutputError(f"{final}: is not a regular file; pass a regular file")


def _flush_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
