"""The command lines that the documentation shows are understood, and its links lead somewhere."""

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_rooms import SCRIPTS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# Folders of a run, and files of others.
ELSEWHERE = {
    *("tiles/", "indexes/", "sentences/", "embeddings/", "neighbours/", "pairs/", "judged/"),
    *("filtered/", "rejected/", "bucc.py", "score.py"),
}


class UnderstoodError(Exception):
    """A command has parsed its arguments, and would begin to work."""


def commands() -> Iterator[tuple[str, str]]:
    """Page and command line of every indented block that starts with one of ours."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^    (?:\$ )?(.*)$", text, flags=re.MULTILINE):
            if line.partition(" ")[0] in SCRIPTS and not line.endswith("error:"):
                yield page.name, line


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_the_command_lines_are_understood(
    page: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *arguments = shlex.split(line, comments=True)
    really_parse = argparse.ArgumentParser.parse_args

    def parse(
        parser: argparse.ArgumentParser, given: Sequence[str], *rest: argparse.Namespace
    ) -> argparse.Namespace:
        args: argparse.Namespace = really_parse(parser, given, *rest)
        if parser.prog != "adit":  # which only finds the subcommand
            raise UnderstoodError
        return args

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    module, _, function = SCRIPTS[program].partition(":")
    with pytest.raises(UnderstoodError):
        getattr(import_module(module), function)(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_named_are_there(page: Path) -> None:
    """A file may be named by the end of its path, such as ``core/passes.py``."""
    folders = ["benchmarks", "encoder", "eval", "examples", "miner", "pipelines", "tests"]
    files = {
        f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*")
    }
    files |= {f"/{path.name}" for path in ROOT.iterdir()}
    named = re.findall(r"`([\w./]*\w+\.py|(?:\w+/)+)`", page.read_text(encoding="utf-8"))
    gone = [
        name for name in named if not any(file.endswith(f"/{name.strip('/')}") for file in files)
    ]
    assert [name for name in gone if name not in ELSEWHERE] == []
