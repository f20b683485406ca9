"""Splits in BUCC's layout, mined with an encoder and compared with gold."""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from encoder import Encoder
from eval.data.bucc import BuccSplit, languages_of, text_key
from eval.metrics import bucc
from eval.metrics.bootstrap import resample
from eval.mined import Mined, mine_texts
from miner.arrays import FloatArray, JudgedPairs, Pairs
from miner.judge.prior import LIKELY
from miner.storage.layout import SIDES

DEFAULT_TUNE, DEFAULT_TEST = "training", "sample"  # splits


@dataclass(frozen=True, kw_only=True)
class MinedSplit:
    """The pairs mined from one split, compared with gold pairs.

    ``pairs``, best first, are by positions in ``mined.texts``. ``ranked``, which ``judgements``
    judge, are all or some of them by ids. ``seconds`` are of encoding, mining and any judging.
    """

    data: BuccSplit
    mined: Mined
    pairs: Pairs
    ranked: bucc.Candidates
    judgements: bucc.Judgements
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SplitResult:
    """A split's ``score`` at a chosen threshold, ``oracle`` at the best one."""

    mined: MinedSplit
    score: bucc.BuccScore
    oracle: bucc.BuccScore

    @cached_property
    def f1_samples(self) -> FloatArray:
        """The F1 of 1,000 resamples of ``f1_units``, float64 (1000,)."""
        return resample(self.f1_units, f1_of_sums)

    @property
    def f1_units(self) -> FloatArray:
        """The counts of each of N source sentences, for ``f1_of_sums``.

        They are float64 (N, 4): pairs above ``score``'s threshold, ``correct`` and ``new_gold``
        pairs (``Judgements``) among these, and all gold pairs. A pair counts for its first id.
        """
        mined = self.mined
        row_of = {name: row for row, name in enumerate(mined.data.source.ids)}
        units = np.zeros((len(row_of), 4))
        for position in range(self.score.extracted):
            counts = mined.judgements.correct[position], mined.judgements.new_gold[position]
            units[row_of[mined.ranked.sources[position][0]], :3] += 1, *counts
        for source, _ in mined.data.gold:
            units[row_of[source], 3] += 1
        return units


def f1_of_sums(sums: FloatArray) -> FloatArray:
    """Compute F1 (R,) from sums (R, 4) of ``f1_units``, 0 if none is correct."""
    return bucc.f1_of(*sums.T)


def mine_split(
    data: BuccSplit,
    *,
    encoder: Encoder,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    judged: bool = False,
) -> MinedSplit:
    """Mine one split, and compare the pairs with its gold pairs.

    ``k``, ``margin`` and ``retrieval`` are as in ``adit mine``. Duplicates are mined once, and
    count for all ids. Gold pairs of sentences without a vector are missed. If ``judged``, pairs
    have the judge's scores and probabilities. Errors are of ``mine_texts`` and ``word_encoders``.

    Raises:
        ValueError: No sentence of a side has a vector.
    """
    start = time.perf_counter()
    names = [side.ids_by_text() for side in (data.source, data.target)]
    texts = list(names[0]), list(names[1])
    options = {"margin": margin, "retrieval": retrieval}
    mined = mine_texts(texts, encoder, languages_of(data.pair), k=k, **options)
    for side, kept in zip(SIDES, mined.texts, strict=True):
        if not kept:
            split = f"{data.pair} {data.split} {side}"
            raise ValueError(
                f"encoder {encoder.name}: no sentence of {split} has a vector; choose another "
                "--encoder"
            )
    pairs = mined.judged() if judged else mined.pairs
    seconds = time.perf_counter() - start
    rows = zip((pairs.source, pairs.target), mined.texts, names, strict=True)
    sources, targets = ([ids[kept[row]] for row in side.tolist()] for side, kept, ids in rows)
    ranked = bucc.rank(bucc.Candidates(scores=pairs.score, sources=sources, targets=targets))
    judgements = bucc.judge(ranked, data.gold)
    return MinedSplit(
        data=data, mined=mined, pairs=pairs, ranked=ranked, judgements=judgements, seconds=seconds
    )


def likely_score(split: MinedSplit) -> bucc.BuccScore:
    """Score the pairs of a judged split with a probability of at least 0.5."""
    assert isinstance(split.pairs, JudgedPairs)
    kept = split.pairs.score[split.pairs.probability >= LIKELY]
    return bucc.score_at(split.judgements, math.nextafter(kept.min(initial=math.inf), -math.inf))


def tune_and_test(tune: MinedSplit, test: MinedSplit) -> tuple[SplitResult, SplitResult]:
    """Choose the threshold with the best F1 on ``tune``, and apply it to both."""
    best = bucc.best_score(tune.judgements)
    score, oracle = bucc.score_at(test.judgements, best.threshold), bucc.best_score(test.judgements)
    tested = SplitResult(mined=test, score=score, oracle=oracle)
    return SplitResult(mined=tune, score=best, oracle=best), tested


def choose_splits(
    available: Collection[str], *, tune: str | None = None, test: str | None = None
) -> tuple[str, str, str | None]:
    """Choose the splits to tune and to test on.

    A requested split, ``tune`` or ``test``, is used even if it is missing. By default they are
    ``training`` and ``sample`` or, if missing, others of ``available``, which is not empty. The
    third result is a remark if both are equal or one is neither requested nor default, or None.
    """
    preferred = tune or DEFAULT_TUNE, test or DEFAULT_TEST
    tune = tune or _first_of((DEFAULT_TUNE,), available, but=preferred[1]) or preferred[1]
    test = test or _first_of((DEFAULT_TEST, "test"), available, but=tune) or tune
    if tune == test:
        return tune, test, f"tuned and tested on the same split {tune!r}, which flatters its F1"
    if (tune, test) == preferred:
        return tune, test, None
    splits = ", ".join(sorted(available))
    return tune, test, f"tuned on {tune!r} and tested on {test!r}, as its splits are {splits}"


def _first_of(preferred: tuple[str, ...], available: Collection[str], *, but: str) -> str | None:
    ranked = (*preferred, *sorted(available))
    return next((name for name in ranked if name in available and name != but), None)


def scored_texts(mined: MinedSplit) -> str:
    """Format ``ranked`` pairs as lines SCORE TAB source TAB target."""
    lines = zip(mined.ranked.scores.tolist(), *mined_texts(mined), strict=True)
    return "".join(f"{score!r}\t{source}\t{target}\n" for score, source, target in lines)


def mined_texts(mined: MinedSplit) -> tuple[list[str], list[str]]:
    """Return the source and target texts of ``ranked``, by ``text_key``."""
    sides = (mined.data.source, mined.ranked.sources), (mined.data.target, mined.ranked.targets)
    texts = ((dict(zip(side.ids, side.texts, strict=True)), ids) for side, ids in sides)
    source, target = ([text_key(text_of[first]) for first, *_ in ids] for text_of, ids in texts)
    return source, target
