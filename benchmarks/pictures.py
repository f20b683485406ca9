"""Draw the pictures of the documents.

    python benchmarks/pictures.py [FOLDER]

The page is that of the bundled sample, with some pairs marked, as Chromium shows it.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "docs" / "assets"
SAMPLE = ROOT / "eval" / "assets" / "sample" / "de-en" / "de-en.training"
SIZE = {"width": 1100, "height": 1250}


def main() -> None:
    """Write the pictures to the documents' folder, or to another folder."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else ASSETS
    growth = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    draw_growth(growth, folder / "growth.svg")
    scores = (ROOT / "docs" / "scores.md").read_text(encoding="utf-8")
    draw_reliability(scores, folder / "reliability.svg")
    take_report(folder / "report.png")
    sys.exit()


def take_report(path: Path) -> None:
    """Mine the sample, and take a picture of the top of its report."""
    from playwright.sync_api import sync_playwright

    from pipelines.cli.main import adit

    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        run, page = Path(place) / "run", Path(place) / "report.html"
        sides = [f"{SAMPLE}.de", f"{SAMPLE}.en"]
        adit(["mine", *sides, "-o", f"{place}/pairs.tsv", "--work-dir", str(run), "--quiet"])
        adit(["report", str(run), "-o", str(page)])
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = chromium.new_page(viewport=SIZE)
        tab.set_default_timeout(120_000)
        tab.goto(page.as_uri())
        tab.wait_for_selector("#pairs tbody tr")
        for _ in range(3):
            tab.keyboard.press("r")
        tab.evaluate("scrollTo(0, 0)")
        tab.screenshot(path=path)
        chromium.close()


def plots() -> Any:
    """Return Matplotlib's pyplot, set to write reproducible SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "adit", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    return pyplot


def draw_growth(page: str, path: Path) -> None:
    """Draw the measured and planned costs of a page's table by lines."""
    lines = [
        [float(re.sub(r"[^\d.]", "", cell)) for cell in cells[1:]] + [cells[0]]
        for cells in (line.strip("| ").split(" | ") for line in page.splitlines())
        if cells[0] in ("exact", "cells") and len(cells) == 13
    ]
    figure, every = plots().subplots(1, 3, figsize=(10, 3), layout="constrained")
    titles = {"seconds": (1, 2), "largest process, GiB": (4, 5), "work folder, GiB": (7, 8)}
    for axes, (title, (measured, planned)) in zip(every, titles.items(), strict=True):
        for number, method in enumerate(("exact", "cells")):
            own = [line for line in lines if line[-1] == method]
            rows = [line[0] for line in own]
            axes.loglog(rows, [line[measured] for line in own], f"C{number}o", label=method)
            axes.loglog(rows, [line[planned] for line in own], f"C{number}", label="planned")
        axes.set(title=title, xlabel="lines a side")
        axes.spines[["top", "right"]].set_visible(False)
    every[0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def draw_reliability(page: str, path: Path) -> None:
    """Draw the share of correct pairs per bin of a page's table."""
    figure, axes = plots().subplots(figsize=(3.6, 3.4), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.8")
    likely = row_of(page, "probability, mean")
    for name in ("mini", "mini+use"):
        axes.plot(likely, row_of(page, f"correct, `{name}`"), marker="o", label=name)
    axes.set(xlabel="probability", ylabel="share of the pairs that is right")
    axes.set_aspect("equal")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def row_of(page: str, title: str) -> list[float]:
    """Return the numbers in a row of a table."""
    (line,) = (line for line in page.splitlines() if line.startswith(f"| {title} |"))
    return [float(cell) for cell in line.split("|")[2:-1]]


if __name__ == "__main__":
    main()
