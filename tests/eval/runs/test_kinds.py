"""Runs of every kind can be asked everything."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from eval.runs.store import open_run
from miner.arrays import JudgedPairs
from pipelines.cli.main import adit
from pipelines.cli.mine import mine_corpus

KINDS = {
    "distance": ("--margin", "distance", "--retrieval", "intersect", "--shards", "3", "--all"),
    "filtered": ("--score", "margin", "--filters", "length,numbers"),
    "judged and filtered": ("--all", "--filters", "numbers"),
    "documents": ("--scope", "document", "--score", "margin"),
    "documents by corpus margins": ("--scope", "document", "--margin-scope", "corpus", "--all"),
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """450 sentences of the sample a side, 150 of them in each of three documents."""
    folder = tmp_path_factory.mktemp("kinds")
    sample = Path(str(files("eval"))) / "assets" / "sample" / "de-en" / "de-en.training"
    for side in ("de", "en"):
        lines = sample.with_suffix(f".training.{side}").read_text(encoding="utf-8").splitlines()
        records = (
            {"id": name, "doc": f"d{row // 150}", "text": text}
            for row, line in enumerate(lines[:450])
            for name, text in [line.split("\t")]
        )
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"corpus.{side}.jsonl").write_text(text, encoding="utf-8")
    (folder / "articles").write_text("".join(f"d{row}\td{row}\n" for row in range(3)))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_what_runs_are_asked(
    corpora: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    work, out = str(tmp_path / "work"), tmp_path / "out.jsonl"
    sides = [str(corpora / f"corpus.{side}.jsonl") for side in ("de", "en")]
    documents = ("--document-pairs", str(corpora / "articles")) if "documents" in kind else ()
    options = ("-q", "-o", str(out), "--work-dir", work, *KINDS[kind], *documents)
    assert mine_corpus([*sides, *options]) == 0
    pairs = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(pairs) > 20
    ids = pairs[7]["source_id"], pairs[7]["target_id"]
    run = open_run(Path(work))
    assert run.pairs.score.tolist() == [pair["score"] for pair in pairs]
    assert isinstance(run.pairs, JudgedPairs) == ("--all" in KINDS[kind])

    assert adit(["why", work, *ids]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"mined: pair 8 of {len(pairs)} by the {run.score_name} ")
    margins = run.pairs.margin if isinstance(run.pairs, JudgedPairs) else run.pairs.score
    assert f"margin {margins[7]:.4f} (" in told
    page = tmp_path / "page.html"
    known = tmp_path / "known"
    known.write_text("".join(f"{one['source_id']}\t{one['target_id']}\n" for one in pairs[::3]))
    assert adit(["report", work, "-o", str(page), "--gold", str(known)]) == 0
    shown = page.read_text(encoding="utf-8")
    assert ">numbers</td>" in shown
    drawn = re.findall(r'class="rejected" data-count="(\d+)"><summary>([a-z,]+): ', shown)
    assert ("filtered" in kind) == bool(drawn)
    counts = json.loads((tmp_path / "work" / "run.json").read_text())
    if drawn:
        for name, count in counts["filters"].items():
            assert sum(int(own) for own, why in drawn if name in why.split(",")) == count
    second = tmp_path / "second.jsonl"
    capsys.readouterr()
    calibrated = ["calibrate", work, "-o", str(second)]
    if "--all" not in KINDS[kind]:
        assert adit(calibrated) == 2
        assert "a run scored by margin has no error rates" in capsys.readouterr().err
    else:
        assert adit(calibrated) == 0
        probabilities = [json.loads(line)["probability"] for line in second.open()]
        assert probabilities == [pair["probability"] for pair in pairs]
