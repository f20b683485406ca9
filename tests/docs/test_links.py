"""Links between pages lead somewhere, in the repository as on the site, and so do named files."""

import re
import tomllib
from pathlib import Path

import pytest

from pipelines.cli.main import COMMANDS
from tests.docs.pages import PAGES, ROOT, name_of

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
FOLDERS = ("benchmarks", "docs", "encoder", "eval", "examples", "miner", "pipelines", "tests")

# Folders of a run, and files of others.
ELSEWHERE = {
    *("tiles/", "indexes/", "sentences/", "embeddings/", "neighbours/", "pairs/", "judged/"),
    *("filtered/", "rejected/", "bucc.py", "score.py"),
}


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as Git hosts and the site make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            file = page.parent / target if target else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_files_named_are_there(page: Path) -> None:
    """A file may be named by the end of its path, such as ``core/passes.py``."""
    files = {
        f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*")
    }
    files |= {f"/{path.name}" for path in ROOT.iterdir()}
    named = re.findall(r"`([\w./]*\w+\.py|(?:\w+/)+)`", page.read_text(encoding="utf-8"))
    gone = [
        name for name in named if not any(file.endswith(f"/{name.strip('/')}") for file in files)
    ]
    assert [name for name in gone if name not in ELSEWHERE] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_opens_with_what_it_is_for(page: Path) -> None:
    """Its title is followed by a sentence, not by a heading, a table, a command or a list."""
    _, _, rest = page.read_text(encoding="utf-8").partition("\n\n")
    assert re.match(r"[A-Z`]", rest) or rest[0].isdigit(), rest[:60]


def test_the_page_of_commands_has_each() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^<!-- help: (.*) -->$", text, flags=re.MULTILINE) == list(COMMANDS)


def test_the_extras_are_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z]+)` \|", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted(project["optional-dependencies"])
