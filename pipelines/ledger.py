"""What a run has done so far, noted in its work folder as it goes: for ``mine-corpus status``.

Each process that runs stages appends to a file of its own, so none waits for another.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from miner.storage.atomic import atomic_file

FOLDER = "progress"
BEGUN = "begun.json"
RUNNING = "running"
LOCK = ".lock"
# The stages that take one element each for what an earlier stage made; others take one in all.
FED_BY = {
    "embed_shard": "read_side",
    "train_side": "plan_sides",
    "fill_index": "train_side",
    "search_tile": "plan_tiles",
    "find_neighbours": "read_side",
}
FIRST, SIDES, LAST = "read_side", 2, "export_pairs"


@dataclass(frozen=True, kw_only=True)
class StageState:
    """``done`` of ``expected`` elements (None: not known yet) in ``seconds`` of all processes.

    ``since`` is when the first of them was begun, in seconds since 1970.
    """

    name: str
    done: int
    expected: int | None
    seconds: float
    since: float


def begin(work_dir: Path, stages: Sequence[str]) -> None:
    """Forget what earlier runs have done; a run of these stages begins."""
    shutil.rmtree(work_dir / FOLDER, ignore_errors=True)
    (work_dir / FOLDER).mkdir(parents=True)
    with atomic_file(work_dir / FOLDER / BEGUN) as path:
        path.write_text(json.dumps({"stages": stages, "at": time.time()}), encoding="utf-8")


def running_file(work_dir: Path) -> Path:
    """A file that is there while a run's worker processes on this machine are to go on."""
    return work_dir / FOLDER / RUNNING


def note_done(work_dir: Path, stage: str, *, made: int, seconds: float) -> None:
    """Note that a stage has done an element, and how many it made of it."""
    line = json.dumps([stage, made, seconds, time.time() - seconds])
    path = work_dir / FOLDER / f"{socket.gethostname()}-{os.getpid()}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def read_stages(work_dir: Path) -> list[StageState]:
    """How far each stage of the last run in ``work_dir`` is; none if there was no run."""
    begun = work_dir / FOLDER / BEGUN
    if not begun.exists():
        return []
    lines = list(_lines(work_dir))
    states: dict[str, StageState] = {}
    made: dict[str, int] = {}
    for name in json.loads(begun.read_text(encoding="utf-8"))["stages"]:
        own = [line for line in lines if line[0] == name]
        made[name] = sum(line[1] for line in own)
        states[name] = StageState(
            name=name,
            done=len(own),
            expected=_expected(name, states, made),
            seconds=sum(line[2] for line in own),
            since=min((line[3] for line in own), default=0.0),
        )
    return list(states.values())


def _expected(name: str, states: dict[str, StageState], made: dict[str, int]) -> int | None:
    if name not in FED_BY:
        return SIDES if name == FIRST else 1
    feeding = states[FED_BY[name]]
    return made[feeding.name] if feeding.done == feeding.expected else None


def _lines(work_dir: Path) -> Iterator[tuple[str, int, float, float]]:
    for path in sorted((work_dir / FOLDER).glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                stage, made, seconds, since = json.loads(line)
            except ValueError:  # one that is being written, or the end of the file
                continue
            yield stage, made, seconds, since


def is_locked(work_dir: Path) -> bool:
    """Whether a run is at work in the folder."""
    try:
        with (work_dir / LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no run was there, or the file system has no locks
        return False
    return False
