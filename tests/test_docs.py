"""What the documentation shows works as shown."""

import io
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from eval.cli.bucc_score import score_parser
from eval.cli.encoder import encoder_parser
from eval.cli.runs import COMMANDS as RUN_COMMANDS
from eval.cli.runs import runs_parser
from pipelines.cli.align_documents import align_parser
from pipelines.cli.arguments import embed_parser, mine_parser
from pipelines.cli.fetch import _parser as _fetch_parser
from pipelines.cli.mine import _split
from pipelines.cli.train import _parser as _train_parser
from pipelines.cli.workdir import COMMANDS, work_parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PARSERS: dict[str, Callable] = {
    "mine-corpus": mine_parser,
    "embed-corpus": embed_parser,
    "bucc-score": score_parser,
    "eval-encoder": encoder_parser,
    "train-encoder": _train_parser,
    "align-documents": align_parser,
    "fetch-laser": _fetch_parser,
}


def commands() -> Iterator[tuple[str, str]]:
    """Page and command line of every indented block that starts with one of ours."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^    (?:\$ )?(.*)$", text, flags=re.MULTILINE):
            if line.partition(" ")[0] in PARSERS and not line.endswith("error:"):
                yield page.name, line


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_the_command_lines_are_understood(page: str, line: str) -> None:
    program, *arguments = shlex.split(line, comments=True)
    if arguments[0] in RUN_COMMANDS:
        runs_parser().parse_args(arguments)
    elif program == "mine-corpus" and arguments[0] in COMMANDS:
        work_parser(arguments[0]).parse_args(arguments[1:])
    else:
        PARSERS[program]().parse_args(_split(arguments)[0])


def test_the_library_example() -> None:
    """It is run, and finds the two pairs that a reader would."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(example, "README.md", "exec"), {})
    found = {tuple(line.split("\t")[1:]) for line in out.getvalue().splitlines()}
    assert found == {
        ("Der Hund schläft.", "The dog is asleep."),
        ("Es regnet.", "It is raining."),
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target
