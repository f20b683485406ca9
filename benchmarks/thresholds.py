"""Thresholds by nothing but the scores, in corpora of known shares of translations.

    python benchmarks/thresholds.py NTREX de fr ru --share 0.05 0.15 0.4 [--encoder SPEC]

NTREX has a file of lines for each language, which translate each other. Of its lines a share is on
both sides, of the others one half on each. Prints, for thresholds of scores by words and of
margins, the mean share of wrong pairs, its mean error and the highest, and the mean recall.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from encoder import Encoder, load_encoder
from eval.data.bucc import BuccFiles, BuccSplit
from eval.data.sentences import Sentences
from eval.tasks.fdr import K, encoded
from eval.tasks.fdr_by_words import WordThreshold, measure_scores
from eval.tasks.mined_splits import mine_split
from miner.knn.exact import search_unit_rows
from miner.mining import mine

ENGLISH = "en"
WANTED = (0.05, 0.1)


def overlapping(folder: Path, language: str, share: float) -> BuccSplit:
    """Return corpora of the distinct lines of two files, of which a share is in both."""
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


def thresholds(data: BuccSplit, encoder: Encoder) -> list[WordThreshold]:
    """Choose and judge the thresholds of one world."""
    words, margins = (
        mine_split(data, encoder=encoder, mine=lambda *sides: mine(*sides, k=K), align=align)
        for align in (True, False)
    )
    languages = data.pair.split("-")
    vectors = [
        encoded(encoder.for_language(language), side.texts)
        for language, side in zip(languages, (data.source, data.target), strict=True)
    ]
    lists = search_unit_rows(*vectors, k=K)
    return measure_scores(words, margins, encoder=encoder, lists=lists, wanted=WANTED)


def main() -> None:
    """Print a line for each share, kind of threshold and wanted rate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("languages", nargs="+")
    parser.add_argument("--share", type=float, nargs="+", default=[0.05, 0.15, 0.4])
    parser.add_argument("--encoder", default="mini")
    args = parser.parse_args()
    encoder = load_encoder(args.encoder)
    print(f"{'common':6s}  {'by':8s} wanted   mean  error  highest  recall  refused")
    for share in args.share:
        found: dict[tuple[str, float], list[WordThreshold]] = defaultdict(list)
        for language in args.languages:
            for one in thresholds(overlapping(args.folder, language, share), encoder):
                found[one.by, one.wanted].append(one)
        for (by, wanted), together in found.items():
            scores = [one.score for one in together if one.score]
            line = f"{share:6.0%}  {by:8s} {wanted:6.0%}"
            if scores:
                rates = 100 * np.array([score.fdr for score in scores])
                error = np.abs(rates - 100 * wanted).mean()
                recall = 100 * np.mean([score.recall for score in scores])
                line += f" {rates.mean():6.1f} {error:6.1f} {rates.max():8.1f} {recall:7.1f}"
            print(f"{line} {len(together) - len(scores):8d}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
