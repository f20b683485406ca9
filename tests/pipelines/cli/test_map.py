"""``adit map``: from text of two made-up languages to an encoder that mines."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from encoder import load_encoder
from encoder.monolingual.vec import read_vec, write_vec
from pipelines.cli.mine import mine_corpus
from pipelines.cli.train import map_command
from tests.encoder.monolingual.text import SHARED, WORDS, made_up_text, words_of

SMALL = (
    *("--src-lang", "ar", "--tgt-lang", "is", "--dim", "16", "--epochs", "20", "--quiet"),
    *("--vocabulary-size", "80", "--ngram-rows", "200"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("map")
    for seed, language in enumerate(("ar", "is")):
        lines = made_up_text(language, 4000, seed=seed)
        (folder / f"{language}.txt").write_text("\n".join(lines) + "\n")
    return folder


def mapped(place: Path, output: Path, *options: str) -> int:
    sides = [str(place / "ar.txt"), str(place / "is.txt")]
    return map_command([*sides, "-o", str(output), *SMALL, *options])


@pytest.fixture(scope="module")
def made(place: Path) -> Path:
    assert mapped(place, place / "made", "--vec", str(place / "vec")) == 0
    return place / "made"


def test_words_that_mean_the_same_are_near_in_the_encoder(made: Path) -> None:
    encoder = load_encoder(str(made))
    source, target = (
        encoder.for_language(language).encode(words_of(language)) for language in ("ar", "is")
    )
    cosines = source @ target.T
    own = np.arange(SHARED, WORDS)
    ranks = (cosines[own] > cosines[own, own][:, None]).sum(axis=1)
    assert np.median(ranks) <= 4  # words of a topic are all alike; by chance it would be 60


@pytest.mark.parametrize("start", ["identical", "similarity"])
def test_the_mapped_vectors_are_written_and_can_be_given(
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    start: str,
) -> None:
    vec = made.parent / "vec"
    assert read_vec(vec / "ar.vec").vectors.shape[1] == 16
    sides = [str(vec / "ar.vec"), str(vec / "is.vec")]
    options = [*(option for option in SMALL if option != "--quiet"), "--start", start]
    assert map_command([*sides, "-o", str(tmp_path / "again"), *options]) == 0
    assert "ar-is\t0 refinements\tmean cosine 0." in capsys.readouterr().out
    assert f"write: {2 * WORDS} words in " in caplog.text


def test_an_encoder_that_was_made_mines(made: Path, tmp_path: Path) -> None:
    for language in ("ar", "is"):
        lines = made_up_text(language, 60, seed=9)
        (tmp_path / language).write_text("\n".join(lines) + "\n")
    out = tmp_path / "out.tsv"
    given = [str(tmp_path / "ar"), str(tmp_path / "is"), "-o", str(out), "--encoder", str(made)]
    assert mine_corpus([*given, "--src-lang", "ar", "--tgt-lang", "is", "--quiet", "--all"]) == 0
    pairs = [line.split("\t")[1:] for line in out.read_text().splitlines()]
    translation = dict(
        zip(*(made_up_text(language, 60, seed=9) for language in ("ar", "is")), strict=True)
    )
    assert np.mean([translation[source] == target for source, target in pairs]) > 0.5


def test_a_second_call_gives_the_same_bytes(place: Path, made: Path, tmp_path: Path) -> None:
    assert mapped(place, tmp_path / "made") == 0
    for name in ("weights.safetensors", "more/weights.safetensors"):
        assert (tmp_path / "made" / name).read_bytes() == (made / name).read_bytes()
    assert mapped(place, tmp_path / "made") == 0  # over an encoder that is there
    load_encoder(str(tmp_path / "made")).for_language("ar").encode("ab")


def test_languages_that_write_their_states_at_once(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    both, fsync = threading.Barrier(2, timeout=30), os.fsync

    def wait(descriptor: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            both.wait()
        fsync(descriptor)

    monkeypatch.setattr("encoder.checkpoint.os.fsync", wait)
    assert mapped(place, tmp_path / "made", "--epochs", "2") == 0


def vectors(path: Path, words: list[str], dim: int) -> str:
    rows = np.random.default_rng(1).standard_normal((len(words), dim)).astype(np.float32)
    write_vec(path, words, rows)
    return str(path)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--start", "none.txt"), "--start none.txt: file not found"),
        (("--start", "unknown.txt"), "no pair of words has vectors on both sides"),
        (("--start", "short.txt"), "short.txt line 1: expected a word and its translation"),
        (("--start", "latin.txt"), "latin.txt line 1: not UTF-8 ("),
        ((), "the languages share no word"),
        (("--vec", "a.vec"), "a.vec is a file; name a folder"),
        (("--vec", "a.vec/b"), "a.vec is a file; name a folder"),
        (("--refinements", "-1"), "--refinements -1: must be at least 0"),
        (("--tgt-lang", "ar"), "--src-lang, --tgt-lang: both are ar"),
        (("--dim", "0"), "--dim 0: expected 1 or more"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unknown.txt").write_text("x y\n")
    (tmp_path / "short.txt").write_text("x\n")
    (tmp_path / "latin.txt").write_bytes("Straße street".encode("latin-1"))
    own = [
        vectors(tmp_path / f"{end}.vec", [f"{word}{end}" for word in words_of("um")[:60]], 4)
        for end in ("a", "b")
    ]
    given = [*own, "-o", "out", *SMALL, "--vocabulary-size", "40", *options]
    assert map_command(given) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_sides_that_do_not_fit_and_empty_ones_are_refused(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = vectors(tmp_path / "a.vec", words_of("um")[:60], 4)
    other = vectors(tmp_path / "b.vec", words_of("um")[:60], 5)
    assert map_command([own, other, "-o", str(tmp_path / "out"), *SMALL]) == 2
    assert "a.vec: 4 dimensions, but " in capsys.readouterr().err
    (tmp_path / "empty.txt").write_text("\n\n")
    sides = [str(tmp_path / "empty.txt"), str(place / "is.txt")]
    assert map_command([*sides, "-o", str(tmp_path / "none"), *SMALL]) == 2
    assert "empty.txt: contains no usable sentence; check it" in capsys.readouterr().err
