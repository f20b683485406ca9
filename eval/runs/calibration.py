"""Probabilities of a run's pairs, and thresholds for error rates.

They come from the judge, gold pairs or exported marks. Axes: ``P`` pairs, ``J`` labelled pairs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eval.data.bucc import read_gold
from eval.metrics.bootstrap import Interval
from eval.metrics.bucc import BuccScore, IdPair, Judgements, best_score, judge, rank
from eval.runs.side import Side
from eval.runs.store import Run
from miner.arrays import FloatArray, IntArray, Mask
from miner.choices import MONOTONE
from miner.judge.prior import PROBABILITY, logistic
from miner.storage.atomic import atomic_file
from miner.storage.places import Place
from miner.storage.streams import read_lines
from miner.thresholds import shortest_between

WANTED = (0.01, 0.05, 0.1, 0.2)
BLOCK = 1 << 16  # pairs whose sentences are in memory
MIN_MARKS = 30  # with fewer, the 95% interval of a share is more than 35 points wide
Z = 1.959964  # standard normal quantile of a 95% interval
# Inverse prior variances of the slope, around 1, and the shift, around 0, of log odds.
PRIOR_PRECISION = (4.0, 1.0)  # with a judge
WIDE_PRIOR_PRECISION = (0.04, 0.01)  # by margin only
MAX_STEPS = 50  # of Newton's method


@dataclass(frozen=True, kw_only=True)
class Gold:
    """The ``known`` gold pairs, and the run's pairs compared with them.

    ``best`` is the score of ``judgements``, the comparison, at the threshold with the best F1.
    """

    known: frozenset[IdPair]
    judgements: Judgements
    best: BuccScore

    @classmethod
    def of(cls, run: Run, known: frozenset[IdPair]) -> "Gold":
        """Compare a run's pairs with ``known``, or raise errors of ``candidates``."""
        judgements = judge(rank(run.candidates()), known)
        return cls(known=known, judgements=judgements, best=best_score(judgements))


@dataclass(frozen=True, kw_only=True)
class LabelledPairs:
    """Positions in a run's pairs, int64 (J,) ascending, and which are correct."""

    positions: IntArray
    correct: Mask


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Estimated probabilities of a run's pairs, best pair first.

    Attributes:
        scores: of the pairs, float64 (P,), descending.
        probabilities: that a pair is correct, float64 (P,).
        labelled: the labels that the estimates come from; None for the judge's estimates.
        floor: the run's ``best_unwritten_score``, below all ``scores``.
    """

    scores: FloatArray
    probabilities: FloatArray
    labelled: LabelledPairs | None = None
    floor: float = -np.inf

    @cached_property
    def rates(self) -> FloatArray:
        """The lowest error rate of a threshold that keeps each pair, float64 (P,)."""
        last = np.searchsorted(-self.scores, -self.scores, side="right")
        shares = np.cumsum(1 - self.probabilities)[last - 1] / last
        return np.minimum.accumulate(shares[::-1])[::-1]

    def kept(self, fdr: float) -> int:
        """Count the most pairs, best first, with an error rate <= ``fdr``."""
        return int(np.searchsorted(self.rates, fdr, side="right"))

    def threshold(self, fdr: float) -> float:
        """Return a threshold that ``kept(fdr)`` pairs score above, inf for none."""
        kept = self.kept(fdr)
        if not kept:
            return np.inf
        dropped = np.append(self.scores, self.floor)[kept]
        return shortest_between(float(self.scores[kept - 1]), float(dropped))

    def interval(self, fdr: float) -> Interval | None:
        """Return the 95% interval of the error rate of ``kept(fdr)`` pairs.

        It is Wilson's (1927), lower bound first, or None if none of these pairs is labelled.
        """
        if self.labelled is None:
            return None
        correct = self.labelled.correct[self.labelled.positions < self.kept(fdr)]
        if not len(correct):
            return None
        share, squared = int((~correct).sum()) / len(correct), Z * Z / len(correct)
        middle = share + squared / 2
        half = Z * float(np.sqrt(share * (1 - share) / len(correct) + squared / len(correct) / 4))
        return max(0.0, (middle - half) / (1 + squared)), min(1.0, (middle + half) / (1 + squared))


def estimates_from_judge(run: Run) -> Estimates:
    """Return the judge's probabilities of a run's pairs as estimates.

    Raises:
        ValueError: The run is scored by margin, or a file of the run changed.
    """
    if run.probabilities is None:
        raise ValueError(
            f"{run.directory}: a run scored by margin has no error rates; rerun with --score words "
            "(nothing is searched again), or pass marked pairs with --known"
        )
    floor = run.best_unwritten_score
    return Estimates(scores=run.pairs.score, probabilities=run.probabilities, floor=floor)


def read_labels(path: Place, run: Run) -> LabelledPairs:
    """Read labels of a run's pairs from a file.

    Lines SOURCE_ID TAB TARGET_ID list all correct pairs, so every other pair is wrong. If the first
    line has two tabs, lines end in TAB ``right`` or TAB ``wrong``, spaces join the ids of a merged
    side, and unlisted pairs have no label. Blank lines are skipped.

    Raises:
        PlaceError: A remote file cannot be reached.
        ValueError: The file is unreadable, a line is malformed, marks of a pair differ, none of the
            marked pairs is the run's, or an id of the run is not unique.
    """
    lines = read_lines(path)
    first_line = next(filter(str.strip, lines), "")
    if first_line.count("\t") != 2:
        gold = Gold.of(run, read_gold(path))
        return LabelledPairs(positions=np.arange(len(run.pairs)), correct=gold.judgements.correct)
    for side in run.sides:
        side.check_ids()
    marks = _marks(path, lines)
    names_of_sides = ([" ".join(ids) for ids in side] for side in run.pair_ids())
    names = enumerate(zip(*names_of_sides, strict=True))
    labels = [(position, marks[name]) for position, name in names if name in marks]
    if not labels:
        first, second = next(iter(marks))
        raise ValueError(
            f"{path}: no marked pair, such as {first!r} and {second!r}, is a pair of the run "
            f"{run.directory}; pass marks of that run"
        )
    positions, correct = zip(*labels, strict=True)
    return LabelledPairs(positions=np.array(positions), correct=np.array(correct))


def _marks(path: Place, lines: Sequence[str]) -> Mapping[IdPair, bool]:
    marks: dict[IdPair, bool] = {}
    for number, line in enumerate(lines, start=1):
        match [field.strip() for field in line.split("\t")]:
            case [source, target, "right" | "wrong" as mark]:
                is_right = mark == "right"
                if marks.setdefault((source, target), is_right) != is_right:
                    raise ValueError(
                        f"{path} line {number}: the pair {source!r}, {target!r} is marked both "
                        "right and wrong; keep one mark"
                    )
            case [""]:
                pass
            case _:
                raise ValueError(
                    f"{path} line {number}: expected SOURCE_ID TAB TARGET_ID TAB right (or wrong), "
                    f"not {line[:60]!r}"
                )
    return marks


def estimates_from_marks(run: Run, labelled: LabelledPairs) -> Estimates:
    """Estimate probabilities from a random sample of labelled pairs.

    The judge's log odds get a slope and a shift (Platt 1999), with priors around 1 and 0, because
    labels are few. Without a judge, the priors are wide and standardised margins replace log odds.

    Raises:
        ValueError: Fewer than 30 pairs are labelled, or a file of the run changed.
    """
    count, scores = len(labelled.positions), run.pairs.score
    if count < MIN_MARKS:
        raise ValueError(
            f"--known: too few labelled pairs of this run, {count}, to estimate error rates; mark "
            f"{MIN_MARKS} or more random pairs of the run"
        )
    if run.probabilities is None:
        odds, prior = (scores - scores.mean()) / (scores.std() or 1.0), WIDE_PRIOR_PRECISION
    else:
        probabilities = np.clip(run.probabilities, PROBABILITY, 1 - PROBABILITY)
        odds, prior = np.log(probabilities / (1 - probabilities)), PRIOR_PRECISION
    slope, shift = _fit_odds(odds[labelled.positions], labelled.correct, prior)
    likely, floor = logistic(slope * odds + shift), run.best_unwritten_score
    return Estimates(scores=scores, probabilities=likely, labelled=labelled, floor=floor)


def _fit_odds(odds: FloatArray, correct: Mask, prior: tuple[float, float]) -> tuple[float, float]:
    slope, shift = 1.0, 0.0
    for _ in range(MAX_STEPS):
        predicted = logistic(slope * odds + shift)
        errors, spread = correct - predicted, predicted * (1 - predicted)
        gradient = [errors @ odds - prior[0] * (slope - 1), errors.sum() - prior[1] * shift]
        cross = spread @ odds
        hessian = [[spread @ odds**2 + prior[0], cross], [cross, spread.sum() + prior[1]]]
        step = np.linalg.solve(hessian, gradient)
        step /= max(1.0, np.abs(step).max())
        slope, shift = slope + float(step[0]), shift + float(step[1])
    return max(0.0, slope), shift


def thresholds(estimates: Estimates) -> list[tuple[float, float, int, float, Interval | None]]:
    """Return a threshold for each of the error rates 0.01, 0.05, 0.1, 0.2.

    Items have the rate, threshold, number of pairs above it, expected number of correct ones, and
    ``interval``. If all thresholds have a higher rate, the threshold is inf, with 0 pairs.
    """
    correct = np.append(0.0, np.cumsum(estimates.probabilities))
    counts = zip(WANTED, map(estimates.kept, WANTED), strict=True)
    return [
        (fdr, estimates.threshold(fdr), kept, float(correct[kept]), estimates.interval(fdr))
        for fdr, kept in counts
    ]


def write_calibrated(run: Run, estimates: Estimates, path: Place, *, fdr: float | None) -> int:
    """Write or replace a file of pairs with probabilities, as JSON lines.

    It has the ``kept(fdr)`` best pairs, or all if ``fdr`` is None. Their number is returned. The
    run must have pairs. Fields are ``score``, ``probability``, ``fdr`` (of ``rates``), and of each
    side the text, id and ids of duplicates or, in a run of aligned documents, text and list of ids.

    Raises:
        ValueError: ``kept(fdr)`` is 0, an id is repeated, or a file of the run changed.
        OSError: The file cannot be written.
    """
    kept = len(estimates.scores) if fdr is None else estimates.kept(fdr)
    if not kept:
        raise ValueError(
            f"--fdr {fdr:g}: the lowest estimated error rate of any threshold is "
            f"{estimates.rates[0]:.4g}; increase --fdr"
        )
    figures = estimates.scores, estimates.probabilities, estimates.rates
    is_merged = run.options.get("alignment") == MONOTONE
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for start in range(0, kept, BLOCK):
            block = np.arange(start, min(start + BLOCK, kept))
            pairs = run.pairs.take(block)
            columns = (
                *(values[block].tolist() for values in figures),
                *(run.pair_ids(pairs) if is_merged else run.all_ids(pairs)),
                *run.both(Side.pair_texts, pairs),
            )
            for score, chance, rate, sources, targets, source, target in zip(*columns, strict=True):
                record = {"score": score, "probability": chance, "fdr": rate}
                texts = {"source_text": source, "target_text": target}
                if is_merged:
                    record |= {"source_ids": sources, "target_ids": targets, **texts}
                else:
                    repeats = {"source_duplicates": sources[1:], "target_duplicates": targets[1:]}
                    record |= {"source_id": sources[0], "target_id": targets[0], **texts, **repeats}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return kept
