"""Are thresholds chosen without gold as good as they claim to be? Measured where there is gold.

Thresholds are chosen by decoys (``miner.fdr``), and beside them the recall is estimated by planted
pairs. Axes: ``P`` mined pairs, ``D`` decoys.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from encoder import load_encoder
from encoder.words import WordEncoder
from eval.data.bucc import BuccSplit, load_bucc
from eval.data.textfiles import fingerprint
from eval.metrics.bootstrap import Interval, interval
from eval.metrics.bucc import BuccScore, best_score, score_at
from eval.output import Record, Table, score_record, signature
from eval.tasks import fdr_by_words
from eval.tasks.arguments import add_bucc_data, chosen_pairs
from eval.tasks.encoding import own_encoders
from eval.tasks.mined_splits import MinedSplit, mine_split
from miner.fdr import TAIL, AddedPairs, Null, mine_added, threshold_at
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_unit_rows
from miner.mining import mine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder
    from miner.arrays import Neighbours, Pairs

    Matrix = NDArray[np.float32]
    FloatArray = NDArray[np.float64]

WANTED = (0.01, 0.05, 0.1, 0.2)
K = 4
RESAMPLES = 200
TABLE = Table(
    "pair",
    [
        *("wanted", "95% interval", "true FDR", "pairs", "recall", "by planted", "FDR by planted"),
        *("F1", "best F1", "its recall"),
    ],
)


@dataclass(frozen=True, kw_only=True)
class ChosenThreshold:
    """A threshold for a wanted FDR, what was estimated of it and what gold says.

    ``interval`` is that of the estimated FDR at the threshold, from resampled decoys;
    ``recall`` is estimated from planted pairs, ``planted_fdr`` too: 1 less the share of pairs that
    a recall of so many true pairs explains.
    """

    wanted: float
    interval: Interval
    recall: float
    planted_fdr: float
    score: BuccScore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the task."""
    parser.description = (
        "Choose thresholds for 1, 5, 10 and 20% wrong pairs by decoys, without gold, and show what "
        "gold says of them, beside the threshold with the best F1. With an encoder of words, do "
        "the same with scores by words, by decoys and from the scores alone, and with margins by "
        "the probabilities that scores by words give."
    )
    add_bucc_data(parser)
    add = parser.add_argument
    add("--split", default="training", help="the split that is mined (default: training)")
    add(
        "--decoys",
        default="sample",
        metavar="SPLIT",
        help="its sentences are the decoys, its gold pairs are planted; the two splits must share "
        "no sentence (default: sample)",
    )


def run(args: argparse.Namespace, show: Callable[[str], None]) -> Record:
    """Choose and judge thresholds for every pair."""
    splits = args.split, args.decoys
    names = chosen_pairs(args)
    data = {name: [load_bucc(args.directory, name, split) for split in splits] for name in names}
    encoder = load_encoder(args.encoder)
    show(TABLE.header)
    thresholds: list[list[ChosenThreshold]] = []
    by_words: list[list[fdr_by_words.WordThreshold]] = []
    word_lines: list[str] = []
    record: Record = {}
    for name, (real, other) in data.items():
        both = own_encoders(encoder, name.split("-"))
        vectors = [
            (encoded(both[0], split.source.texts), encoded(both[1], split.target.texts))
            for split in (real, other)
        ]
        lists = search_unit_rows(*vectors[0], k=K)
        decoys = decoy_pairs(vectors[0], vectors[1], lists)
        mined, chosen = _measure(real, other, encoder, vectors[0], decoys)
        best = best_score(mined.judgements)
        for one in chosen:
            show(_row(name, one, best))
        thresholds.append(chosen)
        record[name] = {
            "thresholds": [_record(one) for one in chosen],
            "best": score_record(best),
        }
        if isinstance(encoder, WordEncoder):
            words, best = fdr_by_words.measure(
                real,
                other,
                encoder=encoder,
                mine=_mine,
                decoys=decoys,
                lists=lists,
                wanted=WANTED,
            )
            by_words.append(words)
            word_lines += [fdr_by_words.row(name, one, best) for one in words]
            record[name]["by words"] = {
                "thresholds": [one.record() for one in words],
                "best": score_record(best),
            }
    for wanted, together in zip(WANTED, zip(*thresholds, strict=True), strict=True):
        rates = [one.score.fdr for one in together]
        recall = float(np.mean([one.score.recall for one in together]))
        show(TABLE.row("mean", wanted, None, float(np.mean(rates)), None, recall))
        show(TABLE.row("highest", wanted, None, max(rates)))
    if by_words:
        for line in (fdr_by_words.TABLE.header, *word_lines, *fdr_by_words.summary(by_words)):
            show(line)
    files = [file for both in data.values() for split in both for file in split.files.all]
    signed = signature(
        "fdr",
        pairs=",".join(names),
        split=args.split,
        decoys=args.decoys,
        sha256=fingerprint(*files),
        encoder=encoder.name,
        k=K,
        margin="ratio",
        tail=TAIL,
    )
    show(signed)
    return {"task": "fdr", "pairs": record, "signature": signed}


def _row(name: str, chosen: ChosenThreshold, best: BuccScore) -> str:
    score = chosen.score
    return TABLE.row(
        *(name, chosen.wanted, chosen.interval, score.fdr, score.extracted),
        *(score.recall, chosen.recall, chosen.planted_fdr),
        *(score.f1, best.f1, best.recall),
    )


def _record(chosen: ChosenThreshold) -> Record:
    return {
        "wanted": chosen.wanted,
        "interval": chosen.interval,
        "fdr": chosen.score.fdr,
        "planted_recall": chosen.recall,
        "planted_fdr": chosen.planted_fdr,
        **score_record(chosen.score),
    }


def encoded(encoder: Encoder, texts: Sequence[str]) -> Matrix:
    """Unit rows of some sentences."""
    return unit_rows(encoder.encode(texts))


def _mine(source: Matrix, target: Matrix) -> Pairs:
    return mine(source, target, k=K)


def _measure(
    real: BuccSplit,
    other: BuccSplit,
    encoder: Encoder,
    own: tuple[Matrix, Matrix],
    decoys: Sequence[AddedPairs],
) -> tuple[MinedSplit, list[ChosenThreshold]]:
    both = own_encoders(encoder, real.pair.split("-"))
    mined = mine_split(real, encoder=encoder, mine=_mine)
    source = dict(zip(other.source.ids, other.source.texts, strict=True))
    target = dict(zip(other.target.ids, other.target.texts, strict=True))
    known = sorted(other.gold)
    planted = planted_scores(
        own,
        (
            encoded(both[0], [source[one] for one, _ in known]),
            encoded(both[1], [target[one] for _, one in known]),
        ),
    )
    scores = np.concatenate([pairs.scores for pairs in decoys])
    return mined, [choose(mined, scores, planted, fdr=wanted) for wanted in WANTED]


def decoy_pairs(
    real: tuple[Matrix, Matrix],
    decoys: tuple[Matrix, Matrix],
    lists: tuple[Neighbours, Neighbours],
) -> list[AddedPairs]:
    """Mine for decoys of either side, source first, among the real sentences of the other.

    All are unit rows; the real ones, whose ``lists`` are of K neighbours, are mined as
    ``miner.mining.mine`` does by default.
    """
    forward, backward = lists
    pairs = _mine(*real)
    mined = []
    for queries, base, others, rows in (
        (decoys[0], real[1], backward, pairs.target),
        (decoys[1], real[0], forward, pairs.source),
    ):
        taken = np.full(len(base), -np.inf)
        taken[rows] = pairs.score
        found, _ = search_unit_rows(queries, base, k=K)
        mined.append(mine_added(found, others, taken))
    return mined


def planted_scores(real: tuple[Matrix, Matrix], planted: tuple[Matrix, Matrix]) -> FloatArray:
    """Mine planted pairs, row i of both sides, with the real sentences.

    Returns the score of each, ascending, -inf where it is not mined: float64 (planted pairs,).
    """
    both = (np.concatenate([own, more]) for own, more in zip(real, planted, strict=True))
    pairs = _mine(*both)
    row = pairs.source - len(real[0])
    right = (row >= 0) & (row == pairs.target - len(real[1]))
    scores = np.full(len(planted[0]), -np.inf)
    scores[row[right]] = pairs.score[right]
    return np.sort(scores)


def choose(
    mined: MinedSplit, decoys: FloatArray, planted: FloatArray, *, fdr: float
) -> ChosenThreshold:
    """Choose the threshold for a wanted FDR by decoys; judge it by planted pairs and by gold."""
    scores = mined.judgements.scores
    threshold = threshold_at(scores, Null.fitted(decoys), fdr=fdr)
    score = score_at(mined.judgements, threshold)
    recall = float((planted > threshold).mean())
    return ChosenThreshold(
        wanted=fdr,
        interval=_interval(decoys, threshold, pairs=len(scores), kept=score.extracted),
        recall=recall,
        planted_fdr=1 - min(1.0, _true_pairs(scores, planted) * recall / max(1, score.extracted)),
        score=score,
    )


def _interval(decoys: FloatArray, threshold: float, *, pairs: int, kept: int) -> Interval:
    random = np.random.default_rng(RESAMPLES)
    thresholds = np.array([threshold])
    rates = [
        float(Null.fitted(random.choice(decoys, len(decoys))).above(thresholds)[0]) * pairs
        for _ in range(RESAMPLES)
    ]
    low, high = interval(np.array(rates) / max(1, kept))
    return min(1.0, low), min(1.0, high)


def _true_pairs(scores: FloatArray, planted: FloatArray) -> float:
    """Estimate how many true pairs there are, found or not, by the planted ones.

    Above the median of the planted scores nearly all pairs are right, and half of the planted ones
    are there: so half of the true ones are.
    """
    middle = planted[len(planted) // 2]
    return float((scores > middle).sum() / (planted > middle).mean())
