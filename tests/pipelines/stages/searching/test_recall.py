"""Recall is the share of the true neighbours that were found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from miner.arrays import Neighbours
from miner.storage.layout import SOURCE, TARGET
from pipelines.references import RecallSample
from pipelines.stages.encode import embed_shard
from pipelines.stages.reading.read import read_side
from pipelines.stages.searching import recall
from pipelines.stages.searching.recall import measure_recall, search_sample
from tests.miner import oracle
from tests.pipelines.worlds import World, make_world

Vectors = NDArray[np.float32]


class Searched:
    """The shards of both sides of a world, and the run that they are of."""

    def __init__(self, world: World, work_dir: Path, *, rows_per_shard: int = 1000) -> None:
        np.save(world.path("src.npy"), world.source_vectors)
        np.save(world.path("tgt.npy"), world.target_vectors)
        self._run = world.run("out.tsv", work_dir, rows_per_shard=rows_per_shard)
        self.source, self.target = (
            [embed_shard(self._run, shard) for shard in read_side(self._run, side)]
            for side in (SOURCE, TARGET)
        )

    def recall(self, found: Neighbours, *, k: int) -> list[dict[str, int]]:
        """What is counted of each source shard, of all rows' neighbours."""
        run = self._run.with_options(k=k)
        sample = RecallSample(shards=self.source, others=self.target)
        counts, start = [], 0
        for sampled in search_sample(run, sample):
            rows = slice(start, start + len(sampled.embedded))
            counts.append(dict(measure_recall(sampled, found.take(rows))))
            start = rows.stop
        assert start == len(found)
        return counts


def table_of(source: Vectors, target: Vectors) -> Vectors:
    usable = (vectors[np.isfinite(vectors).all(axis=1)] for vectors in (source, target))
    return oracle.cosines(*(oracle.unit_rows(vectors) for vectors in usable))


def found_among(table: Vectors, columns: Sequence[Sequence[int]], k: int) -> Neighbours:
    """What a search finds that looks at these columns of each row: padded, best first."""
    found = Neighbours.empty(len(table), min(k, table.shape[1]))
    for row, seen in enumerate(columns):
        best = sorted(seen, key=lambda column: (-table[row, column], column))[:k]
        found.ids[row, : len(best)], found.cosines[row, : len(best)] = best, table[row, best]
    return found


def recall_by_sorting(
    table: Vectors, columns: Sequence[Sequence[int]], k: int, rows: Sequence[int]
) -> dict[str, int]:
    wanted = kept = 0
    for row in rows:
        true = sorted(table[row].tolist(), reverse=True)[:k]
        seen = sorted((float(table[row, column]) for column in columns[row]), reverse=True)[:k]
        wanted += len(true)
        kept += sum(cosine >= true[-1] for cosine in seen)
    return {"recall_wanted": wanted, "recall_found": kept}


@given(
    k=st.integers(1, 6),
    rows_per_shard=st.sampled_from([1000, 9, 4]),
    sample=st.integers(1, 14),
    share=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    equal=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equals_a_count_by_sorting(
    k: int,
    rows_per_shard: int,
    sample: int,
    share: float,
    equal: bool,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """One or several shards against as many; of the others, one is empty."""
    folder = tmp_path_factory.mktemp("recall")
    world = make_world(folder, sources=12, targets=18, pairs=5, seed=seed)
    world.target_vectors[4:8] = np.nan  # a whole shard, where there are 4 in each
    if equal:
        world.target_vectors[9:18] = world.target_vectors[0]
    random = np.random.default_rng(seed)
    table = table_of(world.source_vectors, world.target_vectors)
    columns = [np.flatnonzero(random.random(14) < share).tolist() for _ in table]
    size = min(sample, 12)
    looked_at = [number * 12 // size for number in range(size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "SAMPLE", sample)
        searched = Searched(world, folder / "work", rows_per_shard=rows_per_shard)
        counts = searched.recall(found_among(table, columns, k), k=k)
    for shard, count in enumerate(counts):
        rows = [row for row in looked_at if row // rows_per_shard == shard]
        assert count == recall_by_sorting(table, columns, k, rows)


@pytest.fixture
def searched(world: World) -> Searched:
    """40 rows in two shards against three shards of 20, 20 and 10."""
    return Searched(world, world.path("cut"), rows_per_shard=20)


@pytest.fixture
def table(world: World) -> Vectors:
    return table_of(world.source_vectors, world.target_vectors)


def counts_of(*found: int, wanted: int = 80) -> list[dict[str, int]]:
    return [{"recall_wanted": wanted, "recall_found": count} for count in found]


def test_all_found_and_nothing_found(searched: Searched, table: Vectors) -> None:
    assert len(searched.target) == 3
    everything = found_among(table, [range(50)] * 40, 4)
    assert searched.recall(everything, k=4) == counts_of(80, 80)
    assert searched.recall(Neighbours.empty(40, 4), k=4) == counts_of(0, 0)


def test_what_is_found_is_counted_by_neighbour(searched: Searched, table: Vectors) -> None:
    """Each row misses its best neighbour, and has one that is too far in its place."""
    columns = [np.argsort(-row)[1:].tolist() for row in table]
    assert searched.recall(found_among(table, columns, 4), k=4) == counts_of(60, 60)


def test_equally_near_neighbours_are_as_good(world: World) -> None:
    """Of 12 equal rows, in all shards, the last were found; a full sort takes the first."""
    equal = [*range(0, 8), *range(30, 34)]
    world.target_vectors[equal] = world.source_vectors[5]
    table = table_of(world.source_vectors, world.target_vectors)
    others_too = [column for column in range(50) if column not in equal[:8]]
    found = found_among(table, [others_too] * 40, 4)
    true = found_among(table, [range(50)] * 40, 4)
    assert found.ids[5].tolist() == equal[8:]
    assert true.ids[5].tolist() == equal[:4]
    searched = Searched(world, world.path("cut"), rows_per_shard=10)
    assert searched.recall(found, k=4) == counts_of(40, 40, 40, 40, wanted=40)


def test_the_rows_are_taken_evenly(
    searched: Searched, table: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "SAMPLE", 7)
    taken = [0, 5, 11, 17, 22, 28, 34]
    columns = [range(50) if row in taken else [] for row in range(40)]
    counts = searched.recall(found_among(table, columns, 4), k=4)
    assert counts == [*counts_of(16, wanted=16), *counts_of(12, wanted=12)]


def test_k_larger_than_the_other_side(world: World) -> None:
    """There are no more true neighbours than rows."""
    world.target_vectors[3:] = np.nan
    table = table_of(world.source_vectors, world.target_vectors)
    found = found_among(table, [[0, 2]] * 40, 9)
    (count,) = Searched(world, world.path("work")).recall(found, k=9)
    assert count["recall_wanted"] == 120
    assert count == recall_by_sorting(table, [[0, 2]] * 40, 9, range(40))


def test_an_empty_shard_has_nothing_to_find(world: World) -> None:
    world.source_vectors[10:20] = np.nan
    world.target_vectors[20:30] = np.nan
    searched = Searched(world, world.path("work"), rows_per_shard=10)
    assert [len(shard) for shard in searched.source] == [10, 0, 10, 10]
    assert [len(shard) for shard in searched.target] == [10, 10, 0, 10, 10]
    table = table_of(world.source_vectors, world.target_vectors)
    counts = searched.recall(found_among(table, [range(40)] * 30, 4), k=4)
    full, empty = counts_of(40, wanted=40), counts_of(0, wanted=0)
    assert counts == [*full, *empty, *full, *full]
