"""eval-encoder noise: what is made of parallel text, and what filters remove of it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from encoder import load_encoder
from eval.cli.encoder import eval_encoder
from eval.tasks.noise import SITE_LINES, make_noise
from miner.filters import FILTERS, Suspects, main_script, median_log_ratio
from miner.judge.features import RunStatistics, Texts, compute_features, read_texts
from miner.judge.model import bundled_judge
from miner.judge.prior import LIKELY

GERMAN = ["Anna kaufte 12 Boote in Kiel.", "Der Hund schläft im Garten.", "Es regnet seit Tagen."]
ENGLISH = [
    "Anna bought 12 boats in Kiel.",
    "The dog sleeps in the garden.",
    "It has rained for days.",
]
RUSSIAN = ["Анна купила 12 лодок в Киле.", "Собака спит в саду.", "Дождь идёт уже много дней."]
SPANISH = [
    "Ana compró 12 barcos en Kiel.",
    "El perro duerme en el jardín.",
    "Llueve desde hace días.",
]


def test_what_is_made() -> None:
    made = make_noise(GERMAN, ENGLISH, {"ru": RUSSIAN})
    assert made["untranslated"] == (GERMAN, GERMAN)
    assert made["misaligned"] == (GERMAN, [*ENGLISH[1:], ENGLISH[0]])
    assert made["truncated"][1][0] == "Anna bought 12"
    assert made["boilerplate"][1] == list(SITE_LINES[:3])
    assert made["number"] == (GERMAN[:1], ["Anna bought 23 boats in Kiel."])
    assert all("https://" in text for text in made["link"][1])
    assert made["in ru"] == (GERMAN, RUSSIAN)
    assert make_noise(["她买船"], ["十二条船只"], {})["truncated"][1] == ["十二"]


def test_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"de": GERMAN, "en": ENGLISH, "ru": RUSSIAN, "es": SPANISH}
    for name, lines in texts.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = ["noise", str(tmp_path), "--lang", "de", "ru"]
    assert eval_encoder([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["removed"]
    assert list(told) == ["de", "ru", "mean"]
    shares = told["de"]
    languages = ("de", "en")

    def read(source: Sequence[str], target: Sequence[str]) -> Texts:
        makers = [load_encoder()] * 2
        return read_texts(makers, source, target, languages=languages, is_given=True)

    usual = RunStatistics.of(read(GERMAN, ENGLISH))
    assert list(shares) == [
        *(name for name in FILTERS if name != "hub"),
        "any",
        "judge",
        "judge: lost",
    ]
    scores = {}
    for kind, (source, target) in {
        "clean": (GERMAN, ENGLISH),
        **make_noise(GERMAN, ENGLISH, {"es": SPANISH, "ru": RUSSIAN}),
    }.items():
        suspects = Suspects(
            source=source,
            target=target,
            ratio=median_log_ratio(GERMAN, ENGLISH),
            languages=("de", "en"),
            scripts=("LATIN", "LATIN"),
        )
        masks = [FILTERS[name](suspects) for name in shares if name in FILTERS]
        for name, mask in zip(shares, masks, strict=False):
            assert shares[name][kind] == pytest.approx(mask.mean())
        either = [any(mask[row] for mask in masks) for row in range(len(source))]
        seen = compute_features(read(source, target), None, usual)
        scores[kind] = bundled_judge(is_given=True).scores(seen)
        found = bundled_judge(is_given=True).probabilities([scores[kind], scores["clean"]])
        assert shares["judge"][kind] == (found.predict(scores[kind]) < LIKELY).mean()
        assert shares["judge: lost"][kind] == (found.predict(scores["clean"]) < LIKELY).mean()
        assert shares["any"][kind] == pytest.approx(sum(either) / len(either))
    assert shares["copied"]["untranslated"] == shares["urls"]["link"] == 1
    assert shares["script"]["in ru"] == shares["numbers"]["number"] == 1
    assert told["mean"]["copied"]["untranslated"] == 1
    assert told["mean"]["any"]["in es"] == (shares["any"]["in es"] + told["ru"]["any"]["in es"]) / 2
    assert eval_encoder(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["de", "clean", "untranslated"]
    assert lines[-1].startswith("noise|lang:de,ru|judge:")


def test_files_named_by_language_and_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"eng_Latn": ENGLISH, "rus_Cyrl": RUSSIAN, "spa_Latn": SPANISH}
    for name, lines in texts.items():
        (tmp_path / f"{name}.devtest").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert eval_encoder(["noise", str(tmp_path), "--lang", "ru", "--json"]) == 0
    shares = json.loads(capsys.readouterr().out)["removed"]["rus_Cyrl"]
    assert "in es" in shares["any"]
    assert "in ru" not in shares["any"]


def test_usual_script() -> None:
    assert main_script(["12 Собака dog", "спит"]) == "CYRILLIC"
    assert main_script(["これはペンです", "日本語"]) == "CJK"
    assert main_script(["12", ""]) is None
