"""The output is the same bytes whatever the shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.cli import mine as cli
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.run.mining import mine_corpus
from pipelines.stages.reading.read import read_side
from tests.pipelines.worlds import World, make_world, select_eagerly, write_lines


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world with equal vectors, which only the order of ids can tell apart."""
    world = make_world(tmp_path_factory.mktemp("tied"), sources=30, targets=37)
    for short, vectors in (("src", world.source_vectors), ("tgt", world.target_vectors)):
        vectors[20:24], vectors[9] = vectors[3], vectors[28]
        np.save(world.path(f"{short}.npy"), vectors)
    return world


@pytest.fixture(scope="module")
def unsharded(tied: World) -> dict[str, bytes]:
    outputs = {}
    for suffix in ("tsv", "jsonl", "parquet"):
        work_dir = tied.path("whole")
        mine_corpus(tied.options(f"whole.{suffix}", work_dir))
        outputs[suffix] = tied.path(f"whole.{suffix}").read_bytes()
    assert outputs["tsv"].count(b"\n") > 15
    return outputs


# Shards of the two sides: 1 and 2, 2 and 2, 3 and 4, 5 and 7; the last ones are short.
@pytest.mark.parametrize(
    ("rows_per_shard", "suffix"), [(36, "tsv"), (19, "jsonl"), (10, "parquet"), (6, "jsonl")]
)
def test_shards_do_not_change_a_byte(
    tied: World, unsharded: dict[str, bytes], rows_per_shard: int, suffix: str, tmp_path: Path
) -> None:
    output = f"cut.{suffix}"
    mine_corpus(tied.options(output, tmp_path / "work", rows_per_shard=rows_per_shard))
    assert tied.path(output).read_bytes() == unsharded[suffix]
    shards = len(list((tmp_path / "work/embeddings/target").iterdir()))
    assert shards == -(-37 // rows_per_shard)


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_as_many_shards_as_were_asked_for(
    tied: World, unsharded: dict[str, bytes], shards: int, tmp_path: Path
) -> None:
    work_dir = tmp_path / "work"
    out = tied.mine("asked.jsonl", "--shards", str(shards), "--work-dir", str(work_dir))
    assert out.read_bytes() == unsharded["jsonl"]
    for side, rows in (("source", 30), ("target", 37)):
        cut = [np.load(rows) for rows in sorted(work_dir.glob(f"embeddings/{side}/*/rows.npy"))]
        assert [len(part) for part in cut] == [
            (index + 1) * rows // shards - index * rows // shards for index in range(shards)
        ]
    assert len(list(work_dir.glob("tiles/*/seal.json"))) == shards**2


@pytest.mark.parametrize(
    ("shards", "rows_per_shard", "sizes"),
    [(33, 5, [1] * 30), (2, 10, [10] * 3), (4, 99, [7, 8] * 2)],
)
def test_as_many_shards_as_there_can_be(
    tied: World, shards: int, rows_per_shard: int, sizes: list[int], tmp_path: Path
) -> None:
    run = tied.run("x.tsv", tmp_path, shards=shards, rows_per_shard=rows_per_shard)
    assert [shard.rows for shard in read_side(run, "source")] == sizes


def test_the_order_of_files_that_hold_ids_is_irrelevant(tied: World, tmp_path: Path) -> None:
    lines = [f"de-{row:09d}\t{text}" for row, text in enumerate(tied.source)]
    outputs = []
    for name, order in (("one", "abc"), ("other", "cab")):
        folder = tmp_path / name
        folder.mkdir()
        for file, start in zip(order, (0, 10, 25), strict=True):
            stop = {0: 10, 10: 25, 25: 30}[start]
            write_lines(folder / f"{file}.tsv", lines[start:stop])
        arguments = [str(folder), *tied.inputs()[1:], "-q", "-o", str(tmp_path / f"{name}.jsonl")]
        assert cli.mine_corpus(arguments) == 0
        outputs.append((tmp_path / f"{name}.jsonl").read_bytes())
    assert outputs[0] == outputs[1]
    joined = write_lines(tmp_path / "joined.tsv", lines)
    arguments = [str(joined), *tied.inputs()[1:], "-q", "-o", str(tmp_path / "joined.jsonl")]
    assert cli.mine_corpus(arguments) == 0
    assert (tmp_path / "joined.jsonl").read_bytes() == outputs[0]


def test_files_without_ids_come_by_name(tied: World, unsharded: dict[str, bytes]) -> None:
    folder = tied.path("parts")
    folder.mkdir()
    write_lines(folder / "b", tied.source[10:])
    write_lines(folder / "a", tied.source[:10])
    out = tied.path("parts.jsonl")
    assert cli.mine_corpus([str(folder), *tied.inputs()[1:], "-q", "-o", str(out)]) == 0
    assert out.read_bytes() == unsharded["jsonl"]


def test_shards_do_not_change_encoded_vectors(
    tmp_path: Path, tiny_encoder: str, sample_sentences: list[str]
) -> None:
    source = write_lines(tmp_path / "a.txt", sample_sentences[:50])
    target = write_lines(tmp_path / "b.txt", sample_sentences[300:345])
    outputs = []
    for rows in (1000, 17):
        out = tmp_path / f"{rows}.jsonl"
        mine_corpus(
            MiningOptions(
                source=CorpusOptions(path=source),
                target=CorpusOptions(path=target),
                output=out,
                work_dir=tmp_path / str(rows),
                encoder=tiny_encoder,
                rows_per_shard=rows,
                all=True,
            )
        )
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") > 20


def test_the_order_in_which_shards_arrive_is_irrelevant(tied: World, tmp_path: Path) -> None:
    forth, back = (
        select_eagerly(tied.options("out.tsv", tmp_path / name, rows_per_shard=10), step=step)
        for name, step in (("forth", 1), ("back", -1))
    )
    assert forth.pairs.files == back.pairs.files


def test_mined_pairs_have_no_order_of_lines(tied: World, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--order input requires lines to rate"):
        mine_corpus(tied.options("out.tsv", tmp_path / "work", order="input"))
    assert not (tmp_path / "work").exists()
