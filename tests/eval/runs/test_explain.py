"""mine-corpus why: what it says is so, for every pair of neighbours."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from eval.runs.explain import describe, explain
from eval.runs.store import Run, open_run
from miner.judge.model import LEAF, load_judge
from pipelines.cli.main import adit


@pytest.fixture(scope="module")
def run(finished_run: Path) -> Run:
    return open_run(finished_run / "work")


def test_margins_by_the_vectors(run: Run) -> None:
    source, target = (
        side.vectors() / np.linalg.norm(side.vectors(), axis=1, keepdims=True)
        for side in (run.source, run.target)
    )
    cosines = source @ target.T
    for place in (0, 17, 90):
        told = explain(run, int(run.pairs.source[place]), int(run.pairs.target[place]))
        row = list(run.source.searched).index(told.source)
        column = list(run.target.searched).index(told.target)
        means = np.mean(sorted(cosines[row])[-4:]), np.mean(sorted(cosines[:, column])[-4:])
        assert (told.source_mean, told.target_mean) == pytest.approx(means, abs=1e-5)
        assert told.cosine == pytest.approx(float(cosines[row, column]), abs=1e-5)
        assert told.margin == pytest.approx(told.cosine / np.mean(means), abs=1e-4)
        assert told.verdict.startswith(f"mined: pair {place + 1} of {len(run.pairs)} by ")
        assert len(told.targets) == len(told.sources) == 4


def test_every_pair_of_neighbours_has_a_true_verdict(run: Run) -> None:
    partner = dict(zip(run.pairs.source.tolist(), run.pairs.target.tolist(), strict=True))
    taken = {target: source for source, target in partner.items()}
    kinds = set()
    for row, source in enumerate(run.source.searched.tolist()[:60]):
        for target in run.source.neighbours.ids[row].tolist():
            told = explain(run, source, target)
            assert told.margin is not None
            if partner.get(source) == target:
                assert told.verdict.startswith("mined: ")
            elif source in partner or target in taken:
                for has, name, other in (
                    (source in partner, "source", run.target.id(partner.get(source, 0))),
                    (target in taken, "target", run.source.id(taken.get(target, 0))),
                ):
                    assert (f"its {name} was paired with {other!r}" in told.verdict) == has
            else:
                best = max(told.targets, key=lambda one: one.margin)
                assert best.row != target
                assert repr(run.target.id(best.row)) in told.verdict
            kinds.add(told.verdict.split()[2])
    assert len(kinds) >= 3


def test_strangers_are_never_scored(run: Run) -> None:
    far = next(
        target
        for target in run.target.searched.tolist()
        if target not in run.source.neighbours.ids[0]
        and run.source.searched[0]
        not in run.target.neighbours.ids[run.target.searched.tolist().index(target)]
    )
    told = explain(run, int(run.source.searched[0]), far)
    assert (told.margin, told.cosine) == (None, None)
    assert told.verdict == "not mined: neither is among the 4 nearest neighbours of the other"


def test_command(finished_run: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = int(run.pairs.source[3]), int(run.pairs.target[3])
    names = run.source.id(source), run.target.id(target)
    assert adit(["why", str(finished_run / "work"), *names]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"mined: pair 4 of {len(run.pairs)} by the margin ")
    assert f"margin {run.pairs.score[3]:.4f} (ratio)" in out
    assert "probability" not in out
    assert run.source.text(source) in out
    starred = [line for line in out.splitlines() if line.startswith("  *")]
    assert [names[1] in starred[0], names[0] in starred[1], len(starred)] == [True, True, 2]


def test_a_repeated_sentence_has_several_ids(
    finished_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(finished_run / "work"), "de-again", "en-again"]
    assert adit(["why", *arguments]) == 0
    assert "de-000000001  " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (
            ("nobody", "en-again"),
            "no usable source sentence with the id 'nobody'; pass an id such as 'de-000000001'",
        ),
        (
            ("de-again", "nobody"),
            "no usable target sentence with the id 'nobody'; pass an id such as 'en-000000001'",
        ),
        (("de-none", "en-again"), "'de-none' has no vector, so it was not searched"),
    ],
)
def test_bad_ids(
    finished_run: Path, capsys: pytest.CaptureFixture[str], ids: tuple[str, str], message: str
) -> None:
    assert adit(["why", str(finished_run / "work"), *ids]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_key_is_named(
    judged_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    shutil.copytree(judged_run, work)
    summary = json.loads((work / "run.json").read_text())
    del summary["usual"]["weights"]
    (work / "run.json").write_text(json.dumps(summary))
    assert adit(["report", str(work), "-o", str(tmp_path / "report.html")]) == 2
    assert f"{work}/run.json: lacks the key 'weights'; delete" in capsys.readouterr().err


def test_a_judged_run(judged_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs are chosen by margins; what is kept of them, and its score, is the judge's matter."""
    run = open_run(judged_run)
    chosen = zip(run.chosen.pairs.source.tolist(), run.chosen.pairs.target.tolist(), strict=True)
    found = [explain(run, source, target) for source, target in chosen]
    mined = [one for one in found if one.verdict.startswith("mined: pair ")]
    assert 0 < len(run.pairs) == len(mined) < len(found)
    assert sorted(one.verdict for one in mined) == sorted(
        f"mined: pair {place} of {len(run.pairs)} by the score {score:.4f}"
        for place, score in enumerate(run.pairs.score.tolist(), start=1)
    )
    known = load_judge().value[load_judge().roots].sum() / LEAF
    for one in found:
        assert one.judged is not None
        assert one.judged["margin"] == pytest.approx(one.margin)
        assert known + sum(one.reasons.values()) == pytest.approx(one.judged["score"], abs=1e-4)
    others = [one.verdict for one in found if one not in mined]
    copies = [verdict for verdict in others if verdict.startswith("identical text: not written")]
    assert copies
    assert len(copies) + sum("not written: probability 0." in one for one in others) == len(others)
    ids = run.source.id(mined[0].source), run.target.id(mined[0].target)
    assert adit(["why", str(judged_run), *ids]) == 0
    out = capsys.readouterr().out
    assert f"margin {mined[0].margin:.4f} (ratio)" in out
    best = max(mined[0].reasons, key=mined[0].reasons.__getitem__)
    assert f"log odds for it: {best} +{mined[0].reasons[best]:.2f}" in out
    assert "\nlog odds against it: " in out
    contradicted = next(one for one in found if one.contradictions)
    first, second = (word or "nothing" for word in contradicted.contradictions[0])
    assert f"\ncontradictions: {first} / {second}" in describe(run, contradicted)
    lacking = next(one for one in found if any(one.unmatched))
    both = " / ".join(", ".join(words) or "none" for words in lacking.unmatched)
    assert f"\nwords without a counterpart: {both}" in describe(run, lacking)
