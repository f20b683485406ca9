"""Features of a pair, from words, numbers, marks and neighbours.

Axes: ``P`` pairs, ``F`` features in the order of ``COLUMNS``, NaN if unknown.
"""

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miner.arrays import NO_NEIGHBOUR, FloatArray, Matrix, Neighbours, Pairs, code_points
from miner.judge.facts import compare_facts, facts_of
from miner.judge.languages import own_language
from miner.judge.network import network_of
from miner.judge.parts import PART, combine_parts, flag_words
from miner.judge.words import WordEmbedder, Words, encoder_names
from miner.margin import margin_scores
from miner.numbers import count_numbers, with_ascii_digits
from miner.threads import blocks, map_in_threads, run_in_threads

PAIRS_PER_THREAD = 8192  # pairs at a time: the vectors of their words take about 50 MB
STATISTICS_PAIRS = 1000  # best pairs that run statistics are of
SURE = 0.9  # quantile of how sure the language model is of these pairs: many may be wrong
SPACING = 2.0**40  # parts of a cosine that spacings are summed in

_STEPS = ("15", "25", "35", "45", "55", "70", "85")
_WORD_FEATURES = (
    *(f"words with a match of .{step}" for step in _STEPS),
    *("mean match", "coverage", "heaviest unmatched word", "second heaviest unmatched word"),
    *("weight of the heaviest unmatched word", "weight of unmatched words"),
    *("longest unmatched run", "mutual matches", "matches out of place", "matched word pairs"),
    *("weight of near-equal words", "words"),
)
_COVERAGE = _WORD_FEATURES.index("coverage")
_IS_WEIGHT = np.array([name.startswith("weight") for name in _WORD_FEATURES])
_MARKS = ("letters", "question marks", "colons", "brackets", "commas", "capitals")
NEIGHBOURHOOD = ("margin", "lesser gap to neighbours", "greater gap to neighbours")
FEATURES = (  # of all trees
    *(f"{name}, lesser side" for name in _WORD_FEATURES),
    *(f"{name}, greater side" for name in _WORD_FEATURES),
    *("ratio of weights", "ratio of letters"),
    *(f"difference in {name}" for name in _MARKS[1:]),
    *("shared numbers", "unmatched numbers"),
    *NEIGHBOURHOOD,
)
LANGUAGE, NUMBERS = "own language", "contradicting numbers"
EXCHANGED, NEGATED = "contradicting words", "negation on one side"
FACTS = (
    *(EXCHANGED, "second contradicting words", NEGATED),
    *("negation, lesser side", "negation, greater side", "shared meanings"),
)
PARTS = (  # names and sentences
    *("name without match, lesser side", "name without match, greater side"),
    *("name without match by weight, lesser side", "name without match by weight, greater side"),
    *("names, lesser side", "names, greater side"),
    *("coverage of the least covered sentence", "difference in coverage of sentences"),
    "weight of unmatched words in a sentence",
)
BOUNDARIES = ("difference in last sentence mark", "difference in small first letter")
# Of the trees for given pairs.
SEEN = (*FEATURES, NUMBERS, *FACTS, *PARTS, *BOUNDARIES, LANGUAGE)
CONTEXT = "words in context"
MIN_COVERAGE = 0.65  # of mined pairs that the network judges: others are clearly wrong
MINED = (*FEATURES, CONTEXT)  # of the trees for mined pairs
# Languages with spaces between syllables or phrases only, so that words are split into parts. Most
# parts of Chinese are words.
SPLIT_LANGUAGES = ("ja", "km", "lo", "my", "th", "vi")
COLUMNS = (*SEEN, CONTEXT)
NO_FLAGS = [np.empty(0, dtype=np.int8)] * 2


class Texts(NamedTuple):
    """Features of the texts of P pairs. An axis of 2 is source and target.

    Attributes:
        words: Features of matched words, float32 (P, 2, SIDE).
        weights: Sums of the weights of words, float64 (P, 2), both 0 if a side has no words.
        marks: Letters, punctuation marks, capitals, and boundaries, float32 (P, 2, MARKS).
        numbers: Shared, unshared and contradicting numbers of ``count_numbers``, float64 (P, 3).
        language: The lesser ``own_language`` of both sides, float32 (P,), NaN if both are.
        facts: Features from ``compare_facts``, float32 (P, 6).
        parts: Features from ``combine_parts``, float32 (P, 9), NaN for mined pairs.
        context: Log odds of ``Network.judge``, float32 (P,), NaN if not judged.
    """

    words: NDArray[np.float32]
    weights: FloatArray
    marks: NDArray[np.float32]
    numbers: FloatArray
    language: NDArray[np.float32]
    facts: NDArray[np.float32]
    parts: NDArray[np.float32]
    context: NDArray[np.float32]


def read_texts(
    makers: Sequence[WordEmbedder],
    source: Sequence[str],
    target: Sequence[str],
    *,
    languages: Sequence[str | None] = (None, None),
    is_given: bool = False,
    progress: Callable[[int], object] = lambda pairs: None,
) -> Texts:
    """Compute the features of the texts of P pairs, maybe none, in threads.

    ``makers`` are the word encoders, and ``languages`` the ISO 639-1 codes of source and target,
    None if unknown. If ``is_given``, ``parts`` are also computed. Else light words of
    ``SPLIT_LANGUAGES`` are joined to the next, and ``context`` is NaN with a lesser coverage below
    ``MIN_COVERAGE``. ``progress`` is called after each block with its number of pairs, in any
    thread, one at a time.
    """
    reading = threading.Lock()
    model, network = facts_of(makers), network_of(makers)
    joins = tuple(not is_given and language in SPLIT_LANGUAGES for language in languages)

    def read_piece(piece: slice) -> tuple[NDArray[np.floating], ...]:
        texts = [with_ascii_digits(side[piece]) for side in (source, target)]
        words = [own.words(part) for own, part in zip(makers, texts, strict=True)]
        marks = np.stack([_marks_in(part) for part in texts], axis=1)
        own = np.fmin(*map(own_language, texts, languages))
        facts = compare_facts(words[0], words[1], model)
        numbers = count_numbers(*texts).T
        flags = [*map(flag_words, makers, texts, words, languages)] if is_given else NO_FLAGS
        matched, weights, sides = match_words(words[0], words[1], joins, flags)
        parts = combine_parts(sides, languages)
        context = np.full(len(own), np.nan, dtype=np.float32)
        if network:
            is_covered = matched[:, :, _COVERAGE].min(axis=1) >= MIN_COVERAGE
            context = network.judge(words[0], words[1], is_covered | is_given)[0]
        columns = (matched, weights, marks, numbers, own, facts, parts, context)
        with reading:
            progress(len(texts[0]))
        return columns

    read = map_in_threads(read_piece, blocks(len(source), PAIRS_PER_THREAD) or [slice(0, 0)])
    return Texts(*map(np.concatenate, zip(*read, strict=True)))


def match_words(
    source: Words,
    target: Words,
    joins: tuple[bool, ...] = (False, False),
    flags: Sequence[NDArray[np.int8]] = NO_FLAGS,
) -> tuple[NDArray[np.float32], FloatArray, NDArray[np.float32]]:
    """Match the words of both sides of P pairs by their vectors.

    ``joins``, of source and target, says whether words lighter than the sentence's mean are joined
    to the next, and ``flags`` are from ``flag_words``. Returns the features of each side, float32
    (P, 2, SIDE), its sum of word weights, float64 (P, 2), and its features of names and sentences,
    float32 (P, 2, PART). The first two are 0 for a pair with a side without words, the last NaN.
    """
    from miner.judge.compiled import SIDE, describe_words  # loads Numba

    pairs = len(source.offsets) - 1
    described, weights = np.zeros((pairs, 2, SIDE)), np.zeros((pairs, 2))
    parts = np.full((pairs, 2, PART), np.nan, dtype=np.float32)
    sides = [(side.vectors, side.weights, side.ids, side.offsets) for side in (source, target)]
    describe_words(*sides, joins, tuple(flags), described, weights, parts)
    return described.astype(np.float32), weights, parts


def _marks_in(texts: Sequence[str]) -> NDArray[np.float32]:
    from miner.judge.compiled import MARKS, count_marks

    counts = np.zeros((len(texts), MARKS), dtype=np.float32)
    count_marks(*code_points(texts), counts)
    return counts


class NeighbourhoodStats(NamedTuple):
    """Cosines of P pairs, and mean cosines of both neighbourhoods, (P,) each."""

    cosine: NDArray[Any]
    source_mean: FloatArray
    target_mean: FloatArray

    @classmethod
    def of(cls, pairs: Pairs) -> "NeighbourhoodStats":
        """Return the cosines and means of mined pairs."""
        return cls(pairs.cosine, pairs.source_mean, pairs.target_mean)


@dataclass(frozen=True, kw_only=True)
class RunStatistics:
    """Statistics of a run, which normalise the features of its pairs.

    Attributes:
        weights: Median ratio of source to target weights of the best pairs by margin.
        letters: Median ratio of source to target letters, each plus 1, of these pairs.
        spacing: Mean spacing of neighbour cosines, NaN if unknown.
        language: 0.9-quantile of these pairs' ``Texts.language``, at most 0. It is negative for a
            spelling that the language model does not know, such as romanised text.
        is_given: Whether the pairs were given, not mined.
        scale: ``weights`` if pairs were mined with different word encoders, else 1. Source weights
            are divided by it if it is above 1, else target weights are multiplied by it.
        boundaries: Mean differences, source less target, of the last two marks of these pairs. A
            script may lack such marks or small letters, and lines may be no sentences.
    """

    weights: float
    letters: float
    spacing: float
    language: float
    is_given: bool
    scale: float = 1.0
    boundaries: Sequence[float] = (0.0, 0.0)

    @classmethod
    def of(
        cls,
        texts: Texts,
        spacing: float = math.nan,
        *,
        makers: Sequence[WordEmbedder] = (),
        is_given: bool = False,
    ) -> "RunStatistics":
        """Compute the statistics of the first 1,000 pairs, not of others.

        Pass mined pairs best margin first. ``spacing`` is from ``mean_spacing``, and ``makers`` are
        both sides' word encoders. Without pairs, ratios are 1. ``language`` is 0 if never known.
        """
        both = texts.weights[:STATISTICS_PAIRS], texts.marks[:STATISTICS_PAIRS, :, 0] + 1.0
        weights, letters = (float(np.median(_ratios(s))) if len(s) else 1.0 for s in both)
        own = texts.language[:STATISTICS_PAIRS].astype(np.float64)
        own = own[~np.isnan(own)]
        language = min(0.0, float(np.quantile(own, SURE))) if len(own) else 0.0
        marks = texts.marks[:STATISTICS_PAIRS, :, -len(BOUNDARIES) :].astype(np.float64)
        boundaries = (marks[:, 0] - marks[:, 1]).sum(axis=0) / max(1, len(marks))
        is_scaled = len(encoder_names(makers)) > 1 and not is_given
        return cls(
            weights=weights,
            letters=letters,
            spacing=spacing,
            language=language,
            is_given=is_given,
            scale=weights if is_scaled else 1.0,
            boundaries=boundaries.tolist(),
        )


def _ratios(sides: NDArray[np.floating]) -> FloatArray:
    """Divide the first column of (P, 2) by the second, 1 where either is 0."""
    known = (sides > 0).all(axis=1)
    return np.where(known, sides[:, 0], 1) / np.where(known, sides[:, 1], 1)


def mean_spacing(lists: Iterable[Neighbours]) -> float:
    """Estimate the mean spacing of neighbour cosines.

    The i-th and the next of a list of independent cosines differ by s / i on average, with one s
    for all i (Rényi 1953). First neighbours may be translations, and are skipped. The result is the
    mean of s over all lists of three or more neighbours, NaN without these or if it is 0.
    """
    parts = [(0, 0)]
    run_in_threads(lambda found: parts.append(_spacings(found)), lists)
    total, rows = map(sum, zip(*parts, strict=True))
    return total / rows / SPACING if total else math.nan


def _spacings(found: Neighbours) -> tuple[int, int]:
    """Return the sum of lists' spacings times ``SPACING``, and their number."""
    counts = (found.ids != NO_NEIGHBOUR).sum(axis=1)
    used = np.flatnonzero(counts > 2)
    if not len(used):
        return 0, 0
    cosines = found.cosines[used].astype(np.float64)
    last = cosines[np.arange(len(used)), counts[used] - 1]
    harmonic = np.cumsum(1 / np.arange(1, found.ids.shape[1] + 1))
    apart = (cosines[:, 1] - last) / (harmonic[counts[used] - 2] - 1)
    return int(np.rint(apart * SPACING).astype(np.int64).sum()), len(used)


def compute_features(texts: Texts, near: NeighbourhoodStats | None, usual: RunStatistics) -> Matrix:
    """Compute the features of P pairs, float32 (P, F).

    Without ``near``, its features are NaN. The margin is ``ratio``. ``usual`` is of the pairs' run.
    """
    scales = np.minimum((1 / usual.scale, usual.scale), 1)[:, None]
    words = texts.words * np.where(_IS_WEIGHT, scales, 1).astype(np.float32)
    weights = _ratios(texts.weights) / usual.weights
    letters = _ratios(texts.marks[:, :, 0] + 1.0) / usual.letters
    differences = texts.marks[:, 0, 1:] - texts.marks[:, 1, 1:]
    if near is None:
        around = [np.full(len(texts.numbers), np.nan)] * len(NEIGHBOURHOOD)
    else:
        gaps = [(near.cosine.astype(np.float64) - mean) / usual.spacing for mean in near[1:]]
        around = [margin_scores(*near), np.minimum(*gaps), np.maximum(*gaps)]
    columns = [
        *words.min(axis=1).T,
        *words.max(axis=1).T,
        *(np.maximum(ratio, 1 / ratio) for ratio in (weights, letters)),
        *np.abs(differences[:, : -len(BOUNDARIES)]).T,
        *texts.numbers[:, :2].T,
        *around,
        texts.numbers[:, 2],
        *texts.facts.T,
        *texts.parts.T,
        *np.abs(differences[:, -len(BOUNDARIES) :] - usual.boundaries).T,
        texts.language - usual.language,
        texts.context,
    ]
    return np.stack(columns, axis=1).astype(np.float32)
