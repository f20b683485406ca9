"""mine-corpus: pairs in the order of the judge's score, each with its probability."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from encoder import load_encoder
from encoder.words import WordEncoder
from eval.runs.side import Side
from eval.runs.store import Run, open_run
from miner.judge.features import (
    NeighbourhoodStats,
    RunStatistics,
    compute_features,
    mean_spacing,
    read_texts,
)
from miner.judge.model import load_judge
from miner.judge.prior import LIKELY, MIN_PAIRS
from miner.storage.pairs import pairs_schema
from pipelines.cli.mine import embed_corpus, mine_corpus
from pipelines.stages import export, judge
from tests.pipelines.conftest import SAMPLE, Refused
from tests.pipelines.worlds import ON_BEAM, read_jsonl, snapshot

Corpora = tuple[list[str], Path]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    """A command line without its output, and the output it had without --align."""
    folder = tmp_path_factory.mktemp("aligning")
    inputs = []
    for language in ("de", "en"):
        path = SAMPLE / "de-en" / f"de-en.training.{language}"
        lines = path.read_text(encoding="utf-8").splitlines()[:300]
        if language == "de":  # twice as long as their translations: suspects
            lines[:20] = [f"{line} {line.split(maxsplit=1)[1]}" for line in lines[:20]]
        inputs.append(folder / f"corpus.{language}.tsv")
        inputs[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [*map(str, inputs), "-q", "--work-dir", str(folder / "work")]
    assert mine_corpus([*command, "-o", str(folder / "plain.jsonl"), "--score", "margin"]) == 0
    return command, folder / "plain.jsonl"


def test_the_scores_are_their_definition(corpora: Corpora, tmp_path: Path) -> None:
    command, plain = corpora
    encoder = load_encoder()
    assert isinstance(encoder, WordEncoder)
    work = plain.parent / "work"
    out = tmp_path / "out.jsonl"
    assert mine_corpus([*command, "-o", str(out), "--all"]) == 0
    pairs, run = read_jsonl(plain), open_run(work)
    languages = run.languages
    read = [
        read_texts([encoder] * 2, [pair["source_text"]], [pair["target_text"]], languages=languages)
        for pair in pairs
    ]
    lists = run.source.neighbours, run.target.neighbours
    whole = read_texts([encoder] * 2, *zip(*(texts_of(pair) for pair in pairs), strict=True))
    usual = RunStatistics.of(whole, mean_spacing(lists))
    for pair, one in zip(pairs, read, strict=True):
        near = NeighbourhoodStats(
            *(np.array([pair[name]]) for name in ("cosine", "source_mean", "target_mean"))
        )
        seen = compute_features(one, near._replace(cosine=near.cosine.astype(np.float32)), usual)
        pair["margin"], pair["score"] = pair["score"], float(load_judge().scores(seen)[0])
    left_out = np.load(work / "judged" / "left_out.npy")
    scores = np.array([pair["score"] for pair in pairs])
    likely = load_judge().probabilities([scores], left_out).predict(scores)
    for pair, chance in zip(pairs, likely.tolist(), strict=True):
        pair["probability"] = chance
    pairs.sort(key=lambda pair: (-pair["score"], pair["source_row"], pair["target_row"]))
    found = read_jsonl(out)
    assert found == pairs
    assert list(found[0])[:3] == ["score", "probability", "margin"]
    parquet = out.with_suffix(".parquet")
    assert mine_corpus([*command, "-o", str(parquet), "--all"]) == 0
    assert pq.read_table(parquet).to_pylist() == pairs
    assert pq.read_schema(parquet) == pairs_schema(judged=True)
    summary = json.loads((work / "run.json").read_text(encoding="utf-8"))
    assert (RunStatistics(**summary["usual"]), summary["pairs"]) == (usual, len(pairs))
    assert mine_corpus([*command, "-o", str(out), "--threshold", repr(pairs[70]["score"])]) == 0
    assert read_jsonl(out) == pairs[:70]


def texts_of(pair: dict) -> tuple[str, str]:
    return pair["source_text"], pair["target_text"]


def test_what_is_left_of_likely_pairs(tmp_path: Path) -> None:
    """In two shards a side as in one, and as found one by one in the neighbour lists."""
    inputs = [str(SAMPLE / "de-en" / f"de-en.training.{language}") for language in ("de", "en")]
    scores = []
    for shards in ("1", "2"):
        work = ["--work-dir", str(tmp_path / shards), "--shards", shards]
        assert mine_corpus([*inputs, "-q", *work, "-o", str(tmp_path / "out.jsonl"), "--all"]) == 0
        scores.append(np.load(tmp_path / shards / "judged" / "left_out.npy"))
    np.testing.assert_array_equal(*scores)
    assert len(scores[0]) > 100
    run = open_run(tmp_path / "2")
    found = load_judge().probabilities([run.pairs.score])
    likely = found.predict(run.pairs.score)
    count = max(int((likely >= LIKELY).sum()), MIN_PAIRS)
    expected = [
        score
        for sides in ((run.source, run.target), (run.target, run.source))
        for place in range(count)
        for score in left_one_by_one(run, *sides, place)
    ]
    np.testing.assert_allclose(scores[0], expected, atol=0.5)  # of a tree's step or two
    assert np.median(np.abs(scores[0] - expected)) < 1e-6


def left_one_by_one(run: Run, own: Side, other: Side, place: int) -> list[float]:
    rows = {run.source: int(run.pairs.source[place]), run.target: int(run.pairs.target[place])}
    near = own.neighbours_at(own.positions([rows[own]]))
    listed = dict(zip(near.ids[0].tolist(), near.cosines[0].tolist(), strict=True))
    left = {row: cosine for row, cosine in listed.items() if row != rows[other]}
    again = [min(listed.values())] * (len(listed) - len(left))
    mean = float(np.mean([*left.values(), *again]))
    means = {row: float(other.means_at(other.positions([row]))[0]) for row in left}
    best = max(left, key=lambda row: left[row] / (mean + means[row]))
    margin = left[best] / ((mean + means[best]) / 2)
    mined = run.pairs.target if other is run.target else run.pairs.source
    if any(margin <= theirs for theirs in run.pairs.margin[mined == best]):
        return []
    both = {own: own.text(rows[own]), other: other.text(best)}
    ends = (mean, means[best]) if own is run.source else (means[best], mean)
    near = NeighbourhoodStats(np.array([left[best]]), *(np.array([end]) for end in ends))
    sides = [both[run.source]], [both[run.target]]
    texts = read_texts(run.word_encoders, *sides, languages=run.languages)
    usual = RunStatistics(**run.summary["usual"])
    return load_judge().scores(compute_features(texts, near, usual)).tolist()


def test_weights_of_two_word_encoders_are_scaled(tmp_path: Path) -> None:
    """Swedish words are of another encoder than English ones, German words are not."""
    lines = {"sv": "Vi ses i morgon.", "de": "Wir sehen uns morgen.", "en": "See you tomorrow."}
    for language, line in lines.items():
        (tmp_path / f"{language}.txt").write_text(f"{line}\n", encoding="utf-8")
    usual = {}
    for language in ("sv", "de"):
        work, names = tmp_path / language, [tmp_path / f"{name}.txt" for name in (language, "en")]
        command = [*map(str, names), "-o", str(tmp_path / "out.tsv"), "-q", "--encoder", "mini"]
        languages = ["--src-lang", language, "--tgt-lang", "en"]
        assert mine_corpus([*command, *languages, "--work-dir", str(work)]) == 0
        usual[language] = open_run(work).summary["usual"]
    assert usual["sv"]["scale"] == usual["sv"]["weights"] > 1
    assert usual["de"]["scale"] == 1 != usual["de"]["weights"]


@pytest.mark.slow
def test_no_result_depends_on_shards_or_workers(corpora: Corpora, tmp_path: Path) -> None:
    command, plain = corpora
    work = plain.parent / "work"
    outputs = []
    for shards, engine in ((1, []), (3, []), (2, ON_BEAM)):
        out = tmp_path / f"{shards}.tsv"
        own = str(tmp_path / f"work{shards}")
        folder = [own if part == str(work) else part for part in command]
        more = ["--all", "--filters", "length", f"--shards={shards}"]
        assert mine_corpus([*folder, *more, "-o", str(out), *engine]) == 0
        outputs.append((out.read_bytes(), out.with_suffix(".rejected.tsv").read_bytes()))
    assert outputs[0] == outputs[1] == outputs[2]
    assert all(outputs[0])


def test_no_result_depends_on_batches(
    corpora: Corpora, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of pairs that are scored together, or completed in one pass over the corpora."""
    command, plain = corpora
    out = tmp_path / "out.tsv"
    whole = [*command, "--all", "-o", str(out)]
    assert mine_corpus(whole) == 0
    expected = out.read_bytes()
    scored = plain.parent / "work" / "scored"
    assert len(list(scored.iterdir())) == 1
    monkeypatch.setattr(export, "EXPORT_ROWS", 16)
    monkeypatch.setattr(judge, "EXPORT_ROWS", 16)
    monkeypatch.setattr(judge, "BATCH", 16)
    monkeypatch.setattr(export, "spare_bytes", lambda options: 0)
    own = [str(tmp_path / "work") if str(plain.parent / "work") == part else part for part in whole]
    assert mine_corpus(own) == 0
    assert len(list((tmp_path / "work" / "scored").iterdir())) == -(-len(read_rows(out)) // 16)
    assert out.read_bytes() == expected


def read_rows(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_a_run_that_failed_while_it_judged_goes_on(
    corpora: Corpora, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, plain = corpora
    work = plain.parent / "work"
    judged = [*command, "--all", "--retrieval", "intersect", "-o"]
    assert mine_corpus([*judged, str(tmp_path / "out.tsv")]) == 0
    (work / "judged" / "seal.json").unlink()
    kept = {name: content for name, content in snapshot(work).items() if name.startswith("pairs/")}
    with monkeypatch.context() as patched:

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device", "ranges")

        patched.setattr(judge, "merge_in_ranges", full)
        assert mine_corpus([*judged, str(tmp_path / "again.tsv")]) == 2
    assert not (tmp_path / "again.tsv").exists()
    assert mine_corpus([*judged, str(tmp_path / "again.tsv")]) == 0
    assert (tmp_path / "again.tsv").read_bytes() == (tmp_path / "out.tsv").read_bytes()
    assert kept.items() <= snapshot(work).items()
    assert not list(work.glob("*/.adit-*"))


def test_nothing_is_made_again(corpora: Corpora, tmp_path: Path) -> None:
    command, plain = corpora
    work = plain.parent / "work"
    judged = [*command, "-o", str(tmp_path / "out.tsv")]
    assert mine_corpus(judged) == 0
    before = snapshot(work / "judged")
    first = (tmp_path / "out.tsv").read_bytes()
    assert mine_corpus(judged) == 0
    assert snapshot(work / "judged") == before
    assert not list(work.glob("*/.adit-*"))
    assert (tmp_path / "out.tsv").read_bytes() == first


def test_another_judge_judges_anew_even_if_it_scores_alike(
    corpora: Corpora, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For its scores may stand for other probabilities."""
    command, plain = corpora
    judged = [*command, "-o", str(tmp_path / "out.tsv")]
    assert mine_corpus(judged) == 0
    work = plain.parent / "work"
    before = snapshot(work / "judged"), snapshot(work / "scored")
    known = load_judge()
    other = SimpleNamespace(
        name="other",
        is_given=False,
        scores=known.scores,
        probabilities=known.probabilities,
    )
    monkeypatch.setattr(judge, "bundled_judge", lambda is_given: other)
    assert mine_corpus(judged) == 0
    seals = [
        json.loads(files["seal.json"])["key"] for files in (before[0], snapshot(work / "judged"))
    ]
    assert seals[0] != seals[1]
    assert before[1]["00000/scored.npy"] == snapshot(work / "scored")["00000/scored.npy"]


def test_rejected_pairs_have_what_their_score_is_made_of(corpora: Corpora, tmp_path: Path) -> None:
    command, _ = corpora
    out = tmp_path / "out.jsonl"
    assert mine_corpus([*command, "-o", str(out), "--all", "--filters", "length"]) == 0
    kept, rejected = read_jsonl(out), read_jsonl(tmp_path / "out.rejected.jsonl")
    assert rejected
    assert {tuple(pair) for pair in rejected} == {(*kept[0], "reason")}


def test_what_is_not_covered_has_no_words(refused: Refused, run: list[str]) -> None:
    spoken = ["--src-lang", "de", "--tgt-lang", "tlh"]
    assert "--score words: embeddings have no word vectors, and mini does not" in (
        error := refused([*run, *spoken, "--score", "words"])
    )
    assert error.endswith("cover tlh well; omit it\n")
    words = ["--score", "words", "--unmatched-words", "-o", "out.jsonl"]
    error = refused([*run, *spoken, *words])
    assert "--unmatched-words: embeddings have no word vectors" in error


def test_words_are_the_default_where_there_are_some(corpora: Corpora, tmp_path: Path) -> None:
    command, plain = corpora
    outputs = {}
    for name, options in {
        "default": [],
        "words": ["--score", "words"],
        "align": ["--align"],
        "unknown": ["--src-lang", "de", "--score", "margin"],
    }.items():
        outputs[name] = tmp_path / f"{name}.jsonl"
        assert mine_corpus([*command, *options, "-o", str(outputs[name])]) == 0
    assert len({outputs[name].read_bytes() for name in ("default", "words", "align")}) == 1
    assert outputs["unknown"].read_bytes() == plain.read_bytes()
    assert "margin" not in read_jsonl(outputs["unknown"])[0]


@pytest.mark.parametrize("margin", ["distance", "csls"])
def test_pairs_chosen_by_any_margin_are_judged(
    corpora: Corpora, tmp_path: Path, margin: str
) -> None:
    command, _ = corpora
    out = tmp_path / "out.jsonl"
    assert mine_corpus([*command, "--margin", margin, "-o", str(out)]) == 0
    assert all(pair["probability"] >= LIKELY for pair in read_jsonl(out))


def test_why_words_are_not_compared_is_said(
    run: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    arguments = [part for part in run if part not in ("--score", "margin")]
    assert mine_corpus([*arguments, "--src-lang", "tlh"]) == 0
    (line,) = [line for line in caplog.messages if "by margin only (" in line]
    assert "embeddings have no word vectors" in line


def test_given_vectors_are_scored_by_the_words_of_the_bundled_encoder(
    corpora: Corpora, tmp_path: Path
) -> None:
    command, _ = corpora
    inputs = command[:2]
    for side, path in zip(("src", "tgt"), inputs, strict=True):
        vectors = str(tmp_path / f"{side}.npy")
        assert embed_corpus([path, "-o", vectors, "--dtype", "float16", "-q"]) == 0
    outputs = tmp_path / "own.jsonl", tmp_path / "given.jsonl"
    assert mine_corpus([*command, "-o", str(outputs[0])]) == 0
    given = [f"--{side}-embeddings={tmp_path / side}.npy" for side in ("src", "tgt")]
    assert mine_corpus([*inputs, *given, "-q", "-o", str(outputs[1])]) == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_an_encoder_without_words(
    corpora: Corpora,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sentences = SimpleNamespace(name="sentences", dim=4, precision="float32", encode=None)
    sentences.for_language = lambda language: sentences
    monkeypatch.setattr("pipelines.context.load_encoder", lambda *_, **__: sentences)
    command, _ = corpora
    arguments = [*command, "--encoder", "other", "--src-lang", "tlh", "--align", "-o"]
    assert mine_corpus([*arguments, str(tmp_path / "out.tsv")]) == 2
    assert "--score words: encoder sentences has no word vectors" in capsys.readouterr().err
