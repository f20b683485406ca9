"""Mine splits of data in the BUCC layout with an encoder, and judge the pairs by gold."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from encoder.words import word_encoders
from eval.data.bucc import BuccSplit
from eval.data.sentences import Sentences, text_key
from eval.metrics.bootstrap import resampled
from eval.metrics.bucc import (
    BuccScore,
    Candidates,
    Judgements,
    best_score,
    extracted_pairs,
    judge,
    rank,
    score_at,
)
from eval.tasks.encoding import own_encoders
from miner.selection import order_best_first
from miner.word_match import WordMaker, align_texts, aligned_scores, usual_log_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder
    from eval.metrics.bucc import Ids
    from miner.arrays import Pairs

    Vectors = NDArray[np.float32]
    Mine = Callable[[Vectors, Vectors], Pairs]

DEFAULT_TUNE = "training"
DEFAULT_TEST = "sample"


@dataclass(frozen=True, kw_only=True)
class MinedSplit:
    """The candidates mined from one split, best first, and how gold judges them.

    ``pairs`` are the mined ones as they came, in the order of ``ranked``.
    """

    data: BuccSplit
    pairs: Pairs
    ranked: Candidates
    judgements: Judgements
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SplitResult:
    """The score of a mined split at some threshold, and the best that any could reach on it."""

    mined: MinedSplit
    score: BuccScore
    oracle: BuccScore

    @cached_property
    def f1_samples(self) -> NDArray[np.float64]:
        """F1 at the same threshold on R resamples of the source sentences: float64 (R,)."""
        return resampled(self.f1_units, f1_of_sums)

    @property
    def f1_units(self) -> NDArray[np.float64]:
        """What ``f1_of_sums`` needs of each source sentence: float64 (N, 4).

        A source sentence comes with its candidate and its gold pairs.
        """
        mined = self.mined
        place = {name: row for row, name in enumerate(mined.data.source.ids)}
        units = np.zeros((len(place), 4))  # extracted, correct, found, gold
        for position in range(self.score.extracted):
            judged = mined.judgements.correct[position], mined.judgements.found[position]
            units[place[mined.ranked.sources[position][0]], :3] += 1, *judged
        for source, _ in mined.data.gold:
            units[place[source], 3] += 1
        return units


def mine_split(data: BuccSplit, *, encoder: Encoder, mine: Mine, align: bool = False) -> MinedSplit:
    """Encode both sides, mine them, and hold the pairs against gold.

    Repeated sentences are mined once and stand for all their ids. Sentences that the encoder has
    no vector for are not mined; their gold pairs count as missed. With ``align`` the pairs are
    scored by their words, too, as ``mine-corpus --align`` does.

    Raises:
        ValueError: no sentence of a side has a vector, or words have none.
    """
    start = time.perf_counter()
    what = f"{data.pair} {data.split}"
    languages = data.pair.partition("-")[::2]
    encoders = own_encoders(encoder, languages)
    source_ids, source = _encode_side(data.source, encoders[0], f"{what} source")
    target_ids, target = _encode_side(data.target, encoders[1], f"{what} target")
    pairs = mine(source, target)
    if align:
        pairs = _aligned(
            pairs,
            _texts(data.source, [source_ids[row] for row in pairs.source.tolist()]),
            _texts(data.target, [target_ids[row] for row in pairs.target.tolist()]),
            encoders=word_encoders(encoder, languages),
        )
    seconds = time.perf_counter() - start
    ranked = rank(
        Candidates(
            scores=pairs.score,
            sources=[source_ids[row] for row in pairs.source.tolist()],
            targets=[target_ids[row] for row in pairs.target.tolist()],
        )
    )
    return MinedSplit(
        data=data,
        pairs=pairs,
        ranked=ranked,
        judgements=judge(ranked, data.gold),
        seconds=seconds,
    )


def _aligned(
    pairs: Pairs,
    source: Sequence[str],
    target: Sequence[str],
    *,
    encoders: Sequence[WordMaker],
) -> Pairs:
    found = align_texts(encoders, source, target)
    scores = aligned_scores(pairs.score, found, usual=usual_log_ratio(found))
    rescored = replace(pairs, score=scores)
    return rescored.take(order_best_first(rescored))


def tune_and_test(tune: MinedSplit, test: MinedSplit) -> tuple[SplitResult, SplitResult]:
    """Choose the threshold with the best F1 on ``tune`` and apply it to ``test``."""
    best = best_score(tune.judgements)
    return (
        SplitResult(mined=tune, score=best, oracle=best),
        SplitResult(
            mined=test,
            score=score_at(test.judgements, best.threshold),
            oracle=best_score(test.judgements),
        ),
    )


def choose_splits(
    available: Collection[str], *, tune: str | None, test: str | None
) -> tuple[str, str, str | None]:
    """Choose the splits to tune and to test on, with a remark if they are not the usual ones.

    A split that was asked for (not None) is taken as it is; loading it fails if it is missing.
    """
    usual = tune or DEFAULT_TUNE, test or DEFAULT_TEST
    tune = tune or _first_of((DEFAULT_TUNE,), available, but=usual[1]) or usual[1]
    test = test or _first_of((DEFAULT_TEST, "test"), available, but=tune) or tune
    if tune == test:
        return tune, test, f"tuned and tested on the same split {tune!r}, which flatters its F1"
    if (tune, test) == usual:
        return tune, test, None
    has = ", ".join(sorted(available))
    return tune, test, f"tuned on {tune!r} and tested on {test!r}, as its splits are {has}"


def _first_of(preferred: tuple[str, ...], available: Collection[str], *, but: str) -> str | None:
    ranked = (*preferred, *sorted(available))
    return next((name for name in ranked if name in available and name != but), None)


def f1_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute ``BuccScore.f1`` of each row of sums."""
    extracted, correct, found, gold = sums.T
    below = correct * gold + found * extracted
    f1: NDArray[np.float64] = 2 * correct * found / np.maximum(below, 1)
    return f1


def scored_texts(mined: MinedSplit) -> str:
    """Return the candidates as a PAIRS ``.tsv``: score and both texts; tabs become spaces."""
    lines = zip(mined.ranked.scores.tolist(), *mined_texts(mined), strict=True)
    return "".join(f"{score!r}\t{source}\t{target}\n" for score, source, target in lines)


def mined_texts(mined: MinedSplit) -> tuple[list[str], list[str]]:
    """Return the sources and the targets of the candidates, without tabs and repeated spaces."""
    return (
        _texts(mined.data.source, mined.ranked.sources),
        _texts(mined.data.target, mined.ranked.targets),
    )


def _texts(sentences: Sentences, ids: Sequence[Ids]) -> list[str]:
    texts = dict(zip(sentences.ids, sentences.texts, strict=True))
    return [text_key(texts[first]) for first, *_ in ids]


def extracted_ids(result: SplitResult) -> str:
    """Return the pairs above the threshold as the BUCC tasks want them: ids, tab between."""
    pairs = extracted_pairs(result.mined.ranked, result.score.threshold)
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def _encode_side(sentences: Sentences, encoder: Encoder, what: str) -> tuple[list[Ids], Vectors]:
    """Return ids and vectors of the distinct sentences that have a vector."""
    ids_by_text = sentences.ids_by_text()
    vectors = encoder.encode(list(ids_by_text))
    rows = np.flatnonzero(np.any(vectors, axis=1))
    if not len(rows):
        raise ValueError(f"{what}: the encoder {encoder.name} has no vector for any sentence")
    ids = list(ids_by_text.values())
    return [ids[row] for row in rows.tolist()], vectors[rows]
