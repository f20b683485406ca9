"""The graph uses what every runner has, and hands small references about."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.pipeline import AppliedPTransform
from apache_beam.portability.common_urns import composites, primitives
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

from miner.storage.places import place
from pipelines.cli.mine import mine_corpus
from pipelines.options import Element, job_of
from pipelines.run import beam as runner_of_beam
from pipelines.run import mining as run
from pipelines.run.beam import Claim, build
from pipelines.run.steps import MapStep, ReshuffleStep, StageRunner, steps_of
from tests.pipelines.worlds import World

RESHUFFLE = composites.RESHUFFLE.urn
PRIMITIVES = (beam.Create, beam.ParDo, beam.GroupByKey)


def transforms(node: AppliedPTransform) -> Iterator[AppliedPTransform]:
    """The outermost primitives, and whatever else holds no part."""
    if isinstance(node.transform, PRIMITIVES) or not node.parts:
        yield node
    else:
        for part in node.parts:
            yield from transforms(part)


def test_only_create_pardo_and_group_by_key(world: World) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    options = world.options("out.tsv", world.path("work"))
    build(pipeline, steps_of(options), job_of(options))
    [root] = pipeline.transforms_stack
    found = list(transforms(root))
    assert {type(node.transform) for node in found} == set(PRIMITIVES)
    for node in found:
        assert len(node.outputs) == 1, f"{node.full_label} has several outputs"
        assert not node.side_inputs, f"{node.full_label} has side inputs"
    stages = [node.full_label for node in found if isinstance(node.transform, beam.ParDo)]
    assert [label for label in stages if "/" not in label] == [
        *("read_side", "embed_shard", "share_corpora", "prepare_sides", "train_side", "fill_index"),
        *("cut_nearest", "join_nearest", "cut_tiles", "search_tile", "find_neighbours"),
        *("select_pairs", "cut_pairs", "score_pairs", "judge_pairs", "filter_pairs"),
        *("drop_near_copies", "keep_pairs"),
        *("write_summary", "export_pairs"),
    ]
    assert [label for label in stages if "/" not in label] == [
        step.name for step in steps_of(options) if isinstance(step, MapStep)
    ]


def test_engines_deal_out_what_is_spread(world: World) -> None:
    """By a transform of their own, which gives each part as many elements.

    After another such shuffle Flink leaves it out, so groups come first.
    """
    pipeline = beam.Pipeline(runner=FnApiRunner())
    options = world.options("out.tsv", world.path("work"))
    build(pipeline, steps_of(options), job_of(options))
    parts = pipeline.to_runner_api().components.transforms.values()
    urns = {part.unique_name: part.spec.urn for part in parts}
    spread = [step.name for step in steps_of(options) if isinstance(step, ReshuffleStep)]
    assert spread
    for name in spread:
        assert urns[f"{name}/GroupByKey"] == primitives.GROUP_BY_KEY.urn
        assert urns[f"{name}/Reshuffle"] == RESHUFFLE


def test_workers_take_what_no_other_has_taken(tmp_path: Path) -> None:
    elements = [Element("", number) for number in range(5)]
    one, other = (Claim(tmp_path / "claims").process(elements) for _ in range(2))
    taken = [next(one), next(other), next(other), next(one), next(other)]
    assert taken == elements
    assert [*one, *other] == []


def test_local_workers_are_offered_what_is_spread(tmp_path: Path, world: World) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    options = world.options("out.tsv", world.path("work"), workers=2)
    build(pipeline, steps_of(options), job_of(options), shared=tmp_path)
    names = [part.full_label for part in transforms(pipeline.transforms_stack[0])]
    spread = [step.name for step in steps_of(options) if isinstance(step, ReshuffleStep)]
    assert [name for name in names if "Claim" in name] == [
        f"{name}/ParDo(Claim)" for name in spread
    ]


@pytest.mark.parametrize(("given", "own", "together"), [(None, 3, 7), ("1", 1, 2), ("4", 4, 8)])
def test_a_worker_alone_has_the_threads_of_all(
    world: World, monkeypatch: pytest.MonkeyPatch, given: str | None, own: int, together: int
) -> None:
    """Of two workers on seven cores."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.setattr(runner_of_beam, "usable_cores", lambda: 7)
    started = []
    monkeypatch.setattr(
        runner_of_beam.SubprocessSDKEnvironment, "from_command_string", started.append
    )
    options = world.options("out.tsv", world.path("work"), workers=2)
    runner_of_beam._local_workers(options, world.path("own"))
    assert f"OMP_NUM_THREADS={own} ADIT_ALL_THREADS={together} " in started[0]


@pytest.mark.parametrize("index", ["exact", "HNSW8", "cells16:probes=2"])
def test_elements_are_small_however_large_the_corpus(
    world: World, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    sizes: dict[str, list[int]] = {}
    really_call = StageRunner.__call__

    def call(runner: StageRunner, step: MapStep, element: Element) -> list[Element]:
        made = really_call(runner, step, element)
        sizes.setdefault(step.name, []).extend(len(pickle.dumps(result)) for result in made)
        return made

    monkeypatch.setattr(StageRunner, "__call__", call)
    options = world.options("out.tsv", world.path("work"), rows_per_shard=6, index=index)
    run.mine_corpus(options)
    samples = 2 * (index != "exact")  # that the recall of an approximate search shows on
    tiles = len(sizes["cut_tiles"]) - samples if index.startswith("cells") else 7 * 9
    nearest = len(sizes["cut_nearest"])
    assert nearest > 1 if index.startswith("cells") else nearest == 1
    lists = 8 * (tiles + 1) * samples if index.startswith("cells") else 2 * 7 * 9 + 8 * samples
    assert {name: len(found) for name, found in sizes.items()} == {
        "read_side": 7 + 9,
        "embed_shard": 7 + 9,
        "share_corpora": 1,
        "prepare_sides": 2,
        "train_side": 7 + 9,
        "fill_index": 7 + 9,
        "cut_nearest": nearest,
        "join_nearest": nearest,
        "cut_tiles": tiles + samples,
        "search_tile": lists,
        "find_neighbours": 7 + 9,
        "select_pairs": 1,
        "cut_pairs": 1,
        "score_pairs": 1,
        "judge_pairs": 1,
        "keep_pairs": 1,
        "filter_pairs": 1,
        "drop_near_copies": 1,
        "write_summary": 1,
        "export_pairs": 1,
    }
    assert max(size for found in sizes.values() for size in found) < 64 << 10
    # What there is many of must not grow with the number of shards.
    assert max(sizes["search_tile"]) < 4 << 10


def test_no_element_holds_what_a_corpus_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines hand elements on as pickles: nothing that a corpus can say gets into one.

    And what they are made of are our own references and Python's plainest types.
    """
    mark = "cos\\nsystem R."  # as if to be unpickled
    records = [
        {"id": f"{mark}{row}", "doc": f"{mark}d{row % 3}", "text": f"{mark} sentence number {row}"}
        for row in range(30)
    ]
    records.append({"id": mark, "doc": mark, "text": ""})
    for name in ("a", "b"):
        lines = [json.dumps(record | {"text": f"{record['text']} {name}"}) for record in records]
        (tmp_path / f"{name}.jsonl").write_text("\n".join([*lines, mark]), encoding="utf-8")
    pickles: list[bytes] = []
    really_call = StageRunner.__call__

    def call(runner: StageRunner, step: MapStep, element: object) -> list:
        made = really_call(runner, step, element)
        pickles.extend(pickle.dumps(result) for result in made)
        return made

    monkeypatch.setattr(StageRunner, "__call__", call)
    corpora = [str(tmp_path / f"{name}.jsonl") for name in "ab"]
    own = ["-o", str(tmp_path / "out.jsonl"), "--work-dir", str(tmp_path / "work"), "-q"]
    assert mine_corpus([*corpora, *own, "--shards", "2", "--align", "--filters", "short"]) == 0
    assert mark in (tmp_path / "out.jsonl").read_text(encoding="utf-8").replace("\\\\", "\\")
    assert len(pickles) > 20
    assert not [data for data in pickles if b"system" in data]
    found: set[str] = set()

    class Noting(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> object:
            found.add(f"{module}.{name}")
            return super().find_class(module, name)

    for data in pickles:
        Noting(io.BytesIO(data)).load()
    allowed = ("pipelines.references.", "miner.storage.", "miner.knn.method.", "pathlib.")
    others = {name for name in found if not name.startswith(allowed)}
    assert others <= {"builtins.range", "pipelines.options.Element"}


def test_no_name_that_an_engine_shows_holds_a_secret(world: World) -> None:
    articles = place("s3://someone:hidden@corpora/articles.tsv")
    options = world.options("out.tsv", world.path("work"), document_pairs=articles)
    pipeline = beam.Pipeline(runner=FnApiRunner())
    job = job_of(options)
    build(pipeline, steps_of(options), job)
    for transform in pipeline.to_runner_api().components.transforms.values():
        shown = [
            transform.unique_name,
            *map(str, transform.display_data),
            str(transform.annotations),
        ]
        assert "hidden" not in " ".join(shown)


def test_a_reference_does_not_name_the_other_shards(world: World) -> None:
    from pipelines.stages.reading.read import read_side

    shards = read_side(world.run("out.tsv", world.path("work"), rows_per_shard=1), "target")
    assert len(shards) == 50
    assert {len(shard.corpus.files) for shard in shards} == {4}
    assert len({shard.digest for shard in shards}) == 50


def test_the_number_of_elements_that_were_done_is_counted(world: World) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    options = world.options("out.tsv", world.path("work"), rows_per_shard=25)
    build(pipeline, steps_of(options), job_of(options))
    result = pipeline.run()
    counters = result.metrics().query()["counters"]
    done = {counter.key.metric.name: counter.committed for counter in counters}
    assert done["embed_shard"] == 4
    assert done["search_tile"] == 4
    assert done["export_pairs"] == 1


def test_the_graph_runs_from_python(world: World) -> None:
    options = world.options("out.tsv", Path(world.path("work")))
    run.mine_corpus(options)
    assert options.output.read_bytes() == world.mine("cli.tsv").read_bytes()
