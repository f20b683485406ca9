"""A cell join: the same bytes whatever the shards, cells trained once, and its recall told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from miner.knn import cells
from pipelines.cli.mine import mine_corpus
from pipelines.context import RunContext
from pipelines.options import job_of
from pipelines.run.mining import mine_corpus as run
from pipelines.stages.searching import index as joining
from pipelines.stages.searching import join as searching
from pipelines.stages.summary import write_summary
from tests.pipelines.conftest import Refused
from tests.pipelines.worlds import World, make_world, one_line, search_eagerly, select_eagerly

ROWS = 110
CENTROIDS = "indexes/cells/centroids.npy"


pytestmark = pytest.mark.usefixtures("one_faiss_thread")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Some vectors are equal, and some cannot be mined."""
    world = make_world(tmp_path_factory.mktemp("large"), sources=ROWS, targets=ROWS, pairs=50)
    for vectors in (world.source_vectors, world.target_vectors):
        vectors[50:60], vectors[90] = vectors[3], vectors[8]
        vectors[22:44] = np.nan  # a whole shard, where there are 5
    world.save_vectors()
    return world


class Calls:
    """Counts what is trained and searched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._calls: list[str] = []
        for module, name in (
            (joining, "train_cells"),
            (searching, "find_floors"),
            (searching, "join_cells"),
        ):
            monkeypatch.setattr(module, name, self._noting(name))

    def _noting(self, name: str) -> Callable[..., object]:
        really = getattr(cells, name)

        def noting(*given: object, **more: object) -> object:
            self._calls.append(name)
            return really(*given, **more)

        return noting

    def take(self) -> tuple[int, int]:
        """Return how often cells were trained and joined since the last call."""
        counts = (
            self._calls.count("train_cells"),
            len(self._calls) - self._calls.count("train_cells"),
        )
        self._calls.clear()
        return counts


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


def told_of(work_dir: Path) -> dict:
    return json.loads((work_dir / "run.json").read_bytes())


def test_shards_do_not_change_a_byte(large: World, tmp_path: Path, calls: Calls) -> None:
    """With 1, 2 and 5 shards a side; of the last, one is without a vector."""
    written, trained = [], []
    for rows, shards in ((1000, 1), (55, 2), (22, 5)):
        work_dir = tmp_path / str(rows)
        run(large.options("cut.jsonl", work_dir, index="cells", rows_per_shard=rows))
        trainings, joins = calls.take()
        assert trainings == 1
        assert joins == 2 if shards == 1 else joins > 2 * shards
        written.append(large.path("cut.jsonl").read_bytes())
        trained.append((work_dir / CENTROIDS).read_bytes())
    assert written[0].count(b"\n") > 40
    assert written[1:] == written[:1] * 2
    assert trained[1:] == trained[:1] * 2


@pytest.mark.parametrize("index", ["cells24:probes=2", "cells7:probes=1"])
def test_shards_do_not_change_what_is_chosen(large: World, index: str, tmp_path: Path) -> None:
    """The same, and things handed on backwards."""
    whole, cut = (
        select_eagerly(
            large.options("out.tsv", tmp_path / str(rows), index=index, rows_per_shard=rows),
            step=step,
        ).pairs
        for rows, step in ((1000, 1), (22, -1))
    )
    assert whole.facts["pairs"] > 40
    assert cut.files == whole.files


def test_with_all_cells_probed_it_is_the_exact_search(large: World) -> None:
    exact = large.mine("exact.jsonl", "--index", "exact").read_bytes()
    assert large.mine("all.jsonl", "--index", "cells8:probes=99").read_bytes() == exact
    assert large.mine("one.jsonl", "--index", "cells8:probes=1").read_bytes() != exact


def test_cells_are_trained_once_and_searched_as_often_as_needed(large: World, calls: Calls) -> None:
    work = ("--work-dir", str(large.path("reused")))

    def calls_of(*options: str) -> tuple[int, int]:
        large.mine("out.jsonl", *work, *options)
        return calls.take()

    assert calls_of("--index", "cells16:probes=2") == (1, 2)
    assert calls_of("--index", "cells16:probes=2", "--margin", "distance") == (0, 0)
    assert calls_of("--index", "cells16:probes=2", "-k", "2") == (0, 2)
    assert calls_of("--index", "cells16:probes=3", "-k", "2") == (1, 2)
    reused = large.path("out.jsonl").read_bytes()
    assert large.mine("new.jsonl", "--index", "cells16:probes=3", "-k", "2").read_bytes() == reused
    assert calls.take() == (1, 2)
    assert calls_of("--index", "cells12:probes=3", "-k", "2") == (1, 2)


def test_other_vectors_train_anew(world: World, calls: Calls) -> None:
    work = ("--work-dir", str(world.path("work")), "--index", "cells8")
    world.mine("out.jsonl", *work)
    assert calls.take() == (1, 2)
    np.save(world.path("src.npy"), world.source_vectors[::-1])
    again = world.mine("out.jsonl", *work).read_bytes()
    assert calls.take() == (1, 2)
    assert world.mine("new.jsonl", "--index", "cells8").read_bytes() == again


def test_the_sample_is_an_even_stride_over_both_sides(
    large: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However they are cut; and each side has its share."""
    samples = []
    train = cells.train_cells

    def noting(sample: np.ndarray, count: int) -> np.ndarray:
        samples.append(sample)
        return train(sample, count)

    monkeypatch.setattr(joining, "train_cells", noting)
    monkeypatch.setattr(joining, "POINTS", 5)
    for rows in (1000, 22):
        options = {"index": "cells8", "rows_per_shard": rows}
        search_eagerly(large.options("out.tsv", tmp_path / str(rows), **options))
    expected = []
    for vectors in (large.source_vectors, large.target_vectors):
        usable = cells.unit_rows(vectors[np.isfinite(vectors).all(axis=1)])
        expected.append(usable[np.arange(20) * len(usable) // 20])
    for sample in samples:
        np.testing.assert_array_equal(sample, np.concatenate(expected))


def test_a_sample_of_sides_of_other_sizes() -> None:
    """40 and 50 vectors: 8 cells of 5 points are 40, 18 and 23 of each by rounding up."""
    sides = [np.zeros((rows, 2), dtype=np.float32) for rows in (40, 50)]

    class Vectors(list):
        def take(self, positions: np.ndarray) -> np.ndarray:
            assert (np.diff(positions) > 0).all()
            return np.array(self)[positions]

    assert len(joining._sample([Vectors(side) for side in sides], 40)) == 18 + 23
    assert len(joining._sample([Vectors(side) for side in sides], 1000)) == 90


def test_damaged_cells_are_refused_by_name(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    work = ["--work-dir", str(world.path("work")), "--index", "cells8"]
    world.mine("out.jsonl", *work)
    damaged = world.path("work") / CENTROIDS
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    capsys.readouterr()
    assert mine_corpus([*world.inputs(), "-o", str(world.path("out.jsonl")), "-q", *work]) == 2
    error = one_line(capsys.readouterr().err, "mine-corpus")
    assert f"{damaged}: was changed since it was written" in error


@pytest.mark.parametrize(
    "index", ["cells0", "cells-1", "cells:nprobe=4", "cells8:probes=0", "cells8,Flat", "cells "]
)
def test_a_bad_name_of_cells_is_refused(run: list[str], refused: Refused, index: str) -> None:
    error = refused([*run, "--index", index])
    assert f"--index {index!r}: is malformed; write cells, cells4096 or " in error


def test_more_cells_than_sentences_are_refused(run: list[str], refused: Refused) -> None:
    error = refused([*run, "--index", "cells91"])
    assert (
        "--index cells91: 90 sentences are fewer than its cells; use fewer cells, or --index exact"
        in error
    )
    assert mine_corpus([*run, "-q", "--index", "cells90"]) == 0


def test_recall_is_told(large: World, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it where every cell is probed; less where one of many is."""
    work_dir = large.path("told")

    def recalls(index: str) -> list[float]:
        run = [*large.inputs(), "-o", str(large.path("told.tsv")), "--work-dir", str(work_dir)]
        assert mine_corpus([*run, "--index", index]) == 0
        error = capsys.readouterr().err
        found = [told_of(work_dir)[side]["recall"] for side in ("source", "target")]
        for share in found:
            assert f", 88 searched; approximate search, recall {share:.1%}\n" in error
        return found

    assert recalls("cells16:probes=16") == [1.0, 1.0]
    assert all(0.2 < share < 0.9 for share in recalls("cells16:probes=1"))


def test_recall_is_told_whatever_was_there_already(world: World) -> None:
    """With all cells probed, both searches find the same; only one of them is approximate."""
    work = ("--work-dir", str(world.path("work")))
    for index, told in (("exact", None), ("cells4:probes=4", 1.0), ("exact", None)):
        world.mine("out.jsonl", *work, "--index", index)
        summary = told_of(world.path("work"))
        assert [summary[side].get("recall") for side in ("source", "target")] == [told, told]


def test_recall_of_several_shards_is_that_of_their_rows(large: World, tmp_path: Path) -> None:
    """All rows of each shard are looked at, so that the cut changes nothing."""
    recalls = []
    for rows in (1000, 22):
        more = {"index": "cells16:probes=2", "rows_per_shard": rows}
        options = large.options("out.tsv", tmp_path / str(rows), **more)
        write_summary(RunContext(job_of(options)), select_eagerly(options))
        told = told_of(tmp_path / str(rows))
        recalls.append([told[side]["recall"] for side in ("source", "target")])
    assert recalls[0] == recalls[1]
    assert all(0 < share < 1 for share in recalls[0])
