"""The whole graph on real daemons of Flink, Spark and Prism: the same bytes as in one process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from miner.storage.places import place
from pipelines.cli.mine import mine_corpus
from tests.clusters.cluster import ROOT, Engine
from tests.pipelines.test_documents import Articles
from tests.pipelines.worlds import make_world, write_lines
from tests.s3 import S3

pytestmark = [pytest.mark.slow, pytest.mark.clusters]

SAMPLE = ROOT / "eval" / "assets" / "sample" / "de-en"
LINES = 400
SIDES = (("src", "s"), ("tgt", "t"))
KINDS = ("joined", "cells", "index", "documents")


@dataclass(frozen=True)
class Case:
    """A command line without its output, and what it gives in this process."""

    run: list[str]
    expected: bytes


def lines_of(side: str) -> list[str]:
    text = (SAMPLE / f"de-en.training.{side}").read_text(encoding="utf-8")
    return [line.partition("\t")[2] for line in text.split("\n")[:-1]]


def corpora(folder: Path, lines: int) -> list[str]:
    return [
        str(write_lines(folder / f"{side}.txt", lines_of(side)[:lines])) for side in ("de", "en")
    ]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("cases")
    text = corpora(folder, LINES)
    world = make_world(folder / "world")
    (folder / "articles").mkdir()
    articles = Articles(folder / "articles")
    vectors = [f"--{side}-embeddings={articles.folder / name}.npy" for side, name in SIDES]
    scope = ["--scope=document", f"--document-pairs={articles.pairs}", "--margin-scope=corpus"]
    runs = {
        "words": [*text, "--align", "--filters", "short,length,copied,numbers"],
        "joined": [*text, "--encoder", "mini+use"],
        "cells": [*world.inputs(), "--index", "cells8:probes=3"],
        "index": [*text, "--index", "IVF8,Flat:nprobe=4"],
        "documents": [
            *(str(articles.folder / f"{name}.jsonl") for _, name in SIDES),
            *(*vectors, *scope),
        ],
    }
    out = folder / "out.jsonl"
    found = {}
    for name, run in runs.items():
        run += ["--shards", "4", "-q"]
        assert mine_corpus([*run, "-o", str(out)]) == 0
        found[name] = Case(run, out.read_bytes())
    return found


def shares(work_dir: Path, stage: str) -> list[int]:
    """How many elements of a stage each worker has done."""
    noted = [path.read_text(encoding="utf-8") for path in (work_dir / "progress").glob("*.jsonl")]
    found = [
        sum(json.loads(line)["stage"] == stage for line in file.splitlines()) for file in noted
    ]
    return [share for share in found if share]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes(engine: Engine, cases: dict[str, Case], kind: str, tmp_path: Path) -> None:
    """And on Flink each host does about as many shards and tiles as the other."""
    out, work_dir = tmp_path / "out.jsonl", tmp_path / "work"
    own = ["-o", str(out), "--work-dir", str(work_dir)]
    assert mine_corpus([*cases[kind].run, *own, *engine.options]) == 0
    assert out.read_bytes() == cases[kind].expected
    if "FlinkRunner" in engine.options:  # an executor of Spark takes two parts if they are short
        for stage in ("embed_shard", "search_tile"):
            one, other = shares(work_dir, stage)
            assert abs(one - other) <= 2  # each of two parts deals its own out in turn


def test_a_corpus_that_grows_in_a_bucket(engine: Engine, cases: dict[str, Case], s3: S3) -> None:
    """Half is mined by one process; then all by the engine, in the same folder: the same bytes."""
    case = cases["words"]
    run = list(case.run)
    own = ["-o", s3.uri("out.jsonl"), "--work-dir", s3.uri("work")]
    for half, options in ((True, []), (False, engine.options)):
        for number, side in enumerate(("de", "en")):
            text = Path(case.run[number]).read_bytes().splitlines(keepends=True)
            content = b"".join(text[: len(text) // 2] if half else text)
            run[number] = s3.put(f"{side}.txt", content)
        assert mine_corpus([*run, *own, *options]) == 0
    assert place(s3.uri("out.jsonl")).read_bytes() == case.expected
