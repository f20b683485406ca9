"""Measure how fast the page of `adit report` opens and responds.

Milliseconds of its own script for each heading sorted by and each filter, the worst of some tries.

python benchmarks/report.py report.html --browser /usr/bin/chromium
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

TRIES = 5
FILTERS = {"words": "the", "least": "1.2", "marked": "none"}


def main() -> None:
    """Open the page, print each time and the median, then sort and filter it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path, help="what adit report wrote")
    parser.add_argument("--browser", required=True, help="Chromium's program")
    parser.add_argument("--repeat", type=int, default=5, help="default: 5")
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    seconds = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=args.browser, args=["--no-sandbox"])
        for _ in range(args.repeat):
            tab = chromium.new_page()
            start = time.perf_counter()
            tab.goto(args.page.resolve().as_uri())
            tab.wait_for_selector("#pairs tbody tr")
            seconds.append(time.perf_counter() - start)
        median = sorted(seconds)[len(seconds) // 2]
        shown = " ".join(f"{one:.2f}" for one in seconds)
        print(f"{args.page.stat().st_size / 1e6:.1f} MB: {shown} s, median {median:.2f} s")
        tab.wait_for_timeout(3000)  # a reader is slower than the page's preparations
        for name, spent in answers(tab).items():
            print(f"{name:18s} {min(spent):6.1f} to {max(spent):6.1f} ms")
        chromium.close()


def answers(tab: Any) -> dict[str, list[float]]:
    """Return the milliseconds of each way of sorting and filtering, by name."""
    clicks = tab.evaluate("[...document.querySelectorAll('#pairs th button')].length")
    timed = "(act => { const start = performance.now(); act(); return performance.now() - start; })"
    found: dict[str, list[float]] = {}
    for _ in range(TRIES):
        for column in range(clicks):
            button = f"document.querySelectorAll('#pairs th button')[{column}]"
            name = "sort by " + tab.evaluate(f"{button}.textContent")
            spent = tab.evaluate(f"{timed}(() => {button}.click())")
            found.setdefault(name, []).append(spent)
        for field, value in FILTERS.items():
            for text in (value, ""):
                spent = tab.evaluate(
                    f"{timed}(() => {{ const field = document.getElementById('{field}'); "
                    f"field.value = '{text}'; "
                    "field.dispatchEvent(new Event('input', { bubbles: true })); })"
                )
                found.setdefault(f"filter by {field}", []).append(spent)
    return found


if __name__ == "__main__":
    main()
