"""mine-corpus --align: pairs in the order of a score that looks at their words, too."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from encoder import load_encoder
from encoder.words import WordEncoder
from miner.word_match import align_texts, aligned_scores
from pipelines.cli.mine import embed_corpus, mine_corpus
from pipelines.stages import align
from tests.pipelines.conftest import SAMPLE, Refused
from tests.pipelines.worlds import read_jsonl, snapshot

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
    pairs = read_jsonl(plain)
    found = [
        align_texts([encoder] * 2, [pair["source_text"]], [pair["target_text"]]) for pair in pairs
    ]
    usual = float(np.median([one.log_ratio[0] for one in found[:1000]]))
    for pair, one in zip(pairs, found, strict=True):
        pair |= {
            "score": float(aligned_scores(np.array([pair["score"]]), one, usual=usual)[0]),
            "margin": pair["score"],
            "coverage": float(one.coverage[0]),
            "imbalance": abs(float(one.log_ratio[0]) - usual),
            "unmatched": int(one.unmatched_numbers[0]),
        }
    pairs.sort(key=lambda pair: (-pair["score"], pair["source_row"], pair["target_row"]))
    out = tmp_path / "out.jsonl"
    assert mine_corpus([*command, "-o", str(out), "--align"]) == 0
    found_pairs = read_jsonl(out)
    assert found_pairs == pairs
    assert list(found_pairs[0])[:5] == ["score", "margin", "coverage", "imbalance", "unmatched"]
    assert mine_corpus([*command, "-o", str(out.with_suffix(".parquet")), "--align"]) == 0
    assert pq.read_table(out.with_suffix(".parquet")).to_pylist() == pairs
    summary = json.loads((plain.parent / "work" / "run.json").read_text(encoding="utf-8"))
    assert (summary["usual_log_ratio"], summary["pairs"]) == (usual, len(pairs))

    threshold = pairs[len(pairs) // 3]["score"]
    assert mine_corpus([*command, "-o", str(out), "--align", "--threshold", repr(threshold)]) == 0
    assert read_jsonl(out) == pairs[: len(pairs) // 3]


def test_no_result_depends_on_shards_or_workers(corpora: Corpora, tmp_path: Path) -> None:
    command, plain = corpora
    work = plain.parent / "work"
    outputs = []
    for shards, workers in ((1, 1), (3, 1), (2, 2)):
        out = tmp_path / f"{shards}.tsv"
        own = str(tmp_path / f"work{shards}")
        folder = [own if part == str(work) else part for part in command]
        more = ["--align", "--filters", "length", f"--shards={shards}", f"--workers={workers}"]
        assert mine_corpus([*folder, *more, "-o", str(out)]) == 0
        outputs.append((out.read_bytes(), out.with_suffix(".rejected.tsv").read_bytes()))
    assert outputs[0] == outputs[1] == outputs[2]
    assert all(outputs[0])


def test_a_run_that_failed_while_it_aligned_goes_on(
    corpora: Corpora, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, plain = corpora
    work = plain.parent / "work"
    aligned = [*command, "--align", "--retrieval", "intersect", "-o"]
    assert mine_corpus([*aligned, str(tmp_path / "out.tsv")]) == 0
    (work / "aligned" / "seal.json").unlink()
    kept = {name: content for name, content in snapshot(work).items() if name.startswith("pairs/")}
    with monkeypatch.context() as patched:

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device", "ranges")

        patched.setattr(align, "write_sorted", full)
        assert mine_corpus([*aligned, str(tmp_path / "again.tsv")]) == 2
    assert not (tmp_path / "again.tsv").exists()
    assert mine_corpus([*aligned, str(tmp_path / "again.tsv")]) == 0
    assert (tmp_path / "again.tsv").read_bytes() == (tmp_path / "out.tsv").read_bytes()
    assert kept.items() <= snapshot(work).items()
    assert not list(work.glob("*/.adit-*"))


def test_nothing_is_made_again(corpora: Corpora, tmp_path: Path) -> None:
    command, plain = corpora
    work = plain.parent / "work"
    aligned = [*command, "--align", "-o", str(tmp_path / "out.tsv")]
    assert mine_corpus(aligned) == 0
    before = snapshot(work / "aligned")
    first = (tmp_path / "out.tsv").read_bytes()
    assert mine_corpus(aligned) == 0
    assert snapshot(work / "aligned") == before
    assert not list(work.glob("*/.adit-*"))
    assert (tmp_path / "out.tsv").read_bytes() == first


def test_rejected_pairs_have_what_their_score_is_made_of(corpora: Corpora, tmp_path: Path) -> None:
    command, _ = corpora
    out = tmp_path / "out.jsonl"
    assert mine_corpus([*command, "-o", str(out), "--align", "--filters", "length"]) == 0
    kept, rejected = read_jsonl(out), read_jsonl(tmp_path / "out.rejected.jsonl")
    assert rejected
    assert {tuple(pair) for pair in rejected} == {(*kept[0], "reason")}


@pytest.mark.parametrize("margin", ["distance", "absolute"])
def test_a_margin_that_the_weights_were_not_fitted_to(
    refused: Refused, run: list[str], margin: str
) -> None:
    assert "--margin ratio" in refused([*run, "--align", "--margin", margin])


def test_what_is_not_covered_has_no_words(refused: Refused, run: list[str]) -> None:
    spoken = ["--src-lang", "de", "--tgt-lang", "tlh"]
    assert "--score words: the encoder has no vectors of words, and those of mini do not" in (
        error := refused([*run, *spoken, "--score", "words"])
    )
    assert error.endswith("cover tlh well\n")


def test_words_are_the_default_where_there_are_some(corpora: Corpora, tmp_path: Path) -> None:
    command, plain = corpora
    outputs = {}
    for name, options in {
        "default": [],
        "words": ["--score", "words"],
        "align": ["--align"],
        "distance": ["--margin", "distance"],
        "unknown": ["--src-lang", "de", "--score", "margin"],
    }.items():
        outputs[name] = tmp_path / f"{name}.jsonl"
        assert mine_corpus([*command, *options, "-o", str(outputs[name])]) == 0
    assert len({outputs[name].read_bytes() for name in ("default", "words", "align")}) == 1
    assert outputs["unknown"].read_bytes() == plain.read_bytes()
    assert "margin" not in read_jsonl(outputs["distance"])[0]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--margin", "csls"], "fitted to the ratio margin, not to csls; use --margin ratio"),
        (["--src-lang", "tlh"], "the encoder has no vectors of words"),
    ],
)
def test_why_words_are_not_compared_is_said(
    run: list[str], options: list[str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = [part for part in run if part not in ("--score", "margin")]
    assert mine_corpus([*arguments, *options]) == 0
    (line,) = [line for line in caplog.messages if "by margin alone" in line]
    assert why in line


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
    assert "--score words: the encoder has no vectors of words" in capsys.readouterr().err
