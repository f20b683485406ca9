"""Looking after a work folder: how far its run is, and emptying it."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

import pytest

from miner.storage.layout import WorkFolder
from pipelines.cli.mine import mine_corpus
from pipelines.run.state import read_stages
from pipelines.run.steps import MapStep, steps_of
from tests.pipelines.worlds import World, one_line


@pytest.fixture
def finished(world: World, capsys: pytest.CaptureFixture[str]) -> Path:
    work_dir = world.path("work")
    world.mine("out.jsonl", "--work-dir", str(work_dir), "--shards", "3")
    capsys.readouterr()
    return work_dir


def told(command: str, work_dir: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert mine_corpus([command, str(work_dir)]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    return out.splitlines()


def refused(command: str, work_dir: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert mine_corpus([command, str(work_dir)]) == 2
    return one_line(capsys.readouterr().err, f"mine-corpus {command}")


def test_status_of_a_finished_run(
    world: World, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *stages = told("status", finished, capsys)
    assert first == f"{finished}: finished"
    counts = {line.split()[0]: line.split()[1:4] for line in stages}
    assert counts["embed_shard"] == ["6", "of", "6"]
    assert counts["search_tile"] == ["9", "of", "9"]
    assert counts["export_pairs"] == ["1", "of", "1"]
    steps = steps_of(world.options("out.jsonl", finished))
    assert list(counts) == [step.name for step in steps if isinstance(step, MapStep)]


def test_status_of_a_run_in_the_middle(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipelines.stages.searching import search as searching

    work_dir, done = world.path("work"), 0
    really_search = searching._search

    def search(*arguments: object) -> object:
        nonlocal done
        done += 1
        if done == 4:
            middle.extend(told("status", work_dir, capsys))
            raise KeyboardInterrupt
        return really_search(*arguments)

    middle: list[str] = []
    monkeypatch.setattr(searching, "_search", search)
    run = [*world.inputs(), "-o", str(world.path("out.jsonl")), "--work-dir", str(work_dir), "-q"]
    assert mine_corpus([*run, "--shards", "3"]) == 2
    assert middle[0] == f"{work_dir}: running"
    worker = middle.pop()
    assert re.fullmatch(
        rf"  worker .+-{os.getpid()}: \d+ elements done, last search_tile \d s ago", worker
    )
    (tile,) = (line for line in middle if "search_tile" in line)
    assert tile.split()[:5] == ["search_tile", "3", "of", "9", "elements"]
    assert "per minute" in tile
    assert tile.endswith("s left")
    (merge,) = (line for line in middle if "find_neighbours" in line)
    assert merge.split() == ["find_neighbours", "0", "of", "6", "elements", "done"]
    capsys.readouterr()
    assert (
        told("status", work_dir, capsys)[0]
        == f"{work_dir}: stopped; rerun the same command to resume"
    )
    assert "the run is unfinished and still needs" in refused("clean", work_dir, capsys)


def test_clean_leaves_the_account(
    finished: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    out = world.path("out.jsonl").read_bytes()
    (line,) = told("clean", finished, capsys)
    assert line.startswith(f"{finished}: ")
    assert line.endswith(" MB removed")
    left = {str(path.relative_to(finished)) for path in finished.rglob("*") if path.is_file()}
    assert {name for name in left if not name.startswith("progress/")} == {
        *(".lock", "run.json", "run.toml", "rejected/source.parquet", "rejected/target.parquet"),
    }
    assert told("status", finished, capsys)[0] == f"{finished}: finished, emptied by adit clean"
    world.mine("out.jsonl", "--work-dir", str(finished))
    assert world.path("out.jsonl").read_bytes() == out


def test_what_is_no_work_folder_or_in_use(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (finished / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "a run is using it" in refused("clean", finished, capsys)
        assert told("status", finished, capsys)[0] == f"{finished}: running"
    for command in ("status", "clean"):
        assert "folder not found" in refused(command, tmp_path / "none", capsys)
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert "contains no run" in refused(command, tmp_path / "empty", capsys)


def test_a_line_that_is_half_written_is_left_out(finished: Path) -> None:
    (path,) = (finished / "progress").glob("*.jsonl")
    before = read_stages(WorkFolder(finished))
    path.write_text(path.read_text(encoding="utf-8") + '{"stage": "export_pa', encoding="utf-8")
    assert read_stages(WorkFolder(finished)) == before
