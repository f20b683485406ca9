"""Pairs that a person has judged: gold, or the marks that the page of ``adit report`` exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.data.sentences import read_gold
from eval.data.textfiles import read_lines
from eval.metrics.bootstrap import Interval
from eval.metrics.bucc import IdPair
from eval.runs.calibration import Estimates
from eval.runs.gold import Gold
from eval.runs.store import Run
from miner.storage.places import Place

RIGHT, WRONG = "right", "wrong"
MIN_MARKS = 30  # below, the 95 % interval of a share is more than 35 points wide
Z = 1.959964  # of a 95 % interval


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
    ids = (
        [" ".join(own) for own in side.pair_ids(rows)]
        for side, rows in ((run.source, run.pairs.source), (run.target, run.pairs.target))
    )
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

    The share of wrong pairs never rises with the score: isotonic regression of the marks. Between
    marks it is interpolated.

    Raises:
        ValueError: there are too few.
    """
    count, scores = len(judged.places), run.pairs.score
    if count < MIN_MARKS:
        raise ValueError(
            f"{count} marked pairs are too few to estimate how many are wrong; mark at least "
            f"{MIN_MARKS}, a random sample"
        )
    wrong = pooled((~judged.right).astype(np.float64), np.ones(count))
    # np.interp wants ascending scores; equal ones have one share.
    likely = 1 - np.interp(scores, scores[judged.places][::-1], wrong[::-1])
    rates = Estimates(scores=scores, probabilities=likely).rates

    def interval(fdr: float) -> Interval | None:
        kept = int(np.searchsorted(rates, fdr, side="right"))
        above = ~judged.right[judged.places < kept]
        return _wilson(int(above.sum()), len(above)) if len(above) else None

    return Estimates(scores=scores, probabilities=likely, interval=interval)


def pooled(steps: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of wrong pairs in each group of pairs, ascending, from 0 to 1.

    Args:
        steps: how many of each group are expected to be wrong; groups come best first.
        counts: how many pairs each group has, above 0.
    """
    sums: list[float] = []
    sizes: list[float] = []
    groups: list[int] = []
    for step, pairs in zip(steps.tolist(), counts.tolist(), strict=True):
        total, size, together = step, pairs, 1
        while sizes and sums[-1] / sizes[-1] >= total / size:
            total, size = total + sums.pop(), size + sizes.pop()
            together += groups.pop()
        sums.append(total)
        sizes.append(size)
        groups.append(together)
    wrong: NDArray[np.float64] = np.repeat(np.divide(sums, sizes), groups)
    return np.clip(wrong, 0, 1)


def _wilson(wrong: int, marked: int) -> Interval:
    """Return the 95 % interval of a share (Wilson 1927)."""
    share, squared = wrong / marked, Z * Z / marked
    middle = share + squared / 2
    half = Z * float(np.sqrt(share * (1 - share) / marked + squared / marked / 4))
    return max(0.0, (middle - half) / (1 + squared)), min(1.0, (middle + half) / (1 + squared))
