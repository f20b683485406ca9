"""mine-corpus from files to files, against ``miner.mining.mine`` over the same vectors."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from miner.margin import MARGINS
from miner.selection import RETRIEVALS
from miner.storage.pairs import pairs_schema
from pipelines.stages.export import export_pairs
from pipelines.stages.select import select_pairs
from pipelines.stages.summary import write_summary
from tests.pipelines.worlds import (
    World,
    make_world,
    mined_in_memory,
    read_jsonl,
    read_pairs,
    records_of,
    search_eagerly,
    write_lines,
)


def test_every_field_of_every_format(world: World) -> None:
    expected = records_of(mined_in_memory(world), world.source, world.target)
    assert len(expected) > 15
    assert read_jsonl(world.mine("out.jsonl")) == expected

    table = pq.read_table(world.mine("out.parquet"))
    assert table.schema.equals(pairs_schema())
    assert table.to_pylist() == expected

    # LASER's layout: score, source, target between tabs; no header, no quotes, best first.
    tsv = world.mine("out.tsv").read_bytes().decode()
    assert tsv == "".join(
        f"{record['score']!r}\t{record['source_text']}\t{record['target_text']}\n"
        for record in expected
    )


def test_fields_come_in_the_documented_order(world: World) -> None:
    line = world.mine("out.jsonl").read_text(encoding="utf-8").split("\n")[0]
    assert list(json.loads(line)) == [
        *("score", "source_id", "target_id", "source_doc", "target_doc"),
        *("source_text", "target_text", "source_row", "target_row", "cosine"),
        *("source_mean", "target_mean", "rank", "direction"),
        *("source_duplicates", "target_duplicates"),
    ]


def test_planted_pairs_come_first(world: World) -> None:
    cosines = world.source_vectors @ world.target_vectors.T
    best = {(row, int(cosines[row].argmax())) for row in range(len(world.source))}
    found = read_jsonl(world.mine("out.jsonl"))[:15]
    assert {(record["source_row"], record["target_row"]) for record in found} <= best
    assert min(record["cosine"] for record in found) > 0.8


def test_margin_retrieval_and_k_are_passed_on(world: World) -> None:
    out = world.mine("out.jsonl", "--margin", "csls", "--retrieval", "intersect", "-k", "3")
    expected = mined_in_memory(world, margin="csls", retrieval="intersect", k=3)
    assert read_jsonl(out) == records_of(expected, world.source, world.target)


def test_every_margin_with_every_retrieval(world: World) -> None:
    work_dir = world.path("work")
    neighbours = search_eagerly(world.options("out.jsonl", work_dir))
    for margin, retrieval in itertools.product(MARGINS, RETRIEVALS):
        run = world.run("out.jsonl", work_dir, margin=margin, retrieval=retrieval)
        export_pairs(run, write_summary(run, select_pairs(run, neighbours)))
        expected = mined_in_memory(world, margin=margin, retrieval=retrieval)
        records = records_of(expected, world.source, world.target)
        assert read_jsonl(world.path("out.jsonl")) == records, (margin, retrieval)


def test_the_threshold_is_strict_and_output_is_sorted(world: World) -> None:
    work_dir = ("--work-dir", str(world.path("work")))
    scores = [record["score"] for record in read_jsonl(world.mine("all.jsonl", *work_dir))]
    assert scores == sorted(scores, reverse=True)
    out = world.mine("some.jsonl", "--threshold", repr(scores[9]), *work_dir)
    assert [record["score"] for record in read_jsonl(out)] == scores[:9]
    below = world.mine("some.jsonl", "--threshold", repr(math.nextafter(scores[9], 0)), *work_dir)
    assert [record["score"] for record in read_jsonl(below)] == scores[:10]


def test_nothing_above_the_threshold_is_an_empty_output(world: World) -> None:
    assert world.mine("out.tsv", "--threshold", "1e9").read_bytes() == b""
    assert world.mine("out.jsonl", "--threshold", "1e9").read_bytes() == b""
    table = pq.read_table(world.mine("out.parquet", "--threshold", "1e9"))
    assert (len(table), table.schema.equals(pairs_schema())) == (0, True)


def test_neighbourhoods_larger_than_a_side_and_sides_of_one_line(tmp_path: Path) -> None:
    small = make_world(tmp_path / "small", sources=3, targets=2, pairs=1)
    expected = records_of(mined_in_memory(small, k=100), small.source, small.target)
    assert read_jsonl(small.mine("out.jsonl", "-k", "100")) == expected
    single = make_world(tmp_path / "single", sources=1, targets=1, pairs=1)
    [record] = read_jsonl(single.mine("out.jsonl"))
    assert record["score"] == 1.0  # a pair that is the whole of both neighbourhoods


def test_raw_embeddings(world: World) -> None:
    rounded = [side.astype(np.float16) for side in (world.source_vectors, world.target_vectors)]
    for short, vectors in zip(("src", "tgt"), rounded, strict=True):
        vectors.tofile(world.path(f"{short}.npy.raw"))
        np.save(world.path(f"{short}.npy"), vectors)
    same = world.mine("npy.jsonl").read_bytes()
    raw = [argument.replace(".npy", ".npy.raw") for argument in world.inputs()[2:]]
    out = world.mine("raw.jsonl", *raw, "--dim", "16")
    assert out.read_bytes() == same


def test_given_vectors_of_double_precision_and_any_length(world: World) -> None:
    expected = read_pairs(world.mine("out.jsonl"))
    lengths = np.linspace(0.01, 100, len(world.source))[:, None]
    np.save(world.path("src.npy"), world.source_vectors.astype(np.float64) * lengths)
    assert read_pairs(world.mine("out.jsonl")) == expected


def test_unusable_vectors_are_left_out_and_counted(world: World) -> None:
    broken = world.source_vectors.copy()
    broken[3], broken[4, 5], broken[20] = 0, np.nan, np.inf
    np.save(world.path("src.npy"), broken)
    rows = [row for row in range(len(world.source)) if row not in (3, 4, 20)]
    out = world.mine("out.jsonl", "--work-dir", str(world.path("work")))
    expected = mined_in_memory(world, source_rows=rows)
    assert read_jsonl(out) == records_of(expected, world.source, world.target)
    told = json.loads(world.path("work/run.json").read_bytes())["source"]
    assert told["dropped"] == {"not finite": 2, "zero vector": 1}
    assert (told["unique"], told["searched"]) == (40, 37)


def test_the_first_of_equal_sentences_stands_for_all(world: World) -> None:
    lines = [*world.source]
    lines[7] = lines[2]
    lines[30] = lines[11]
    lines[39] = lines[2]
    write_lines(world.path("src.txt"), lines)
    kept = [row for row in range(len(lines)) if row not in (7, 30, 39)]
    expected = records_of(
        mined_in_memory(world, source_rows=kept, retrieval="forward"), lines, world.target
    )
    for record in expected:
        record["source_duplicates"] = {2: ["8", "40"], 11: ["31"]}.get(record["source_row"], [])
    assert sum(len(record["source_duplicates"]) for record in expected) == 3
    assert read_jsonl(world.mine("out.jsonl", "--retrieval", "forward")) == expected

    everything = world.mine("out.jsonl", "--retrieval", "forward", "--keep-duplicates")
    every_row = mined_in_memory(world, retrieval="forward")
    assert read_jsonl(everything) == records_of(every_row, lines, world.target)


def test_repetitions_on_both_sides_keep_to_their_own(world: World) -> None:
    source = [*world.source[:20], world.source[0], *world.source[21:]]
    target = [world.target[5], *world.target[1:6], "", *world.target[7:]]
    write_lines(world.path("src.txt"), source)
    write_lines(world.path("tgt.txt"), target)
    expected = records_of(
        mined_in_memory(
            world,
            source_rows=[row for row in range(40) if row != 20],
            target_rows=[row for row in range(50) if row not in (5, 6)],
            retrieval="backward",
        ),
        source,
        target,
    )
    for record in expected:
        record["source_duplicates"] = ["21"] if record["source_row"] == 0 else []
        record["target_duplicates"] = ["6"] if record["target_row"] == 0 else []
    assert read_jsonl(world.mine("out.jsonl", "--retrieval", "backward")) == expected
    assert sum(len(record["target_duplicates"]) for record in expected) == 1


def test_approximate_search_of_everything_equals_the_exact(world: World) -> None:
    exact = world.mine("exact.jsonl", "--index", "exact").read_bytes()
    assert world.mine("flat.jsonl", "--index", "Flat").read_bytes() == exact


def test_the_encoder_is_used_where_no_vectors_are_given(
    tmp_path: Path, tiny_encoder: str, sample_sentences: list[str]
) -> None:
    from pipelines.cli.mine import mine_corpus

    source = write_lines(tmp_path / "a.txt", sample_sentences[:60])
    target = write_lines(tmp_path / "b.txt", [text + " !" for text in sample_sentences[30:90]])
    out = tmp_path / "out.jsonl"
    common = [str(source), str(target), "-o", str(out), "-q", "--encoder", tiny_encoder]
    common += ["--keep-identical", "--all"]
    assert mine_corpus(common) == 0
    best = {(record["source_row"], record["target_row"]) for record in read_jsonl(out)[:30]}
    assert best == {(row + 30, row) for row in range(30)}
