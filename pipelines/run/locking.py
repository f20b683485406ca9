"""One run at a time in a work folder: two would replace each other's artefacts.

On local file systems the system's own locks keep a second run out. Others have none: there a file
says who is at work, as long as it is renewed. That stops mistakes, not two runs begun together.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from miner.storage.atomic import atomic_file
from miner.storage.places import Place
from miner.storage.remote import RemotePath

logger = logging.getLogger(__name__)

LOCK = ".lock"
RENEWED_SECONDS = 20.0
STALE_SECONDS = 90.0


@contextmanager
def sole_run(work_dir: Place) -> Iterator[None]:
    """Keep other runs out of the work folder.

    Raises:
        ValueError: one is at work there.
    """
    with _renewed(work_dir) if isinstance(work_dir, RemotePath) else _flocked(work_dir):
        yield


def is_locked(work_dir: Place) -> bool:
    """Whether a run is at work in the folder."""
    if isinstance(work_dir, RemotePath):
        return _is_held(work_dir / LOCK)
    try:
        with (work_dir / LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no run was there, or the file system has no locks
        return False
    return False


@contextmanager
def _flocked(work_dir: Path) -> Iterator[None]:
    with (work_dir / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"--work-dir {work_dir}: another run is at work there; wait, or name another folder"
            ) from None
        except OSError as error:
            logger.warning("%s: not locked against a second run: %s", work_dir, error.strerror)
        yield


@contextmanager
def _renewed(work_dir: RemotePath) -> Iterator[None]:
    lock, ended = work_dir / LOCK, threading.Event()
    if _is_held(lock):
        raise ValueError(
            f"--work-dir {work_dir}: another run is at work there; wait, name another folder, or "
            f"remove {lock} if there is none"
        )
    _hold(lock)

    def renew() -> None:
        while not ended.wait(RENEWED_SECONDS):
            with suppress(OSError):
                _hold(lock)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        lock.unlink(missing_ok=True)


def _hold(lock: RemotePath) -> None:
    with atomic_file(lock) as path:
        path.write_text(json.dumps([socket.gethostname(), os.getpid(), time.time()]))


def _is_held(lock: RemotePath) -> bool:
    try:
        host, process, renewed = json.loads(lock.read_text())
    except (FileNotFoundError, ValueError):
        return False
    if host == socket.gethostname() and not _is_alive(process):
        return False  # it was killed
    return bool(time.time() - renewed < STALE_SECONDS)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
