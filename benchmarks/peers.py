"""Compare the judge with other scores of the same pairs.

    pip install opusfilter
    python benchmarks/peers.py train-more --pairs zh-en,it-en --among train --bucc bucc-style \
        --ntrex ntrex --exclude NAMES

Pairs are mined of the ``training`` splits of comparable corpora, by ``mini``, and scored by

- margin: the ratio margin, as LASER's mine_bitexts does;
- sum: margin + 3 coverage - log ratio of weights / 4 - 0.15 log (1 + unmatched numbers), which was
  the score before the judge;
- OpusFilter: logistic regression on ten of its filters' scores, as its classifier does, and the
  same with the margin as an eleventh;
- judge: trees that, like that regression, have not learned from the language.

Shown are average precision and the best F1, in percent, as means over the language pairs. Then
the average precision of clean pairs where a half is noise (``adit evaluate noise``), without
neighbours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from judge_mined import add_sources, corpora_of
from judge_training import gather, train_judge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from synthetic_corpora import comparable_corpora

from encoder import load_encoder
from encoder.words import word_encoders
from eval.data.bucc import bucc_pairs, bucc_splits
from eval.mined import mine_texts
from eval.tasks.aligned import load_aligned
from eval.tasks.noise import make_noise
from miner.judge.features import FEATURES, RunStatistics, compute_features, read_texts

SHOWN = ("misaligned", "truncated")
NAMES = ("margin", "sum", "OpusFilter", "OpusFilter and margin", "judge")
MARGIN = FEATURES.index("margin")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Mined pairs with inputs of the judge and of OpusFilter, and labels."""

    language: str
    split: str
    seen: np.ndarray
    filters: np.ndarray
    right: np.ndarray
    gold: int


def filter_scores(texts: tuple[Sequence[str], Sequence[str]], language: str) -> np.ndarray:
    """Return the scores (P, columns) of ten OpusFilter filters."""
    from opusfilter import filters

    script = {"ru": "Cyrillic", "zh": "Han"}.get(language, "Latin")
    used = (
        filters.LengthRatioFilter(unit="word"),
        filters.LengthRatioFilter(unit="char"),
        filters.LengthFilter(unit="word"),
        filters.LengthFilter(unit="char"),
        filters.NonZeroNumeralsFilter(),
        filters.CharacterScoreFilter(scripts=[script, "Latin"]),
        filters.TerminalPunctuationFilter(),
        filters.AverageWordLengthFilter(),
        filters.SimilarityFilter(),
        filters.RepetitionFilter(),
    )
    pairs = list(zip(*texts, strict=True))
    columns = [
        np.array(list(one.score(pairs)), dtype=float).reshape(len(pairs), -1) for one in used
    ]
    return np.nan_to_num(np.concatenate(columns, axis=1), posinf=100.0)


def scored_worlds(directory: Path) -> Iterator[Scored]:
    encoder = load_encoder("mini")
    for pair in bucc_pairs(directory):
        for split in bucc_splits(directory, pair):
            world = comparable_corpora(directory, pair, split)
            mined = mine_texts((world.source, world.target), encoder, world.languages)
            ends = zip(mined.texts, (mined.pairs.source, mined.pairs.target), strict=True)
            texts = tuple([side[row] for row in rows] for side, rows in ends)
            yield Scored(
                language=world.languages[0],
                split=split,
                seen=mined.features,
                filters=filter_scores(texts, world.languages[0]),
                right=np.array([one in world.gold for one in zip(*texts, strict=True)]),
                gold=len(world.gold),
            )


def old_sum(seen: np.ndarray) -> np.ndarray:
    column = {name: seen[:, place] for place, name in enumerate(FEATURES)}
    words = 3 * column["coverage, lesser side"] - np.log(column["ratio of weights"]) / 4
    margin = np.nan_to_num(column["margin"])
    return margin + words - 0.15 * np.log1p(column["unmatched numbers"])


def figures(scores: np.ndarray, right: np.ndarray, gold: int) -> tuple[float, float]:
    """Return the average precision and the best F1."""
    found = right[np.argsort(-scores, kind="stable")]
    hits, ranks = found.cumsum(), np.arange(1, len(found) + 1)
    return float((hits / ranks * found).sum() / gold), float((2 * hits / (ranks + gold)).max())


def noise_figures(
    folder: Path, language: str, judge: object, peer: object
) -> dict[str, list[float]]:
    """Return the average precision of clean pairs by kind of noise and score."""
    texts = load_aligned(folder, [language, "en"]).texts
    clean = texts[language], texts["en"]
    makers = word_encoders(load_encoder("mini"), (language, "en"))
    usual = RunStatistics.of(read_texts(makers, *clean))
    found: dict[str, list[float]] = {}
    for kind in SHOWN:
        noise = make_noise(*clean, {})[kind]
        both = [*clean[0], *noise[0]], [*clean[1], *noise[1]]
        seen = compute_features(read_texts(makers, *both), None, usual)
        right = np.arange(len(seen)) < len(clean[0])
        scores = {
            "sum": old_sum(seen),
            "OpusFilter": peer.decision_function(filter_scores(both, language)),
            "judge": judge.scores(seen),
        }
        for name, own in scores.items():
            found.setdefault(name, []).append(figures(own, right, int(right.sum()))[0])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_sources(parser)
    parser.add_argument("--ntrex", type=Path, required=True)
    args = parser.parse_args()
    examples, worlds = list(gather(corpora_of(args))), list(scored_worlds(args.bucc))
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
    noise: dict[str, list[list[float]]] = {}
    for world in (one for one in worlds if one.split == "training"):
        others = [one for one in worlds if one.language != world.language]
        judge = train_judge([one for one in examples if one.languages[0] != world.language])
        scores = {
            "margin": world.seen[:, MARGIN],
            "sum": old_sum(world.seen),
            "judge": judge.scores(world.seen),
        }
        right = np.concatenate([one.right for one in others])
        for name, columns in (("OpusFilter", []), ("OpusFilter and margin", [MARGIN])):
            table, own = (
                [np.column_stack([one.filters, one.seen[:, columns]]) for one in part]
                for part in (others, [world])
            )
            peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            scores[name] = peer.fit(np.concatenate(table), right).decision_function(own[0])
            if not columns:
                alone = peer
        for name, own in scores.items():
            rows[name].append(figures(own, world.right, world.gold))
        for name, found in noise_figures(args.ntrex, world.language, judge, alone).items():
            noise.setdefault(name, []).append(found)
        print(world.language, {name: [round(100 * n, 1) for n in rows[name][-1]] for name in NAMES})
    print(f"{'score':22}{'AP':>8}{'best F1':>9}" + "".join(f"{kind:>13}" for kind in SHOWN))
    for name in NAMES:
        precision, f1 = 100 * np.mean(rows[name], axis=0)
        found = 100 * np.mean(noise[name], axis=0) if name in noise else []
        cells = "".join(f"{one:13.1f}" for one in found)
        print(f"{name:22}{precision:8.1f}{f1:9.1f}{cells}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
