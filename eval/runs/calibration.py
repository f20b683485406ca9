"""Thresholds without gold for a finished run, by how likely its pairs are right."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eval.metrics.bootstrap import FloatArray, Interval
from eval.runs.side import Side
from eval.runs.store import Run
from miner.choices import MONOTONE
from miner.storage.atomic import atomic_file
from miner.storage.places import Place

BLOCK = 1 << 16  # pairs whose sentences are in memory


WANTED = (0.01, 0.05, 0.1, 0.2)


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """The estimates of P pairs, best first; all arrays are float64 (P,).

    ``interval`` takes an FDR, and gives the 95 % interval of the share of wrong pairs among those
    kept, or None.
    """

    scores: FloatArray
    probabilities: FloatArray
    interval: Callable[[float], Interval | None] = lambda fdr: None

    @property
    def rates(self) -> FloatArray:
        """The least FDR of any threshold that keeps each pair, ascending."""
        last = np.searchsorted(-self.scores, -self.scores, side="right")
        shares = np.cumsum(1 - self.probabilities)[last - 1] / last
        return np.minimum.accumulate(shares[::-1])[::-1]

    def kept(self, fdr: float) -> int:
        """Return how many of the pairs keep to an FDR."""
        return int(np.searchsorted(self.rates, fdr, side="right"))

    def threshold(self, fdr: float) -> float:
        """Return the lowest threshold for an FDR; inf where there is none."""
        kept = self.kept(fdr)
        return float(np.nextafter(self.scores[kept - 1], -np.inf)) if kept else np.inf


def by_judge(run: Run) -> Estimates:
    """Return the run's own estimates.

    Raises:
        ValueError: they are scored by margin alone.
    """
    likely = run.probabilities
    if likely is None:
        raise ValueError(
            f"{run.directory}: scores by margin alone do not say how many pairs are wrong; mine "
            "with --score words (nothing is searched again), or mark some pairs: --known"
        )
    return Estimates(scores=run.pairs.score, probabilities=likely)


def thresholds(estimates: Estimates) -> list[tuple[float, float, int, float, Interval | None]]:
    """Return for each wanted FDR: it, the threshold, the pairs above it, and the right ones.

    The last are as many as are expected, by the probabilities of the pairs; then comes the
    interval of the FDR.
    """
    right = np.cumsum(estimates.probabilities)
    rows = []
    for wanted in WANTED:
        kept, threshold = estimates.kept(wanted), estimates.threshold(wanted)
        interval = estimates.interval(wanted) if kept else None
        rows.append((wanted, threshold, kept, float(right[kept - 1]) if kept else 0.0, interval))
    return rows


def write_calibrated(run: Run, estimates: Estimates, path: Place, *, fdr: float | None) -> int:
    """Write the pairs, or those that keep the FDR, as JSON lines with their probability.

    Returns how many there are. ``fdr`` of a pair is the least that any threshold has that keeps it.

    Raises:
        ValueError: no threshold keeps that FDR.
        OutputError: the file cannot be written.
    """
    kept = len(estimates.scores) if fdr is None else estimates.kept(fdr)
    if not kept:
        raise ValueError(
            f"no threshold has an estimated share of wrong pairs of at most {fdr}; the best has "
            f"{estimates.rates[0]:.3f}: give a larger --fdr"
        )
    figures = estimates.scores, estimates.probabilities, estimates.rates
    merged = run.options.get("alignment") == MONOTONE
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for start in range(0, kept, BLOCK):
            block = np.arange(start, min(start + BLOCK, kept))
            pairs = run.pairs.take(block)
            columns = (
                *(values[block].tolist() for values in figures),
                *run.both(Side.pair_ids if merged else Side.all_ids, pairs),
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
