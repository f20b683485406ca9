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

from eval.report.page import render, spans_of
from eval.runs.calibration import estimates_from_judge
from eval.runs.store import open_run
from miner.storage.layout import SIDES
from pipelines.cli.main import adit
from pipelines.cli.mine import mine_corpus
from tests.eval.conftest import HEBREW
from tests.eval.made_run import make_run, random_pairs

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


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
    """The page once its table is there, and what the console said and what was requested."""
    tab = browser.new_page(**options)
    tab.set_default_timeout(120_000)  # a busy machine is no fault of the page's
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda asked: said.append(asked.url) if asked.url != path.as_uri() else None)
    tab.goto(path.as_uri())
    tab.wait_for_selector("#pairs tbody tr")
    return tab, said


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
    assert data["score"] == [pair["score"] for pair in pairs]
    gold = {tuple(line.split("\t")) for line in (finished_run / "gold").read_text().splitlines()}
    assert data["right"] == [int((pair["source_id"], pair["target_id"]) in gold) for pair in pairs]
    assert data["chance"] is None
    assert data["rank"] == [pair["rank"] for pair in pairs]
    assert data["source_doc"] is None


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
    found = [
        [
            {float(one.replace(",", ".")) for one in re.findall(r"\d+(?:[.,]\d+)?", text)}
            for text in pair
        ]
        for pair in texts
    ]
    numbers = [bool(one) and bool(other) and one.isdisjoint(other) for one, other in found]
    seen = words(page.read_text(encoding="utf-8"))
    half = (len(texts) + 1) // 2
    for name, caught in (("length", lengths), ("numbers", numbers)):
        assert any(caught)
        assert f" {name} {sum(caught)} {sum(caught[:half])} " in seen


def test_texts_are_no_markup(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<b>Linux" not in text
    assert text.count("</script>") == 2
    assert "src=" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert "default-src 'none'" in text


HOSTILE = [
    "</script><script>document.title = 'executed'</script>",
    "<img src=x onerror=\"document.title = 'executed'\">",
    "<!--BODY--><!--DATA--> -->",
    "]]> & \u2028 \u202e evil \u0000?",
    "${document.title = 'executed'} `\\`",
    '" onmouseover="document.title=1" x="',
]


def test_hostile_text_is_shown_and_never_executed(browser: Any, tmp_path: Path) -> None:
    texts = {side: [f"{text} {side}" for text in HOSTILE] for side in SIDES}
    run = open_run(make_run(tmp_path / "work", texts, random_pairs(len(HOSTILE)), shards=1))
    vars(run)["docs"] = texts["source"], texts["target"]
    path = tmp_path / "report.html"
    path.write_text(render(run), encoding="utf-8")
    tab, said = opened(browser, path)
    title = tab.title()
    for row in range(len(HOSTILE)):
        tab.locator("#pairs tbody tr:not(.detail)").nth(row).click(position={"x": 3, "y": 3})
    shown = tab.locator("#pairs tbody tr:not(.detail) td:nth-child(3)").all_text_contents()
    assert sorted(shown) == sorted(texts["source"])
    tab.locator("button[data-words]").first.evaluate("button => button.click()")
    assert tab.title() == title
    assert said == []
    tab.close()


def test_a_threshold_that_keeps_no_pair_is_not_drawn(finished_run: Path, tmp_path: Path) -> None:
    path, gold = tmp_path / "report.html", tmp_path / "gold"
    gold.write_text("no-source\tno-target\n", encoding="utf-8")
    arguments = [finished_run / "work", "-o", path, "--gold", gold]
    assert adit(["report", *map(str, arguments)]) == 0
    text = path.read_text(encoding="utf-8")
    assert "Compared with known pairs" in text
    assert '"inf"' not in text


def test_nothing_to_report(finished_run: Path) -> None:
    run = open_run(finished_run / "work")
    run.output.pairs = run.pairs.take(np.empty(0, dtype=np.int64))
    with pytest.raises(ValueError, match="the run wrote no pairs to report"):
        render(run)


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


@pytest.mark.slow
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
    assert tab.text_content("#shown") == "1 to 50 of 20,000 pairs"
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


SORTED_BY = "[...document.querySelectorAll('#pairs th[aria-sort]')].map(th => th.textContent)"


def first_cells(tab: Any, column: int) -> list[str]:
    return tab.locator(f"#pairs tbody tr td:nth-child({column})").all_text_contents()


def test_headings_sort(browser: Any, page: Path) -> None:
    data = columns(page.read_text(encoding="utf-8"))
    tab, said = opened(browser, page)
    tab.click("#pairs th button:text('source')")
    assert first_cells(tab, 3) == sorted(data["source"], key=utf16)[:50]
    tab.click("#pairs th button:text('source')")
    assert first_cells(tab, 3) == sorted(data["source"], key=utf16, reverse=True)[:50]
    tab.click("#pairs th button:text('cosine')")
    assert first_cells(tab, 5) == [f"{c:.4f}" for c in sorted(data["cosine"], reverse=True)[:50]]
    assert tab.evaluate(SORTED_BY) == ["cosine"]
    assert tab.locator("#pairs th button").first.get_attribute("title")
    tab.fill("#words", "stadt")
    found = [
        place
        for place in range(len(data["score"]))
        if "stadt" in f"{data['source'][place]}\n{data['target'][place]}".lower()
    ]
    found.sort(key=lambda place: -data["cosine"][place])
    assert first_cells(tab, 3) == [data["source"][place] for place in found]
    assert said == []
    tab.close()


def utf16(text: str) -> bytes:
    """What JavaScript compares strings by."""
    return text.encode("utf-16-be")


def marked(tab: Any) -> dict[str, str]:
    return dict(tab.evaluate("[...marks]"))


def test_marks_by_key_undone_kept_and_exported(browser: Any, page: Path, tmp_path: Path) -> None:
    data = columns(page.read_text(encoding="utf-8"))
    names = [f"{a}\t{b}" for a, b in zip(data["source_id"], data["target_id"], strict=True)]
    tab, said = opened(browser, page)
    for pressed in "rwrw":
        tab.keyboard.press(pressed)
    expected = dict(zip(names[:4], ["right", "wrong"] * 2, strict=True))
    assert marked(tab) == expected
    tab.keyboard.press("u")
    tab.keyboard.press("k")
    tab.keyboard.press("r")  # the same again takes it away
    assert marked(tab) == {name: expected[name] for name in names[:2]}
    tab.click("#undo")
    tab.locator("#pairs tbody tr").nth(9).locator(".no").click()
    expected = {name: expected[name] for name in names[:3]} | {names[9]: "wrong"}
    assert marked(tab) == expected
    assert "Marked: 2 right, 2 wrong." in tab.text_content("#judged")
    tab.fill("#words", "rw")
    assert marked(tab) == expected  # keys in a field are text
    tab.reload()
    tab.wait_for_selector("#pairs tbody tr.wrong")
    assert marked(tab) == expected
    tab.select_option("#marked", "wrong")
    assert first_cells(tab, 3) == [data["source"][1], data["source"][9]]
    with tab.expect_download() as waiting:
        tab.click("#export")
    waiting.value.save_as(tmp_path / "marks.tsv")
    lines = (tmp_path / "marks.tsv").read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(f"{name}\t{mark}" for name, mark in expected.items())
    assert [url for url in said if not url.startswith("blob:")] == []
    tab.close()


def test_a_random_sample_is_judged(browser: Any, page: Path) -> None:
    tab, said = opened(browser, page)
    tab.click("#sample")
    assert tab.text_content("#shown") == "1 to 50 of 50 pairs, a random sample"
    for pressed in "wwwrrrrrrr":
        tab.keyboard.press(pressed)
    # Wilson's interval of 3 of 10, as statsmodels gives it.
    seen = "Of this sample 10 marked, 30.0% of them wrong (95% interval 10.8% to 60.3%)."
    assert seen in tab.text_content("#judged")
    tab.click("#all")
    assert tab.text_content("#shown").startswith("1 to 50 of ")
    assert "sample" not in tab.text_content("#shown")
    assert said == []
    tab.close()


def test_marks_are_of_a_run(browser: Any, page: Path, finished_run: Path, tmp_path: Path) -> None:
    """Another page of the same run has them, one of another run has not."""
    context = browser.new_context()
    tab, _ = opened(context, page)
    tab.keyboard.press("r")
    again, other = tmp_path / "again.html", tmp_path / "other.html"
    again.write_text(render(open_run(finished_run / "work")), encoding="utf-8")
    texts = {side: ["a", "b", "c"] for side in SIDES}
    run = open_run(make_run(tmp_path / "work", texts, random_pairs(3), shards=1))
    other.write_text(render(run), encoding="utf-8")
    assert [len(marked(opened(context, path)[0])) for path in (again, other)] == [1, 0]
    context.close()


def test_at_a_glance(judged_run: Path, finished_run: Path) -> None:
    run = open_run(judged_run)
    page, likely = render(run), run.probabilities
    assert columns(page)["chance"] == pytest.approx(np.round(likely, 4).tolist())
    seen = words(page)
    assert f"estimated error rate {1 - likely.mean():.1%} by the probability of each pair" in seen
    judged = run.summary["kept"]["judged"]
    assert f"pairs {len(run.pairs)} of {judged:,}; --all also writes the others" in seen
    found = estimates_from_judge(run)
    assert f"20% {found.threshold(0.2)} {found.kept(0.2)} " in seen
    unknown = words(render(open_run(finished_run / "work")))
    assert "estimated error rate not known see below" in unknown
    assert "No estimate: a run scored by margin has no error rates" in unknown


@pytest.mark.parametrize(
    ("text", "flags", "expected"),
    [
        ("Das Haus ist rot.", "das haus ist rot.*", [13, 17]),
        ("𝄞 Ja, ja!", "𝄞 ja,* ja!*", [2, 5, 6, 9]),
        ("Ein  Wort", "anders* wort*", [5, 9]),
        ("\u0130stanbul ist rot", "rot*", []),  # its lower case has two letters more
        ("", "", []),
    ],
)
def test_spans_of_words(text: str, flags: str, expected: list[int]) -> None:
    assert spans_of(text, [(word.rstrip("*"), "*" in word) for word in flags.split()]) == expected


def test_words_without_a_counterpart_are_highlighted(
    browser: Any, judged_run: Path, finished_run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(open_run(judged_run)), encoding="utf-8")
    data = columns(path.read_text(encoding="utf-8"))
    expected = [
        text[start:end]
        for row in range(min(50, len(data["score"])))
        for text, ends in ((data[side][row], data[f"{side}_unmatched"][row]) for side in SIDES)
        for start, end in zip(ends[::2], ends[1::2], strict=True)
    ]
    tab, said = opened(browser, path)
    assert tab.locator("#pairs tbody mark").all_text_contents() == expected
    assert expected
    assert tab.locator("#pairs tbody tr td[dir=auto]").first.text_content() == data["source"][0]
    assert said == []
    tab.close()
    assert "source_unmatched" not in columns(render(open_run(finished_run / "work")))


def test_context(browser: Any, tmp_path: Path) -> None:
    """A pair that is opened stands between the sentences around it, which no markup can leave."""
    vectors = np.random.default_rng(1).standard_normal((4, 8), dtype=np.float32)
    texts = {"s": ["Eins", "<b>Zwei", "Drei", "Vier"], "t": ["One", "Two", HEBREW, "Four"]}
    inputs, given = [], []
    for side, option in (("s", "--src-embeddings"), ("t", "--tgt-embeddings")):
        lines = [
            json.dumps({"id": f"{side}{row}", "doc": "d" if row < 3 else "e", "text": text})
            for row, text in enumerate(texts[side])
        ]
        inputs.append(str(tmp_path / f"{side}.jsonl"))
        Path(inputs[-1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
        np.save(tmp_path / f"{side}.npy", vectors)
        given += [option, str(tmp_path / f"{side}.npy")]
    work, path = str(tmp_path / "work"), tmp_path / "report.html"
    out = str(tmp_path / "out.tsv")
    assert mine_corpus([*inputs, *given, "--work-dir", work, "-o", out, "-q"]) == 0
    assert adit(["report", work, "-o", str(path)]) == 0
    for width in (1280, 390):
        tab, said = opened(browser, path, viewport={"width": width, "height": 800})
        for text, shown in (
            ("Two", ["Eins <b>Zwei Drei", f"One Two {HEBREW}"]),
            ("One", ["Eins <b>Zwei", "One Two"]),
            ("Four", []),
        ):
            tab.fill("#words", text)
            tab.locator("#pairs tbody tr").first.click(position={"x": 3, "y": 3})
            around = tab.locator(".context p").all_text_contents()
            assert [part.strip() for part in around] == shown
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert said == []
        tab.close()


def test_documents(browser: Any, tmp_path: Path) -> None:
    texts = {side: [f"{side} {row}" for row in range(6)] for side in SIDES}
    run = open_run(make_run(tmp_path / "work", texts, random_pairs(6), shards=1))
    vars(run)["docs"] = [*["news"] * 3, *["sport"] * 2, ""], [*"nnn", *"ss", ""]
    path = tmp_path / "report.html"
    path.write_text(render(run), encoding="utf-8")
    assert "3 pairs of documents" in words(path.read_text(encoding="utf-8"))
    assert "news n 3 show sport s 2 show" in words(path.read_text(encoding="utf-8"))
    tab, said = opened(browser, path)
    tab.click("summary:text('pairs of documents')")
    tab.click("button[data-words=sport]")
    assert tab.text_content("#shown") == "1 to 2 of 2 pairs"
    tab.locator("#pairs tbody tr").first.click(position={"x": 3, "y": 3})
    assert "source documentsport" in tab.text_content("#pairs tr.detail")
    assert said == []
    tab.close()
