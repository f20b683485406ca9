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
from pipelines.references import EmbeddedShard
from pipelines.stages.encode import embed_shard
from pipelines.stages.reading.read import read_side
from pipelines.stages.searching import recall
from pipelines.stages.searching.recall import measure_recall
from tests.miner import oracle
from tests.pipelines.worlds import World, make_world

Vectors = NDArray[np.float32]


def embedded(
    world: World, work_dir: Path, *, rows_per_shard: int = 1000
) -> tuple[list[EmbeddedShard], list[EmbeddedShard]]:
    """The shards of both sides."""
    np.save(world.path("src.npy"), world.source_vectors)
    np.save(world.path("tgt.npy"), world.target_vectors)
    run = world.run("out.tsv", work_dir, rows_per_shard=rows_per_shard)
    source, target = (
        [embed_shard(run, shard) for shard in read_side(run, side)] for side in (SOURCE, TARGET)
    )
    return source, target


def table_of(source: Vectors, target: Vectors) -> Vectors:
    usable = (vectors[np.isfinite(vectors).all(axis=1)] for vectors in (source, target))
    return oracle.cosines(*(oracle.unit_rows(vectors) for vectors in usable))


def found_among(table: Vectors, columns: Sequence[Sequence[int]], k: int) -> Neighbours:
    """What a search finds that looks at these columns of each row: padded, best first."""
    found = Neighbours.none(len(table), min(k, table.shape[1]))
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
    """One shard's rows against one or several shards; of some of them, one is empty."""
    folder = tmp_path_factory.mktemp("recall")
    world = make_world(folder, sources=12, targets=18, pairs=5, seed=seed)
    world.target_vectors[4:8] = np.nan  # a whole shard, where there are 4 in each
    if equal:
        world.target_vectors[9:18] = world.target_vectors[0]
    source, target = embedded(world, folder / "work", rows_per_shard=rows_per_shard)
    random = np.random.default_rng(seed)
    table = table_of(world.source_vectors, world.target_vectors)
    start = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "SAMPLE", sample)
        for shard in source:
            rows = len(shard.row_ids())
            own = table[start : start + rows]
            start += rows
            columns = [np.flatnonzero(random.random(14) < share).tolist() for _ in own]
            found = found_among(own, columns, k)
            size = min(sample, rows)
            looked_at = [number * rows // size for number in range(size)]
            told = measure_recall(shard, target, found, k=k)
            assert told == recall_by_sorting(own, columns, k, looked_at)
    assert start == 12


@pytest.fixture
def shards(world: World) -> tuple[list[EmbeddedShard], list[EmbeddedShard]]:
    """40 rows against three shards of 20, 20 and 10."""
    return (
        embedded(world, world.path("whole"))[0],
        embedded(world, world.path("cut"), rows_per_shard=20)[1],
    )


@pytest.fixture
def table(world: World) -> Vectors:
    return table_of(world.source_vectors, world.target_vectors)


def test_all_found_and_nothing_found(
    shards: tuple[list[EmbeddedShard], list[EmbeddedShard]], table: Vectors
) -> None:
    (own,), others = shards
    assert len(others) == 3
    everything = found_among(table, [range(50)] * 40, 4)
    assert measure_recall(own, others, everything, k=4) == {
        "recall_wanted": 160,
        "recall_found": 160,
    }
    nothing = Neighbours.none(40, 4)
    assert measure_recall(own, others, nothing, k=4) == {"recall_wanted": 160, "recall_found": 0}


def test_what_is_found_is_counted_by_neighbour(
    shards: tuple[list[EmbeddedShard], list[EmbeddedShard]], table: Vectors
) -> None:
    """Each row misses its best neighbour, and has one that is too far in its place."""
    (own,), others = shards
    columns = [np.argsort(-row)[1:].tolist() for row in table]
    found = found_among(table, columns, 4)
    assert measure_recall(own, others, found, k=4) == {"recall_wanted": 160, "recall_found": 120}
    # The order of the shards does not matter, as only cosines are compared.
    assert measure_recall(own, others[::-1], found, k=4)["recall_found"] == 120


def test_equally_near_neighbours_are_as_good(world: World) -> None:
    """Of 12 equal rows, in all shards, the last were found; a full sort takes the first."""
    equal = [*range(0, 8), *range(30, 34)]
    world.target_vectors[equal] = world.source_vectors[5]
    (own,), _ = embedded(world, world.path("whole"))
    _, others = embedded(world, world.path("cut"), rows_per_shard=10)
    assert len(others) == 5
    table = table_of(world.source_vectors, world.target_vectors)
    others_too = [column for column in range(50) if column not in equal[:8]]
    found = found_among(table, [others_too] * 40, 4)
    true = found_among(table, [range(50)] * 40, 4)
    assert found.ids[5].tolist() == equal[8:]
    assert true.ids[5].tolist() == equal[:4]
    told = measure_recall(own, others, found, k=4)
    assert told == {"recall_wanted": 160, "recall_found": 160}


def test_the_rows_are_taken_evenly(
    shards: tuple[list[EmbeddedShard], list[EmbeddedShard]],
    table: Vectors,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recall, "SAMPLE", 7)
    (own,), others = shards
    taken = [0, 5, 11, 17, 22, 28, 34]
    columns = [range(50) if row in taken else [] for row in range(40)]
    told = measure_recall(own, others, found_among(table, columns, 4), k=4)
    assert told == {"recall_wanted": 28, "recall_found": 28}


def test_k_larger_than_the_other_side(world: World) -> None:
    """There are no more true neighbours than rows."""
    world.target_vectors[3:] = np.nan
    (own,), (other,) = embedded(world, world.path("work"))
    table = table_of(world.source_vectors, world.target_vectors)
    found = found_among(table, [[0, 2]] * 40, 9)
    told = measure_recall(own, [other], found, k=9)
    assert told["recall_wanted"] == 120
    assert told == recall_by_sorting(table, [[0, 2]] * 40, 9, range(40))


def test_an_empty_shard_has_nothing_to_find(world: World) -> None:
    world.source_vectors[10:20] = np.nan
    world.target_vectors[20:30] = np.nan
    own, others = embedded(world, world.path("work"), rows_per_shard=10)
    assert [len(shard.row_ids()) for shard in own] == [10, 0, 10, 10]
    assert [len(shard.row_ids()) for shard in others] == [10, 10, 0, 10, 10]
    nothing = {"recall_wanted": 0, "recall_found": 0}
    assert measure_recall(own[1], others, Neighbours.none(0, 4), k=4) == nothing
    assert measure_recall(own[0], others[2:3], Neighbours.none(10, 0), k=4) == nothing
    table = table_of(world.source_vectors, world.target_vectors)[10:20]
    found = found_among(table, [range(40)] * 10, 4)
    told = measure_recall(own[2], others, found, k=4)
    assert told == {"recall_wanted": 40, "recall_found": 40}
