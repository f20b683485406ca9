"""What a run has done so far, noted in its work folder as it goes: for ``mine-corpus status``.

Each process that runs stages appends to a file of its own, so none waits for another.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from miner.storage.atomic import atomic_file
from miner.storage.places import Place, remove_tree, tree_files
from miner.storage.remote import RemotePath

FOLDER = "progress"
BEGUN = "begun.json"
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


def begin(work_dir: Place, stages: Sequence[str]) -> None:
    """Forget what earlier runs have done; a run of these stages begins."""
    remove_tree(work_dir / FOLDER)
    (work_dir / FOLDER).mkdir(parents=True)
    with atomic_file(work_dir / FOLDER / BEGUN) as path:
        path.write_text(json.dumps({"stages": stages, "at": time.time()}), encoding="utf-8")


def note_done(work_dir: Place, stage: str, *, made: int, seconds: float) -> None:
    """Note that a stage has done an element, and how many it made of it."""
    line = json.dumps([stage, made, seconds, time.time() - seconds])
    path = work_dir / FOLDER / f"{socket.gethostname()}-{os.getpid()}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    _append(path, line + "\n")


_appending = threading.Lock()


def _append(path: Place, text: str) -> None:
    """Add to a file that is this process's own; a remote one has to be written anew."""
    if isinstance(path, RemotePath):
        with _appending, atomic_file(path) as temporary:
            before = path.read_text() if path.exists() else ""
            temporary.write_text(before + text, encoding="utf-8")
        return
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def read_stages(work_dir: Place) -> list[StageState]:
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


def _lines(work_dir: Place) -> Iterator[tuple[str, int, float, float]]:
    noted = [path for path, _ in tree_files(work_dir / FOLDER) if path.suffix == ".jsonl"]
    for path in sorted(noted, key=str):
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                stage, made, seconds, since = json.loads(line)
            except ValueError:  # one that is being written, or the end of the file
                continue
            yield stage, made, seconds, since
