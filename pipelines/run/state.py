"""Lock a work folder during a run, and record its progress in a ledger."""

import contextvars
import fcntl
import json
import logging
import os
import random
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

from miner.commandline import error_line
from miner.storage.artefacts import read_json
from miner.storage.atomic import naming_errors, write_text
from miner.storage.layout import WorkFolder
from miner.storage.places import Place, RemotePath, remove_tree, tree_files

logger = logging.getLogger(__name__)

BEGUN = "begun.json"
CHUNK = 32  # lines per remote file, as none can be appended to; a line is written 16 times
RENEWED_SECONDS = 20.0  # between renewals of a remote lock
STALE_SECONDS = 90.0  # from the last renewal until a remote lock is free
_SINCE = itemgetter("since")  # of a note


@dataclass(frozen=True, kw_only=True)
class StageState:
    """The progress of a stage in a run.

    ``done`` is the number of distinct finished elements, ``expected`` that of all, None if unknown.
    ``seconds`` are of all processes. ``since`` is seconds from 1970 to the start, 0 if ``done`` is.
    """

    name: str
    done: int
    expected: int | None
    seconds: float
    since: float


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """The progress of a process of a run.

    ``name`` is its host and process id, and ``done`` the number of elements that it finished, in
    all stages. Its last element, of ``stage``, ended ``end`` seconds after 1970.
    """

    name: str
    done: int
    stage: str
    end: float


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The one-line error that ended a stage, and if a user can remedy it."""

    line: str
    is_users: bool


class Ledger:
    """A writer of this process's progress to the ledger in ``folder``."""

    def __init__(self, folder: WorkFolder) -> None:
        self._folder = folder.progress
        self._name = f"{socket.gethostname()}-{os.getpid()}"
        self._token = secrets.token_hex(4)
        self._writing = threading.Lock()
        self._lines: list[str] = []
        self._full = 0

    def note_done(self, stage: str, element: str, *, made: int, seconds: float) -> None:
        """Record a finished element, with ``made`` results, or raise OSError."""
        done = {"stage": stage, "element": element, "made": made, "seconds": seconds}
        self._add(done | {"since": time.time() - seconds, "worker": self._name})

    def note_failed(self, stage: str, error: BaseException) -> None:
        """Record, if possible, the error of a stage, except an interrupt."""
        if isinstance(error, Exception):
            is_users = isinstance(error, (ValueError, OSError, MemoryError))
            text = error_line(error) if is_users else f"{type(error).__name__}: {error}"
            line = " ".join(text.split("\n"))
            with suppress(OSError):  # perhaps the disk is full
                self._add({"stage": stage, "failed": line, "user": is_users, "since": time.time()})

    def _add(self, note: Mapping[str, Any]) -> None:
        line = json.dumps(note) + "\n"
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._writing:
            if not isinstance(self._folder, RemotePath):
                notes = self._folder / f"{self._name}.jsonl"
                with naming_errors(notes), notes.open("a", encoding="utf-8") as file:
                    file.write(line)
                return
            self._lines.append(line)
            path = self._folder / f"{self._name}-{self._token}-{self._full:06d}.jsonl"
            write_text(path, "".join(self._lines))
            if len(self._lines) == CHUNK:
                self._lines, self._full = [], self._full + 1


def start_ledger(folder: WorkFolder, elements: Mapping[str, int | str]) -> None:
    """Remove the ledger of earlier runs, and record the stages of this run.

    ``elements`` has each stage's number of elements, or an earlier stage with as many results.
    """
    remove_tree(folder.progress)
    folder.progress.mkdir(parents=True)
    begun = {"elements": elements, "at": time.time()}
    write_text(folder.progress / BEGUN, json.dumps(begun))


def read_stages(folder: WorkFolder) -> list[StageState]:
    """Return the last run's stages, if any, with errors of ``read_json``."""
    path = folder.progress / BEGUN
    if not path.exists():
        return []
    notes = [note for note in _notes(folder.progress) if "made" in note]
    states: dict[str, StageState] = {}
    made: dict[str, int] = {}
    for name, source in read_json(path)["elements"].items():
        stage_notes = [note for note in notes if note["stage"] == name]
        done = {note["element"]: note["made"] for note in stage_notes}
        made[name] = sum(done.values())
        expected = source
        if isinstance(source, str):
            feeding = states[source]
            expected = made[source] if feeding.done == feeding.expected else None
        states[name] = StageState(
            name=name,
            done=len(done),
            expected=expected,
            seconds=sum(note["seconds"] for note in stage_notes),
            since=min(map(_SINCE, stage_notes), default=0.0),
        )
    return list(states.values())


def read_workers(folder: WorkFolder) -> list[WorkerState]:
    """Return the last run's processes that finished elements, sorted by name."""
    notes = sorted((note for note in _notes(folder.progress) if "made" in note), key=_SINCE)
    done = Counter(note["worker"] for note in notes)
    last = {note["worker"]: note for note in notes}
    return [
        WorkerState(
            name=name, done=done[name], stage=note["stage"], end=note["since"] + note["seconds"]
        )
        for name, note in sorted(last.items())
    ]


def first_failure(folder: WorkFolder) -> Failure | None:
    """Return the first error of the last run, or None without one."""
    failed = (note for note in _notes(folder.progress) if "failed" in note)
    first = min(failed, key=_SINCE, default=None)
    return Failure(line=first["failed"], is_users=first["user"]) if first else None


def _notes(folder: Place) -> Iterator[dict[str, Any]]:
    files = (path for path, _ in tree_files(folder) if path.suffix == ".jsonl")
    for path in sorted(files, key=str):
        for line in path.read_text(encoding="utf-8").split("\n"):
            with suppress(ValueError):  # a line that is being written, or the end of the file
                yield json.loads(line)


def exclusive_run(work_dir: Place) -> AbstractContextManager[None]:
    """Lock an existing work folder against other runs while a context is open.

    ValueError says that another run uses it. Without locks in the file system, a warning is logged.
    A remote folder's lock, a file that is renewed, does not stop two runs that start together.
    """
    path = WorkFolder(work_dir).lock
    return _renewed_lock(path) if isinstance(path, RemotePath) else _system_lock(path)


def is_locked(work_dir: Place) -> bool:
    """Return whether a run has locked the work folder, False without locks."""
    path = WorkFolder(work_dir).lock
    if isinstance(path, RemotePath):
        return _is_held(path)
    try:
        with path.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # others mean no lock file, or a file system without locks
        return isinstance(error, BlockingIOError)
    return False


@contextmanager
def _system_lock(path: Path) -> Iterator[None]:
    work_dir = path.parent
    with path.open("w") as lock:
        try:
            _acquire(lock)
        except BlockingIOError:
            raise ValueError(
                f"{work_dir}: another run is using this work folder; wait, or pass another folder"
            ) from None
        except OSError as error:
            logger.warning(
                "%s: a second run cannot be detected (%s); do not start one",
                work_dir,
                error.strerror,
            )
        yield


def _acquire(lock: TextIO) -> None:
    # ``is_locked`` shares the lock for a moment, so this waits for it; a run never shares it.
    while True:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(random.uniform(0.001, 0.01))


@contextmanager
def _renewed_lock(lock: RemotePath) -> Iterator[None]:
    if _is_held(lock):
        raise ValueError(
            f"{lock.parent}: another run is using this work folder; wait, pass another folder, or "
            f"delete {lock} if no run is using it"
        )
    _write_lock(lock)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEWED_SECONDS):
            with suppress(OSError):
                _write_lock(lock)

    # The context has the run's cache folder, through which the remote lock is written.
    run = contextvars.copy_context().run
    thread = threading.Thread(target=run, args=[renew], daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        lock.unlink(missing_ok=True)


def _write_lock(lock: RemotePath) -> None:
    write_text(lock, json.dumps([socket.gethostname(), os.getpid(), time.time()]))


def _is_held(lock: RemotePath) -> bool:
    try:
        host, process, renewed = json.loads(lock.read_text())
        if host == socket.gethostname():
            with suppress(PermissionError):
                os.kill(process, 0)
    except (FileNotFoundError, ValueError, ProcessLookupError):  # the last if it was killed
        return False
    return bool(time.time() - renewed < STALE_SECONDS)
