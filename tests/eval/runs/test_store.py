"""A finished run, read back, is what the run wrote."""

import json
from pathlib import Path

import numpy as np
import pytest

from eval.runs.store import open_run
from miner.storage.artefacts import ArtefactError
from miner.storage.layout import ARTEFACTS, SIDES, WorkFolder
from miner.storage.places import remove_tree
from pipelines.cli.main import adit
from tests.eval.made_run import make_run, random_pairs


def test_pairs_are_those_of_the_output(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    lines = (finished_run / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(run.pairs) > 100
    sources, targets = run.texts
    for place, pair in enumerate(map(json.loads, lines)):
        source, target = int(run.pairs.source[place]), int(run.pairs.target[place])
        assert (pair["score"], pair["source_row"]) == (run.pairs.score[place], source)
        assert (pair["source_text"], pair["target_text"]) == (sources[place], targets[place])
        assert (pair["source_id"], pair["target_id"]) == (
            run.source.id(source),
            run.target.id(target),
        )
        ids = (pair["source_id"], *pair["source_duplicates"])
        assert run.source.all_ids([source]) == [ids]
        if len(ids) > 1:
            assert run.source.rows_of(ids) == [source] * len(ids)


def test_neighbours_are_the_nearest_by_the_vectors(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    source, target = (
        side.vectors() / np.linalg.norm(side.vectors(), axis=1, keepdims=True)
        for side in (run.source, run.target)
    )
    cosines = source @ target.T
    for row, (ids, found) in enumerate(
        zip(run.source.neighbours.ids, run.source.neighbours.cosines, strict=True)
    ):
        np.testing.assert_allclose(found, sorted(cosines[row])[:-5:-1], atol=1e-5)
        places = np.searchsorted(run.target.searched, ids)
        np.testing.assert_allclose(found, cosines[row, places], atol=1e-5)
    assert len(run.source.searched) == run.summary["source"]["unique"] - 1  # one has no vector


@pytest.mark.parametrize("shards", [1, 3, 7])
def test_parts_are_those_of_the_whole(tmp_path: Path, shards: int) -> None:
    texts = {side: [f"{side} {row}" for row in range(3500)] for side in SIDES}
    run = open_run(make_run(tmp_path, texts, random_pairs(3500), shards=shards))
    side, rows = run.target, [2 * 3499, 0, 2 * 1234, 0, 2 * 17]
    assert side.texts(rows) == [f"target {row // 2}" for row in rows]
    assert side.ids(rows) == [f"target-{row // 2}" for row in rows]
    assert side.all_ids([0, 2]) == [("target-0", "again"), ("target-1",)]
    assert side.rows_of(["again", "nobody", "target-3400"]) == [0, None, 6800]
    assert side.first_id == "target-0"
    assert side.positions([0, 1, 6998, 7000, 14]).tolist() == [0, -1, 3499, -1, 7]
    places = [3499, 0, 1800]
    some, all_ = side.neighbours_at(places), side.neighbours
    np.testing.assert_array_equal(some.ids, all_.ids[places])
    np.testing.assert_array_equal(some.cosines, all_.cosines[places])
    np.testing.assert_array_equal(side.means_at(places), all_.means()[places])
    assert side.vectors().shape == (3500, 4)


def test_what_is_read_is_checked_and_nothing_else(tmp_path: Path) -> None:
    texts = {side: [f"{side} {row}" for row in range(2500)] for side in SIDES}
    make_run(tmp_path, texts, random_pairs(2500), shards=2)
    (tmp_path / "embeddings/target/00000/vectors.npy").write_bytes(b"damaged")
    run = open_run(tmp_path)
    assert run.target.text(0) == "target 0"
    assert len(run.target.neighbours) == 2500
    with pytest.raises(
        ArtefactError, match=r"target/00000/vectors.npy: was changed since it was written"
    ):
        run.target.vectors()
    (tmp_path / "sentences/source/00001.parquet").write_bytes(b"damaged")
    with pytest.raises(
        ArtefactError, match=r"source/00001.parquet: was changed since it was written"
    ):
        run.source.text(0)


@pytest.mark.parametrize(
    ("folder", "content", "message"),
    [
        ("missing", None, "missing: folder not found; pass the --work-dir"),
        (".", None, "contains no finished run; pass"),
        (".", "[1]", r"run\.json: is not a JSON object; delete it, and rerun"),
        (".", "{", r"run\.json: is damaged"),
        (".", '{"written": "kept"}', r"run\.json: lacks the key 'options'; delete it, and rerun"),
        (".", '{"written": "kept", "options": {}}', r"run\.json: lacks the key 'score'; delete"),
    ],
)
def test_no_run(tmp_path: Path, folder: str, content: str | None, message: str) -> None:
    if content:
        (tmp_path / "pairs").mkdir()
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        open_run(tmp_path / folder)


def test_a_cleaned_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its account is still there, so it is not said that there was no run."""
    make_run(tmp_path, {side: ["a", "b"] for side in SIDES}, random_pairs(2), shards=1)
    for folder in ARTEFACTS:
        remove_tree(tmp_path / folder)
    page, pairs = str(tmp_path / "page.html"), str(tmp_path / "pairs.jsonl")
    for command in (
        ["why", str(tmp_path), "source-0", "target-0"],
        ["report", str(tmp_path), "-o", page],
        ["calibrate", str(tmp_path), "-o", pairs, "--known", page],
    ):
        assert adit(command) == 2
        assert "'adit clean' removed" in capsys.readouterr().err


def test_a_run_of_an_older_version(tmp_path: Path) -> None:
    """Its summary does not say which of its pairs it wrote."""
    texts = {side: ["a", "b"] for side in SIDES}
    folder = make_run(tmp_path / "work", texts, random_pairs(2), shards=1)
    path = WorkFolder(folder).summary
    summary = json.loads(path.read_text(encoding="utf-8"))
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"run\.json: is damaged \(.*; delete it, and rerun"):
        open_run(folder)
    del summary["written"]
    path.write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(ValueError, match=r"by an earlier version of Adit, .*; rerun its command"):
        open_run(folder)
