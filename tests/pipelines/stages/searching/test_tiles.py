"""Groups of shards: few lists on disk however many shards there are, and the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.references import check_complete
from pipelines.stages.searching.search import MAX_GROUPS, group_sizes
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
    [("exact", 1), ("IVF4,Flat", 5)],  # IVF goes by shards among ties
)
def test_groups_change_no_byte_and_bound_the_lists(
    tied: World, index: str, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tied.mine("whole.jsonl", "--index", index, "--shards", str(shards))
    expected = whole.read_bytes()
    monkeypatch.setattr("pipelines.stages.searching.search.MAX_GROUPS", 2)
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
    monkeypatch.setattr("pipelines.stages.searching.search.MAX_GROUPS", 2)
    assert world.mine("groups.jsonl", *options, "--shards", "5").read_bytes() == expected


def test_tiles_of_cells_change_no_byte(tied: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles have all cells, each once, and no lists of shards; large cells are done in blocks."""
    expected = tied.mine("whole.jsonl", "--index", "cells8:probes=3").read_bytes()
    work = tied.path("cells")
    options = ("--index", "cells8:probes=3", "--shards", "9", "--work-dir", str(work))
    assert tied.mine("cells.jsonl", *options).read_bytes() == expected
    seals = sorted(work.glob("tiles/cells-*/seal.json"))
    assert len(seals) > 3
    assert not [*work.glob("tiles/*/*.00000.*")]
    rows = [json.loads(seal.read_bytes())["facts"]["starts"] for seal in seals]
    assert max(starts["target"][-1] for starts in rows) > 2 * 110 / 9  # more than fit at once


def test_recall_is_measured_on_all_shards(tied: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.stages.searching.recall.SAMPLE", 7)
    work_dir = tied.path("measured")
    options = ("--index", "cells8:probes=3", "--shards", "5", "--work-dir", str(work_dir))
    tied.mine("measured.jsonl", *options)
    seals = sorted(work_dir.glob("neighbours/source/*/seal.json"))
    facts = [json.loads(seal.read_bytes())["facts"] for seal in seals]
    assert [fact["recall_wanted"] for fact in facts] == [8, 4, 8, 4, 4]  # of rows 0, 12, 25, ...
    assert all(0 < fact["recall_found"] <= fact["recall_wanted"] for fact in facts)


@pytest.mark.parametrize("found", [[0, 1], [0, 1, 1, 2], [0, 2, 3], []])
def test_lists_that_a_runner_lost_or_repeated_are_found_out(found: list[int]) -> None:
    check_complete([0, 1, 2], 3, "source shards")
    with pytest.raises(ValueError, match="3 source shards; "):
        check_complete(found, 3, "source shards")
