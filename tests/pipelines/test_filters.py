"""mine-corpus --filters: rejected pairs are written beside the output with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from eval.runs.store import open_run
from miner.filters import FILTERS, Suspects, median_log_ratio
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_unit_rows
from pipelines.cli.main import adit
from pipelines.cli.mine import mine_corpus
from pipelines.run.mining import mine_corpus as mine_in_graph
from tests.pipelines.worlds import (
    World,
    make_world,
    one_line,
    read_jsonl,
    snapshot,
    write_lines,
)


@pytest.fixture
def odd(world: World) -> World:
    """The world with some targets that are very long, and one that is a number."""
    target = [line * (5 if row % 7 == 0 else 1) for row, line in enumerate(world.target)]
    target[3] = "123"
    write_lines(world.path("tgt.txt"), target)
    return replace(world, target=target)


def test_each_pair_is_kept_or_rejected_for_its_reasons(odd: World) -> None:
    everything = read_jsonl(odd.mine("all.jsonl"))
    kept = read_jsonl(odd.mine("out.jsonl", "--filters", "length,short"))
    rejected = read_jsonl(odd.path("out.rejected.jsonl"))
    texts = [[pair[f"{side}_text"] for pair in everything] for side in ("source", "target")]
    suspects = Suspects(source=texts[0], target=texts[1], ratio=median_log_ratio(*texts))
    masks = {name: FILTERS[name](suspects) for name in ("length", "short")}
    assert masks["length"].sum() > 2
    assert masks["short"].any()
    expected_kept, expected_rejected = [], []
    for place, pair in enumerate(everything):
        reason = ",".join(name for name, mask in masks.items() if mask[place])
        if reason:
            expected_rejected.append({**pair, "reason": reason})
        else:
            expected_kept.append(pair)
    assert (kept, rejected) == (expected_kept, expected_rejected)


def test_every_format(odd: World) -> None:
    odd.mine("out.jsonl", "--filters", "length")
    records = read_jsonl(odd.path("out.rejected.jsonl"))
    odd.mine("out.tsv", "--filters", "length")
    assert odd.path("out.rejected.tsv").read_text(encoding="utf-8") == "".join(
        f"{pair['score']!r}\t{pair['source_text']}\t{pair['target_text']}\t{pair['reason']}\n"
        for pair in records
    )
    odd.mine("out.parquet", "--filters", "length")
    assert pq.read_table(odd.path("out.rejected.parquet")).to_pylist() == records


def test_hubs_are_counted_in_all_lists(tmp_path: Path) -> None:
    """Every target is near to the same few sources, whatever the shards."""
    world = make_world(tmp_path, sources=70, targets=60, pairs=30)
    vectors = world.target_vectors + 9 * world.source_vectors[7]
    np.save(world.path("tgt.npy"), vectors)
    _, backward = search_unit_rows(unit_rows(world.source_vectors), unit_rows(vectors), k=4)
    hubs = {row for row in range(70) if (backward.ids == row).sum() > 50}
    everything = read_jsonl(world.mine("all.jsonl"))
    kept = read_jsonl(world.mine("out.jsonl", "--filters", "hub"))
    rejected = read_jsonl(world.path("out.rejected.jsonl"))
    assert {pair["source_row"] for pair in rejected} == hubs != set()
    assert kept == [pair for pair in everything if pair["source_row"] not in hubs]
    options = world.options("parts.jsonl", tmp_path / "work", filters=("hub",), rows_per_shard=20)
    mine_in_graph(options)
    assert read_jsonl(world.path("parts.rejected.jsonl")) == rejected


def test_a_work_folder_goes_on_with_other_filters(odd: World) -> None:
    work = odd.path("work")
    odd.mine("out.jsonl", "--work-dir", str(work))
    before = snapshot(work / "pairs")
    odd.mine("out.jsonl", "--work-dir", str(work), "--filters", "length")
    summary = json.loads((work / "run.json").read_text())
    rejected = read_jsonl(odd.path("out.rejected.jsonl"))
    assert summary["filters"] == {"length": len(rejected)}
    assert summary["pairs"] == len(read_jsonl(odd.path("out.jsonl")))
    assert snapshot(work / "pairs") == before
    fresh = odd.mine("fresh.jsonl", "--filters", "short").read_bytes()
    assert (
        odd.mine("out.jsonl", "--work-dir", str(work), "--filters", "short").read_bytes() == fresh
    )


def test_a_finished_run_knows_what_was_rejected(
    odd: World, capsys: pytest.CaptureFixture[str]
) -> None:
    work = odd.path("work")
    odd.mine("out.jsonl", "--work-dir", str(work), "--filters", "length")
    run = open_run(work)
    rejected = read_jsonl(odd.path("out.rejected.jsonl"))
    assert run.rejected is not None
    assert run.rejected.pairs.score.tolist() == [pair["score"] for pair in rejected]
    assert len(run.pairs) == len(read_jsonl(odd.path("out.jsonl")))
    first = rejected[0]
    assert adit(["why", str(work), first["source_id"], first["target_id"]]) == 0
    assert capsys.readouterr().out.startswith("not mined: rejected by the filter length\n")
    page = odd.path("report.html")
    assert adit(["report", str(work), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert f"filters rejected <b>{len(rejected)}</b> pairs (length {len(rejected)})" in text


def test_the_end_of_a_run_tells_of_them(odd: World, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*odd.inputs(), "-o", str(odd.path("out.jsonl")), "--filters", "length,copied"]
    assert mine_corpus(arguments) == 0
    count = len(read_jsonl(odd.path("out.rejected.jsonl")))
    assert f"\nrejected by filters: length {count}" in capsys.readouterr().err


def test_nothing_is_rejected(world: World) -> None:
    world.mine("out.jsonl", "--filters", "short", "--threshold", "1e9")
    assert world.path("out.jsonl").read_bytes() == b""
    assert world.path("out.rejected.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--filters", "length,loud"], "--filters 'loud' is unknown; choose one of short, length"),
        (["--filters", "language"], "--src-lang and --tgt-lang"),
    ],
)
def test_bad_filters(
    world: World, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    before = snapshot(world.folder)
    output = ["-o", str(world.path("out.tsv"))]
    assert mine_corpus([*world.inputs(), *output, *arguments]) == 2
    assert message in one_line(capsys.readouterr().err, "mine-corpus")
    assert snapshot(world.folder) == before


def test_rejected_pairs_do_not_overwrite_an_input(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    source = world.path("src.txt").rename(world.path("out.rejected.tsv"))
    arguments = [str(source), *world.inputs()[1:], "-o", str(world.path("out.tsv"))]
    assert mine_corpus([*arguments, "--filters", "length"]) == 2
    assert "output would overwrite an input" in capsys.readouterr().err
