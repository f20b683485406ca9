"""Whole runs on millions of lines of real text: time, memory, disk, recall and F1.

    python benchmarks/millions.py DATA FOLDER --rows 1000000 5000000

makes, once, FOLDER/ROWS.{xx,en,gold}: German, French and Spanish lines and English ones, each two
sentences of DATA/{de,fr,es}-en.tsv.xz (source, TAB, target, TAB, corpus) joined, a third with
their translation on the other side; each sentence occurs in many lines, so that the nearest
neighbours of a line without translation are half right. Then it mines them by ``adit mine`` and
prints what the run took, beside what ``--plan`` expected. ``--kills 10`` ends the run that often by
SIGKILL, at random moments, and starts it again.
"""

import lzma
import sys
from pathlib import Path

import numpy as np

LANGUAGES = "de", "fr", "es"
PLANTED = 3  # every third line has its translation on the other side
BLOCK = 1 << 18
SECONDS = 0.2  # between two looks at memory and disk


def read_pairs(data: Path) -> tuple[list[list[str]], np.ndarray]:
    """Return the sentences of both sides, all languages in turn, and where each language begins."""
    sides: list[list[str]] = [[], []]
    starts = [0]
    for language in LANGUAGES:
        with lzma.open(
            data / f"{language}-en.tsv.xz", "rt", encoding="utf-8", newline="\n"
        ) as lines:
            pairs = {tuple(line.split("\t")[:2]) for line in lines}
        for side, texts in zip(sides, zip(*sorted(pairs), strict=True), strict=True):
            side += texts
        starts.append(len(sides[0]))
    return sides, np.array(starts)


def make_lines(data: Path, folder: Path, rows: int) -> None:
    """Write both sides and the gold pairs, as line numbers from 0, unless they are there."""
    gold = folder / f"{rows}.gold"
    if gold.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sides, starts = read_pairs(data)
    generator = np.random.default_rng(0)
    planted = rows // PLANTED
    total = 2 * rows - planted
    language = generator.integers(len(LANGUAGES), size=total)
    low, high = starts[language], starts[language + 1]
    parts = [generator.integers(low, high) for _ in range(2)]
    alone = np.arange(planted, total)
    # The planted pairs and those of one side alone, each side in an order of its own.
    chosen = [
        generator.permutation(np.concatenate([np.arange(planted), half]))
        for half in (alone[: rows - planted], alone[rows - planted :])
    ]
    for suffix, texts, pairs in zip(("xx", "en"), sides, chosen, strict=True):
        with open(folder / f"{rows}.{suffix}", "w", encoding="utf-8", newline="\n") as file:
            for start in range(0, rows, BLOCK):
                block = pairs[start : start + BLOCK]
                firsts, seconds = (part[block].tolist() for part in parts)
                file.writelines(
                    f"{texts[first]} {texts[second]}\n"
                    for first, second in zip(firsts, seconds, strict=True)
                )
    places = [np.argsort(pairs)[:planted] for pairs in chosen]  # of planted pair 0, 1, ...
    np.savetxt(gold, np.stack(places, axis=1), fmt="%d", delimiter="\t")


if __name__ == "__main__":
    make_lines(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
