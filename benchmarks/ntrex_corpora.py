"""Measure F1 on comparable corpora made of NTREX.

    python benchmarks/ntrex_corpora.py NTREX BUCC --languages cs,fi,sv,uk,hu

Of NTREX's 1,997 sentences, 15 % are on both sides, and half of the others on each alone; 4,000
English sentences of the news of BUCC's German training split are among the English ones. There are
four such draws of each language; each in turn is mined with the threshold that is best on the one
before. Error: of NTREX's margin search into English. All in percent.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import numpy as np
from languages import Remembering, ntrex_errors

from encoder import Encoder, load_encoder
from eval.data.bucc import BuccSplit, Sentences, load_bucc
from eval.tasks.aligned import aligned_files
from eval.tasks.mined_splits import mine_split, tune_and_test
from miner.storage.streams import read_lines

SHARED, MORE_ENGLISH, DRAWS = 0.15, 4000, 4


def draw(folder: Path, language: str, english: list[str], seed: int) -> BuccSplit:
    """Make a comparable corpus with other English sentences from ``english``."""
    files = aligned_files(folder)
    texts = [read_lines(files[name]) for name in (language, "en")]
    rows = random.Random(seed).sample(range(len(texts[0])), len(texts[0]))
    shared = int(SHARED * len(rows))
    half = (shared + len(rows)) // 2
    others = random.Random(seed).sample(english, min(MORE_ENGLISH, len(english)))
    chosen = rows[:half], rows[:shared] + rows[half:]
    sides = [
        Sentences(ids=[f"{row}" for row in own], texts=[text[row] for row in own])
        for own, text in zip(chosen, texts, strict=True)
    ]
    target = Sentences(
        ids=[*sides[1].ids, *(f"other-{number}" for number in range(len(others)))],
        texts=[*sides[1].texts, *others],
    )
    gold = {(f"{row}", f"{row}") for row in rows[:shared]}
    name = f"{language}-en"
    return BuccSplit(
        pair=name, split=str(seed), source=sides[0], target=target, gold=gold, files={}
    )


def f1(encoder: Encoder, corpora: list[BuccSplit], *, judged: bool) -> float:
    """Return the mean F1, each at the threshold of the previous corpus."""
    mined = [mine_split(data, encoder=encoder, judged=judged) for data in corpora]
    results = [tune_and_test(mined[place - 1], mined[place])[1] for place in range(len(mined))]
    return float(np.mean([result.score.f1 for result in results]))


def main() -> int:
    """Print a line per language and encoder, and the means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ntrex", type=Path)
    parser.add_argument("bucc", type=Path)
    parser.add_argument("--languages", default="cs,fi,sv,uk,hu")
    parser.add_argument("--encoders", nargs="+", default=["mini", "mini+use"])
    args = parser.parse_args()
    languages = args.languages.split(",")
    english = load_bucc(args.bucc, "de-en", "training").target.texts
    print("| language | encoder | error | F1, margin | F1, judged |")
    print("| --- | --- | ---: | ---: | ---: |")
    for spec in args.encoders:
        encoder, rows = Remembering(load_encoder(spec, precision="auto")), []
        errors = ntrex_errors(encoder, args.ntrex, languages)
        for language in languages:
            corpora = [draw(args.ntrex, language, english, seed) for seed in range(DRAWS)]
            scores = [f1(encoder, corpora, judged=judged) for judged in (False, True)]
            rows.append(100 * np.array([errors[language], *scores]))
            print(_row(language, spec, rows[-1]), flush=True)
        print(_row("mean", spec, np.mean(rows, axis=0)), flush=True)
    return 0


def _row(language: str, spec: str, figures: np.ndarray) -> str:
    return f"| {language} | {spec} | {' | '.join(f'{figure:.2f}' for figure in figures)} |"


if __name__ == "__main__":
    sys.exit(main())
