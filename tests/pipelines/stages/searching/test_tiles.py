"""Groups of shards: few lists on disk however many shards there are, and the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.references import check_whole
from pipelines.stages.searching.shard_groups import MAX_GROUPS, group_sizes
from tests.pipelines.worlds import World, make_world


@pytest.mark.parametrize(
    ("shards", "before", "expected"),
    [
        (1, [], [1]),
        (32, [], [1] * 32),
        (33, [], [2] * 16 + [1]),
        (100, [], [4] * 25),
        (40, [1] * 32, [1] * 32 + [2] * 4),  # it has grown
        (35, [2] * 16 + [1], [2] * 16 + [1, 2]),
        (33, [2] * 16 + [1], [2] * 16 + [1]),
        (20, [2] * 16 + [1], [1] * 20),  # it is another one
    ],
)
def test_the_shards_of_groups(shards: int, before: list[int], expected: list[int]) -> None:
    assert group_sizes(shards, before) == expected


@pytest.mark.parametrize("shards", [1, 31, 33, 64, 65, 1000, 3815])
def test_groups_are_few(shards: int) -> None:
    sizes = group_sizes(shards)
    assert sum(sizes) == shards
    assert len(sizes) <= MAX_GROUPS


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Sentences with many equal vectors, whose order hangs on their rows alone."""
    world = make_world(tmp_path_factory.mktemp("tied"), sources=90, targets=110, pairs=30)
    world.source_vectors[40:60] = world.source_vectors[3]
    world.target_vectors[::7] = world.target_vectors[5]
    world.save_vectors()
    return world


@pytest.mark.parametrize(
    ("index", "shards"),
    [("exact", 1), ("cells8:probes=3", 1), ("IVF4,Flat", 5)],  # IVF goes by shards among ties
)
def test_groups_change_no_byte_and_bound_the_lists(
    tied: World, index: str, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tied.mine("whole.jsonl", "--index", index, "--shards", str(shards))
    expected = whole.read_bytes()
    monkeypatch.setattr("pipelines.stages.searching.shard_groups.MAX_GROUPS", 2)
    name = f"groups-{index[:5]}"
    options = ("--index", index, "--shards", "5", "--work-dir", str(tied.path(name)))
    assert tied.mine("groups.jsonl", *options).read_bytes() == expected
    tiles = tied.path(name) / "tiles"
    assert json.loads((tiles / "groups.json").read_bytes()) == {
        "source": [3, 2],
        "target": [3, 2],
    }
    if index == "IVF4,Flat":
        return
    assert sorted(tile.name for tile in tiles.iterdir() if tile.is_dir()) == [
        f"{source:05d}-{target:05d}" for source in (0, 3) for target in (0, 3)
    ]
    lists = [*tiles.glob("*/*.ids.npy")]
    assert len(lists) == 2 * 5 + 2 * 5  # of each shard with each group of the other side
    assert not [*tiles.glob("*/.adit-*")]


def test_documents_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(tmp_path, sources=60, targets=60, pairs=20)
    for short, lines in (("src", world.source), ("tgt", world.target)):
        rows = "".join(f"{row}\td{row % 6}\t{text}\n" for row, text in enumerate(lines))
        world.path(f"{short}.txt").write_text(rows, encoding="utf-8")
    world.path("pairs.tsv").write_text("".join(f"d{d}\td{d}\n" for d in range(4)), "utf-8")
    options = ["--scope", "document", "--document-pairs", str(world.path("pairs.tsv"))]
    options += ["--margin-scope", "corpus", "--input-format", "tsv"]
    expected = world.mine("whole.jsonl", *options).read_bytes()
    monkeypatch.setattr("pipelines.stages.searching.shard_groups.MAX_GROUPS", 2)
    assert world.mine("groups.jsonl", *options, "--shards", "5").read_bytes() == expected


def test_recall_is_measured_on_some_shards(tied: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.stages.searching.recall.MAX_SHARDS", 2)
    work_dir = tied.path("measured")
    options = ("--index", "cells8:probes=3", "--shards", "5", "--work-dir", str(work_dir))
    tied.mine("measured.jsonl", *options)
    seals = sorted(work_dir.glob("neighbours/source/*/seal.json"))
    facts = [json.loads(seal.read_bytes())["facts"] for seal in seals]
    assert [index for index, fact in enumerate(facts) if "recall_wanted" in fact] == [0, 3]


@pytest.mark.parametrize("found", [[0, 1], [0, 1, 1, 2], [0, 2, 3], []])
def test_lists_that_a_runner_lost_or_repeated_are_found_out(found: list[int]) -> None:
    check_whole([0, 1, 2], 3, "source")
    with pytest.raises(ValueError, match="where there should be one to each; use another runner"):
        check_whole(found, 3, "source")
