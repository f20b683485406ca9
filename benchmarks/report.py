"""How soon the page of `mine-corpus report` is there in a browser: seconds until its table is.

python benchmarks/report.py report.html --browser /usr/bin/chromium
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path


def main() -> None:
    """Open the page some times; print each and the median."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path, help="what mine-corpus report wrote")
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
            tab.close()
        chromium.close()
    median = sorted(seconds)[len(seconds) // 2]
    told = " ".join(f"{one:.2f}" for one in seconds)
    print(f"{args.page.stat().st_size / 1e6:.1f} MB: {told} s, median {median:.2f} s")


if __name__ == "__main__":
    main()
