"""Compare `adit rate --score texts` with the full method on half-spoiled text.

    python benchmarks/rate_texts.py NTREX de fr ru zh ja fi [--encoder mini]

NTREX has a file of lines for each language, which translate each other. Half of the English lines
are replaced by the source, the same line in Spanish, or the next line. Prints, as means over the
languages in percent, by the method: the area under the ROC curve, with copies (`identical`) below
all others; F1 of the correct pairs with a probability of at least 0.5, the best F1 of any
threshold, precision, recall, and the error rate that the probabilities estimate.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from pipelines.cli.main import adit

COLUMNS = ("AUC", "F1", "best F1", "precision", "recall", "estimated")


def spoiled(source: Sequence[str], english: Sequence[str], spanish: Sequence[str]) -> np.ndarray:
    """Return the English lines of which half are replaced, (N, 2), and 1 where one is not."""
    draw = random.Random(len(source))
    found = []
    for row, line in enumerate(english):
        wrong = draw.choice((source[row], spanish[row], english[(row + 1) % len(english)]))
        found.append((line, 1) if draw.random() < 0.5 else (wrong, 0))
    return found


def rated(path: Path, languages: Sequence[str], options: Sequence[str]) -> list[list[str]]:
    """Return score, probability and reason of each line."""
    output = path.with_name("out.tsv")
    own = [f"--src-lang={languages[0]}", f"--tgt-lang={languages[1]}", *options]
    if adit(["rate", str(path), "-o", str(output), "-q", *own]):
        raise SystemExit(2)
    lines = output.read_text(encoding="utf-8").split("\n")[:-1]
    return [line.rsplit("\t", 3)[1:] for line in lines]


def measure(lines: Sequence[Sequence[str]], right: np.ndarray) -> list[float]:
    scores = np.array([-np.inf if reason else float(score) for score, _, reason in lines])
    likely = np.array([0.0 if reason else float(chance) for _, chance, reason in lines])
    kept = likely >= 0.5
    hits = int((kept & right).sum())
    found = right[np.argsort(-scores, kind="stable")].cumsum()
    best = 2 * found / (np.arange(1, len(found) + 1) + right.sum())
    area = roc_auc_score(right, np.maximum(scores, -1e9))
    f1 = 2 * hits / (kept.sum() + right.sum())
    precision, recall = hits / kept.sum(), hits / right.sum()
    return [area, f1, best.max(), precision, recall, 1 - likely[kept].mean()]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="NTREX")
    parser.add_argument("languages", nargs="+")
    parser.add_argument("--encoder", default="best")
    args = parser.parse_args()

    def read(language: str) -> list[str]:
        return (args.folder / f"{language}.txt").read_text("utf-8").rstrip("\n").split("\n")

    methods = {"full": [f"--encoder={args.encoder}"], "texts": ["--score=texts"]}
    rows: dict[str, list[list[float]]] = {name: [] for name in methods}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "in.tsv"
        for language in args.languages:
            source = read(language)
            targets = spoiled(source, read("en"), read("es"))
            pairs = zip(source, targets, strict=True)
            path.write_text("".join(f"{s}\t{t}\n" for s, (t, _) in pairs), encoding="utf-8")
            right = np.array([label for _, label in targets], dtype=bool)
            for name, options in methods.items():
                lines = rated(path, (language, "en"), options)
                rows[name].append(measure(lines, right))
                print(
                    f"{language} {name:6}", *(f"{100 * x:9.1f}" for x in rows[name][-1]), flush=True
                )
    print(f"{'mean':9}", *(f"{name:>9}" for name in COLUMNS))
    for name, measured in rows.items():
        print(f"{name:9}", *(f"{100 * value:9.1f}" for value in np.mean(measured, axis=0)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
