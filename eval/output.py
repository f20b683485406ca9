"""How results are written: lines for people, records for programs, signatures for both.

A signature, sacrebleu's habit, is what must be equal for two figures to be comparable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from eval.metrics.bootstrap import Interval, interval
from eval.metrics.bucc import BuccScore
from eval.metrics.laser_compat import LaserScore
from eval.tasks.mined_splits import SplitResult

BUCC_HEADER = (
    f"{'pair':<8}{'role':<6}{'split':<9}{'source':>9}{'target':>8}{'gold':>7}"
    f"{'P':>8}{'R':>8}{'F1':>8}{'95% interval':>14}{'threshold':>11}{'oracle F1':>11}{'seconds':>9}"
)


def signature(task: str, fields: Mapping[str, object]) -> str:
    """``task|name:value|...``; numbers in their shortest exact form."""
    return "|".join([task, *(f"{name}:{value}" for name, value in fields.items())])


def score_line(score: BuccScore) -> str:
    """Percentages, the threshold in its shortest exact form, counts."""
    return (
        f"P={100 * score.precision:.2f} R={100 * score.recall:.2f} F1={100 * score.f1:.2f} "
        f"threshold={score.threshold!r} extracted={score.extracted} correct={score.correct} "
        f"found={score.found} gold={score.gold}"
    )


def score_record(score: BuccScore | LaserScore) -> dict[str, object]:
    """For JSON: fractions from 0 to 1; a threshold that is not finite is null."""
    found = score.found if isinstance(score, BuccScore) else score.correct
    return {
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
        "threshold": score.threshold if math.isfinite(score.threshold) else None,
        "extracted": score.extracted,
        "correct": score.correct,
        "found": found,
        "gold": score.gold,
    }


def bucc_row(role: str, result: SplitResult) -> str:
    """A line under ``BUCC_HEADER``."""
    data, score = result.mined.data, result.score
    return (
        f"{data.pair:<8}{role:<6}{data.split:<9} {len(data.source):>8}{len(data.target):>8}"
        f"{score.gold:>7}{100 * score.precision:>8.2f}{100 * score.recall:>8.2f}"
        f"{100 * score.f1:>8.2f}{_percent(interval(result.f1_samples)):>14}"
        f"{score.threshold:>11.6f}{100 * result.oracle.f1:>11.2f}"
        f"{result.mined.seconds:>9.1f}"
    )


def bucc_mean_row(role: str, results: Sequence[SplitResult]) -> str:
    """The line of the means over the pairs."""
    mean = bucc_mean(results)
    counts = " " * 23  # sentences and gold
    return (
        f"{'mean':<8}{role:<6}{'':<10}{counts}{100 * mean['precision']:>8.2f}"
        f"{100 * mean['recall']:>8.2f}{100 * mean['f1']:>8.2f}"
        f"{_percent(bucc_mean_interval(results)):>14}{'':>11}"
        f"{100 * mean['oracle_f1']:>11.2f}{mean['seconds']:>9.1f}"
    )


def bucc_mean(results: Sequence[SplitResult]) -> dict[str, float]:
    """Means over the pairs, each counting the same; fractions from 0 to 1."""
    columns = {
        "precision": [result.score.precision for result in results],
        "recall": [result.score.recall for result in results],
        "f1": [result.score.f1 for result in results],
        "oracle_f1": [result.oracle.f1 for result in results],
        "seconds": [result.mined.seconds for result in results],
    }
    return {name: sum(values) / len(values) for name, values in columns.items()}


def bucc_mean_interval(results: Sequence[SplitResult]) -> Interval:
    """Of the mean F1: the pairs are resampled each on its own."""
    return interval(np.mean([result.f1_samples for result in results], axis=0))


def _percent(between: Interval) -> str:
    return f"{100 * between[0]:.2f}-{100 * between[1]:.2f}"


def bucc_record(result: SplitResult) -> dict[str, object]:
    """One split of one pair, for JSON."""
    data = result.mined.data
    return {
        "split": data.split,
        "source_sentences": len(data.source),
        "target_sentences": len(data.target),
        **score_record(result.score),
        "f1_interval": interval(result.f1_samples),
        "oracle_f1": result.oracle.f1,
        "oracle_threshold": score_record(result.oracle)["threshold"],
        "seconds": result.mined.seconds,
    }
