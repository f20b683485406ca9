"""How many of the mined pairs are wrong, estimated without gold from sentences that have none.

*Decoys* are sentences known to have no translation on the other side; copies of
the run's own sentences are none. Each is scored as if it
alone were one more sentence of the corpus; what is found for it is wrong, and its score is a draw
from the scores of wrong pairs. Counting decoys above a threshold gives the false discovery rate
there, as target-decoy search does in proteomics (Elias & Gygi 2007). Above their upper quartile,
scores of wrong pairs fall off exponentially (their mean excess hardly depends on where one begins),
so that tail is fitted: a count of the few decoys at the top would be mostly chance.

*Planted pairs* are known translations put into both corpora; the share that is found is the recall.

Axes: ``P`` mined pairs, ``D`` decoys, ``Q`` queries, ``M`` rows searched in, ``K`` neighbours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from miner.arrays import Neighbours
from miner.knn.exact import search_both
from miner.margin import margin_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    Matrix = NDArray[np.float32]
    Mask = NDArray[np.bool_]

TAIL = 0.75  # the quantile of the decoys' scores that the exponential tail begins at
MIN_DECOYS = 100  # below, the tail would be fitted to fewer than 25 scores
# A decoy this near to a sentence of its own side says nearly the same, and so has its translation.
# Of 300-character sentences less a random word, 90 in 100 are nearer, of unrelated text from the
# same sources at most 8 in 2,000 (bundled encoder; de, en, ru and zh of the BUCC-style sets).
NEAR_COPY = 0.9
MAX_COPIES = 0.01  # of the decoys: so many are left out, as a short line may be anywhere


def copied(decoys: Sequence[str], texts: Iterable[str]) -> Mask:
    """Return which of D decoys are among ``texts``, but for case, spaces and punctuation: (D,)."""
    keys = [_key(decoy) for decoy in decoys]
    found = set(keys).intersection(map(_key, texts))
    return np.array([key in found for key in keys], dtype=np.bool_)


def _key(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, plain)) or plain.strip()


def nearly_copied(decoys: Matrix, side: Matrix) -> Mask:
    """Return which decoys (D, dim) are all but equal to a sentence of their own side (N, dim).

    Both are vectors of the same encoder.
    """
    found, _ = search_both(decoys, side, k=1)
    near: Mask = np.any(found.cosines >= NEAR_COPY, axis=1)
    return near


def usable_decoys(copies: Mask, decoys: Sequence[str]) -> Mask:
    """Return which decoys can be used: those that are no copies, where there are few copies.

    Raises:
        ValueError: over ``MAX_COPIES`` of the decoys are sentences of the run, or nearly.
    """
    count = int(copies.sum())
    if count > MAX_COPIES * len(decoys):
        example = decoys[int(np.argmax(copies))]
        raise ValueError(
            f"{count:,} of {len(decoys):,} decoys are sentences of the run, or nearly, such as "
            f"{example!r}: what is mined for them may be right; use text that is not in the corpus"
        )
    return ~copies


@dataclass(frozen=True, kw_only=True)
class AddedPairs:
    """Q pairs of a query and a row, int64 (Q,) each, and their scores, float64 (Q,)."""

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: FloatArray


def mine_added(
    found: Neighbours, others: Neighbours, taken: FloatArray, *, margin: str = "ratio"
) -> AddedPairs:
    """Return what would be mined for each query if it alone joined the corpus.

    The neighbourhood of a row that it is compared with is that row's own, with the query in it
    where it is near enough. The best pair is mined unless that row has a better one.

    Args:
        found: the queries' neighbours among M rows: Q rows, ids are positions.
        others: the neighbours of these M rows in the corpus that the queries would join, as many of
            each as the margins were computed with.
        taken: float64 (M,), the score of the mined pair that each row has, -inf where it has none.
        margin: one of ``miner.margin.MARGINS``.

    Returns:
        One pair for each query that is mined, in their order.
    """
    theirs = others.cosines[found.ids].astype(np.float64)
    joined = np.maximum(0, found.cosines - theirs[:, :, -1])  # the query drives out the last
    means = (theirs.sum(axis=2) + joined) / theirs.shape[2]
    scores = margin_scores(found.cosines, found.means()[:, None], means, margin=margin)
    queries, best = np.arange(len(found)), scores.argmax(axis=1)
    rows, score = found.ids[queries, best], scores[queries, best]
    mined = np.flatnonzero(score > taken[rows])
    return AddedPairs(queries=mined, rows=rows[mined], scores=score[mined])


@dataclass(frozen=True, kw_only=True)
class Null:
    """The distribution of wrong pairs' scores.

    ``scores`` (D,) are the decoys', ascending; from ``start`` on, ``share`` of them, it is
    exponential with mean ``excess``.
    """

    scores: FloatArray
    start: float
    share: float
    excess: float

    @classmethod
    def fitted(cls, decoys: FloatArray) -> Null:
        """Fitted to the decoys' scores, in any order.

        Raises:
            ValueError: there are too few, or they do not differ.
        """
        if len(decoys) < MIN_DECOYS:
            raise ValueError(
                f"pairs were mined for {len(decoys)} decoys; at least {MIN_DECOYS} are needed "
                "to estimate how many pairs are wrong"
            )
        start = float(np.quantile(decoys, TAIL))
        beyond = decoys[decoys > start]
        if not len(beyond):
            raise ValueError("the scores of the decoys do not differ; are they sentences?")
        return cls(
            scores=np.sort(decoys),
            start=start,
            share=len(beyond) / len(decoys),
            excess=float((beyond - start).mean()),
        )

    def above(self, thresholds: FloatArray) -> FloatArray:
        """Return the share of wrong pairs that score above each threshold."""
        counted = 1 - np.searchsorted(self.scores, thresholds, side="right") / len(self.scores)
        beyond = np.maximum(0, thresholds - self.start)  # or exp overflows where it is not used
        fitted = self.share * np.exp(-beyond / self.excess)
        return np.where(thresholds < self.start, counted, fitted)


def wrong_pairs(scores: FloatArray, null: Null) -> FloatArray:
    """How many of the P best-first pairs up to and with each one are expected to be wrong: (P,).

    As if all P pairs were wrong but for those at the top: where many are right this is too many.
    A pair with the score of later ones counts them, as a threshold could not part them.
    """
    last = np.searchsorted(-scores, -scores, side="right")
    expected: FloatArray = np.minimum(len(scores) * null.above(scores), last)
    return expected


def false_discovery_rates(scores: FloatArray, null: Null) -> FloatArray:
    """The least FDR of any threshold that keeps each of the P best-first pairs: (P,), ascending.

    Storey's q-value (2002).
    """
    last = np.searchsorted(-scores, -scores, side="right")
    rates: FloatArray = np.minimum.accumulate((wrong_pairs(scores, null) / last)[::-1])[::-1]
    return rates


def probabilities(scores: FloatArray, null: Null) -> FloatArray:
    """Return each pair's probability to be right: float64 (P,), descending as the scores do.

    One less the local false discovery rate: the slope of the convex minorant of ``wrong_pairs``
    against rank (Grenander's estimator; Strimmer 2008), found by pooling adjacent violators.
    """
    steps = np.diff(wrong_pairs(scores, null), prepend=0.0)
    return 1 - pooled(steps, np.ones(len(scores)))


def pooled(steps: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the share of wrong pairs in each group of pairs, ascending, from 0 to 1.

    Args:
        steps: how many of each group are expected to be wrong; groups come best first.
        counts: how many pairs each group has, above 0.
    """
    sums: list[float] = []
    sizes: list[float] = []
    groups: list[int] = []
    for step, pairs in zip(steps.tolist(), counts.tolist(), strict=True):
        total, size, together = step, pairs, 1
        while sizes and sums[-1] / sizes[-1] >= total / size:
            total, size = total + sums.pop(), size + sizes.pop()
            together += groups.pop()
        sums.append(total)
        sizes.append(size)
        groups.append(together)
    wrong: FloatArray = np.repeat(np.divide(sums, sizes), groups)
    return np.clip(wrong, 0, 1)


def threshold_at(scores: FloatArray, null: Null, *, fdr: float) -> float:
    """Return the lowest threshold whose estimated FDR is at most ``fdr``; inf where there is none.

    Pairs score strictly above it.

    Args:
        scores: float64 (P,), best first.
        null: of the wrong pairs.
        fdr: wanted, above 0 and below 1.
    """
    kept = int(np.searchsorted(false_discovery_rates(scores, null), fdr, side="right"))
    return float(np.nextafter(scores[kept - 1], -np.inf)) if kept else np.inf
