"""Thresholds without gold for a finished run: decoys in, probabilities of its pairs out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from encoder import load_encoder
from encoder.words import WordEncoder
from eval.data.textfiles import read_lines
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
    threshold_at,
    usable_decoys,
)
from miner.knn.exact import search_both
from miner.storage.places import Place
from miner.word_match import align_texts, aligned_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder

WANTED = (0.01, 0.05, 0.1, 0.2)


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
    if run.options["scope"] == "document":
        raise ValueError(
            f"{run.directory}: the run searched within documents, which decoys have none of; "
            "calibrate a run with --scope corpus"
        )
    encoder = _encoder(run)
    parts = [
        _scores(run, path, encoder.for_language(run.options[own.name]["language"]), own, base)
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
    if encoder.name != used:
        raise ValueError(
            f"{spec} is now the encoder {encoder.name}, but the run used {used}, so scores cannot "
            "be compared; restore that encoder, or mine again with this one"
        )
    return encoder


def _scores(run: Run, path: Place, encoder: Encoder, own: Side, base: Side) -> NDArray[np.float64]:
    """Score what is mined for decoys of the side ``own`` among the sentences of ``base``."""
    texts = [line for line in read_lines(path) if line.strip()]
    vectors = encoder.encode(texts)
    usable = np.any(vectors, axis=1)
    copies = copied(texts, own.all_texts())
    copies[usable] |= nearly_copied(vectors[usable], own.vectors())
    rows = np.flatnonzero(usable & usable_decoys(copies, texts))
    found, _ = search_both(vectors[rows], base.vectors(), k=run.options["k"])
    pairs = mine_added(found, base.neighbours, _taken(run, base), margin=run.options["margin"])
    if not run.options["align"]:
        return pairs.scores
    theirs = base.texts(base.searched[pairs.rows])
    ours = [texts[row] for row in rows[pairs.queries].tolist()]
    assert isinstance(encoder, WordEncoder)  # or the run would not have been
    aligned = align_texts(encoder.words, *((ours, theirs) if own is run.source else (theirs, ours)))
    return aligned_scores(pairs.scores, aligned, usual=run.summary["usual_log_ratio"])


def _taken(run: Run, side: Side) -> NDArray[np.float64]:
    """Return the margin of the pair that each searched row has, -inf where it has none: (N,)."""
    taken = np.full(len(side.searched), -np.inf)
    chosen = run.chosen.pairs
    rows = chosen.source if side is run.source else chosen.target
    taken[side.positions(rows)] = chosen.score
    return taken


def thresholds(scores: NDArray[np.float64], null: Null) -> list[tuple[float, float, int, float]]:
    """Return for each wanted FDR: it, the threshold, the pairs above it, and the right ones.

    The last are as many as are expected, by the probabilities of the pairs.
    """
    right = np.cumsum(probabilities(scores, null))
    rows = []
    for wanted in WANTED:
        threshold = threshold_at(scores, null, fdr=wanted)
        kept = int((scores > threshold).sum())
        rows.append((wanted, threshold, kept, float(right[kept - 1]) if kept else 0.0))
    return rows


def write_calibrated(run: Run, null: Null, path: Place, *, fdr: float | None) -> int:
    """Write the pairs, or those that keep the FDR, as JSON lines with their probability.

    Returns how many there are. ``fdr`` of a pair is the least that any threshold has that keeps it.

    Raises:
        ValueError: no threshold keeps that FDR.
        OutputError: the file cannot be written.
    """
    scores = run.pairs.score
    rates = false_discovery_rates(scores, null)
    threshold = -np.inf if fdr is None else threshold_at(scores, null, fdr=fdr)
    kept = int((scores > threshold).sum())
    if not kept:
        raise ValueError(
            f"no threshold has an estimated share of wrong pairs of at most {fdr}; the best has "
            f"{rates[0]:.3f}: give a larger --fdr"
        )
    figures = {"score": scores, "probability": probabilities(scores, null), "fdr": rates}
    write_jsonl(run, path, np.arange(kept), figures)
    return kept
