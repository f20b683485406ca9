"""``--scope document``: searched within pairs of documents, with margins of either scope."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR
from miner.knn.core.rescore import unit_rows
from pipelines.cli.mine import mine_corpus
from tests.miner import oracle
from tests.miner.knn.test_documents import allowed_nearest
from tests.pipelines.worlds import one_line, read_jsonl

SOURCES, TARGETS, DOCUMENTS, DIM, K = 40, 50, 5, 8, 4
# The first of each side is in two pairs, the last in none; two pairs name what is not there.
PAIRS = [(0, 0), (0, 1), (1, 0), (2, 2), (3, 3), (4, 9), (9, 4)]


class Articles:
    """Sentences in documents, some without one, their vectors, and which pairs are allowed."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng(0)
        self.folder = folder
        self.docs = [random.integers(-1, DOCUMENTS, rows) for rows in (SOURCES, TARGETS)]
        self.vectors = [
            random.standard_normal((rows, DIM), dtype=np.float32) for rows in (SOURCES, TARGETS)
        ]
        for name, docs, vectors in zip("st", self.docs, self.vectors, strict=True):
            self.write(name, docs, [f"{name} {row}" for row in range(len(docs))])
            np.save(folder / f"{name}.npy", vectors)
        pairs = [f"d{source}\te{target}\n" for source, target in PAIRS]
        self.pairs = folder / "pairs.tsv"
        self.pairs.write_text("".join(pairs), encoding="utf-8")

    def write(self, name: str, docs: NDArray, texts: Sequence[str]) -> None:
        letter = {"s": "d", "t": "e"}[name]
        records = [
            {"id": f"{name}{row}", "doc": "" if doc < 0 else f"{letter}{doc}", "text": text}
            for row, (doc, text) in enumerate(zip(docs, texts, strict=True))
        ]
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        (self.folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")

    def mine(self, *options: str) -> bytes:
        paths = [str(self.folder / name) for name in ("s.jsonl", "t.jsonl")]
        for side, name in (("src", "s.npy"), ("tgt", "t.npy")):
            paths += [f"--{side}-embeddings", str(self.folder / name)]
        out = self.folder / "out.jsonl"
        scope = ["--scope", "document", "--document-pairs", str(self.pairs)]
        scored = ["--score", "margin"]
        assert mine_corpus([*paths, "-q", "-o", str(out), *scope, *scored, *options]) == 0
        return out.read_bytes()


@pytest.fixture
def articles(tmp_path: Path) -> Articles:
    return Articles(tmp_path)


def expected(articles: Articles, margin_scope: str) -> list[tuple]:
    """Source row, target row, score and means of the pairs, by the oracle, best first."""
    table = oracle.cosines(*map(unit_rows, articles.vectors))
    own, others = articles.docs
    allowed = np.array([[(x, y) in PAIRS for y in others] for x in own])
    lists = [allowed_nearest(table, allowed, K), allowed_nearest(table.T, allowed.T, K)]
    near = lists
    if margin_scope == "corpus":
        near = [oracle.nearest(table, K), oracle.nearest(table.T, K)]
    means = [
        [np.mean([x for x in row if x > -np.inf] or [0], dtype=np.float64) for row in cosines]
        for _, cosines in near
    ]
    ids = [found.tolist() for found, _ in lists]
    edges = []
    for x, y in np.argwhere(allowed).tolist():
        direction = (y in ids[0][x]) + 2 * (x in ids[1][y])
        if direction:
            rank = 1 + (ids[0][x].index(y) if direction & 1 else ids[1][y].index(x))
            score = float(table[x, y]) / max((means[0][x] + means[1][y]) / 2, 1e-6)
            edges.append(
                oracle.Edge(
                    *(x, y, score, float(table[x, y]), means[0][x], means[1][y], rank, direction)
                )
            )
    return [
        (edge.source, edge.target, pytest.approx(edge.score), edge.rank, edge.direction)
        for edge in oracle.select(edges, "max")
    ]


@pytest.mark.parametrize("margin_scope", ["document", "corpus"])
def test_equals_the_oracle_however_it_is_cut(articles: Articles, margin_scope: str) -> None:
    out = articles.mine("--margin-scope", margin_scope)
    names = {"forward": 1, "backward": 2, "both": 3}
    found = [
        (
            *(record["source_row"], record["target_row"], record["score"], record["rank"]),
            names[record["direction"]],
        )
        for record in read_jsonl(articles.folder / "out.jsonl")
    ]
    assert found == expected(articles, margin_scope)
    assert articles.mine("--margin-scope", margin_scope, "--shards", "7") == out
    if margin_scope == "document":
        assert articles.mine() == out
    else:
        assert articles.mine("--margin-scope", "corpus", "--index", "Flat", "--shards", "2") == out


def test_what_documents_repeat_stands_in_each_of_them(articles: Articles) -> None:
    own = articles.docs[0]
    texts = [f"s {row}" for row in range(SOURCES)]
    [first, second], [third, *_] = np.flatnonzero(own == 2)[:2], np.flatnonzero(own == 3)
    texts[second] = texts[third] = texts[first]
    articles.write("s", own, texts)
    articles.mine("--work-dir", str(articles.folder / "work"))
    told = json.loads((articles.folder / "work/run.json").read_bytes())["source"]
    assert (told["duplicates"], told["unique"]) == (1, SOURCES - 1)


def test_a_shard_may_lack_vectors(articles: Articles) -> None:
    for name, vectors in zip("st", articles.vectors, strict=True):
        vectors[:6] = 0
        np.save(articles.folder / f"{name}.npy", vectors)
    whole = articles.mine()
    assert whole
    assert articles.mine("--shards", "10") == whole


def test_another_list_searches_again_and_does_not_encode_again(articles: Articles) -> None:
    work = articles.folder / "work"
    articles.mine("--work-dir", str(work), "--margin-scope", "corpus")
    before = {path: path.stat().st_mtime_ns for path in work.rglob("seal.json")}
    articles.pairs.write_text("d0\te0\n", encoding="utf-8")
    again = articles.mine("--work-dir", str(work), "--margin-scope", "corpus")
    new = {
        path.relative_to(work).parent.as_posix()
        for path, at in before.items()
        if path.stat().st_mtime_ns != at
    }
    assert new == {
        "tiles/00000-00000-documents",
        *(f"neighbours/{side}/00000-documents" for side in ("source", "target")),
        "pairs",
    }
    assert articles.mine("--margin-scope", "corpus") == again
    docs = {
        (pair["source_doc"], pair["target_doc"])
        for pair in map(json.loads, again.split(b"\n")[:-1])
    }
    assert docs == {("d0", "e0")}


def test_rows_without_an_allowed_neighbour_have_none(articles: Articles) -> None:
    from pipelines.options import CorpusOptions, MiningOptions
    from tests.pipelines.worlds import search_eagerly

    sides = {
        side: CorpusOptions(
            path=articles.folder / f"{name}.jsonl", embeddings=articles.folder / f"{name}.npy"
        )
        for side, name in (("source", "s"), ("target", "t"))
    }
    options = MiningOptions(
        **sides,
        output=articles.folder / "out.tsv",
        work_dir=articles.folder / "work",
        scope="document",
        document_pairs=articles.pairs,
    )
    source = search_eagerly(options)[0].load("document")
    lonely = ~np.isin(articles.docs[0], [pair[0] for pair in PAIRS if pair[1] < DOCUMENTS])
    assert lonely.any()
    assert ((source.ids == NO_NEIGHBOUR).all(axis=1) == lonely).all()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--scope", "corpus", "--document-pairs", "auto"], "conflicts with --scope corpus"),
        (["--margin-scope", "document"], "--margin-scope document requires --scope document"),
        (
            ["--scope", "document", "--document-pairs", "PAIRS", "--index", "Flat"],
            "--index Flat conflicts with --scope document",
        ),
        (
            ["--scope", "document", "--document-pairs", "PAIRS", "--plan"],
            "--plan conflicts with --scope document",
        ),
        (["--scope", "document", "--document-pairs", "nowhere"], "nowhere: file not found"),
        (
            ["--scope", "document", "--document-pairs", "OTHER"],
            "s.jsonl: contains no source document of",
        ),
    ],
)
def test_bad_options(
    articles: Articles, capsys: pytest.CaptureFixture, options: list[str], expected: str
) -> None:
    other = articles.folder / "other.tsv"
    other.write_text("e0\td0\n", encoding="utf-8")
    names = {"PAIRS": str(articles.pairs), "OTHER": str(other)}
    paths = [str(articles.folder / name) for name in ("s.jsonl", "t.jsonl", "out.tsv")]
    run = [*paths[:2], "-o", paths[2], "-q", *(names.get(option, option) for option in options)]
    assert mine_corpus(run) == 2
    assert expected in one_line(capsys.readouterr().err, "mine-corpus")
