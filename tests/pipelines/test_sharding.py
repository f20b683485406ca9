"""The output is the same bytes whatever the shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.options import MiningOptions
from pipelines.run import mine_corpus
from tests.pipelines.worlds import World, make_world, select_eagerly


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world with equal vectors, which only the order of ids can tell apart."""
    import numpy as np

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


def test_shards_do_not_change_encoded_vectors(
    tmp_path: Path, tiny_encoder: str, sample_sentences: list[str]
) -> None:
    from pipelines.options import CorpusOptions
    from tests.pipelines.worlds import write_lines

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
