"""Check probabilities in corpora with known shares of translations.

    python benchmarks/thresholds.py NTREX de fr ru --share 0.05 0.15 0.4 [--encoder SPEC]

NTREX has a file of lines for each language, which translate each other. Of its lines a share is on
both sides, of the others one half on each. Prints, for 5 and 10 % of wrong pairs wanted and for the
pairs likely right, the mean share of wrong pairs, its mean error and the highest, and the mean
recall; with --each a line for each language; at the end how many pairs of each tenth of probability
there are, and how many of them are right.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from encoder import load_encoder
from eval.data.bucc import BuccFiles, BuccSplit, Sentences
from eval.tasks.fdr import Kept, measure, reliability
from eval.tasks.mined_splits import mine_split

ENGLISH = "en"
WANTED = (0.05, 0.1)
SHARES = [0.01, 0.05, 0.15, 0.4, 0.8, 1.0]


def overlapping(folder: Path, language: str, share: float) -> BuccSplit:
    """Return corpora of the distinct lines of two files with shared lines."""
    files = [folder / f"{name}.txt" for name in (language, ENGLISH)]
    texts = [path.read_text(encoding="utf-8").splitlines() for path in files]
    rows = list({lines: row for row, lines in enumerate(zip(*texts, strict=True))}.values())
    rows = [row for row in rows if all(lines.count(lines[row]) == 1 for lines in texts)]
    random.Random(round(100 * share)).shuffle(rows)
    common = round(share * len(rows))
    half = (len(rows) - common) // 2
    parts = rows[: common + half], rows[:common] + rows[common + half :]
    sides = [
        Sentences(ids=[f"{row}" for row in part], texts=[lines[row] for row in part])
        for part, lines in zip(parts, texts, strict=True)
    ]
    return BuccSplit(
        pair=f"{language}-{ENGLISH}",
        split=f"{share:.0%}",
        source=sides[0],
        target=sides[1],
        gold=frozenset((f"{row}", f"{row}") for row in rows[:common]),
        files=BuccFiles(source=files[0], target=files[1], gold=files[1]),
    )


def show(name: str, together: list[Kept]) -> None:
    """Print a line of means over languages."""
    wanted = together[0].wanted
    rates = 100 * np.array([one.score.fdr for one in together])
    recall = 100 * np.mean([one.score.recall for one in together])
    f1 = 100 * np.mean([one.score.f1 for one in together])
    error = "" if wanted is None else f"{np.abs(rates - 100 * wanted).mean():.1f}"
    label = "likely" if wanted is None else f"{wanted:.0%}"
    figures = f"{rates.mean():6.1f} {error:>6} {rates.max():8.1f} {recall:7.1f} {f1:6.1f}"
    print(f"{name:6}  {label:>6} {figures}", flush=True)


def main() -> None:
    """Print lines for each share."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("languages", nargs="+")
    parser.add_argument("--share", type=float, nargs="+", default=SHARES)
    parser.add_argument("--encoder", default="mini")
    parser.add_argument("--each", action="store_true")
    args = parser.parse_args()
    encoder = load_encoder(args.encoder)
    tenths: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    print(f"{'common':6}  wanted   mean  error  highest  recall     F1")
    for share in args.share:
        found: dict[float | None, list[Kept]] = defaultdict(list)
        for language in args.languages:
            data = overlapping(args.folder, language, share)
            mined = mine_split(data, encoder=encoder, judged=True)
            for one in measure(mined, WANTED):
                found[one.wanted].append(one)
                if args.each:
                    show(language, [one])
            for likely, right, pairs in reliability(mined):
                tenth = tenths[min(9, int(10 * likely))]
                for place, number in enumerate((likely * pairs, right * pairs, pairs)):
                    tenth[place] += number
        for together in found.values():
            show(f"{share:.0%}", together)
    for likely, right, pairs in (tenths[tenth] for tenth in sorted(tenths)):
        print(f"probability {likely / pairs:.2f}: {right / pairs:.2f} of {int(pairs):,} are right")


if __name__ == "__main__":
    sys.exit(main())
