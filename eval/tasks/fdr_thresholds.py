"""Are thresholds chosen without gold as good as they claim to be? Measured where there is gold.

Axes: ``P`` mined pairs, ``D`` decoys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eval.metrics.bootstrap import Interval, interval
from eval.metrics.bucc import BuccScore, best_score, score_at
from miner.fdr import Null, mine_added, threshold_at
from miner.knn.exact import search_both
from miner.mining import mine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eval.tasks.mined_splits import MinedSplit

    Matrix = NDArray[np.float32]
    FloatArray = NDArray[np.float64]

RESAMPLES = 200


@dataclass(frozen=True, kw_only=True)
class Choice:
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


def decoy_scores(
    real: tuple[Matrix, Matrix], decoys: tuple[Matrix, Matrix], *, k: int
) -> FloatArray:
    """What is mined for decoys of either side among the real sentences of the other.

    All are unit rows; the real ones are mined as ``miner.mining.mine`` does by default.
    """
    forward, backward = search_both(*real, k=k)
    pairs = mine(*real, k=k)
    scores = []
    for queries, base, others, rows in (
        (decoys[0], real[1], backward, pairs.target),
        (decoys[1], real[0], forward, pairs.source),
    ):
        taken = np.full(len(base), -np.inf)
        taken[rows] = pairs.score
        found, _ = search_both(queries, base, k=k)
        scores.append(mine_added(found, others, taken).scores)
    return np.concatenate(scores)


def planted_scores(
    real: tuple[Matrix, Matrix], planted: tuple[Matrix, Matrix], *, k: int
) -> FloatArray:
    """The score each planted pair is mined with, -inf where it is not: row i of both sides is one.

    Ascending, float64 (planted pairs,).
    """
    both = (np.concatenate([own, more]) for own, more in zip(real, planted, strict=True))
    pairs = mine(*both, k=k)
    row = pairs.source - len(real[0])
    right = (row >= 0) & (row == pairs.target - len(real[1]))
    scores = np.full(len(planted[0]), -np.inf)
    scores[row[right]] = pairs.score[right]
    return np.sort(scores)


def choose(mined: MinedSplit, decoys: FloatArray, planted: FloatArray, *, fdr: float) -> Choice:
    """Choose the threshold for a wanted FDR by decoys; judge it by planted pairs and by gold."""
    scores = mined.judgements.scores
    null = Null.fitted(decoys)
    threshold = threshold_at(scores, null, fdr=fdr)
    score = score_at(mined.judgements, threshold)
    recall = float((planted > threshold).mean())
    return Choice(
        wanted=fdr,
        interval=_interval(decoys, threshold, pairs=len(scores), kept=score.extracted),
        recall=recall,
        planted_fdr=1 - min(1.0, _true_pairs(scores, planted) * recall / max(1, score.extracted)),
        score=score,
    )


def best(mined: MinedSplit) -> BuccScore:
    """The score at the threshold with the best F1 on gold."""
    return best_score(mined.judgements)


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
    """How many true pairs there are, found or not, by the planted ones.

    Above the median of the planted scores nearly all pairs are right, and half of the planted ones
    are there: so half of the true ones are.
    """
    middle = planted[len(planted) // 2]
    return float((scores > middle).sum() / (planted > middle).mean())
