"""Pairs of a run in their context: the sentences before and after them in their documents."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from eval.runs.store import Run, open_run
from pipelines.cli.main import adit
from pipelines.cli.mine import mine_corpus

ROWS = 12  # of three documents of four sentences each
REPEATED, BLANK = 5, 9


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("context")
    vectors = np.random.default_rng(0).standard_normal((ROWS, 8), dtype=np.float32)
    for name in "st":
        texts = [f"{name} says {row}" for row in range(ROWS)]
        texts[REPEATED], texts[BLANK] = texts[1], " "
        records = [
            {"id": f"{name}{row // 4}#char={row % 4},9", "doc": f"{name}{row // 4}", "text": text}
            for row, text in enumerate(texts)
        ]
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        np.save(folder / f"{name}.npy", vectors)
    paths = [str(folder / name) for name in ("s.jsonl", "t.jsonl")]
    given = [
        f"--{side}-embeddings={folder / name}"
        for side, name in (("src", "s.npy"), ("tgt", "t.npy"))
    ]
    out = ["-o", str(folder / "out.jsonl"), "--work-dir", str(folder / "work"), "-q"]
    assert mine_corpus([*paths, *given, *out]) == 0
    return folder / "work"


@pytest.fixture(scope="module")
def run(work: Path) -> Run:
    return open_run(work)


@pytest.mark.parametrize(
    ("row", "before", "after"),
    [
        (0, "", "s says 1"),
        (2, "s says 1", "s says 3"),
        (3, "s says 2", ""),  # the next sentence is of another document
        (4, "", "s says 1"),  # which is repeated there
        (6, "s says 1", "s says 7"),
        (8, "", ""),  # what follows was left out
        (11, "s says 10", ""),
    ],
)
def test_what_is_around_a_sentence(run: Run, row: int, before: str, after: str) -> None:
    assert run.source.context(row) == (before, after)


def test_many_at_once_and_one_by_one(run: Run) -> None:
    rows = [3, 0, 11, 8, 2, 4, 6]
    alone = [run.source.context(row) for row in rows]
    assert list(zip(*run.source.pair_contexts(rows), strict=True)) == alone
    assert run.source.pair_contexts([]) == ([], [])


def test_why_shows_it(work: Path, capsys: pytest.CaptureFixture) -> None:
    assert adit(["why", str(work), "s0#char=2,9", "t0#char=2,9"]) == 0
    lines = capsys.readouterr().out.split("\n")
    for name in "st":
        at = lines.index(f"{name}0#char=2,9  {name} says 2")
        assert lines[at - 1] == f"  before: {name} says 1"
        assert lines[at + 1] == f"  after: {name} says 3"


def test_the_report_shows_it(work: Path, tmp_path: Path) -> None:
    assert adit(["report", str(work), "-o", str(tmp_path / "report.html")]) == 0
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<th>in its documents</th>" in html
    assert "<td dir=auto>s says 3</td><td dir=auto>t says 3</td><td class=whole>after</td>" in html
