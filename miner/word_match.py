"""A second look at mined pairs: how well the words and numbers of both sentences match.

A sentence vector says what a sentence is about, and two that are about the same need not say the
same: one may leave out a clause that the other has, or give another number. Held against each
other word by word, they tell. Axes: ``P`` pairs, ``W`` words, ``D`` dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Protocol

import numpy as np

from miner.arrays import AlignedPairs, Pairs
from miner.filters import shared_and_unmatched_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

# A word is matched by one of this cosine as well as by a nearer one: a free translation is far from
# what it translates, and sentences on one subject share names and common words to the letter.
MATCHED = 0.4
# Near the factors, held against the margin's, of a logistic model of the `sample` splits of the
# BUCC-style sets; of a few such, good ones on the `training` splits (docs/encoder-log.md).
COVERAGE, IMBALANCE, UNMATCHED_NUMBERS = 3.0, 0.25, 0.15
FITTED_MARGIN = "ratio"  # of ``miner.margin.MARGINS``: others have another scale
USUAL_PAIRS = 1000
TEXTS = 8192  # pairs aligned at a time: the vectors of their words take about 50 MB


class Words(Protocol):
    """The W words of P sentences laid end to end, of which U are different."""

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Unit rows, float32 (U, D)."""
        ...

    @property
    def weights(self) -> NDArray[np.float32]:
        """How much each word counts, float32 (U,)."""
        ...

    @property
    def ids(self) -> NDArray[np.int32]:
        """The words, as rows of ``vectors``, int32 (W,)."""
        ...

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Sentence i has the words ids[offsets[i]:offsets[i + 1]]: int64 (P + 1,)."""
        ...


class WordMaker(Protocol):
    """What has vectors of words, such as ``encoder.words.WordEncoder``."""

    def words(self, sentences: Sequence[str]) -> Words:
        """Return the words of P sentences."""
        ...


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """How P pairs match; all arrays are float64 (P,).

    ``coverage`` is from 0 to 1. ``log_ratio`` is the natural logarithm of the ratio of what the
    source's words weigh to what the target's do. ``unmatched_numbers`` counts the different
    numbers, in digits, that only one of both sentences has.
    """

    coverage: FloatArray
    log_ratio: FloatArray
    unmatched_numbers: FloatArray


def match_words(source: Words, target: Words) -> tuple[FloatArray, FloatArray]:
    """Coverage and log ratio of P pairs: each word is matched with the nearest one of the other.

    The coverage of a sentence is the mean, by weight, of its words' greatest cosines, where one of
    ``MATCHED`` and more counts 1, and a word that nothing is near to counts 0: BERTScore's recall
    and precision (Zhang et al. 2020, section 3) with a ceiling, here of words out of context and
    across languages. That of a pair is the lesser of both. Where a sentence has no words, coverage
    and log ratio are 0. Costs 2 D flops for each pair of words; each pair's figures are independent
    of the other pairs.
    """
    pairs = len(source.offsets) - 1
    coverage, log_ratio = np.zeros(pairs), np.zeros(pairs)
    sides = source, target
    ends = [side.offsets.tolist() for side in sides]
    weights = [side.weights[side.ids] for side in sides]
    nearest = [np.zeros(len(side.ids), dtype=np.float32) for side in sides]
    both = [pair for pair in range(pairs) if all(end[pair] < end[pair + 1] for end in ends)]
    for pair in both:
        one, other = (slice(end[pair], end[pair + 1]) for end in ends)
        vectors = source.vectors.take(source.ids[one], axis=0)
        cosines = vectors @ target.vectors.take(target.ids[other], axis=0).T
        np.maximum.reduce(cosines, axis=1, out=nearest[0][one])
        np.maximum.reduce(cosines, axis=0, out=nearest[1][other])
    covered = [np.clip(cosines / MATCHED, 0, 1) for cosines in nearest]
    for pair in both:
        parts = [slice(end[pair], end[pair + 1]) for end in ends]
        sums = [np.add.reduce(weight[part]) for weight, part in zip(weights, parts, strict=True)]
        coverage[pair] = min(
            best[part] @ weight[part] / total
            for best, weight, part, total in zip(covered, weights, parts, sums, strict=True)
        )
        log_ratio[pair] = np.log(sums[0] / sums[1])
    return coverage, log_ratio


def align_texts(
    encoders: Sequence[WordMaker],
    source: Sequence[str],
    target: Sequence[str],
    *,
    progress: Callable[[int], object] = lambda pairs: None,
) -> Alignment:
    """Hold P pairs of sentences against each other; each side has its maker of words.

    ``progress`` is called with the number of pairs done since the last call.
    """
    parts = []
    for start in range(0, max(1, len(source)), TEXTS):
        texts = source[start : start + TEXTS], target[start : start + TEXTS]
        words = [own.words(part) for own, part in zip(encoders, texts, strict=True)]
        parts.append(match_words(words[0], words[1]))
        progress(len(texts[0]))
    coverage, log_ratio = map(np.concatenate, zip(*parts, strict=True))
    _, unmatched = shared_and_unmatched_numbers(source, target)
    return Alignment(coverage=coverage, log_ratio=log_ratio, unmatched_numbers=unmatched)


def usual_log_ratio(alignment: Alignment) -> float:
    """The median log ratio of the first pairs, which should be the best ones; 0 of no pairs."""
    log_ratios = alignment.log_ratio[:USUAL_PAIRS]
    return float(np.median(log_ratios)) if len(log_ratios) else 0.0


def why_unfitted(margin: str) -> str | None:
    """Return why margins of another scale than ``FITTED_MARGIN`` cannot be added to; else None."""
    if margin == FITTED_MARGIN:
        return None
    return (
        f"the weights of words were fitted to the {FITTED_MARGIN} margin, not to {margin}; use "
        f"--margin {FITTED_MARGIN}"
    )


def aligned_scores(margins: FloatArray, alignment: Alignment, *, usual: float) -> FloatArray:
    """Return margin + 3 coverage - |log ratio - usual| / 4 - 0.15 log(1 + unmatched): float64 (P,).

    A pair gains by words that agree, and loses where one side says more than the other, or says
    other numbers.
    """
    imbalance = np.abs(alignment.log_ratio - usual)
    unmatched = np.log1p(alignment.unmatched_numbers)
    gain = COVERAGE * alignment.coverage - IMBALANCE * imbalance - UNMATCHED_NUMBERS * unmatched
    return margins + gain


def aligned_pairs(pairs: Pairs, alignment: Alignment, *, usual: float) -> AlignedPairs:
    """Return pairs that are scored by their margins with ``aligned_scores``, in their order."""
    known = {field.name: getattr(pairs, field.name) for field in fields(Pairs)}
    return AlignedPairs(
        **known | {"score": aligned_scores(pairs.score, alignment, usual=usual)},
        margin=pairs.score,
        coverage=alignment.coverage,
        imbalance=np.abs(alignment.log_ratio - usual),
        unmatched=alignment.unmatched_numbers.astype(np.int32),
    )
