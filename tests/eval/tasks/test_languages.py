"""Every task encodes every sentence as of its own language, whatever the encoder is.

Sentences begin with the language that they are in, and leaf encoders refuse all others. Sides that
are compared come from the same parts of a joined encoder, or their dimensions would differ.
"""

import json
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from encoder import Encoder
from encoder.joined import MEANS, JoinedEncoder, Part
from encoder.trained import ApartEncoder
from eval.cli.encoder import eval_encoder
from eval.metrics import frozen as frozen_vectors
from eval.tasks import TASKS
from tests.eval.conftest import NumberEncoder, use_encoder, write_split
from tests.eval.tasks.test_suites import THIRDS, inference, write

Captured = pytest.CaptureFixture[str]
LANGUAGES = ("en", "de", "fr")
LAYOUT = {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn"}


class Leaf(NumberEncoder):
    """Encodes sentences of the language that it was asked for, and no others."""

    def __init__(self, name: str, covered: Sequence[str] = LANGUAGES) -> None:
        self.name, self.precision, self.language, self._covered = name, "float32", None, covered

    def for_language(self, language: str | None) -> "Leaf":
        own = copy(self)
        own.name, own.language = f"{self.name}/{language}", language
        return own

    def encode(self, sentences: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        assert self.language in self._covered
        for sentence in sentences:
            assert set(sentence.split()) & set(LANGUAGES) == {self.language}, sentence
        return super().encode(sentences, normalize=normalize)


def single(folder: Path) -> Encoder:
    """As LASER's, whose preprocessing depends on the language."""
    return Leaf("single")


def apart(folder: Path) -> Encoder:
    """As those of the objective ``paths``: without a language they have no vectors."""
    leaf = Leaf("apart")
    return ApartEncoder(name="apart", encoders={one: leaf.for_language(one) for one in LANGUAGES})


def joined(folder: Path) -> Encoder:
    """One part of two has no French."""
    parts = []
    for name, covered in (("all", LANGUAGES), ("some", ("en", "de"))):
        (folder / name).mkdir(parents=True)
        known = {one: {"error": 0, "measured": "ntrex"} for one in covered}
        rest = dict.fromkeys(("dim", "ngram_rows", "sha256", "vocabulary"), 0)
        config = {"format": "adit-bag-5", "languages": known, **rest}
        (folder / name / "config.json").write_text(json.dumps(config))
        mean = np.zeros(Leaf.dim, dtype=np.float32)
        save_file({one: mean for one in ("all", *covered)}, folder / name / MEANS)
        spec, leaf = str(folder / name), Leaf(name, covered)
        parts.append(Part(weight=1.0, spec=spec, whole=leaf, encoder=leaf, mean=mean))
    return JoinedEncoder(parts)


ENCODERS = (single, apart, joined)


def lines(language: str, count: int = 40) -> list[tuple[str]]:
    return [(f"{language} {n} {n * 7 % 10}",) for n in range(count)]


def aligned(folder: Path) -> list[str]:
    for language, name in LAYOUT.items():
        write(folder / f"{name}.devtest", lines(language))
    return [str(folder), "--lang", LAYOUT["de"], LAYOUT["fr"]]


def tatoeba(folder: Path) -> list[str]:
    for language, name in (("de", "deu"), ("fr", "fra")):
        write(folder / f"tatoeba.{name}-eng.{name}", lines(language))
        write(folder / f"tatoeba.{name}-eng.eng", lines("en"))
    return [str(folder), "--lang", "de", "fr"]


def mined(folder: Path) -> list[str]:
    for language in ("de", "fr"):
        pair = f"{language}-en"
        for number, split in enumerate(("training", "sample")):
            first = 1000 * number
            rows = [range(first, first + 120), range(first + 60, first + 180)]
            sides = [
                "".join(f"{side}-{n}\t{side} {n} {n + 10_000}\n" for n in each)
                for side, each in zip((language, "en"), rows, strict=True)
            ]
            gold = "".join(f"{language}-{n}\ten-{n}\n" for n in range(first + 60, first + 120))
            write_split(folder / pair, pair, split, source=sides[0], target=sides[1], gold=gold)
    return [str(folder)]


def scored(folder: Path) -> list[str]:
    rows = [(n % 6, f"de {n} 3", f"fr {n + n % 2} 3") for n in range(40)]
    write(folder / "sts.tsv", rows)
    return [str(folder / "sts.tsv"), "--lang", "deu", "fr-CA"]


def documents(folder: Path) -> list[str]:
    for language in ("de", "fr"):
        write(folder / f"a.{language}", lines(language, 6))
    (folder / "a.defr").write_text("".join(f"[{n}]:[{n}]\n" for n in range(6)))
    return [str(folder)]


def frozen(folder: Path) -> list[str]:
    rows = [(part, n % 2, f"en {1 + n % 2} {n}") for n, part in enumerate(THIRDS * 8)]
    write(folder / "SST2.tsv", rows)
    header = ["split", "id", "label", "relatedness"]
    pairs = [f"{one}_{side}" for one in LANGUAGES for side in "AB"]
    sick: list[tuple[object, ...]] = [(*header, *pairs)]
    for n, part in enumerate(THIRDS * 8):
        texts = [f"{one} {n} {side * (n % 2)}" for one in LANGUAGES for side in (0, 1)]
        sick.append((part, n, "yes" if n % 2 else "no", 1 + n % 4, *texts))
    write(folder / "sick.en-nl-pt-ja.tsv", sick)
    return [str(folder)]


def probed(folder: Path) -> list[str]:
    rows = [(part, n % 2, f"fr {1 + n % 2} {n}") for n, part in enumerate(THIRDS * 8)]
    write(folder / "sentence_length.txt", rows)
    return [str(folder), "--lang", "fr", "--classifier", "logistic"]


def inferred(folder: Path) -> list[str]:
    def of(language: str, count: int) -> list[tuple[str, str, str]]:
        return [(label, f"{language} {a}", f"{language} {b}") for label, a, b in inference(count)]

    for language in LANGUAGES:
        write(folder / f"dev.{language}.tsv", of(language, 30))
        write(folder / f"test.{language}.tsv", of(language, 30))
    write(folder / "train.tsv", of("de", 60))
    train = ["--train", str(folder / "train.tsv"), "--train-lang", "de"]
    return [str(folder), *train, "--classifier", "logistic", "--matrix"]


def topics(folder: Path) -> list[str]:
    for language, name in LAYOUT.items():
        rows = [(p, n, n % 2, f"{language} {1 + n % 2} {n}") for n, p in enumerate(THIRDS * 8)]
        write(folder / f"{name}.tsv", rows)
    return [str(folder), "--few-shot"]


def words(folder: Path) -> list[str]:
    for one, other in (("de", "en"), ("en", "fr")):
        write(folder / f"{one}-{other}.txt", [(f"{one} {n}", f"{other} {n}") for n in range(20)])
    write(folder / "de-fr.txt", [(f"de {n}", f"fr {n + n % 2}", n % 6) for n in range(20)])
    write(folder / "nameless.txt", [(f"fr {n}", f"en {n + n % 2}", n % 6) for n in range(20)])
    return [str(folder), "--lang", "fr", "en"]


def noisy(folder: Path) -> list[str]:
    for language in (*LANGUAGES, "es", "ru"):
        write(folder / f"{language}.txt", lines(language))
    return [str(folder), "--lang", "de"]


def compared(folder: Path) -> list[str]:
    tatoeba(folder / "tatoeba")
    mined(folder / "bucc-style")
    return ["one", "two", "--data", str(folder), "--lang", "de", "fr"]


DATA: dict[str, Callable[[Path], list[str]]] = {
    **{"bucc": mined, "fdr": mined, "filters": mined, "tatoeba": tatoeba, "sts": scored},
    **{name: aligned for name in ("xsim", "xsim++")},
    "retrieval": lambda folder: [*aligned(folder), "--others", "9"],
    "eigen": lambda folder: [*aligned(folder), "--samples", "9"],
    **{"align": documents, "noise": noisy, "senteval": frozen, "probe": probed, "nli": inferred},
    **{"classify": topics, "words": words, "compare": compared},
}


@pytest.fixture(params=ENCODERS)
def encoder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Encoder:
    monkeypatch.setattr(frozen_vectors, "PENALTIES", (1e-2,))  # none of the figures is looked at
    monkeypatch.setattr(frozen_vectors, "FOLDS", 2)
    made: Encoder = request.param(tmp_path / "encoder")
    use_encoder(monkeypatch, lambda spec: made)
    return made


@pytest.mark.usefixtures("encoder")
@pytest.mark.parametrize("task", TASKS)
def test_all_sentences_are_encoded_as_of_their_language(
    task: str, tmp_path: Path, capsys: Captured
) -> None:
    arguments = DATA[task](tmp_path / "data")
    assert eval_encoder([task, *arguments, "--json"]) == 0, capsys.readouterr().err


@pytest.mark.usefixtures("encoder")
def test_between_all_languages(tmp_path: Path, capsys: Captured) -> None:
    arguments = aligned(tmp_path / "data")
    assert eval_encoder(["xsim", *arguments, "--matrix", "ratio"]) == 0, capsys.readouterr().err


def test_the_languages_of_scored_pairs_are_seen_or_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    asked: list[str | None] = []

    class Asked(NumberEncoder):
        def for_language(self, language: str | None) -> "Asked":
            asked.append(language)
            return self

    use_encoder(monkeypatch, lambda spec: Asked())
    german, english = "Das Haus steht seit Jahren leer", "The house has been empty for years"
    path = tmp_path / "pairs.tsv"
    write(path, [(n % 6, f"{german} {n}", f"{english} {n + n % 2}") for n in range(30)])
    assert eval_encoder(["sts", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert asked == ["de", "en"] and list(told["figures"]) == [f"{path} de-en"]
    assert "|languages:de-en|" in told["signature"]
    assert eval_encoder(["sts", str(path), "--lang", "de", "en", "fr"]) == 2
    assert "--lang de en fr: pass one language, or one per side" in capsys.readouterr().err
    write(path, [(n % 6, f"{n} {n}", f"{n} 3") for n in range(30)])
    monkeypatch.setattr("eval.tasks.sts.seen_language", lambda texts: None)
    assert eval_encoder(["sts", str(path)]) == 2
    assert (
        "the language of the first sentences was not recognised; pass --lang"
        in capsys.readouterr().err
    )


def test_words_without_a_language_are_refused(tmp_path: Path, capsys: Captured) -> None:
    write(tmp_path / "nameless.txt", [("cat", "dog", 1), ("cat", "car", 2)])
    assert eval_encoder(["words", str(tmp_path)]) == 2
    assert (
        "does not begin with the language of its words, as de.txt; rename"
        in capsys.readouterr().err
    )


def test_words_of_a_language_without_a_dictionary_are_refused(
    tmp_path: Path, capsys: Captured
) -> None:
    write(tmp_path / "de-en.txt", [("Katze", "cat"), ("Hund", "dog")])
    write(tmp_path / "more.txt", [("gatto",)])
    words = ["words", str(tmp_path / "de-en.txt")]
    assert eval_encoder([*words, "--vocabulary", f"it={tmp_path / 'more.txt'}"]) == 2
    told = capsys.readouterr().err
    assert (
        "--vocabulary it=...: the dictionaries are only of de, en" in told and told.count("\n") == 1
    )
    assert "only of de, en; pass a" in told


def test_equal_scores_correlate_with_nothing(tmp_path: Path, capsys: Captured) -> None:
    write(tmp_path / "pairs.tsv", [(1, "a", "b"), (1, "c", "d")])
    assert eval_encoder(["sts", str(tmp_path / "pairs.tsv")]) == 2
    assert "pairs.tsv: all scores are 1; pass different ones" in capsys.readouterr().err
