"""Indexes are built once and reused, and find the same whatever the shards."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from miner.arrays import Neighbours
from miner.knn import faiss_index
from pipelines.cli.mine import mine_corpus
from pipelines.references import SideVectors
from pipelines.run.mining import mine_corpus as run
from pipelines.stages.encode import embed_shard
from pipelines.stages.reading.read import read_side
from pipelines.stages.searching import index_search as lookup
from tests.pipelines.worlds import World, make_world, one_line, read_pairs, search_eagerly

ROWS = 400


pytestmark = pytest.mark.usefixtures("one_faiss_thread")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Enough vectors for a few cells; some of them are equal, and some cannot be mined."""
    folder = tmp_path_factory.mktemp("large")
    world = make_world(folder, sources=ROWS, targets=ROWS + 40, pairs=200)
    for vectors in (world.source_vectors, world.target_vectors):
        vectors[50:54], vectors[90] = vectors[3], vectors[28]
        vectors[120:180] = np.nan  # a whole shard, where there are 5
    world.save_vectors()
    return world


class Builds:
    """Counts what is trained and filled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trained: list[int] = []
        self.filled: list[int] = []
        train, add = faiss_index.train_index, faiss_index.add_rows

        def train_index(index: faiss.Index, sample: np.ndarray, *, factory: str) -> None:
            self.trained.append(len(sample))
            train(index, sample, factory=factory)

        def add_rows(index: faiss.Index, rows: np.ndarray, *, factory: str) -> None:
            self.filled.append(len(rows))
            add(index, rows, factory=factory)

        monkeypatch.setattr(faiss_index, "train_index", train_index)
        monkeypatch.setattr(faiss_index, "add_rows", add_rows)

    def take(self) -> tuple[int, int]:
        """How many were trained and filled since the last call."""
        counts = len(self.trained), len(self.filled)
        self.trained.clear()
        self.filled.clear()
        return counts


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    return Builds(monkeypatch)


FACTORIES = ["Flat", "IVF8,Flat:nprobe=8", "HNSW16", "SQ8", "PQ8x4", "OPQ8,IVF4,PQ8x4:nprobe=4"]


@pytest.mark.parametrize("factory", FACTORIES)
def test_on_easy_data_every_index_finds_the_planted_pairs(
    large: World, factory: str, capfd: pytest.CaptureFixture[str]
) -> None:
    planted = ("-q", "--retrieval", "intersect", "--threshold", "1.2")
    expected = read_pairs(large.mine("flat.jsonl", *planted, "--index", "exact"))
    assert len(expected) > 100
    found = read_pairs(large.mine("index.jsonl", *planted, "--index", factory))
    alike = 1 if "PQ" not in factory else 0.8
    assert len(found & expected) >= alike * len(found | expected)
    assert capfd.readouterr().err == "", "FAISS warns, and -q was given"


def neighbours(
    world: World, work_dir: Path, *, index: str, rows_per_shard: int, step: int = 1
) -> dict[str, np.ndarray]:
    """Neighbours of each side's rows in the order of the corpus, by exact file content."""
    options = world.options("out.tsv", work_dir, index=index, rows_per_shard=rows_per_shard)
    shards = search_eagerly(options, step=step)
    shards = sorted(shards, key=lambda found: found.embedded.shard.name)
    whole: dict[str, np.ndarray] = {}
    for side in ("source", "target"):
        loaded = [found.load("corpus") for found in shards if found.embedded.shard.side == side]
        whole[f"{side}.ids"] = np.concatenate([part.ids for part in loaded])
        whole[f"{side}.cosines"] = np.concatenate([part.cosines for part in loaded])
    return whole


def assert_equal(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.mark.parametrize("index", ["Flat", "IVF8,Flat", "SQ8", "PQ8x4", "OPQ8,IVF4,PQ8x4:nprobe=2"])
def test_shards_do_not_change_what_an_index_finds(large: World, index: str, tmp_path: Path) -> None:
    """With 1, 2 and 5 shards or more; of the last, one is without a vector."""
    whole = neighbours(large, tmp_path / "whole", index=index, rows_per_shard=1000)
    for rows in (220, 88, 60):
        cut = neighbours(large, tmp_path / str(rows), index=index, rows_per_shard=rows, step=-1)
        assert_equal(cut, whole)
    if index == "Flat":
        exact = neighbours(large, tmp_path / "exact", index="exact", rows_per_shard=1000)
        assert_equal(whole, exact)


@given(
    rows=st.integers(9, 40),
    dropped=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 20)), max_size=2),
    seed=st.integers(0, 5),
)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cut_finds_the_same(
    rows: int, dropped: Sequence[tuple[int, int]], seed: int, tmp_path_factory: object
) -> None:
    folder = tmp_path_factory.mktemp("cut")  # type: ignore[attr-defined]
    world = make_world(folder, sources=40, targets=33, seed=seed)
    for first, count in dropped:
        world.source_vectors[first : first + count] = 0
    if not world.source_vectors.any(axis=1).sum() >= 4:
        return
    np.save(world.path("src.npy"), world.source_vectors)
    whole, cut = (
        neighbours(world, folder / str(size), index="IVF4,Flat:nprobe=2", rows_per_shard=size)
        for size in (1000, rows)
    )
    assert_equal(cut, whole)


def test_each_shard_is_indexed_once_and_each_side_trained_once(
    large: World, builds: Builds, tmp_path: Path
) -> None:
    run(large.options("out.tsv", tmp_path / "work", index="IVF4,Flat", rows_per_shard=60))
    assert builds.trained == [340, 380]
    assert sorted(builds.filled) == [0, 0, 20, 40, *[60] * 11]


def test_another_search_reuses_the_indexes(large: World, builds: Builds) -> None:
    work = ("--work-dir", str(large.path("reused")))
    large.mine("out.jsonl", *work, "--index", "IVF4,Flat")
    assert builds.take() == (2, 2)
    for options in (
        ["--index", "IVF4,Flat", "-k", "2"],
        ["--index", "IVF4,Flat", "--margin", "distance"],
        ["--index", "IVF4,Flat:nprobe=4"],
    ):
        reused = large.mine("out.jsonl", *work, *options).read_bytes()
        assert builds.take() == (0, 0)
        assert large.mine("new.jsonl", *options).read_bytes() == reused
        builds.take()


def test_other_vectors_or_another_index_build_anew(world: World, builds: Builds) -> None:
    work = ("--work-dir", str(world.path("work")))

    def builds_of(index: str) -> tuple[int, int]:
        again = world.mine("out.jsonl", *work, "--index", index).read_bytes()
        counts = builds.take()
        assert world.mine("new.jsonl", "--index", index).read_bytes() == again
        builds.take()
        return counts

    assert builds_of("HNSW8") == (0, 2)
    assert builds_of("HNSW8:efSearch=300") == (0, 0)
    assert builds_of("HNSW8:efConstruction=10") == (0, 2)
    assert builds_of("IVF4,Flat") == (2, 2)
    np.save(world.path("src.npy"), world.source_vectors[::-1])
    assert builds_of("IVF4,Flat") == (1, 1)


@pytest.mark.parametrize("name", ["target/trained/trained.faiss", "source/00000/index.faiss"])
def test_a_damaged_index_is_refused_by_name(
    world: World, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    work = ["--work-dir", str(world.path("work")), "--index", "IVF4,Flat"]
    world.mine("out.jsonl", *work)
    damaged = world.path("work/indexes") / name
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    capsys.readouterr()
    assert mine_corpus([*world.inputs(), "-o", str(world.path("out.jsonl")), "-q", *work]) == 2
    error = one_line(capsys.readouterr().err, "mine-corpus")
    assert f"{damaged}: was changed since it was written" in error


def test_few_sentences_for_the_cells_are_told_in_our_own_words(
    large: World, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.WARNING, logger="pipelines"):
        run(large.options("out.tsv", large.path("few"), index="OPQ8,IVF16,PQ8x4"))
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        f"index OPQ8,IVF16,PQ8x4: the {count} {side} sentences are fewer than the 39 per cell "
        "that FAISS needs for 256 cells, so it will find fewer neighbours; use fewer cells"
        for count, side in ((340, "source"), (380, "target"))
    ]
    assert "WARNING" not in capfd.readouterr().err


def test_the_sample_is_the_same_however_a_side_is_cut(large: World, tmp_path: Path) -> None:
    trained = []
    for rows in (1000, 60):
        work_dir = tmp_path / str(rows)
        neighbours(large, work_dir, index="IVF4,Flat", rows_per_shard=rows)
        trained.append((work_dir / "indexes/source/trained/trained.faiss").read_bytes())
    assert trained[0] == trained[1]


def test_a_sample_is_an_even_stride_over_the_usable_rows(
    large: World, builds: Builds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[np.ndarray] = []
    take = SideVectors.take

    def noting(vectors: SideVectors, positions: np.ndarray) -> np.ndarray:
        asked.append(positions)
        return take(vectors, positions)

    monkeypatch.setattr(SideVectors, "take", noting)
    monkeypatch.setattr(faiss_index, "MAX_POINTS", 20)
    monkeypatch.setattr(faiss_index, "MIN_CELLS", 4)
    run(large.options("out.tsv", tmp_path / "work", index="IVF4,Flat", rows_per_shard=60))
    assert builds.trained == [80, 80]
    np.testing.assert_array_equal(asked[0], np.arange(80) * 340 // 80)
    np.testing.assert_array_equal(asked[1], np.arange(80) * 380 // 80)


def test_blocks_of_queries_do_not_change_what_is_found(
    large: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = neighbours(large, tmp_path / "whole", index="IVF8,Flat", rows_per_shard=170)
    monkeypatch.setattr(lookup, "QUERIES", 37)
    monkeypatch.setattr(lookup, "RESCORED", 11)
    assert_equal(neighbours(large, tmp_path / "cut", index="IVF8,Flat", rows_per_shard=170), whole)


def test_a_query_for_which_nothing_is_proposed(world: World, tmp_path: Path) -> None:
    """All cells that it probes may be empty."""
    context = world.run("out.tsv", tmp_path / "work")
    shards = [embed_shard(context, shard) for shard in read_side(context, "target")]
    base = SideVectors(shards)
    queries = shards[0].unit_vectors()[:3]
    proposed = Neighbours.empty(3, 8)
    assert (lookup._rescore(queries, base, proposed, k=2).ids == -1).all()
    proposed.ids[1, 2:4] = 7, 1
    found = lookup._rescore(queries, base, proposed, k=2)
    assert found.ids.tolist() == [[-1, -1], [1, 7], [-1, -1]]
    assert (found.cosines[[0, 2]] == -np.inf).all()


def test_k_may_be_larger_than_the_other_side(tmp_path: Path) -> None:
    world = make_world(tmp_path, sources=9, targets=5, pairs=3)
    for rows in (1000, 2):
        options = world.options(
            "out.tsv", tmp_path / str(rows), index="Flat", k=7, rows_per_shard=rows
        )
        widths = {
            (found.embedded.shard.side, found.load("corpus").ids.shape[1])
            for found in search_eagerly(options)
        }
        assert widths == {("source", 5), ("target", 7)}


def test_auto_is_a_cell_join_past_exact_search(
    large: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("miner.knn.method.EXACT_SIMILARITIES", 1000)
    with caplog.at_level(logging.INFO, logger="pipelines"):
        run(large.options("out.tsv", large.path("auto")))
    assert "index auto: 340 x 380 sentences: cells" in [
        record.getMessage() for record in caplog.records
    ]
    assert (large.path("auto") / "indexes/cells/centroids.npy").is_file()
