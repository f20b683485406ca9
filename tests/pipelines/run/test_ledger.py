"""The ledger: what was done, what failed first, and what writing it costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from miner.storage.layout import WorkFolder
from miner.storage.places import RemotePath, place
from pipelines.options import Element, job_of
from pipelines.references import element_name
from pipelines.run.mining import mine_corpus
from pipelines.run.state import (
    BEGUN,
    CHUNK,
    Ledger,
    first_failure,
    read_stages,
    read_workers,
    start_ledger,
)
from pipelines.run.steps import MapStep, StageRunner, sources_of_elements, steps_of
from tests.pipelines.worlds import World


def test_how_many_elements_each_stage_takes(world: World) -> None:
    options = world.options("out.tsv", world.path("work"))
    assert sources_of_elements(steps_of(options), job_of(options)) == {
        "read_side": 2,
        "embed_shard": "read_side",
        "share_corpora": 1,
        "prepare_sides": "share_corpora",
        "train_side": "prepare_sides",
        "fill_index": "train_side",
        "cut_nearest": 1,
        "join_nearest": "cut_nearest",
        "cut_tiles": 1,
        "search_tile": "cut_tiles",
        "find_neighbours": "fill_index",
        "select_pairs": 1,
        "cut_pairs": 1,
        "score_pairs": "cut_pairs",
        "judge_pairs": 1,
        "keep_pairs": 1,
        "filter_pairs": 1,
        "drop_near_copies": 1,
        "write_summary": 1,
        "export_pairs": 1,
    }


def test_expectations_follow_from_what_was_made(tmp_path: Path) -> None:
    folder = WorkFolder(tmp_path)
    start_ledger(folder, {"read": 2, "embed": "read", "select": 1})
    notes = Ledger(folder), Ledger(folder)
    notes[0].note_done("read", "source", made=3, seconds=0.5)
    assert [(state.done, state.expected) for state in read_stages(folder)] == [
        *((1, 2), (0, None), (0, 1)),
    ]
    notes[1].note_done("read", "target", made=4, seconds=0.25)
    notes[0].note_done("embed", "source/0", made=1, seconds=1)
    assert [(state.done, state.expected) for state in read_stages(folder)] == [
        *((2, 2), (1, 7), (0, 1)),
    ]
    assert read_stages(folder)[0].seconds == 0.75
    (folder.progress / BEGUN).write_text("{")
    with pytest.raises(ValueError, match=r"begun\.json: is damaged \("):
        read_stages(folder)


def test_an_element_that_is_done_again_counts_once(tmp_path: Path) -> None:
    """As where an engine has lost a worker: its elements are done by another one."""
    folder = WorkFolder(tmp_path)
    start_ledger(folder, {"read": 2, "embed": "read", "select": 1})
    one, other = Ledger(folder), Ledger(folder)
    one._name, other._name = "one", "other"
    for notes in (one, other):
        notes.note_done("read", "source", made=3, seconds=1)
        notes.note_done("select", "source/0", made=1, seconds=1)
    other.note_done("read", "target", made=2, seconds=1)
    assert [(state.done, state.expected) for state in read_stages(folder)] == [
        *((2, 2), (0, 5), (1, 1)),
    ]
    assert [(worker.name, worker.done, worker.stage) for worker in read_workers(folder)] == [
        *(("one", 2, "select"), ("other", 3, "read")),
    ]


def test_the_first_failure_is_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = WorkFolder(tmp_path)
    start_ledger(folder, {"read": 2})
    assert first_failure(folder) is None
    one, other = Ledger(folder), Ledger(folder)
    one._name, other._name = "b", "a"  # their files are read in another order
    for second, (noting, error) in enumerate(
        [(one, OSError(28, "No space left", "x")), (other, KeyError("y")), (one, ValueError("z"))]
    ):
        monkeypatch.setattr("time.time", lambda second=second: 100.0 + second)
        noting.note_failed("read", error)
    other.note_failed("read", KeyboardInterrupt())
    failure = first_failure(folder)
    assert failure is not None
    assert (failure.line, failure.is_users) == (
        "x: No space left on device; free space on its disk",
        True,
    )
    start_ledger(folder, {"read": 2})
    assert first_failure(folder) is None


def test_a_failure_of_many_lines_is_one_line(tmp_path: Path) -> None:
    folder = WorkFolder(tmp_path)
    start_ledger(folder, {"read": 1})
    Ledger(folder).note_failed("", RuntimeError("worker died\n  at line 3"))
    failure = first_failure(folder)
    assert failure is not None
    assert failure.line == "RuntimeError: worker died   at line 3"


def test_a_remote_ledger_writes_in_proportion_to_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects: dict[str, str] = {}
    written = 0

    def receive(place: RemotePath, local: Path) -> None:
        nonlocal written
        objects[place.name] = local.read_text(encoding="utf-8")
        written += len(objects[place.name])

    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setenv("ADIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(RemotePath, "receive", receive)
    monkeypatch.setattr(RemotePath, "mkdir", lambda *_, **__: None)
    notes = Ledger(WorkFolder(place("s3://bucket/work")))
    for number in range(320):
        notes.note_done("search_tile", f"{number}", made=number, seconds=0.5)
    lines = [json.loads(line) for content in objects.values() for line in content.splitlines()]
    assert sorted(line["made"] for line in lines) == list(range(320))
    assert len(objects) == -(-320 // CHUNK)
    held = sum(map(len, objects.values()))
    assert written < held * CHUNK  # rewriting all for each line would be 160 times that


def test_the_elements_of_a_stage_have_names_of_their_own(world: World) -> None:
    """A group has the same one whatever order an engine has put it in."""
    found: dict[str, list[str]] = {}
    really_call = StageRunner.__call__

    def call(runner: StageRunner, step: MapStep, element: Element) -> list[Element]:
        names = [element_name(element.reference)]
        if isinstance(element.reference, list):
            names.append(element_name(element.reference[::-1]))
        assert len(set(names)) == 1
        found.setdefault(step.name, []).append(names[0])
        return really_call(runner, step, element)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StageRunner, "__call__", call)
        mine_corpus(world.options("out.tsv", world.path("work"), shards=3))
    assert len(found["embed_shard"]) == 6
    assert len(found["search_tile"]) == 9
    for names in found.values():
        assert len(set(names)) == len(names)
