"""A second look at mined pairs: how well the words and numbers of both sentences match.

A sentence vector says what a sentence is about, and two that are about the same need not say the
same: one may leave out a clause that the other has, or give another number. Held against each
other word by word, they tell. Axes: ``P`` pairs, ``W`` words, ``D`` dimensions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Protocol

import numpy as np

from miner.arrays import AlignedPairs, Pairs
from miner.filters import shared_and_unmatched_numbers
from miner.threads import blocks, in_threads

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
COMPILED_FROM = 4096  # pairs; for fewer, loading Numba takes longer than doing without it
THREAD_PAIRS = 1024  # that a thread matches at once
SCALE = 2.0**26  # squared, it is half of what float64 counts without a gap


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
    of the other pairs, of threads and of the processor.
    """
    pairs = len(source.offsets) - 1
    covered, weights = [], []
    for side, cosines in zip((source, target), _nearest(source, target), strict=True):
        owners = np.repeat(np.arange(pairs), np.diff(side.offsets))
        weight = side.weights[side.ids].astype(np.float64)
        covered.append(np.bincount(owners, weight * np.clip(cosines / MATCHED, 0, 1), pairs))
        weights.append(np.bincount(owners, weight, pairs))
    filled = (weights[0] > 0) & (weights[1] > 0)
    totals = [np.where(filled, total, 1) for total in weights]
    shares = [share / total for share, total in zip(covered, totals, strict=True)]
    coverage: FloatArray = np.where(filled, np.minimum(*shares), 0)
    return coverage, np.log(totals[0] / totals[1])


def _nearest(source: Words, target: Words) -> list[NDArray[np.float32]]:
    """Return each word's greatest cosine with one of the other sentence's: float32 (W,) a side.

    Vectors are rounded to whole numbers of 1 / ``SCALE``, so that sums of products are exact
    (``miner.knn.core.rescore``).
    """
    sides = source, target
    nearest = [np.full(len(side.ids), -np.inf, dtype=np.float32) for side in sides]
    pairs = len(source.offsets) - 1
    if pairs < COMPILED_FROM and "miner.compiled_match" not in sys.modules:
        _match_plainly(sides, nearest)
        return nearest
    from miner.compiled_match import match_pairs  # loads Numba

    def match(block: slice) -> None:
        offsets = (side.offsets[block.start : block.stop + 1] for side in sides)
        parts = [(side.vectors, side.ids, own) for side, own in zip(sides, offsets, strict=True)]
        match_pairs(*parts, *nearest)

    in_threads(match, blocks(pairs, THREAD_PAIRS))
    return nearest


def _match_plainly(sides: Sequence[Words], nearest: Sequence[NDArray[np.float32]]) -> None:
    """Do what ``miner.compiled_match`` does, in NumPy, for few pairs."""
    vectors = [np.rint(side.vectors.astype(np.float64) * SCALE) for side in sides]
    ends = [side.offsets.tolist() for side in sides]
    for pair in range(len(ends[0]) - 1):
        one, other = (slice(end[pair], end[pair + 1]) for end in ends)
        if one.start < one.stop and other.start < other.stop:
            rows = vectors[0].take(sides[0].ids[one], axis=0)
            cosines = rows @ vectors[1].take(sides[1].ids[other], axis=0).T / SCALE**2
            nearest[0][one] = cosines.max(axis=1)
            nearest[1][other] = cosines.max(axis=0)


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
