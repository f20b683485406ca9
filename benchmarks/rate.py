"""Measure `adit rate` on a parallel corpus with wrong lines.

    python benchmarks/rate.py NTREX de fr ru --share 0.05 0.2 0.5 [--encoder SPEC]

NTREX has a file of lines for each language, which translate each other. Of the English lines a
share is replaced, by one of the three after it (of the same story) or by any. Prints, as means over
the languages, the best F1 of right pairs by cosine, margin and score, and of those that ``--fdr
0.05`` keeps the share of wrong ones, the mean of what their probabilities say, the highest share,
and the share of right pairs that are kept.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.cli.main import adit

ENGLISH = "en"
KINDS = {"near": 3, "any": None}
SCORES = ("cosine", "margin", "score")


def replaced(lines: Sequence[str], share: float, reach: int | None) -> list[str]:
    """Return the lines after a share is replaced by other lines."""
    draw = random.Random(round(1000 * share))
    found = list(lines)
    for row in draw.sample(range(len(lines)), round(share * len(lines))):
        further = draw.randint(1, reach or len(lines) - 1)
        found[row] = lines[(row + further) % len(lines)]
    return found


def rated(folder: Path, *options: str) -> list[dict[str, Any]]:
    output = folder / "out.jsonl"
    files = [str(folder / name) for name in ("source", "target")]
    if adit(["rate", *files, "-q", "-o", str(output), *options]):
        return []
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def best_f1(scores: Sequence[float], right: Sequence[bool]) -> float:
    order = np.argsort(-np.array(scores), kind="stable")
    found = np.array(right)[order].cumsum()
    return float((2 * found / (np.arange(1, len(found) + 1) + sum(right))).max())


def measure(folder: Path, lines: Sequence[Sequence[str]], options: Sequence[str]) -> list[float]:
    """Return the columns of one corpus, NaN if nothing can be estimated."""
    true = set(zip(lines[0], lines[1], strict=True))

    def right(pairs: Sequence[dict[str, Any]]) -> list[bool]:
        return [(pair["source_text"], pair["target_text"]) in true for pair in pairs]

    everything, kept = rated(folder, *options), rated(folder, *options, "--fdr", "0.05")
    known = right(everything)
    columns = [best_f1([pair[name] for pair in everything], known) for name in SCORES]
    if not kept:
        return [*columns, *[float("nan")] * 3]
    wrong = 1 - float(np.mean(right(kept)))
    expected = 1 - float(np.mean([pair["probability"] for pair in kept]))
    return [*columns, wrong, expected, sum(right(kept)) / sum(known)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="NTREX")
    parser.add_argument("languages", nargs="+")
    parser.add_argument("--share", type=float, nargs="+", default=[0.05, 0.2, 0.5])
    parser.add_argument("--encoder", default="mini")
    args = parser.parse_args()
    names = [*SCORES, "wrong", "expected", "highest", "recall", "refused"]
    print("replaced", *(f"{name:>9}" for name in names))
    english = (args.folder / f"{ENGLISH}.txt").read_text(encoding="utf-8").splitlines()
    for share in args.share:
        for kind, reach in KINDS.items():
            rows = []
            for language in args.languages:
                own = (args.folder / f"{language}.txt").read_text(encoding="utf-8").splitlines()
                with tempfile.TemporaryDirectory() as place:
                    folder = Path(place)
                    changed = replaced(english, share, reach)
                    for name, lines in (("source", own), ("target", changed)):
                        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
                    options = ["--src-lang", language, "--tgt-lang", ENGLISH]
                    options += ["--encoder", args.encoder]
                    rows.append(measure(folder, (own, english), options))
            refused = sum(np.isnan(row[-1]) for row in rows)
            mean = np.nanmean(rows, axis=0)
            columns = [*mean[:5], np.nanmax([row[3] for row in rows]), mean[5]]
            shown = " ".join(f"{100 * value:9.1f}" for value in columns)
            print(f"{share:4.0%} {kind}", shown, f"{refused:9d}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
