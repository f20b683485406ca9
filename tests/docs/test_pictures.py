"""The pictures of the documents can be made again."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PICTURES = runpy.run_path(str(ROOT / "benchmarks" / "pictures.py"))


def test_curves_are_those_of_the_table_beside_them(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    PICTURES["draw_growth"](page, tmp_path / "growth.svg")
    drawn, kept = (
        path.read_text(encoding="utf-8")
        for path in (tmp_path / "growth.svg", ROOT / "docs" / "assets" / "growth.svg")
    )
    points = re.compile(r'(?s)<g id="line2d_\d+">.*?</g>')
    assert len(points.findall(drawn)) > 30
    assert points.findall(kept) == points.findall(drawn)


@pytest.mark.slow
def test_the_page_of_a_run(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("no Chromium on this machine")
    PICTURES["take_report"](tmp_path / "report.png")
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
