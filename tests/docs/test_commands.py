"""The command lines that pages show are understood, and those that take seconds are run."""

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.pages import (
    PAGES,
    PROGRAMS,
    ROOT,
    SHORTER,
    commands,
    is_shortened,
    main,
    name_of,
    why_not_run,
)
from tests.docs.world import make_world
from tests.test_rooms import SCRIPTS

OURS = [
    (name_of(page), line)
    for page in PAGES
    for line in commands(page)
    if line.partition(" ")[0] in SCRIPTS
]
RUN = [page for page in PAGES if any(why_not_run(line) is None for line in commands(page))]
TUTORIAL = ROOT / "docs" / "tutorial.md"


class UnderstoodError(Exception):
    """A command has parsed its arguments, and would begin to work."""


@pytest.mark.parametrize(("page", "line"), OURS)
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


def run(line: str) -> None:
    """Run a command line: ours in this process, which has the libraries, others by bash."""
    program, *arguments = shlex.split(line, comments=True)
    if program not in SCRIPTS:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        subprocess.run(["bash", "-ec", line], check=True, env=environment, capture_output=True)
        return
    module, _, function = SCRIPTS[program].partition(":")
    assert getattr(import_module(module), function)(arguments) == 0, line


def lines_to_run(page: Path) -> list[str]:
    """Return the commands of a page in their order, after those that it takes for done."""
    lines = [line for line in commands(page) if why_not_run(line) is None]
    done = [] if any("--work-dir run" in line for line in lines) else ["adit mine news.de news.en"]
    asks = any(re.match(r"adit \w+ run\b", line) for line in lines)
    before = [f"{line} -o before.tsv --work-dir run" for line in done if asks]
    return before + [
        f"{line} {SHORTER[' '.join(line.split()[:2])]}" if is_shortened(line) else line
        for line in lines
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in RUN if page != TUTORIAL],
    ids=name_of,
)
def test_the_commands_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, in a folder that holds what they name; what ``-o`` names is there then."""
    monkeypatch.chdir(tmp_path)
    make_world(tmp_path)
    for line in lines_to_run(page):
        run(line)
        for output in re.findall(r"(?<= -o )[\w.-]+", line):
            assert Path(output).exists() or "--plan" in line, line


@pytest.mark.usefixtures("best")
def test_the_tutorial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands print what stands between them, and in README, and more or fewer pairs."""
    monkeypatch.chdir(tmp_path)
    text = TUTORIAL.read_text(encoding="utf-8")
    indented = re.findall(r"^    (\S.*)$", text, flags=re.MULTILINE)
    shown = [line for line in indented if line.partition(" ")[0] not in {*PROGRAMS, "done"}]
    assert len(shown) == 8
    for line in commands(TUTORIAL):
        run(line)
    printed = "".join(capsys.readouterr()).splitlines()
    assert [line for line in shown if line not in printed] == []
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [line for line in shown if f"    {line}" not in readme and "warning" not in line] == []
    good, likely, every = (
        len(Path(f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
        for name in ("good", "pairs", "all")
    )
    assert 50 < good <= likely < 200 < every  # the estimated error is above 5%
    assert not Path("large.jsonl").exists()  # that of --plan


def test_every_command_is_run_or_has_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    first, *rest = capsys.readouterr().out.splitlines()
    shown, run_here, _ = map(int, re.findall(r"(?<=[:,] )\d+", first))
    assert shown == run_here + sum(int(line.split()[2]) for line in rest)
    assert run_here >= 70
