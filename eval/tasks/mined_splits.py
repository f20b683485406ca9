"""Mine splits of data in the BUCC layout with an encoder, and judge the pairs by gold."""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from encoder import Encoder
from eval.data.bucc import BuccSplit, text_key
from eval.judge.mined import Mined, mine_texts
from eval.metrics import bucc
from eval.metrics.bootstrap import FloatArray, resample
from miner.arrays import JudgedPairs, Pairs
from miner.judge.prior import LIKELY
from miner.storage.layout import SIDES

DEFAULT_TUNE, DEFAULT_TEST = "training", "sample"


@dataclass(frozen=True, kw_only=True)
class MinedSplit:
    """The candidates mined from one split, best first, and how gold judges them.

    ``pairs`` are the mined ones as they came, in the order of ``ranked``.
    """

    data: BuccSplit
    mined: Mined
    pairs: Pairs
    ranked: bucc.Candidates
    judgements: bucc.Judgements
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SplitResult:
    """The score of a mined split at some threshold, and the best that any could reach on it."""

    mined: MinedSplit
    score: bucc.BuccScore
    oracle: bucc.BuccScore

    @cached_property
    def f1_samples(self) -> FloatArray:
        """F1 at the same threshold on R resamples of the source sentences: float64 (R,)."""
        return resample(self.f1_units, f1_of_sums)

    @property
    def f1_units(self) -> FloatArray:
        """The numbers of each source sentence that ``f1_of_sums`` adds up: float64 (N, 4).

        A source sentence comes with its candidate and its gold pairs.
        """
        mined = self.mined
        place = {name: row for row, name in enumerate(mined.data.source.ids)}
        units = np.zeros((len(place), 4))  # extracted, correct, found, gold
        for position in range(self.score.extracted):
            judged = mined.judgements.correct[position], mined.judgements.new_gold[position]
            units[place[mined.ranked.sources[position][0]], :3] += 1, *judged
        for source, _ in mined.data.gold:
            units[place[source], 3] += 1
        return units


def f1_of_sums(sums: FloatArray) -> FloatArray:
    """Compute ``BuccScore.f1`` of each row of sums."""
    extracted, correct, found, gold = sums.T
    below = correct * gold + found * extracted
    f1: FloatArray = 2 * correct * found / np.maximum(below, 1)
    return f1


def mine_split(
    data: BuccSplit,
    *,
    encoder: Encoder,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    judged: bool = False,
) -> MinedSplit:
    """Encode both sides, mine them, and hold the pairs against gold.

    Repeated sentences are mined once and stand for all their ids. Sentences that the encoder has
    no vector for are not mined; their gold pairs count as missed. If ``judged``, the pairs have the
    judge's scores and probabilities, as ``adit mine`` gives them. A ValueError says that no
    sentence of a side has a vector, or that words have none.
    """
    start = time.perf_counter()
    names = [side.ids_by_text() for side in (data.source, data.target)]
    texts = list(names[0]), list(names[1])
    languages = data.pair.partition("-")[::2]
    mined = mine_texts(texts, encoder, languages, k=k, margin=margin, retrieval=retrieval)
    for side, kept in zip(SIDES, mined.texts, strict=True):
        if not kept:
            what = f"{data.pair} {data.split} {side}"
            raise ValueError(f"{what}: the encoder {encoder.name} has no vector for any sentence")
    pairs = mined.judged() if judged else mined.pairs
    seconds = time.perf_counter() - start
    rows = zip((pairs.source, pairs.target), mined.texts, names, strict=True)
    sources, targets = ([of[kept[row]] for row in own.tolist()] for own, kept, of in rows)
    ranked = bucc.rank(bucc.Candidates(scores=pairs.score, sources=sources, targets=targets))
    judgements = bucc.judge(ranked, data.gold)
    return MinedSplit(
        data=data, mined=mined, pairs=pairs, ranked=ranked, judgements=judgements, seconds=seconds
    )


def likely_score(split: MinedSplit) -> bucc.BuccScore:
    """Score the pairs of a judged split that are more likely right than wrong."""
    assert isinstance(split.pairs, JudgedPairs)
    kept = split.pairs.score[split.pairs.probability >= LIKELY]
    return bucc.score_at(split.judgements, math.nextafter(kept.min(initial=math.inf), -math.inf))


def tune_and_test(tune: MinedSplit, test: MinedSplit) -> tuple[SplitResult, SplitResult]:
    """Choose the threshold with the best F1 on ``tune`` and apply it to ``test``."""
    best = bucc.best_score(tune.judgements)
    score, oracle = bucc.score_at(test.judgements, best.threshold), bucc.best_score(test.judgements)
    tested = SplitResult(mined=test, score=score, oracle=oracle)
    return SplitResult(mined=tune, score=best, oracle=best), tested


def choose_splits(
    available: Collection[str], *, tune: str | None = None, test: str | None = None
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


def scored_texts(mined: MinedSplit) -> str:
    """Return the candidates as a PAIRS ``.tsv``: score and both texts; tabs become spaces."""
    lines = zip(mined.ranked.scores.tolist(), *mined_texts(mined), strict=True)
    return "".join(f"{score!r}\t{source}\t{target}\n" for score, source, target in lines)


def mined_texts(mined: MinedSplit) -> tuple[list[str], list[str]]:
    """Return the sources and the targets of the candidates, without tabs and repeated spaces."""
    sides = (mined.data.source, mined.ranked.sources), (mined.data.target, mined.ranked.targets)
    texts = ((dict(zip(side.ids, side.texts, strict=True)), ids) for side, ids in sides)
    source, target = ([text_key(known[first]) for first, *_ in ids] for known, ids in texts)
    return source, target
