"""Thresholds without gold for a finished run, by decoys or from the scores of its pairs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from encoder import load_encoder
from encoder.words import word_encoders
from eval.data.textfiles import read_lines
from eval.metrics.bootstrap import Interval
from eval.runs.pairs import write_jsonl
from eval.runs.side import Side
from eval.runs.store import Run
from miner.fdr import (
    Null,
    copied,
    false_discovery_rates,
    mine_added,
    nearly_copied,
    probabilities,
    usable_decoys,
)
from miner.knn.exact import search_both
from miner.score_calibration import Calibration
from miner.storage.layout import SIDES
from miner.storage.places import Place
from miner.word_match import align_texts, aligned_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder

WANTED = (0.01, 0.05, 0.1, 0.2)


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """What is estimated of P pairs, best first; all arrays are float64 (P,).

    ``rates`` are the least FDR of any threshold that keeps each pair. ``interval`` takes an
    FDR, and gives the 95 % interval of the share of wrong pairs among those kept, or None.
    """

    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    rates: NDArray[np.float64]
    interval: Callable[[float], Interval | None]

    @classmethod
    def by(cls, null: Null, scores: NDArray[np.float64]) -> Estimates:
        """Estimate by the scores of decoys."""
        return cls(
            scores=scores,
            probabilities=probabilities(scores, null),
            rates=false_discovery_rates(scores, null),
            interval=lambda fdr: None,
        )

    def kept(self, fdr: float) -> int:
        """Return how many of the pairs keep to an FDR."""
        return int(np.searchsorted(self.rates, fdr, side="right"))

    def threshold(self, fdr: float) -> float:
        """Return the lowest threshold for an FDR; inf where there is none."""
        kept = self.kept(fdr)
        return float(np.nextafter(self.scores[kept - 1], -np.inf)) if kept else np.inf


def by_scores(run: Run) -> Estimates:
    """Estimate from the scores alone, which have to be those by words.

    Raises:
        ValueError: they are not, or nothing can be estimated from them.
    """
    _check_whole(run)
    for name in ("threshold", "filters"):
        if run.options[name]:
            raise ValueError(
                f"{run.directory}: estimates from the scores alone need all pairs; mine without "
                f"--{name} (nothing is searched again)"
            )
    if not run.by_words:
        raise ValueError(
            f"{run.directory}: scores by margin alone do not say how many pairs are wrong; mine "
            "with --score words (nothing is searched again), or give --decoys-src or --decoys-tgt"
        )
    scores = run.pairs.score
    calibration = Calibration.of(scores, run.left_out)
    return Estimates(
        scores=scores,
        probabilities=calibration.probability(scores),
        rates=calibration.rates[calibration.histogram.bins(scores)],
        interval=lambda fdr: calibration.expected(calibration.threshold(fdr)).interval,
    )


def _check_whole(run: Run) -> None:
    if "fdr" in run.summary:
        raise ValueError(
            f"{run.directory}: its pairs were chosen by --fdr, and estimates need all pairs; give "
            "the run's command again without it (nothing is searched again)"
        )


def fit_null(run: Run, sources: Place | None, targets: Place | None) -> Null:
    """Fit the distribution of wrong pairs' scores to decoys of one side or both.

    Args:
        run: whose encoder, neighbourhood and margin are used.
        sources: lines of text that none of the run's targets translates.
        targets: the same for the other side.

    Raises:
        ValueError: a file cannot be read, decoys are sentences of the run, pairs are mined for too
            few of them, or they cannot be encoded as the run's sentences were.
    """
    _check_whole(run)
    if run.options["scope"] == "document":
        raise ValueError(
            f"{run.directory}: the run searched within documents, which decoys have none of; "
            "calibrate a run with --scope corpus"
        )
    encoder = _encoder(run)
    parts = [
        _scores(run, path, encoder, own, base)
        for path, own, base in (
            (sources, run.source, run.target),
            (targets, run.target, run.source),
        )
        if path is not None
    ]
    return Null.fitted(np.concatenate(parts))


def _encoder(run: Run) -> Encoder:
    """Load the encoder of the run.

    Raises:
        ValueError: the run had none, or it has been changed since.
    """
    used, spec = run.summary["encoder"], run.options["encoder"]
    if used == "precomputed":
        raise ValueError(
            f"{run.directory}: its embeddings were precomputed; decoys can be encoded only for a "
            "run with --encoder"
        )
    encoder = load_encoder(spec, precision=run.options["precision"])
    sides = [encoder.for_language(language).name for language in run.languages]
    name = "+".join(dict.fromkeys(sides))
    if name != used:
        raise ValueError(
            f"{spec} is now the encoder {name}, but the run used {used}, so scores cannot "
            "be compared; restore that encoder, or mine again with this one"
        )
    return encoder


def _scores(run: Run, path: Place, encoder: Encoder, own: Side, base: Side) -> NDArray[np.float64]:
    """Score what is mined for decoys of the side ``own`` among the sentences of ``base``."""
    texts = [line for line in read_lines(path) if line.strip()]
    language = run.languages[SIDES.index(own.name)]
    vectors = encoder.for_language(language).encode(texts)
    usable = np.any(vectors, axis=1)
    copies = copied(texts, own.all_texts())
    copies[usable] |= nearly_copied(vectors[usable], own.vectors())
    rows = np.flatnonzero(usable & usable_decoys(copies, texts))
    found, _ = search_both(vectors[rows], base.vectors(), k=run.options["k"])
    pairs = mine_added(found, base.neighbours, _taken(run, base), margin=run.options["margin"])
    if not run.by_words:
        return pairs.scores
    theirs = base.texts(base.searched[pairs.rows])
    ours = [texts[row] for row in rows[pairs.queries].tolist()]
    words = word_encoders(encoder, run.languages)
    aligned = align_texts(words, *((ours, theirs) if own is run.source else (theirs, ours)))
    return aligned_scores(pairs.scores, aligned, usual=run.summary["usual_log_ratio"])


def _taken(run: Run, side: Side) -> NDArray[np.float64]:
    """Return the margin of the pair that each searched row has, -inf where it has none: (N,)."""
    taken = np.full(len(side.searched), -np.inf)
    chosen = run.chosen.pairs
    rows = chosen.source if side is run.source else chosen.target
    taken[side.positions(rows)] = chosen.score
    return taken


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
    figures = {
        "score": estimates.scores,
        "probability": estimates.probabilities,
        "fdr": estimates.rates,
    }
    write_jsonl(run, path, np.arange(kept), figures)
    return kept
