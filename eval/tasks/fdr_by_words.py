"""The part of ``eval-encoder fdr`` on pairs scored by words: thresholds by decoys, and by nothing.

By nothing but the scores themselves (``miner.two_groups``), as ``mine-corpus --fdr`` does.
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
from miner.score_calibration import Calibration
from miner.word_match import USUAL_PAIRS, align_texts, aligned_scores, usual_log_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder
    from eval.data.bucc import BuccSplit
    from eval.tasks.mined_splits import Mine, MinedSplit

    FloatArray = NDArray[np.float64]

DECOYS, SCORES = "decoys", "scores"
TABLE = Table(
    "by words",
    ["by", "wanted", "95% interval", "true FDR", "pairs", "recall", "best F1", "its recall"],
)


@dataclass(frozen=True, kw_only=True)
class WordThreshold:
    """A threshold ``by`` decoys or scores, and what gold says of it: None if there is none.

    ``interval`` is that of the estimated FDR, which decoys have none of here.
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
    wanted: Sequence[float],
) -> tuple[list[WordThreshold], BuccScore]:
    """Choose thresholds both ways; beside them the best one by gold.

    ``encoder`` has words; ``decoys`` are what is mined for the sentences of ``other``, first for
    those of the source.
    """
    mined = mine_split(real, encoder=encoder, mine=mine, align=True)
    null = Null.fitted(_decoy_scores(real, other, encoder, mine, decoys))
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
    return by_decoys + _by_scores(mined, wanted), best_score(mined.judgements)


def _by_scores(mined: MinedSplit, wanted: Sequence[float]) -> list[WordThreshold]:
    try:
        calibration = Calibration.of(mined.judgements.scores)
    except ValueError:
        return [WordThreshold(by=SCORES, wanted=rate, interval=None, score=None) for rate in wanted]
    return [
        WordThreshold(
            by=SCORES,
            wanted=rate,
            interval=calibration.expected(threshold).interval,
            score=score_at(mined.judgements, threshold),
        )
        for rate in wanted
        for threshold in [calibration.threshold(rate)]
    ]


def _decoy_scores(
    real: BuccSplit,
    other: BuccSplit,
    encoder: Encoder,
    mine: Mine,
    decoys: Sequence[AddedPairs],
) -> FloatArray:
    """Score the decoys' pairs by words, as the real pairs are."""
    encoders = word_encoders(encoder, real.pair.partition("-")[::2])
    by_margin = mine_split(real, encoder=encoder, mine=mine)
    best = [texts[:USUAL_PAIRS] for texts in mined_texts(by_margin)]
    usual = usual_log_ratio(align_texts(encoders, best[0], best[1]))
    found = []
    for pairs, added, base in (
        (decoys[0], other.source, real.target),
        (decoys[1], other.target, real.source),
    ):
        texts = [
            [added.texts[row] for row in pairs.queries.tolist()],
            [base.texts[row] for row in pairs.rows.tolist()],
        ]
        sides = texts if base is real.target else texts[::-1]
        aligned = align_texts(encoders, sides[0], sides[1])
        found.append(aligned_scores(pairs.scores, aligned, usual=usual))
    return np.concatenate(found)


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
