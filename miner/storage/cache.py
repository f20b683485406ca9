"""A cache of remote files, fetched once, checked, and shared by processes.

Files are named by their SHA-256, in the folder of ``cache_folder``. If less than a tenth of the
disk would be free, the least recently used files are removed, except within ten minutes of use.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from miner.storage.places import COPY_BYTES, RemotePath

FOLDER = "ADIT_CACHE"
FREE_SHARE = 1 / 10
DIGEST_LENGTH = 64  # of names of cached files; files with other names are being written
# A file that was used within this time is not removed, because a process may be about to open it.
USED_SECONDS = 600.0

_folder_of_run: ContextVar[Path | None] = ContextVar("_folder_of_run", default=None)


def cache_folder() -> Path:
    """Return the folder of an open ``run_cache``, or else ``shared_folder``."""
    return _folder_of_run.get() or shared_folder()


def shared_folder() -> Path:
    """Return the private cache folder of the user, made if it is missing.

    It is the environment's ``ADIT_CACHE``, or ``adit-UID`` in the folder of temporary files.

    Raises:
        PermissionError: It is a link, not a folder, another user's, or open to other users.
        OSError: It cannot be made.
    """
    variable = os.environ.get(FOLDER)
    folder = Path(variable or Path(tempfile.gettempdir()) / f"adit-{os.getuid()}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    state, remedy = folder.lstat(), f"set {FOLDER} to a folder that you own, not a link"
    if not stat.S_ISDIR(state.st_mode):
        raise PermissionError(f"{folder}: is a link, or not a folder; {remedy}")
    if state.st_uid != os.getuid():
        raise PermissionError(f"{folder}: belongs to another user; {remedy}")
    if stat.S_IMODE(state.st_mode) & 0o077:
        raise PermissionError(f"{folder}: other users can access it; run chmod 700 {folder}")
    return folder


@contextmanager
def run_cache() -> Iterator[Path]:
    """Yield a separate cache folder for the ``with`` block, then remove it.

    It is in ``cache_folder`` if ``ADIT_CACHE`` is set, and else in the folder of temporary files.
    Only this thread and threads with a copy of its context use it.
    """
    parent = cache_folder() if os.environ.get(FOLDER) else None
    with tempfile.TemporaryDirectory(prefix="adit-", dir=parent) as folder:
        token = _folder_of_run.set(Path(folder))
        try:
            yield Path(folder)
        finally:
            _folder_of_run.reset(token)


@contextmanager
def temporary_file(suffix: str) -> Iterator[Path]:
    """Yield a new, empty cache file's path, and remove it after the block."""
    path = cache_folder() / f".{secrets.token_hex(8)}{suffix}"
    path.touch(mode=0o600)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def store(local: Path, digest: str) -> None:
    """Link a ``temporary_file`` into the cache, as if it had been fetched.

    ``digest`` is its SHA-256 in hexadecimal. A cached file with this digest stays.
    """
    with suppress(FileExistsError):
        os.link(local, cache_folder() / digest)


def fetch(remote: RemotePath, digest: str) -> Path | None:
    """Return the path of a remote file's copy in the cache, or None.

    ``digest`` is the SHA-256 in hexadecimal. A copy in the cache is returned unchecked, without a
    request. The result is None if the remote file has another SHA-256. A missing file raises
    FileNotFoundError, an unreadable one PlaceError, and a full or unusable cache OSError.
    """
    path = cache_folder() / digest
    if _is_cached(path):
        return path
    with path.with_name(f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be fetching it
        if _is_cached(path):
            return path
        _make_room(remote.stat().st_size)
        with temporary_file("") as temporary:
            if _copy(remote, temporary) != digest:
                return None
            store(temporary, digest)
    return path


def _is_cached(path: Path) -> bool:
    """Return whether the file exists, and mark it as used now."""
    with suppress(FileNotFoundError):
        os.utime(path)
        return True
    return False


def _copy(remote: RemotePath, local: Path) -> str:
    digest = hashlib.sha256()
    with remote.reading() as source, local.open("wb") as target:
        while block := source.read(COPY_BYTES):
            digest.update(block)
            target.write(block)
    return digest.hexdigest()


def _make_room(size: int) -> None:
    """Remove least recently used files until ``size`` more bytes have space."""
    folder = cache_folder()
    total, _, free = shutil.disk_usage(folder)
    missing_bytes = size + FREE_SHARE * total - free
    if missing_bytes <= 0:
        return
    cached = [(path, path.stat()) for path in folder.iterdir() if len(path.name) == DIGEST_LENGTH]
    for path, state in sorted(cached, key=lambda entry: entry[1].st_mtime):
        if missing_bytes <= 0 or time.time() - state.st_mtime < USED_SECONDS:
            break
        path.unlink(missing_ok=True)
        missing_bytes -= state.st_size
