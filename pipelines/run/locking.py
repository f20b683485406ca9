"""One run at a time in a work folder: two would replace each other's artefacts.

On local file systems the system's own locks keep a second run out. Others have none: there a file
says who is at work, as long as it is renewed. That stops mistakes, not two runs begun together.
"""

import contextvars
import fcntl
import json
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from miner.storage.atomic import write_text
from miner.storage.layout import WorkFolder
from miner.storage.places import Place, RemotePath

logger = logging.getLogger(__name__)

RENEWED_SECONDS = 20.0
STALE_SECONDS = 90.0


@contextmanager
def sole_run(work_dir: Place) -> Iterator[None]:
    """Keep other runs out of the work folder; a ValueError says that one is at work there."""
    path = WorkFolder(work_dir).lock
    with _renewed(path) if isinstance(path, RemotePath) else _flocked(path):
        yield


def is_locked(work_dir: Place) -> bool:
    """Return whether a run is at work in the folder, without hindering one that starts."""
    path = WorkFolder(work_dir).lock
    if isinstance(path, RemotePath):
        return _is_held(path)
    try:
        with path.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # others: no run was there, or the file system has no locks
        return isinstance(error, BlockingIOError)
    return False


@contextmanager
def _flocked(path: Path) -> Iterator[None]:
    work_dir = path.parent
    with path.open("w") as lock:
        try:
            _take(lock)
        except BlockingIOError:
            raise ValueError(
                f"--work-dir {work_dir}: another run is at work there; wait, or name another folder"
            ) from None
        except OSError as error:
            logger.warning("%s: not locked against a second run: %s", work_dir, error.strerror)
        yield


def _take(lock: TextIO) -> None:
    """Take the lock for this run alone; a BlockingIOError says that another run has it.

    Who only asks whether it is taken shares it for a moment, and is waited for; a run never does.
    """
    while True:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(random.uniform(0.001, 0.01))


@contextmanager
def _renewed(lock: RemotePath) -> Iterator[None]:
    if _is_held(lock):
        raise ValueError(
            f"--work-dir {lock.parent}: another run is at work there; wait, name another folder, "
            f"or remove {lock} if there is none"
        )
    _hold(lock)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEWED_SECONDS):
            with suppress(OSError):
                _hold(lock)

    # The lock is written by way of the folder of the run that this thread belongs to.
    run = contextvars.copy_context().run
    thread = threading.Thread(target=run, args=[renew], daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        lock.unlink(missing_ok=True)


def _hold(lock: RemotePath) -> None:
    write_text(lock, json.dumps([socket.gethostname(), os.getpid(), time.time()]))


def _is_held(lock: RemotePath) -> bool:
    try:
        host, process, renewed = json.loads(lock.read_text())
        if host == socket.gethostname():
            with suppress(PermissionError):
                os.kill(process, 0)
    except (FileNotFoundError, ValueError, ProcessLookupError):  # the last: it was killed
        return False
    return bool(time.time() - renewed < STALE_SECONDS)
