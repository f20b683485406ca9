"""The part of ``adit evaluate fdr`` on pairs scored by words: thresholds by decoys, and by nothing.

By nothing but the scores themselves (``miner.score_calibration``), as ``adit mine --fdr`` does.
The probabilities that these give are held against gold in another order, too: thresholds of the
margin, above which the pairs are wrong with the wanted probability on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from encoder.words import word_encoders
from eval.metrics.bootstrap import Interval
from eval.metrics.bucc import BuccScore, best_score, score_at
from eval.output import Record, Table, score_record
from eval.tasks.mined_splits import mine_split, mined_texts
from miner.fdr import AddedPairs, Null, threshold_at
from miner.left_out import best_left, certain_places
from miner.score_calibration import Calibration
from miner.word_match import USUAL_PAIRS, align_texts, aligned_scores, usual_log_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder
    from eval.data.bucc import BuccSplit
    from eval.data.sentences import Sentences
    from eval.tasks.mined_splits import Mine, MinedSplit
    from miner.arrays import Neighbours, Pairs

    FloatArray = NDArray[np.float64]

DECOYS, SCORES, MARGINS = "decoys", "scores", "margins"
TABLE = Table(
    "by words",
    ["by", "wanted", "95% interval", "true FDR", "pairs", "recall", "best F1", "its recall"],
)


@dataclass(frozen=True, kw_only=True)
class WordThreshold:
    """A threshold ``by`` decoys, scores or margins, and what gold says of it, if there is one.

    ``interval`` is that of the estimated FDR, which only scores have here.
    """

    by: str
    wanted: float
    interval: Interval | None
    score: BuccScore | None

    def record(self) -> Record:
        """Return what ``--json`` prints."""
        score = self.score
        judged = {"fdr": score.fdr, **score_record(score)} if score else {"fdr": None}
        chosen = {"by": self.by, "wanted": self.wanted, "interval": self.interval}
        return {**chosen, **judged}


def measure(
    real: BuccSplit,
    other: BuccSplit,
    *,
    encoder: Encoder,
    mine: Mine,
    decoys: Sequence[AddedPairs],
    lists: tuple[Neighbours, Neighbours],
    wanted: Sequence[float],
) -> tuple[list[WordThreshold], BuccScore]:
    """Choose thresholds both ways; beside them the best one by gold.

    ``encoder`` has words; ``decoys`` are what is mined for the sentences of ``other``, first for
    those of the source; ``lists`` are the neighbours of the real sentences of both sides.
    """
    mined = mine_split(real, encoder=encoder, mine=mine, align=True)
    by_margin = mine_split(real, encoder=encoder, mine=mine)
    added = _added_texts(real, other, decoys)
    null = Null.fitted(_by_words(encoder, by_margin, decoys, added))
    scores = mined.judgements.scores
    by_decoys = [
        WordThreshold(
            by=DECOYS,
            wanted=rate,
            interval=None,
            score=score_at(mined.judgements, threshold_at(scores, null, fdr=rate)),
        )
        for rate in wanted
    ]

    by_scores = measure_scores(mined, by_margin, encoder=encoder, lists=lists, wanted=wanted)
    return by_decoys + by_scores, best_score(mined.judgements)


def measure_scores(
    mined: MinedSplit,
    by_margin: MinedSplit,
    *,
    encoder: Encoder,
    lists: tuple[Neighbours, Neighbours],
    wanted: Sequence[float],
) -> list[WordThreshold]:
    """Choose thresholds by nothing but the scores: of margins, and then of these themselves.

    ``mined`` are scored by words and ``by_margin`` are the same pairs without; ``lists`` are the
    neighbours of the sentences of both sides.
    """
    scores, data = mined.judgements.scores, mined.data
    try:
        places = certain_places(Calibration.of(scores).probability(scores))
        certain = mined.pairs.take(places)
        found = _left_out(certain, by_margin.pairs, lists)
        left_out = _by_words(encoder, by_margin, found, _left_texts(data, certain, found))
        calibration = Calibration.of(scores, left_out)
    except ValueError:
        return [
            WordThreshold(by=by, wanted=rate, interval=None, score=None)
            for by in (MARGINS, SCORES)
            for rate in wanted
        ]
    likely = calibration.probability(scores)
    thresholds = margin_thresholds(by_margin.pairs, mined.pairs, likely, wanted)
    by_margins = [
        WordThreshold(
            by=MARGINS, wanted=rate, interval=None, score=score_at(by_margin.judgements, threshold)
        )
        for rate, threshold in zip(wanted, thresholds, strict=True)
    ]
    return by_margins + [
        WordThreshold(
            by=SCORES,
            wanted=rate,
            interval=calibration.expected(threshold).interval,
            score=score_at(mined.judgements, threshold),
        )
        for rate in wanted
        for threshold in [calibration.threshold(rate)]
    ]


def margin_thresholds(
    by_margin: Pairs, by_words: Pairs, likely: FloatArray, wanted: Sequence[float]
) -> list[float]:
    """Return the lowest margin for each rate above which pairs are wrong at that rate on average.

    Args:
        by_margin: P pairs, best first.
        by_words: the same in another order; each has a source of its own.
        likely: float64 (P,), how likely each of ``by_words`` is right.
        wanted: the rates.
    """
    wrong = np.empty(len(likely))
    wrong[np.argsort(by_margin.source)] = 1 - likely[np.argsort(by_words.source)]
    last = np.searchsorted(-by_margin.score, -by_margin.score, side="right")
    rates = np.minimum.accumulate((wrong.cumsum()[last - 1] / last)[::-1])[::-1]
    kept = np.searchsorted(rates, wanted, side="right")
    scores = np.append(by_margin.score, np.inf)
    return [float(np.nextafter(scores[one - 1], -np.inf)) if one else np.inf for one in kept]


def _left_out(
    certain: Pairs, mined: Pairs, lists: tuple[Neighbours, Neighbours]
) -> list[AddedPairs]:
    """Mine for both sentences of certain pairs without each other, first for the sources."""
    sides = (certain.source, certain.target), (mined.source, mined.target)
    found = []
    for own, other in ((0, 1), (1, 0)):
        taken = np.full(len(lists[other]), -np.inf)
        taken[sides[1][other]] = mined.score
        near = lists[own].part(sides[0][own])
        theirs = lists[other].means()[near.ids]
        found.append(best_left(sides[0][other], near, theirs, taken[near.ids]))
    return found


def _added_texts(
    real: BuccSplit, other: BuccSplit, decoys: Sequence[AddedPairs]
) -> list[tuple[list[str], list[str]]]:
    """Return sources and targets of what is mined for decoys of either side."""
    forward, backward = decoys
    return [
        (_at(other.source, forward.queries), _at(real.target, forward.rows)),
        (_at(real.source, backward.rows), _at(other.target, backward.queries)),
    ]


def _left_texts(
    real: BuccSplit, certain: Pairs, found: Sequence[AddedPairs]
) -> list[tuple[list[str], list[str]]]:
    """Return the same of what is mined without each other's sentences."""
    forward, backward = found
    return [
        (_at(real.source, certain.source[forward.queries]), _at(real.target, forward.rows)),
        (_at(real.source, backward.rows), _at(real.target, certain.target[backward.queries])),
    ]


def _at(sentences: Sentences, rows: NDArray[np.int64]) -> list[str]:
    return [sentences.texts[row] for row in rows.tolist()]


def _by_words(
    encoder: Encoder,
    by_margin: MinedSplit,
    pairs: Sequence[AddedPairs],
    texts: Sequence[tuple[list[str], list[str]]],
) -> FloatArray:
    """Score pairs by words, too, as the mined pairs are."""
    encoders = word_encoders(encoder, by_margin.data.pair.partition("-")[::2])
    best = [side[:USUAL_PAIRS] for side in mined_texts(by_margin)]
    usual = usual_log_ratio(align_texts(encoders, best[0], best[1]))
    scores = [
        aligned_scores(found.scores, align_texts(encoders, *both), usual=usual)
        for found, both in zip(pairs, texts, strict=True)
    ]
    return np.concatenate(scores)


def row(name: str, chosen: WordThreshold, best: BuccScore) -> str:
    """Return a line of the table."""
    score = chosen.score
    figures = (score.fdr, score.extracted, score.recall) if score else (None, None, None)
    return TABLE.row(
        *(name, chosen.by, chosen.wanted, chosen.interval),
        *(*figures, best.f1, best.recall),
    )


def summary(thresholds: Sequence[Sequence[WordThreshold]]) -> list[str]:
    """Lines of the table: for each way and wanted FDR the mean, the mean error and the highest."""
    lines = []
    for together in zip(*thresholds, strict=True):
        scores = [one.score for one in together if one.score]
        if scores:
            by, wanted = together[0].by, together[0].wanted
            rates = [score.fdr for score in scores]
            recall = float(np.mean([score.recall for score in scores]))
            errors = [abs(rate - wanted) for rate in rates]
            lines += [
                TABLE.row("mean", by, wanted, None, float(np.mean(rates)), None, recall),
                TABLE.row("error", by, wanted, None, float(np.mean(errors))),
                TABLE.row("highest", by, wanted, None, max(rates)),
            ]
    return lines
