"""Compare margins with the judge's scores on corpora of many shapes.

    python benchmarks/scores.py NTREX de fr sv [--encoder SPEC]

NTREX has a file of lines for each language, which translate each other. Prints the mean best F1 and
the mean average precision of either score, over the languages, all with English.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from encoder import load_encoder
from eval.mined import mine_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder

ENGLISH = "en"


def shapes(rows: int) -> Iterator[tuple[str, Sequence[int], Sequence[int]]]:
    """Yield the name and the rows of both sides of each shape."""
    order = list(range(rows))
    random.Random(1).shuffle(order)
    yield "parallel", order, order
    half, tenth = rows // 3, rows // 40
    yield "half in common", order[: 2 * half], order[half:]
    yield "a tenth in common", order[: rows // 2 + tenth], order[rows // 2 - tenth :]
    for start in range(0, 300, 60):
        part = order[start : start + 60]
        yield "40 x 40, half in common", part[:40], part[20:]
    for start in range(0, 120, 12):
        part = order[start : start + 12]
        yield "8 x 8, half in common", part[:8], part[4:]
    for start in range(0, 100, 20):
        part = order[start : start + 20]
        yield "20 parallel", part, part


def measure(scores: NDArray[np.float64], right: NDArray[np.bool_], gold: int) -> list[float]:
    """Return the best F1 and the average precision in percent."""
    sorted_right = right[np.argsort(-scores, kind="stable")]
    found, taken = np.cumsum(sorted_right), np.arange(1, len(scores) + 1)
    precision = found / taken
    best = (2 * found / (taken + gold)).max()
    return [100 * float(best), 100 * float((precision * sorted_right).sum()) / gold]


def compare(folder: Path, language: str, encoder: Encoder) -> Iterator[tuple[str, list[float]]]:
    """Return both figures of each shape, by margin and by the judge."""
    names = language, ENGLISH
    texts = [(folder / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in names]
    for shape, own, other in shapes(len(texts[0])):
        sides = [texts[0][row] for row in own], [texts[1][row] for row in other]
        mined = mine_texts(sides, encoder, names)
        gold = {(texts[0][row], texts[1][row]) for row in set(own) & set(other)}
        found = []
        for pairs in (mined.pairs, mined.judged()):
            rows = zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)
            right = np.array([(sides[0][one], sides[1][two]) in gold for one, two in rows])
            found += measure(pairs.score, right, len(gold))
        yield shape, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("languages", nargs="+")
    parser.add_argument("--encoder", default="mini")
    args = parser.parse_args()
    encoder = load_encoder(args.encoder)
    figures: dict[str, list[list[float]]] = defaultdict(list)
    for language in args.languages:
        for shape, found in compare(args.folder, language, encoder):
            figures[shape].append(found)
    print(f"{'':25}  best F1: margin, words   average precision: margin, words")
    for shape, found in figures.items():
        f1, precision, words_f1, words_precision = np.mean(found, axis=0)
        print(f"{shape:25} {f1:14.1f} {words_f1:8.1f} {precision:23.1f} {words_precision:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
