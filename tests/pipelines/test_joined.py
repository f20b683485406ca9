"""Runs with joined encoders: the parts of each pair, weights, work folders of other parts."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from encoder import BUNDLED, folder_of, load_encoder
from encoder.bag.encoder import BagEncoder
from encoder.base import SAMPLE
from encoder.use.encoder import UseEncoder
from eval.runs.store import open_run
from miner import mine
from miner.arrays import Columns, take_columns
from pipelines.cli.mine import embed_corpus, mine_corpus
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.run import mining
from tests.pipelines.worlds import ON_BEAM, one_line, read_jsonl, write_lines

Run = Callable[..., bytes]
Fresh = Callable[[str], bytes]


@pytest.fixture
def corpora(tmp_path: Path, sample_sentences: list[str]) -> tuple[Path, Path]:
    """German and English, 90 sentences a side in a folder of one file each."""
    folders = tmp_path / "src", tmp_path / "tgt"
    for folder, start in zip(folders, (0, 300), strict=True):
        folder.mkdir()
        write_lines(folder / "part-1.txt", sample_sentences[start : start + 90])
    return folders


@pytest.fixture
def run(tmp_path: Path, corpora: tuple[Path, Path]) -> Run:
    def run(encoder: str, *options: str, work: str = "work", languages: str = "de en") -> bytes:
        out = tmp_path / "out.jsonl"
        source, target = languages.split()
        known = ["--src-lang", source, "--tgt-lang", target]
        places = [*map(str, corpora), "-o", str(out), "--work-dir", str(tmp_path / work)]
        assert mine_corpus([*places, *known, "--encoder", encoder, *options]) == 0
        return out.read_bytes()

    return run


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, sample_sentences: list[str]) -> Fresh:
    """Mine the same corpora by an encoder in a work folder of its own, once for each."""

    @cache
    def fresh(encoder: str) -> bytes:
        folder = tmp_path_factory.mktemp("fresh")
        command = ["-o", str(folder / "out.jsonl"), "--encoder", encoder]
        for side, language, start in (("src", "de", 0), ("tgt", "en", 300)):
            corpus = write_lines(folder / side, sample_sentences[start : start + 90])
            command += [str(corpus), f"--{side}-lang", language]
        assert mine_corpus(command) == 0
        return (folder / "out.jsonl").read_bytes()

    return fresh


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many sentences each kind of encoder has encoded."""
    counts = {"mini": 0, "use": 0}
    for name, kind in (("mini", BagEncoder), ("use", UseEncoder)):
        really = kind._embed

        def embed(self, sentences, *, normalize, name=name, really=really):
            counts[name] += len(sentences)
            return really(self, sentences, normalize=normalize)

        monkeypatch.setattr(kind, "_embed", embed)
    return counts


def test_a_run_mines_the_vectors_that_the_library_makes(
    run: Run, sample_sentences: list[str], tmp_path: Path
) -> None:
    run("0.7*mini+use", "--score", "margin", "--margin", "ratio", "--precision", "float32")
    sides = sample_sentences[:90], sample_sentences[300:390]
    encoder = load_encoder("0.7*mini+use").for_languages(("de", "en"))
    vectors = [
        encoder.for_language(language).encode(texts)
        for language, texts in zip(("de", "en"), sides, strict=True)
    ]
    expected = mine(*vectors)
    found = read_jsonl(tmp_path / "out.jsonl")
    assert len(found) == len(expected.score) > 30
    np.testing.assert_allclose([pair["score"] for pair in found], expected.score, rtol=0, atol=2e-3)
    best = [(sides[0][i], sides[1][j]) for i, j in zip(expected.source, expected.target)][:20]  # noqa: B905
    assert {(pair["source_text"], pair["target_text"]) for pair in found[:20]} == set(best)


@pytest.mark.parametrize("options", [["--shards", "3"], ["--shards", "2", *ON_BEAM]])
def test_shards_and_workers_do_not_change_a_byte(
    run: Run, fresh: Fresh, options: list[str]
) -> None:
    assert run("mini+use", *options) == fresh("mini+use")


def test_what_is_added_is_all_that_is_encoded(
    run: Run,
    corpora: tuple[Path, Path],
    sample_sentences: list[str],
    encoded: dict[str, int],
) -> None:
    run("mini+use")
    for folder, start in zip(corpora, (90, 390), strict=True):
        write_lines(folder / "part-2.txt", sample_sentences[start : start + 9])
    before = dict(encoded)
    grown = run("mini+use")
    # A mean that hung on the corpus would encode all of it anew; samples of precision are few.
    assert encoded["mini"] - before["mini"] < 90
    assert encoded["use"] - before["use"] < 90
    assert grown == run("mini+use", work="new")


def test_other_weights_encode_nothing_again_but_search(
    run: Run, fresh: Fresh, encoded: dict[str, int]
) -> None:
    run("mini+use")
    before = dict(encoded)
    other = run("2*mini+use")
    assert encoded["mini"] == before["mini"]
    assert encoded["use"] - before["use"] <= 2 * len(SAMPLE)  # on which its precision is tried
    assert other == fresh("2*mini+use")
    assert other != fresh("mini+use")


@pytest.mark.parametrize("first", ["mini", "use", "mini+use"])
def test_a_work_folder_of_other_parts_is_never_mixed(run: Run, fresh: Fresh, first: str) -> None:
    run(first)
    second = "use+mini" if first == "mini+use" else "mini+use"
    assert run(second) == fresh(second)


def test_other_means_are_other_vectors(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run("mini+use")
    monkeypatch.setattr(
        "encoder.joined._find_mean",
        lambda spec, encoder, language: np.full(encoder.dim, 0.01, "f4"),
    )
    changed = run("mini+use")
    assert changed != before
    assert changed == run("mini+use", work="new")


def test_parts_that_lack_a_language_are_left_out_with_a_line(
    run: Run, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with caplog.at_level(logging.INFO):
        run("mini+use", languages="la en")
    assert "skipping use, which does not cover la-en" in caplog.text
    summary = json.loads((tmp_path / "work" / "run.json").read_text(encoding="utf-8"))
    assert summary["options"]["encoder"] == "0.5*mini"
    assert "use" not in summary["encoder"]


@pytest.mark.usefixtures("best")
def test_best_is_the_default(run: Run, fresh: Fresh, capsys: pytest.CaptureFixture[str]) -> None:
    first = run("best")
    assert "\nencoder: 0.5*mini+1.0*use\n" in capsys.readouterr().err
    assert first == fresh("mini+use")


def test_a_finished_run_has_the_vectors_of_its_pair(run: Run, tmp_path: Path) -> None:
    run("0.7*mini+use", "--precision", "float32")
    finished = open_run(tmp_path / "work")
    texts = finished.source.texts(finished.source.searched)
    encoder = load_encoder("0.7*mini+use").for_language("de")
    stored = finished.source.vectors()
    cosines = np.einsum("nd,nd->n", stored, encoder.encode(texts))
    assert (cosines / np.linalg.norm(stored, axis=1)).min() > 0.9999


def test_each_language_of_many_is_encoded_once_by_each_part(
    tmp_path: Path, sample_sentences: list[str], encoded: dict[str, int]
) -> None:
    folder = tmp_path / "corpora"
    folder.mkdir()
    for language, start in (("de", 0), ("en", 300), ("la", 100)):
        write_lines(folder / f"{language}.txt", sample_sentences[start : start + 60])
    out = tmp_path / "pairs"
    how = ["--score", "margin", "--precision", "float32", "-q"]
    command = ["--languages", str(folder), "-o", str(out), "--format", "jsonl"]
    samples = dict(encoded)
    load_encoder("mini+use", precision="float32")
    samples = {name: encoded[name] - samples[name] for name in samples}
    before = dict(encoded)
    pairs = ["--pairs", "de-en,la-en", "--encoder", "mini+use"]
    assert mine_corpus([*command, *pairs, *how]) == 0
    taken = {name: encoded[name] - before[name] - samples[name] for name in encoded}
    assert taken == {"mini": 240, "use": 120}  # names of Latin ones once more
    single = tmp_path / "single.jsonl"
    for pair, spec in (("de-en", "mini+use"), ("la-en", "0.5*mini")):
        one, other = pair.split("-")
        sides = [str(folder / f"{language}.txt") for language in (one, other)]
        known = ["--src-lang", one, "--tgt-lang", other, "--encoder", spec]
        assert mine_corpus([*sides, "-o", str(single), *known, *how]) == 0
        assert (out / f"{pair}.jsonl").read_bytes() == single.read_bytes()


def test_embed_writes_joined_vectors(tmp_path: Path, sample_sentences: list[str]) -> None:
    corpus = write_lines(tmp_path / "few.de", sample_sentences[:20])
    out = tmp_path / "few.npy"
    arguments = ["-o", str(out), "--encoder", "mini+use", "--lang", "de", "-q"]
    assert embed_corpus([str(corpus), *arguments]) == 0
    expected = load_encoder("mini+use").for_language("de").encode(sample_sentences[:20])
    np.testing.assert_array_equal(np.load(out), expected)


@pytest.mark.parametrize(
    "spec", ["mini+mini", "0*mini+use", "mini+", "mini+best", "mini+nothing-there"]
)
def test_what_is_no_joined_encoder_is_refused_in_one_line(
    corpora: tuple[Path, Path], tmp_path: Path, spec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.tsv"
    assert mine_corpus([*map(str, corpora), "-o", str(out), "--encoder", spec, "-q"]) == 2
    assert "encoder" in one_line(capsys.readouterr().err, "mine-corpus")
    assert not out.exists()


def test_columns_are_taken_with_their_weights() -> None:
    rows = np.arange(12, dtype=np.float16).reshape(3, 4)
    assert take_columns(rows, ()) is rows
    found = take_columns(rows, [Columns(3, 4, 2.0), Columns(0, 2, 0.5)])
    np.testing.assert_array_equal(
        found, np.stack([2 * rows[:, 3], rows[:, 0] / 2, rows[:, 1] / 2], 1)
    )
    assert found.dtype == np.float32


@pytest.mark.usefixtures("best")
def test_mine_corpus_takes_best_by_default(tmp_path: Path, corpora: tuple[Path, Path]) -> None:
    options = MiningOptions(
        source=CorpusOptions(path=corpora[0], language="de"),
        target=CorpusOptions(path=corpora[1], language="en"),
        output=tmp_path / "own.tsv",
        work_dir=tmp_path / "own",
    )
    mining.mine_corpus(options)
    summary = json.loads((tmp_path / "own" / "run.json").read_text(encoding="utf-8"))
    assert summary["options"]["encoder"] == "0.5*mini+1.0*use"


def test_a_folder_by_a_relative_name_is_resumed_on_beam(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder_of(BUNDLED), tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    run("own+mini")
    assert run("own+mini", "-k", "3", *ON_BEAM) == run("own+mini", "-k", "3", work="other")
