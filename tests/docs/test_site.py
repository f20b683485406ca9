"""The site is built without a warning, and its pages take nothing from other servers."""

import html.parser
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; any link or anchor that leads nowhere ends that."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


class Page(html.parser.HTMLParser):
    """Collects what a page loads, where it leads, and what of it can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link":
            self.loads.append(given["href"])
        elif "src" in given:
            self.loads.append(given["src"])


def test_every_link_and_anchor_of_the_site(site: Path) -> None:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 30
    gone, checked = [], 0
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for target in page.links + page.loads:
            if target.startswith(("https://", "http://", "data:")):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            known = pages[file].ids if file in pages and anchor else {anchor}
            checked += 1
            if not file.is_file() or anchor not in known:
                gone.append(f"{path.relative_to(site)}: {target}")
    assert gone == []
    assert checked > 1000


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = {
        load
        for path in site.rglob("*.html")
        for load in Page(path.read_text(encoding="utf-8")).loads
    }
    assert [load for load in loads if "//" in load] == []


@pytest.fixture
def tab(site: Path) -> Iterator[tuple[Any, list[str]]]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        opened = chromium.new_page()
        opened.set_default_timeout(120_000)  # a busy machine is no fault of the site's
        asked: list[str] = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto((site / "index.html").as_uri())
        yield opened, asked
        chromium.close()


def test_search_works_in_a_folder_that_nobody_serves(tab: tuple[Any, list[str]]) -> None:
    page, asked = tab
    page.fill("input[name=query]", "mark pairs in the browser")
    page.wait_for_selector(".md-search-result__link")
    found = page.eval_on_selector_all(".md-search-result__link", "all => all.map(a => a.href)")
    assert any("trust.html" in link for link in found)
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
