"""How likely a run's pairs are right, by the judge or by what a person says, and thresholds.

A person says it by gold, or by the marks that the page of ``adit report`` exports.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eval.data.bucc import read_gold
from eval.data.textfiles import read_lines
from eval.metrics.bootstrap import FloatArray, Interval
from eval.metrics.bucc import BuccScore, IdPair, Judgements, best_score, judge, rank
from eval.runs.side import Side
from eval.runs.store import Run
from miner.choices import MONOTONE
from miner.judge.prior import PROBABILITY, logistic
from miner.storage.atomic import atomic_file
from miner.storage.places import Place
from miner.thresholds import shortest_between

WANTED = (0.01, 0.05, 0.1, 0.2)
BLOCK = 1 << 16  # pairs whose sentences are in memory
MIN_MARKS = 30  # below, the 95 % interval of a share is more than 35 points wide
Z = 1.959964  # of a 95 % interval
# How much the slope and the shift of log odds are held at 1 and 0; the second by margin alone.
PRIOR_PRECISION, HELD_ALONE = (4.0, 1.0), (0.04, 0.01)
STEPS = 50


@dataclass(frozen=True, kw_only=True)
class Gold:
    """The known pairs, what is right of the run's pairs, and the best that a threshold could do."""

    known: frozenset[IdPair]
    judgements: Judgements
    best: BuccScore

    @classmethod
    def of(cls, run: Run, known: frozenset[IdPair]) -> "Gold":
        """Hold a run against known pairs."""
        judgements = judge(rank(run.candidates()), known)
        return cls(known=known, judgements=judgements, best=best_score(judgements))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The pairs of a run that are known: ``places`` int64 (J,), ascending; ``right`` bool (J,)."""

    places: NDArray[np.int64]
    right: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """The estimates of P pairs, best first, float64 (P,), and the pairs they were made from.

    All score above ``floor``, which the best of the others has.
    """

    scores: FloatArray
    probabilities: FloatArray
    judged: Judged | None = None
    floor: float = -np.inf

    @cached_property
    def rates(self) -> FloatArray:
        """The least FDR of any threshold that keeps each pair, ascending: float64 (P,)."""
        last = np.searchsorted(-self.scores, -self.scores, side="right")
        shares = np.cumsum(1 - self.probabilities)[last - 1] / last
        return np.minimum.accumulate(shares[::-1])[::-1]

    def kept(self, fdr: float) -> int:
        """Return how many of the pairs keep to an FDR."""
        return int(np.searchsorted(self.rates, fdr, side="right"))

    def threshold(self, fdr: float) -> float:
        """Return a threshold that keeps as many pairs as an FDR allows; inf where there is none."""
        kept = self.kept(fdr)
        if not kept:
            return np.inf
        dropped = np.append(self.scores, self.floor)[kept]
        return shortest_between(float(self.scores[kept - 1]), float(dropped))

    def interval(self, fdr: float) -> Interval | None:
        """Return the 95 % interval (Wilson 1927) of an FDR, by judged pairs; None without any."""
        if self.judged is None:
            return None
        right = self.judged.right[self.judged.places < self.kept(fdr)]
        if not len(right):
            return None
        share, squared = int((~right).sum()) / len(right), Z * Z / len(right)
        middle = share + squared / 2
        half = Z * float(np.sqrt(share * (1 - share) / len(right) + squared / len(right) / 4))
        return max(0.0, (middle - half) / (1 + squared)), min(1.0, (middle + half) / (1 + squared))


def estimates_from_judge(run: Run) -> Estimates:
    """Return the run's own estimates; a ValueError where scores are by margin alone."""
    if run.probabilities is None:
        raise ValueError(
            f"{run.directory}: a run scored by margin has no error rates; rerun with --score words "
            "(nothing is searched again), or pass marked pairs with --known"
        )
    return Estimates(
        scores=run.pairs.score, probabilities=run.probabilities, floor=run.best_left_out
    )


def read_judged(path: Place, run: Run) -> Judged:
    """Read what is known of a run's pairs.

    Lines are SOURCE_ID TAB TARGET_ID, and all other pairs are wrong; or, with TAB ``right`` or
    TAB ``wrong`` at the end of each, the marked pairs alone are known. A ValueError says that the
    file is neither, or that none of its pairs is among the run's.
    """
    lines = read_lines(path)
    filled = next(filter(str.strip, lines), "")
    if filled.count("\t") != 2:
        gold = Gold.of(run, read_gold(path))
        return Judged(places=np.arange(len(run.pairs)), right=gold.judgements.correct)
    for side in run.sides:
        side.check_ids()
    marks = _marks(path, lines)
    ids = ([" ".join(own) for own in side] for side in run.pair_ids())
    names = enumerate(zip(*ids, strict=True))
    found = [(place, marks[name]) for place, name in names if name in marks]
    if not found:
        first, second = next(iter(marks))
        raise ValueError(
            f"{path}: none of the {len(marks)} pairs, such as {first!r} and {second!r}, is a pair "
            "of this run; pass marks of this run"
        )
    places, right = zip(*found, strict=True)
    return Judged(places=np.array(places), right=np.array(right))


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
                    f"{path} line {number}: expected SOURCE_ID TAB TARGET_ID TAB right or wrong, "
                    f"not {line[:60]!r}"
                )
    return marks


def estimates_from_marks(run: Run, judged: Judged) -> Estimates:
    """Estimate from judged pairs, which are taken for a random sample of those around them.

    What the run says of its pairs is corrected: log odds get a slope and a shift (Platt 1999),
    held near 1 and 0, as a person marks few. Of scores by margin alone, the marks decide. A
    ValueError says that there are too few.
    """
    count, scores = len(judged.places), run.pairs.score
    if count < MIN_MARKS:
        raise ValueError(
            f"{count} marked pairs are too few to estimate the error rate; mark a random sample of "
            f"at least {MIN_MARKS}"
        )
    if run.probabilities is None:
        odds, held = (scores - scores.mean()) / (scores.std() or 1.0), HELD_ALONE
    else:
        chances = np.clip(run.probabilities, PROBABILITY, 1 - PROBABILITY)
        odds, held = np.log(chances / (1 - chances)), PRIOR_PRECISION
    slope, shift = _corrected(odds[judged.places], judged.right, held)
    likely = logistic(slope * odds + shift)
    return Estimates(scores=scores, probabilities=likely, judged=judged, floor=run.best_left_out)


def _corrected(
    odds: FloatArray, right: NDArray[np.bool_], held: tuple[float, float]
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


def thresholds(estimates: Estimates) -> list[tuple[float, float, int, float, Interval | None]]:
    """Return for each wanted FDR: it, the threshold, how many pairs are above, and right of them.

    The last is expected, by the probabilities of the pairs; then comes the interval of the FDR.
    """
    right = np.append(0.0, np.cumsum(estimates.probabilities))
    rows = []
    for fdr in WANTED:
        kept = estimates.kept(fdr)
        about = float(right[kept]), estimates.interval(fdr)
        rows.append((fdr, estimates.threshold(fdr), kept, *about))
    return rows


def write_calibrated(run: Run, estimates: Estimates, path: Place, *, fdr: float | None) -> int:
    """Write the pairs, or those that keep the FDR, as JSON lines; return how many there are.

    Each has its probability, and as ``fdr`` the least that any threshold has that keeps it. A
    ValueError says that none keeps that FDR, an OutputError that the file cannot be written.
    """
    kept = len(estimates.scores) if fdr is None else estimates.kept(fdr)
    if not kept:
        raise ValueError(
            f"--fdr {fdr}: the lowest estimated error rate of any threshold is "
            f"{estimates.rates[0]:.3f}; increase --fdr"
        )
    figures = estimates.scores, estimates.probabilities, estimates.rates
    merged = run.options.get("alignment") == MONOTONE
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for start in range(0, kept, BLOCK):
            block = np.arange(start, min(start + BLOCK, kept))
            pairs = run.pairs.take(block)
            columns = (
                *(values[block].tolist() for values in figures),
                *(run.pair_ids(pairs) if merged else run.all_ids(pairs)),
                *run.both(Side.pair_texts, pairs),
            )
            for score, likely, rate, own, other, text, translation in zip(*columns, strict=True):
                record = {"score": score, "probability": likely, "fdr": rate}
                texts = {"source_text": text, "target_text": translation}
                if merged:
                    record |= {"source_ids": own, "target_ids": other, **texts}
                else:
                    repeats = {"source_duplicates": own[1:], "target_duplicates": other[1:]}
                    record |= {"source_id": own[0], "target_id": other[0], **texts, **repeats}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return kept
