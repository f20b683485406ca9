"""The state of the run in a work folder: its lock, and its ledger for ``mine-corpus status``.

Each process adds lines to a file of the ledger of its own, so none waits for another. Remote files
cannot be added to; there each has a chain of small ones, of at most ``CHUNK`` lines.

Two runs at a time would replace each other's artefacts. On local file systems the system's locks
keep a second one out. Others have none: there a file says who is at work, as long as it is renewed.
That stops mistakes, not two runs begun together.
"""

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
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

from miner.commandline import error_line
from miner.storage.atomic import naming_errors, write_text
from miner.storage.layout import WorkFolder
from miner.storage.places import Place, RemotePath, remove_tree, tree_files

logger = logging.getLogger(__name__)

BEGUN = "begun.json"
CHUNK = 32  # lines of a remote file: on average, each is written 16 times
RENEWED_SECONDS = 20.0
STALE_SECONDS = 90.0


@dataclass(frozen=True, kw_only=True)
class StageState:
    """``done`` of ``expected`` elements (None: not known yet) in ``seconds`` of all processes.

    An element that was done again counts once. ``since`` is when the first was begun (since 1970).
    """

    name: str
    done: int
    expected: int | None
    seconds: float
    since: float


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """A process that has ``done`` some elements, the last of a ``stage`` at ``at`` (since 1970)."""

    name: str
    done: int
    stage: str
    at: float


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What ended a stage; it is the user's to mend where ``is_users``, else a defect."""

    line: str
    is_users: bool


class Ledger:
    """Notes what stages do in one process."""

    def __init__(self, folder: WorkFolder) -> None:
        self._folder = folder.progress
        self._name = f"{socket.gethostname()}-{os.getpid()}"
        self._token = secrets.token_hex(4)
        self._writing = threading.Lock()
        self._lines: list[str] = []
        self._full = 0

    def note_done(self, stage: str, element: str, *, made: int, seconds: float) -> None:
        """Note that a stage has done an element, of which it made so many references."""
        done = {"stage": stage, "element": element, "made": made, "seconds": seconds}
        self._add(done | {"since": time.time() - seconds, "worker": self._name})

    def note_failed(self, stage: str, error: BaseException) -> None:
        """Note what has ended a stage, unless it was interrupted."""
        if isinstance(error, Exception):
            is_users = isinstance(error, (ValueError, OSError, MemoryError))
            line = error_line(error) if is_users else f"{type(error).__name__}: {error}"
            with suppress(OSError):  # a full disk may be what has ended it
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
    """Forget what earlier runs have done; a run of these stages begins.

    ``elements`` are how many each takes: a number, or the name of the stage that makes them.
    """
    remove_tree(folder.progress)
    folder.progress.mkdir(parents=True)
    begun = {"elements": elements, "at": time.time()}
    write_text(folder.progress / BEGUN, json.dumps(begun))


def read_stages(folder: WorkFolder) -> list[StageState]:
    """Return how far each stage of the last run in a work folder is; none if there was no run."""
    begun = folder.progress / BEGUN
    if not begun.exists():
        return []
    notes = [note for note in _notes(folder.progress) if "made" in note]
    states: dict[str, StageState] = {}
    made: dict[str, int] = {}
    for name, source in json.loads(begun.read_text(encoding="utf-8"))["elements"].items():
        own = [note for note in notes if note["stage"] == name]
        done = {note["element"]: note["made"] for note in own}
        made[name] = sum(done.values())
        expected = source
        if isinstance(source, str):
            feeding = states[source]
            expected = made[source] if feeding.done == feeding.expected else None
        states[name] = StageState(
            name=name,
            done=len(done),
            expected=expected,
            seconds=sum(note["seconds"] for note in own),
            since=min((note["since"] for note in own), default=0.0),
        )
    return list(states.values())


def read_workers(folder: WorkFolder) -> list[WorkerState]:
    """Return the processes that have done something for the last run in a work folder."""
    last: dict[str, dict[str, Any]] = {}
    done: dict[str, int] = {}
    for note in _notes(folder.progress):
        if "made" in note:
            name = note["worker"]
            last[name] = max(last.get(name, note), note, key=lambda note: float(note["since"]))
            done[name] = done.get(name, 0) + 1
    return [
        WorkerState(
            name=name, done=done[name], stage=note["stage"], at=note["since"] + note["seconds"]
        )
        for name, note in sorted(last.items())
    ]


def first_failure(folder: WorkFolder) -> Failure | None:
    """Return the first error of the last run in a work folder, if it has failed."""
    failed = (note for note in _notes(folder.progress) if "failed" in note)
    first = min(failed, key=itemgetter("since"), default=None)
    return Failure(line=first["failed"], is_users=first["user"]) if first else None


def _notes(folder: Place) -> Iterator[dict[str, Any]]:
    files = (path for path, _ in tree_files(folder) if path.suffix == ".jsonl")
    for path in sorted(files, key=str):
        for line in path.read_text(encoding="utf-8").split("\n"):
            with suppress(ValueError):  # a line that is being written, or the end of the file
                yield json.loads(line)


def exclusive_run(work_dir: Place) -> AbstractContextManager[None]:
    """Keep other runs out of the work folder; a ValueError says that one is at work there."""
    path = WorkFolder(work_dir).lock
    return _renewed(path) if isinstance(path, RemotePath) else _flocked(path)


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
                f"--work-dir {work_dir}: another run is using it; wait, or pass another folder"
            ) from None
        except OSError as error:
            logger.warning(
                "%s: a second run cannot be detected (%s); do not start one",
                work_dir,
                error.strerror,
            )
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
            f"--work-dir {lock.parent}: another run is using it; wait, pass another folder, "
            f"or delete {lock} if no run is using it"
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
