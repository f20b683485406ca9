"""The page about a run: its figures, its data, and how it behaves in a browser."""

import base64
import gzip
import html
import json
import math
import re
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.report.page import render
from eval.runs.store import open_run
from miner.fdr import Null, probabilities, threshold_at
from miner.storage.layout import SIDES
from pipelines.cli.main import adit
from tests.eval.conftest import HEBREW
from tests.eval.made_run import make_run, random_pairs

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def page(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    arguments = [finished_run / "work", "-o", path, "--gold", finished_run / "gold"]
    assert adit(["report", *map(str, arguments)]) == 0
    return path


def columns(text: str) -> dict[str, Any]:
    (packed,) = re.findall(r'<script id="data"[^>]*>([^<]*)</script>', text)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def words(text: str) -> str:
    """What a reader sees of the page, without its scripts and styles."""
    bare = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", bare)))


def test_the_table_holds_every_pair(page: Path, finished_run: Path) -> None:
    data = columns(page.read_text(encoding="utf-8"))
    pairs = [
        json.loads(line)
        for line in (finished_run / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert data["source"] == [pair["source_text"] for pair in pairs]
    assert data["target_id"] == [pair["target_id"] for pair in pairs]
    assert data["score"] == [round(pair["score"], 4) for pair in pairs]
    gold = {tuple(line.split("\t")) for line in (finished_run / "gold").read_text().splitlines()}
    assert data["right"] == [int((pair["source_id"], pair["target_id"]) in gold) for pair in pairs]
    assert data["chance"] is None


def test_figures(page: Path, finished_run: Path) -> None:
    seen = words(page.read_text(encoding="utf-8"))
    summary = json.loads((finished_run / "work" / "run.json").read_text())
    assert f"{summary['pairs']:,} pairs of {summary['candidates']:,} candidates" in seen
    assert re.search(r"corpus\.de 404 (.+?) 1 402 all", seen), seen[:600]
    data = columns(page.read_text(encoding="utf-8"))
    known = len((finished_run / "gold").read_text().splitlines())
    right = np.cumsum(data["right"])
    f1 = 2 * right / (np.arange(1, len(right) + 1) + known)
    best = int(f1.argmax())
    assert (
        f"precision {right[best] / (best + 1):.2%}, recall {right[best] / known:.2%}, "
        f"F1 {f1[best]:.2%}; {right[best]} of {best + 1} pairs are right"
    ) in seen
    wrong = [place for place in range(best + 1) if not data["right"][place]]
    listed = seen[seen.index("Wrong pairs above it") : seen.index("Known pairs that are missing")]
    places = [listed.index(re.sub(r"\s+", " ", data["source"][place])) for place in wrong]
    assert places == sorted(places)
    assert "de-nowhere en-nowhere not among the sentences of the run" in seen


def test_what_filters_say(page: Path) -> None:
    """Lengths and numbers, by rules written once more."""
    data = columns(page.read_text(encoding="utf-8"))
    texts = list(zip(data["source"], data["target"], strict=True))
    ratios = [math.log2((len(source) + 1) / (len(target) + 1)) for source, target in texts]
    lengths = [abs(ratio - statistics.median(ratios)) > 0.7 for ratio in ratios]
    found = [[set(re.findall(r"\d+", re.sub(r"(?<=\d)[.,](?=\d)", "", text))) for text in pair]
             for pair in texts]  # fmt: skip
    numbers = [bool(one) and bool(other) and one.isdisjoint(other) for one, other in found]
    seen = words(page.read_text(encoding="utf-8"))
    half = (len(texts) + 1) // 2
    for name, caught in (("length", lengths), ("numbers", numbers)):
        assert any(caught)
        assert f" {name} {sum(caught)} {sum(caught[:half])} " in seen


def test_estimates(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    null = Null.fitted(np.random.default_rng(5).exponential(0.05, 500) + 0.9)
    seen = words(render(run, null=null))
    expected = sum(probabilities(run.pairs.score, null))
    assert f"recall, of the {expected:,.0f} right pairs expected among all" in seen
    scores = run.pairs.score.tolist()
    threshold = threshold_at(run.pairs.score, null, fdr=0.1)
    kept = [score for score in scores if score > threshold]
    right = sum(probabilities(run.pairs.score, null)[: len(kept)])
    assert len(kept) > 20
    assert f"10% {threshold:.4f} {len(kept)} {right:,.0f} " in seen


def test_texts_are_no_markup(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<b>Linux" not in text
    assert text.count("</script>") == 2
    assert "src=" not in text
    assert "http" not in text


def test_nothing_to_report(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    run.output.pairs = run.pairs.take(np.empty(0, dtype=np.int64))
    with pytest.raises(ValueError, match="the run chose no pair; there is nothing to report"):
        render(run)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def opened(browser: Any, path: Path, **options: Any) -> tuple[Any, list[str]]:
    """The page once its table is there, and what the console said."""
    tab = browser.new_page(**options)
    tab.set_default_timeout(120_000)  # a busy machine is no fault of the page's
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(path.as_uri())
    tab.wait_for_selector("#pairs tbody tr")
    return tab, said


def test_in_a_browser(browser: Any, page: Path, tmp_path: Path) -> None:
    data = columns(page.read_text(encoding="utf-8"))
    tab, said = opened(browser, page)
    count = len(data["score"])
    assert tab.text_content("#shown") == f"1 to 50 of {count} pairs"
    tab.click("#on")
    assert tab.text_content("#shown") == f"51 to 100 of {count} pairs"
    tab.fill("#words", "STADT")
    found = [
        place
        for place in range(count)
        if "stadt" in f"{data['source'][place]}\n{data['target'][place]}".lower()
    ]
    assert tab.text_content("#shown") == f"1 to {len(found)} of {len(found)} pairs"
    cells = tab.locator("#pairs tbody tr td:nth-child(3)").all_text_contents()
    assert cells == [data["source"][place] for place in found]
    tab.fill("#least", "1.2")
    high = [place for place in found if data["score"][place] >= 1.2]
    assert tab.locator("#pairs tbody tr").count() == len(high)
    tab.fill("#words", "no such words")
    assert tab.text_content("#shown") == "no pair"
    shot = tmp_path / "report.png"
    tab.screenshot(path=shot, full_page=True)
    assert shot.stat().st_size > 10_000
    assert said == []
    tab.close()


def test_right_to_left(browser: Any, page: Path) -> None:
    tab, _ = opened(browser, page)
    tab.fill("#words", HEBREW)
    directions = tab.evaluate(
        "[...document.querySelectorAll('#pairs tbody td[dir=auto]')]"
        f".filter(td => td.textContent.startsWith('{HEBREW}'))"
        ".map(td => td.matches(':dir(rtl)'))"
    )
    assert directions
    assert all(directions)
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(browser: Any, page: Path, scheme: str) -> None:
    """Nothing is wider than the screen, and the ink is not the colour of the paper."""
    options = {"viewport": {"width": 390, "height": 800}, "color_scheme": scheme}
    tab, said = opened(browser, page, **options)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    colours = tab.evaluate(
        "[getComputedStyle(document.body)].map(s => [s.color, s.backgroundColor])"
    )
    lightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours[0]]
    assert (lightness[0] < lightness[1]) == (scheme == "light")
    assert said == []
    tab.close()


def test_a_large_run(browser: Any, tmp_path: Path) -> None:
    """Random letters, which cannot be packed as well as language can."""
    random, path = np.random.default_rng(7), tmp_path / "report.html"
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz     "))
    texts = {
        side: ["".join(row) for row in letters[random.integers(len(letters), size=(20_000, 120))]]
        for side in SIDES
    }
    run = open_run(make_run(tmp_path / "work", texts, random_pairs(20_000), shards=2))
    path.write_text(render(run), encoding="utf-8")
    assert path.stat().st_size < 6_000_000
    tab, said = opened(browser, path)
    assert tab.text_content("#shown") == "1 to 50 of 20000 pairs"
    assert said == []
    tab.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_word_does_not_widen_the_page(browser: Any, tmp_path: Path, width: int) -> None:
    texts = {side: ["x" * 3000, "a b", f"{side} {'y' * 400} z"] for side in SIDES}
    run = open_run(make_run(tmp_path / "work", texts, random_pairs(3), shards=1))
    path = tmp_path / "report.html"
    path.write_text(render(run), encoding="utf-8")
    tab, said = opened(browser, path, viewport={"width": width, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    tab.close()
