"""Measure the judge on languages that it has not learned from.

    python benchmarks/judge.py train-more --pairs zh-en,it-en --among train --bucc bucc-style \
        --exclude NAMES

This takes the options of judge_mined.py, except for -o. For each language pair of the comparable
corpora a judge is trained without it, on all splits of the others, and judges its ``training``
split, by each encoder: F1 of the pairs with a probability of at least one half, the best F1 that a
threshold could reach, and for ``--fdr`` 0.05 and 0.1 the share of wrong pairs and the recall, all
in percent.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from judge_mined import add_sources, corpora_of
from judge_training import ENCODERS, gather, train_judge
from synthetic_corpora import LabelledCorpora, comparable_corpora

from encoder import load_encoder
from eval.data.bucc import bucc_pairs
from eval.mined import Mined, mine_texts
from miner.judge.model import Judge
from miner.judge.prior import LIKELY, count_kept

WANTED = (0.05, 0.1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_sources(parser)
    args = parser.parse_args()
    examples = list(gather(corpora_of(args)))
    rows: dict[str, list[list[float]]] = {spec: [] for spec in ENCODERS}
    for pair in bucc_pairs(args.bucc):
        world = comparable_corpora(args.bucc, pair, "training")
        left = [one for one in examples if one.languages[0] != world.languages[0]]
        judge = train_judge(left)
        for spec in ENCODERS:
            mined = mine_texts((world.source, world.target), load_encoder(spec), world.languages)
            rows[spec].append(figures(mined, world, judge))
            show(f"{pair} {spec}", rows[spec][-1])
    for spec in ENCODERS:
        found = np.array(rows[spec])
        show(f"mean {spec}", found.mean(axis=0).tolist())
        errors = [np.abs(found[:, 2 * n] - rate).mean() for n, rate in enumerate(WANTED, start=1)]
        show(f"mean error of the share {spec}", errors)
    return 0


def figures(mined: Mined, world: LabelledCorpora, judge: Judge) -> list[float]:
    pairs = mined.judged(judge)
    both = zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)
    texts = mined.texts
    right = np.array([(texts[0][one], texts[1][two]) in world.gold for one, two in both])
    correct, gold = right.cumsum(), len(world.gold)
    f1 = 2 * correct / (np.arange(1, len(right) + 1) + gold)
    likely = int((pairs.probability >= LIKELY).sum())
    found = [float(f1[likely - 1]) if likely else 0.0, float(f1.max())]
    for rate in WANTED:
        kept = count_kept(pairs.score, 1 - pairs.probability, "fdr", rate)
        found += [1 - float(right[:kept].mean()) if kept else 0.0, right[:kept].sum() / gold]
    return found


def show(name: str, numbers: list[float]) -> None:
    print(f"{name}:", *(f"{100 * number:.1f}" for number in numbers), flush=True)


if __name__ == "__main__":
    sys.exit(main())
