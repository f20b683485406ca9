"""Languages on the command line, in any spelling, with the same result."""

import json
import re
from pathlib import Path

import pytest

from pipelines.cli.documents import split_command
from pipelines.cli.mine import embed_corpus, mine_corpus

UKRAINIAN = [
    "Учора в місті відкрили новий міст.",
    "Бабуся спекла пиріг з яблуками.",
    "Ціна хліба зросла.",
]
ENGLISH = [
    "A new bridge opened in the city.",
    "Grandmother baked an apple pie.",
    "The price of bread rose.",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with both sides."""
    monkeypatch.chdir(tmp_path)
    Path("uk").write_text("\n".join(UKRAINIAN), encoding="utf-8")
    Path("en").write_text("\n".join(ENGLISH), encoding="utf-8")
    return tmp_path


def mined(language: str, *more: str) -> list[float]:
    given = ["uk", "en", "-o", "o.jsonl", "-q", "--all", "--src-lang", language, *more]
    assert mine_corpus(given) == 0
    return [json.loads(line)["cosine"] for line in Path("o.jsonl").read_text().splitlines()]


def test_all_spellings_mine_alike(here: Path) -> None:
    expected = mined("uk", "--tgt-lang", "en")
    assert max(expected) > 0.5
    for language, other in (("uk_UA", "EN"), ("UKR", "eng-US"), ("uk-Cyrl", "en")):
        filtered = mined(language, "--tgt-lang", other, "--filters", "language")
        assert filtered == expected


def test_memories_name_languages_by_bcp_47(here: Path) -> None:
    given = ["uk", "en", "-q", "--all", "--src-lang", "UKR_ua", "--tgt-lang", "en_us"]
    assert mine_corpus([*given, "-o", "o.tmx"]) == 0
    memory = Path("o.tmx").read_text(encoding="utf-8")
    assert set(re.findall(r'xml:lang="(.*?)"', memory)) == {"uk-UA", "en-US"}
    assert 'srclang="uk-UA"' in memory
    assert mine_corpus([*given, "-o", "o.%"]) == 0
    assert {path.name for path in here.glob("o.*")} == {"o.tmx", "o.uk-UA", "o.en-US"}


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("Ukrainian", "use uk"), ("ua", "use uk"), ("zz", "use one of ISO 639 or BCP 47")],
)
def test_names_are_refused_with_the_code(
    here: Path, name: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [
        (mine_corpus, ["uk", "en", "-o", "o.tsv", "--src-lang", name]),
        (embed_corpus, ["uk", "-o", "o.npy", "--lang", name]),
        (split_command, ["uk", "-o", "o.jsonl", "--lang", name]),
    ]
    for command, arguments in commands:
        with pytest.raises(SystemExit):
            command(arguments)
        assert f"'{name}' is not a" in (error := capsys.readouterr().err)
        assert remedy in error
    assert not list(here.glob("o.*"))


def test_many_languages_by_any_code(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = here / "many"
    folder.mkdir()
    (folder / "pt_br.txt").write_text("A ponte abriu ontem.\nO pão subiu de preço.\n")
    (folder / "ENG.txt").write_text("\n".join(ENGLISH))
    given = ["--languages", "many", "-o", "out", "-q", "--all", "--format", "tmx"]
    assert mine_corpus([*given, "--pairs", "pt-BR-en"]) == 0
    memory = (here / "out" / "pt_br-ENG.tmx").read_text()
    assert set(re.findall(r'xml:lang="(.*?)"', memory)) == {"pt-BR", "en"}
    assert mine_corpus([*given, "--pairs", "pt-en"]) == 2
    assert "--pairs 'pt-en': is not a pair of" in capsys.readouterr().err
    (folder / "en.txt").write_text("Again.\n")
    assert mine_corpus([*given, "--pairs", "all"]) == 2
    assert "en.txt: a second corpus of en next to ENG.txt" in capsys.readouterr().err
