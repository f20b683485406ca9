"""Pairs that a person has judged: gold, or the marks that the page of ``adit report`` exports."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.data.bucc import read_gold
from eval.data.textfiles import read_lines
from eval.metrics.bootstrap import Interval
from eval.metrics.bucc import BuccScore, IdPair, Judgements, best_score, judge, rank
from eval.runs.calibration import Estimates
from eval.runs.side import Side
from eval.runs.store import Run
from miner.judge.prior import PROBABILITY, logistic
from miner.storage.places import Place


@dataclass(frozen=True, kw_only=True)
class Gold:
    """The known pairs, the best that a threshold could do, and what is right of the pairs."""

    known: frozenset[IdPair]
    judgements: Judgements
    best: BuccScore

    @classmethod
    def of(cls, run: Run, known: frozenset[IdPair]) -> "Gold":
        """Hold a run against known pairs."""
        judgements = judge(rank(run.candidates()), known)
        return cls(known=known, judgements=judgements, best=best_score(judgements))


RIGHT, WRONG = "right", "wrong"
MIN_MARKS = 30  # below, the 95 % interval of a share is more than 35 points wide
Z = 1.959964  # of a 95 % interval
# How much the slope and the shift of log odds are held at 1 and 0; the second by margin alone.
HELD, HELD_ALONE = (4.0, 1.0), (0.04, 0.01)
STEPS = 50


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The pairs of a run that are known: ``places`` int64 (J,), ascending; ``right`` bool (J,)."""

    places: NDArray[np.int64]
    right: NDArray[np.bool_]


def read_judged(path: Place, run: Run) -> Judged:
    """Read what is known of a run's pairs.

    Lines are SOURCE_ID TAB TARGET_ID, and all other pairs are wrong; or, with TAB ``right`` or
    TAB ``wrong`` at the end of each, the marked pairs alone are known.

    Raises:
        ValueError: the file is neither, or none of its pairs is among the run's.
    """
    lines = [line for line in read_lines(path) if line.strip()]
    if not lines or lines[0].count("\t") != 2:
        gold = Gold.of(run, read_gold(path))
        return Judged(places=np.arange(len(run.pairs)), right=gold.judgements.correct)
    marks = _marks(path, lines)
    ids = ([" ".join(own) for own in side] for side in run.both(Side.pair_ids))
    names = enumerate(zip(*ids, strict=True))
    found = [(place, marks[name]) for place, name in names if name in marks]
    if not found:
        first, second = next(iter(marks))
        raise ValueError(
            f"{path}: none of its {len(marks)} pairs, such as {first!r} and {second!r}, is among "
            "those of the run; are they marks of another run?"
        )
    places, right = zip(*found, strict=True)
    return Judged(places=np.array(places), right=np.array(right))


def _marks(path: Place, lines: list[str]) -> Mapping[IdPair, bool]:
    marks: dict[IdPair, bool] = {}
    for number, line in enumerate(lines, start=1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3 or fields[2] not in (RIGHT, WRONG):
            raise ValueError(
                f"{path} line {number}: expected SOURCE_ID TAB TARGET_ID TAB {RIGHT} or {WRONG}, "
                f"not {line[:60]!r}"
            )
        marks[fields[0], fields[1]] = fields[2] == RIGHT
    return marks


def by_marks(run: Run, judged: Judged) -> Estimates:
    """Estimate from judged pairs, which are taken for a random sample of those around them.

    What the run says of its pairs is corrected: log odds get a slope and a shift (Platt 1999),
    held near 1 and 0, as a person marks few. Of scores by margin alone, the marks decide.

    Raises:
        ValueError: there are too few.
    """
    count, scores = len(judged.places), run.pairs.score
    if count < MIN_MARKS:
        raise ValueError(
            f"{count} marked pairs are too few to estimate how many are wrong; mark at least "
            f"{MIN_MARKS}, a random sample"
        )
    if run.probabilities is None:
        odds, held = (scores - scores.mean()) / (scores.std() or 1.0), HELD_ALONE
    else:
        chances = np.clip(run.probabilities, PROBABILITY, 1 - PROBABILITY)
        odds, held = np.log(chances / (1 - chances)), HELD
    slope, shift = _corrected(odds[judged.places], judged.right, held)
    likely = logistic(slope * odds + shift)
    rates = Estimates(scores=scores, probabilities=likely).rates

    def interval(fdr: float) -> Interval | None:
        kept = int(np.searchsorted(rates, fdr, side="right"))
        above = ~judged.right[judged.places < kept]
        return _wilson(int(above.sum()), len(above)) if len(above) else None

    return Estimates(scores=scores, probabilities=likely, interval=interval)


def _corrected(
    odds: NDArray[np.float64], right: NDArray[np.bool_], held: tuple[float, float]
) -> tuple[float, float]:
    """Return the slope and the shift that make log odds fit J marks best, by Newton's method.

    ``held`` is how much they are held at 1 and 0: the inverses of their variances.
    """
    slope, shift = 1.0, 0.0
    for _ in range(STEPS):
        likely = logistic(slope * odds + shift)
        rest, spread = right - likely, likely * (1 - likely)
        uphill = [rest @ odds - held[0] * (slope - 1), rest.sum() - held[1] * shift]
        mixed = spread @ odds
        curve = [[spread @ odds**2 + held[0], mixed], [mixed, spread.sum() + held[1]]]
        step = np.linalg.solve(curve, uphill)
        step /= max(1.0, np.abs(step).max())
        slope, shift = slope + float(step[0]), shift + float(step[1])
    return max(0.0, slope), shift


def _wilson(wrong: int, marked: int) -> Interval:
    """Return the 95 % interval of a share (Wilson 1927)."""
    share, squared = wrong / marked, Z * Z / marked
    middle = share + squared / 2
    half = Z * float(np.sqrt(share * (1 - share) / marked + squared / marked / 4))
    return max(0.0, (middle - half) / (1 + squared)), min(1.0, (middle + half) / (1 + squared))
