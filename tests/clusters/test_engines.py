"""The whole graph on real daemons of Flink, Spark and Prism: the same bytes as in one process."""

from __future__ import annotations

import subprocess
import sys
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
RUN = "import sys; from pipelines.cli.mine import mine_corpus; sys.exit(mine_corpus())"
SIDES = (("src", "s"), ("tgt", "t"))
KINDS = ("words", "cells", "index", "vectors", "documents")


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
        "cells": [*text, "--index", "cells8:probes=3"],
        "index": [*text, "--index", "IVF8,Flat:nprobe=4"],
        "vectors": world.inputs(),
        "documents": [
            *(str(articles.folder / f"{name}.jsonl") for _, name in SIDES),
            *(*vectors, *scope),
        ],
    }
    out = folder / "out.jsonl"
    found = {}
    for name, run in runs.items():
        run += ["--shards", "3", "-q"]
        assert mine_corpus([*run, "-o", str(out)]) == 0
        found[name] = Case(run, out.read_bytes())
    return found


def mine(*arguments: str) -> None:
    """Run the command in a process of its own, with which its job server ends, too."""
    subprocess.run([sys.executable, "-c", RUN, *arguments], cwd=ROOT, check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes(engine: Engine, cases: dict[str, Case], kind: str, tmp_path: Path) -> None:
    out, work_dir = tmp_path / "out.jsonl", tmp_path / "work"
    own = ["-o", str(out), "--work-dir", str(work_dir)]
    mine(*cases[kind].run, *own, *engine.options)
    assert out.read_bytes() == cases[kind].expected


def test_growth(engine: Engine, tmp_path: Path) -> None:
    """A corpus that has grown is mined again in the same folder: as if from nothing."""
    out, work_dir = tmp_path / "out.jsonl", tmp_path / "work"
    own = ["-o", str(out), "--work-dir", str(work_dir), "--shards", "2", "-q"]
    for lines in (100, 150):
        run = corpora(tmp_path, lines)
        mine(*run, *own, *engine.options)
    grown = out.read_bytes()
    assert mine_corpus([*run, "-o", str(out), "--shards", "2", "-q"]) == 0
    assert out.read_bytes() == grown


def test_everything_in_a_bucket(engine: Engine, cases: dict[str, Case], s3: S3) -> None:
    run = list(cases["words"].run)
    for number, side in enumerate(("de", "en")):
        run[number] = s3.put(f"{side}.txt", Path(run[number]))
    own = ["-o", s3.uri("out.jsonl"), "--work-dir", s3.uri("work")]
    mine(*run, *own, *engine.options)
    found = place(s3.uri("out.jsonl")).read_bytes()
    assert found == cases["words"].expected
