"""What is said of the languages of corpora."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.context import RunContext
from pipelines.options import CorpusOptions, MiningOptions, job_of
from pipelines.stages.reading.language import decide_languages, describe_language, language_warnings
from tests.pipelines.worlds import World, write_lines

SWEDISH = "Den gamla mannen gick långsamt hem genom skogen i regnet."
GERMAN = "Der alte Mann ging im Regen langsam durch den Wald nach Hause."


def options_for(
    folder: Path, language: str | None = None, shares: Mapping[str, float] | None = None
) -> MiningOptions:
    """Options with an encoder that covers German well, and Swedish hardly."""
    languages = {
        "de": {"error": 0.01, "measured": "ntrex"},
        "sv": {"error": 0.74, "measured": "tatoeba"},
    }
    text = json.dumps({"languages": languages})
    (folder / "config.json").write_text(text, encoding="utf-8")
    corpus = CorpusOptions(path=folder / "a.txt", language=language, shares=shares or {})
    return MiningOptions(
        source=corpus,
        target=corpus,
        output=folder / "out.tsv",
        work_dir=folder / "work",
        encoder=str(folder),
    )


@pytest.mark.parametrize(
    ("given", "shares", "said"),
    [
        (None, {"de": 0.9, "nl": 0.1}, []),
        ("deu", {"de": 0.9, "nl": 0.1}, []),
        ("de", {"nl": 0.8, "de": 0.2}, []),
        ("de", {"nl": 0.95, "de": 0.05}, ["95% of a sample is nl"]),
        (
            None,
            {"sv": 1.0},
            ["search error of about 74%; to use LASER, which covers it, run 'adit fetch sv"],
        ),
        (None, {"pl": 1.0}, ["does not cover pl"]),
        ("tlh", {"uz": 0.3, "hr": 0.2}, ["the largest is uz, 30%", "does not cover tlh"]),
        (None, {"uz": 0.3, "hr": 0.2}, ["language not recognised"]),
        ("sv", {}, []),
    ],
)
def test_warnings(
    tmp_path: Path, given: str | None, shares: dict[str, float], said: list[str]
) -> None:
    lines = language_warnings(options_for(tmp_path, given, shares), "source")
    assert len(lines) == len(said)
    assert all(part in line for part, line in zip(said, lines, strict=True))


def seen(folder: Path, *lines: str) -> str | None:
    """The language that a run decides on for a corpus of these lines."""
    write_lines(folder / "a.txt", lines)
    run = decide_languages(RunContext(job_of(options_for(folder))))
    return run.options.source.effective_language


def test_a_corpus_that_grows_stays_in_its_language(tmp_path: Path) -> None:
    assert seen(tmp_path, *[SWEDISH] * 30) == "sv"
    assert seen(tmp_path, *[SWEDISH] * 30, *[GERMAN] * 90) == "sv"
    assert seen(tmp_path, *[GERMAN] * 90, *[SWEDISH] * 30) == "de"


def test_a_few_sentences_are_taken_as_one(tmp_path: Path) -> None:
    assert seen(tmp_path, "Ich weiß.", "Ja, das stimmt.", "Komm bald!") == "de"
    assert seen(tmp_path, "1234", "...") is None


def test_what_is_given_decides(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.txt", [GERMAN] * 30)
    run = decide_languages(RunContext(job_of(options_for(tmp_path, "nl"))))
    assert run.options.source.effective_language == "nl"
    assert run.options.source.shares == {"de": 1.0}


def test_a_corpus_on_both_sides_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_lines(tmp_path / "a.txt", [SWEDISH] * 30)
    decide_languages(RunContext(job_of(options_for(tmp_path))))
    assert [record.getMessage().count("is weak in sv") for record in caplog.records] == [1]


def test_a_corpus_that_cannot_be_read_is_left_to_the_stage_that_reads_it(tmp_path: Path) -> None:
    run = decide_languages(RunContext(job_of(options_for(tmp_path))))
    assert run.options.source.effective_language is None


def test_only_where_the_encoder_knows_its_languages(tmp_path: Path) -> None:
    options = options_for(tmp_path, None, {"pl": 1.0})
    assert language_warnings(options, "source")
    (tmp_path / "config.json").unlink()
    assert not language_warnings(options, "source")


def test_nothing_is_looked_at_where_nothing_hangs_on_it(world: World, tmp_path: Path) -> None:
    run = world.run("out.tsv", tmp_path / "work", score="margin")
    assert decide_languages(run) is run


def test_what_the_summary_has(tmp_path: Path) -> None:
    shares = {"sv": 0.9, "da": 0.1}
    assert describe_language(options_for(tmp_path, None, shares), "source") == {
        "given": None,
        "decided": "sv",
        "share": 0.9,
        "quality": "weak",
    }
    assert describe_language(options_for(tmp_path, "de"), "target") == {
        "given": "de",
        "decided": "de",
        "share": None,
        "quality": "good",
    }


def test_the_summary_has_the_language_that_the_side_is_mined_in(tmp_path: Path) -> None:
    """That of its path, and the one given without its country."""
    shares = {"en": 0.55, "fr": 0.45}
    options = options_for(tmp_path, None, shares)
    named = replace(options, source=replace(options.source, path=tmp_path / "fr-FR"))
    found = describe_language(named, "source")
    assert (found["decided"], found["share"]) == ("fr", 0.45)
    found = describe_language(options_for(tmp_path, "de-AT"), "target")
    assert (found["given"], found["decided"]) == ("de-AT", "de")


def escapes(folder: Path, *lines: str) -> int:
    write_lines(folder / "a.txt", lines)
    return decide_languages(RunContext(job_of(options_for(folder)))).options.source.escapes


def test_a_corpus_that_grows_keeps_its_entities(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    escaped = [SWEDISH.replace("gick", "&quot;gick&quot;")] * 30
    assert escapes(tmp_path, *escaped) == 1
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    assert line == f"{tmp_path}/a.txt: reads HTML entities, such as &quot;, as characters"
    assert escapes(tmp_path, *escaped, *[f"{SWEDISH} <a> & <b>"] * 900) == 1
    assert escapes(tmp_path, *[GERMAN] * 30) == 0
    assert escapes(tmp_path, *[GERMAN] * 30, *escaped) == 0


def test_what_an_earlier_version_has_seen_stays(tmp_path: Path) -> None:
    escaped = [SWEDISH.replace("gick", "&quot;gick&quot;")] * 30
    assert escapes(tmp_path, *escaped) == 1
    (path,) = (tmp_path / "work").rglob("*.languages.json")
    known = json.loads(path.read_text(encoding="utf-8"))
    del known["escapes"], known["entity"]
    path.write_text(json.dumps(known), encoding="utf-8")
    assert escapes(tmp_path, *escaped) == 0


def test_skipped_encoders_name_an_unknown_language(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = replace(options_for(tmp_path), encoder="mini+use")
    write_lines(options.source.path, ["7", "?"])
    target = replace(options.target, language="la")
    caplog.set_level("INFO")
    decide_languages(RunContext(job_of(replace(options, target=target))))
    assert "skipping use, which does not cover unknown-la" in caplog.text
