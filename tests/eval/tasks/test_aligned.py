"""eval-encoder xsim, xsim++, retrieval and sts: each figure recomputed from the files."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoder.tokenizer import Tokens
from encoder.words import Words
from eval.cli.encoder import eval_encoder
from eval.tasks.retrieval import _idf_weighted
from eval.tasks.xsim_pp import KINDS, hard_negatives
from miner.commandline import product_version
from tests.eval.conftest import NumberEncoder
from tests.eval.metrics.test_similarity import slow_best

pytestmark = pytest.mark.usefixtures("number_encoder")
Captured = pytest.CaptureFixture[str]

COUNT = 16
ENGLISH = [f"The shop of Ann sold {n} of {n * 7 % 10} boats" for n in range(COUNT)]
# German has lost the second number of each sentence; in French two sentences are exchanged.
GERMAN = [f"Satz {n}" for n in range(COUNT)]
FRENCH = [f"phrase {n} {n * 7 % 10}" for n in [1, 0, *range(2, COUNT)]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, lines in (("en", ENGLISH), ("de", GERMAN), ("fr", FRENCH)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def run(*arguments: str | Path) -> int:
    return eval_encoder([*map(str, arguments), "--encoder", "numbers"])


def record(capsys: Captured, *arguments: str | Path) -> dict:
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def vectors(lines: list[str]) -> np.ndarray:
    return NumberEncoder().encode(lines)


def slow_rate(source: list[str], target: list[str], margin: str) -> float:
    best = slow_best(vectors(source), vectors(target), 4, margin)
    return sum(found != row for row, found in enumerate(best)) / len(source)


def test_xsim(folder: Path, capsys: Captured) -> None:
    told = record(capsys, "xsim", folder, "--lang", "fr", "de")
    assert list(told["figures"]) == ["fr", "de"]
    for language, lines in (("fr", FRENCH), ("de", GERMAN)):
        found = told["figures"][language]
        for margin in ("absolute", "distance", "ratio"):
            expected = slow_rate(lines, ENGLISH, margin)
            assert found["beside"][margin] == pytest.approx(expected)
        low, high = found["interval"]
        assert low <= found["value"] == found["beside"]["ratio"] <= high
    rates = [told["figures"][language]["value"] for language in ("fr", "de")]
    assert rates[0] >= 2 / COUNT
    assert told["mean"]["value"] == pytest.approx(sum(rates) / 2)
    joined = b"".join((folder / f"{name}.txt").read_bytes() for name in ("fr", "de", "en"))
    digest = hashlib.sha256(joined).hexdigest()[:8]
    assert told["signature"] == (
        f"xsim|languages:fr,de,en|sentences:16|sha256:{digest}|k:4|target:en|encoder:numbers|"
        f"interval:bootstrap-1000|v:{product_version()}"
    )


def test_xsim_table(folder: Path, capsys: Captured) -> None:
    told = record(capsys, "xsim", folder, "--lang", "all")
    assert run("xsim", folder, "--lang", "all") == 0
    header, *rows, signature = capsys.readouterr().out.splitlines()
    assert header == "language    sentences  absolute  distance    ratio  95% interval"
    assert [row.split()[0] for row in rows] == ["de", "fr", "mean"]
    assert rows[0].split()[1:5] == [
        "16",
        *(
            f"{told['figures']['de']['beside'][name]:.2%}"
            for name in ("absolute", "distance", "ratio")
        ),
    ]
    assert signature == told["signature"]


def test_xsim_matrix(folder: Path, capsys: Captured) -> None:
    told = record(capsys, "xsim", folder, "--lang", "all", "--matrix", "ratio")
    texts = {"de": GERMAN, "en": ENGLISH, "fr": FRENCH}
    expected = {
        source: {
            target: pytest.approx(slow_rate(texts[source], texts[target], "ratio"))
            for target in texts
            if target != source
        }
        for source in texts
    }
    assert told["rates"] == expected
    rates = [rate for row in told["rates"].values() for rate in row.values()]
    assert told["mean"] == pytest.approx(sum(rates) / 6)
    assert run("xsim", folder, "--lang", "all", "--matrix", "ratio") == 0
    header, *rows, _ = capsys.readouterr().out.splitlines()
    assert header.split() == ["from", "de", "en", "fr", "mean"]
    french = rows[2].split()
    assert french[:3] == [
        "fr",
        *(f"{told['rates']['fr'][name]:.2%}" for name in ("de", "en")),
    ]
    column = [told["rates"][name]["en"] for name in ("de", "fr")]
    assert rows[3].split()[2] == f"{sum(column) / 2:.2%}"


def test_xsim_matrix_without_english(folder: Path, capsys: Captured) -> None:
    told = record(capsys, "xsim", folder, "--lang", "de", "fr", "--matrix", "ratio")
    assert {name: list(row) for name, row in told["rates"].items()} == {"de": ["fr"], "fr": ["de"]}
    (folder / "en.txt").unlink()
    assert record(capsys, "xsim", folder, "--lang", "all", "--matrix", "ratio") == told
    for names in (["de"], ["de", "deu_Latn"]):
        assert run("xsim", folder, "--lang", *names, "--matrix", "ratio") == 2
        assert "--matrix: de is the only language; add another" in capsys.readouterr().err


def test_xsim_pp(folder: Path, capsys: Captured) -> None:
    told = record(capsys, "xsim++", folder, "--lang", "de", "fr")
    copies = hard_negatives(ENGLISH)
    candidates = [*ENGLISH, *(copy.text for copy in copies)]
    of = [(row, "") for row in range(COUNT)] + [(copy.row, copy.kind) for copy in copies]
    for kind in KINDS:
        assert f"|{kind}:{sum(copy.kind == kind for copy in copies)}|" in told["signature"]
    for language, lines in (("de", GERMAN), ("fr", FRENCH)):
        counts = dict.fromkeys(["right", *KINDS, "other"], 0)
        best = slow_best(vectors(lines), vectors(candidates), 4, "ratio")
        for row, found in enumerate(best):
            own, kind = of[found]
            counts["other" if own != row else kind or "right"] += 1
        result = told["figures"][language]
        assert result["value"] == pytest.approx(1 - counts["right"] / COUNT)
        for kind in (*KINDS, "other"):
            assert result["beside"][kind] == pytest.approx(counts[kind] / COUNT)
    assert told["figures"]["fr"]["beside"]["other"] > 0
    means = [told["figures"][language]["value"] for language in ("de", "fr")]
    assert told["mean"]["value"] == pytest.approx(sum(means) / 2)


def test_retrieval(folder: Path, capsys: Captured) -> None:
    told = record(capsys, "retrieval", folder, "--lang", "de", "--others", "all")
    for pair, source, target in (("de-en", GERMAN, ENGLISH), ("en-de", ENGLISH, GERMAN)):
        cosines = vectors(source) @ vectors(target).T
        places = [sorted(-row).index(-row[number]) for number, row in enumerate(cosines)]
        for depth in (1, 5, 10):
            expected = sum(place < depth for place in places) / COUNT
            assert told["figures"][pair]["beside"][f"P@{depth}"] == pytest.approx(expected)
    assert told["mean"]["value"] == pytest.approx(
        sum(told["figures"][pair]["value"] for pair in ("de-en", "en-de")) / 2
    )
    assert "|others:all|" in told["signature"]
    assert run("retrieval", folder, "--lang", "de") == 2
    refused = capsys.readouterr()
    assert "--others 999: a language has only 15 other sentences" in refused.err
    assert refused.out == ""  # before anything is encoded


def test_retrieval_among_more_sentences(folder: Path, capsys: Captured) -> None:
    more = {"de": ["Satz 3", "Satz 99"], "en": ["of 5", "97", "98"]}
    options = []
    for name, lines in more.items():
        (folder / f"more.{name}").write_text("".join(f"{line}\n" for line in lines))
        options += ["--more", f"{name}={folder / f'more.{name}'}"]
    command = ["retrieval", folder, "--lang", "de", "--others", "all", *options]
    told = record(capsys, *command)
    sides = {"de": GERMAN + more["de"], "en": ENGLISH + more["en"]}
    for source, target in (("de", "en"), ("en", "de")):
        cosines = vectors(sides[source][:COUNT]) @ vectors(sides[target]).T
        places = [(row > row[number]).sum() for number, row in enumerate(cosines)]
        assert told["figures"][f"{source}-{target}"]["value"] == pytest.approx(
            sum(place == 0 for place in places) / COUNT
        )
    assert "|more:5-" in told["signature"]
    for wrong, problem in (
        (
            ("--more", f"fr={folder / 'more.de'}"),
            "--more fr=...: not measured; use one of de, en",
        ),
        (("--idf", f"de={folder / 'more.de'}"), "--idf: no file of en; add en=FILE"),
    ):
        assert run(*command, *wrong) == 2
        assert problem in capsys.readouterr().err


@given(st.integers(0, 999))
def test_means_of_words_by_idf(seed: int) -> None:
    """Against each sentence's sum by the definition of idf."""
    random = np.random.default_rng(seed)
    table = np.eye(6, dtype=np.float32)
    texts = [[*random.integers(6, size=random.integers(5))] for _ in range(9)]

    class OfWords(NumberEncoder):
        def split(self, sentence: str) -> list[str]:
            return sentence.split()

        def words(self, sentences: list[str]) -> Words:
            lists = [[int(word) for word in sentence.split()] for sentence in sentences]
            tokens = Tokens.of(lists)
            return Words(vectors=table, weights=np.ones(6), ids=tokens.ids, offsets=tokens.offsets)

    sentences = [" ".join(map(str, words)) for words in texts]
    found = _idf_weighted(OfWords(), sentences[:4], sentences[4:])
    for words, row in zip(texts[:4], found, strict=True):
        often = [sum(word in other for other in texts[4:]) for word in range(6)]
        total = sum((np.log(5 / max(1, often[word])) * table[word] for word in words), np.zeros(6))
        length = np.linalg.norm(total)
        np.testing.assert_allclose(row, total / length if length else total, atol=1e-5)


def test_words_are_needed_to_be_weighed() -> None:
    with pytest.raises(ValueError, match="has no word vectors"):
        _idf_weighted(NumberEncoder(), ["a"], ["b"])


def test_sts(folder: Path, capsys: Captured) -> None:
    path = folder / "sts.tsv"
    rows = [(5.0, "a 1 2", "b 1 2"), (3.0, "a 1 2", "b 1 3"), (0.5, "a 4", "b 5"), (2, "6", "7 6")]
    path.write_text("".join(f"{score}\t{one}\t{two}\n" for score, one, two in rows))
    other = folder / "other.tsv"
    other.write_text(path.read_text())
    told = record(capsys, "sts", path, other, "--lang", "en")
    first, second = (vectors([row[side] for row in rows]) for side in (1, 2))
    angles = [
        np.arccos(min(1.0, float(a.astype(float) @ b))) for a, b in zip(first, second, strict=True)
    ]
    expected = np.corrcoef([row[0] for row in rows], [-angle for angle in angles])[0, 1]
    assert told["figures"][f"{path} en-en"]["value"] == pytest.approx(expected, abs=1e-4)
    assert told["mean"]["value"] == pytest.approx(expected, abs=1e-4)
    assert run("sts", path, "--lang", "en") == 0
    header, row, signature = capsys.readouterr().out.splitlines()
    assert header.split() == ["file", "pairs", "figure", "95%", "interval"]
    assert row.split()[:4] == [str(path), "en-en", "4", f"{expected:.2%}"]
    assert signature.startswith("sts|languages:en-en|similarity:angular|sha256:")


@pytest.mark.parametrize("task", ["xsim", "noise"])
def test_only_english(folder: Path, capsys: Captured, task: str) -> None:
    assert run(task, folder, "--lang", "en") == 2
    error = capsys.readouterr().err
    assert f"--lang en: English is the only language; pass others of {folder}, " in error
