"""Thresholds without gold for a finished run: decoys in, probabilities of its pairs out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from encoder.words import WordEncoder
from eval.data.textfiles import read_lines
from eval.runs.pairs import write_jsonl
from eval.runs.store import Run, Side
from miner.fdr import (
    Null,
    false_discovery_rates,
    mine_added,
    probabilities,
    threshold_at,
)
from miner.knn.core.rescore import unit_rows
from miner.knn.exact import search_both
from miner.storage.places import Place
from miner.word_match import align_texts, aligned_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder

WANTED = (0.01, 0.05, 0.1, 0.2)


def fit_null(run: Run, sources: Place | None, targets: Place | None) -> Null:
    """The distribution of wrong pairs' scores, from decoys of one side or both.

    Args:
        run: whose encoder, neighbourhood and margin are used.
        sources: lines of text that none of the run's targets translates.
        targets: the same for the other side.

    Raises:
        ValueError: a file cannot be read, pairs are mined for too few decoys, or the run was made
            with vectors from files, to which those of the decoys could not be compared.
    """
    from encoder import load_encoder

    if run.summary["encoder"] == "given":
        raise ValueError(
            f"{run.directory}: its vectors were given in files; decoys can be encoded only for a "
            "run with --encoder"
        )
    options = run.summary["options"]
    encoder = load_encoder(options["encoder"], precision="auto")
    parts = [
        _scores(run, texts, encoder.for_language(language), base=base, taken=_taken(run, base))
        for texts, base, language in (
            (sources, run.target, options["source"]["language"]),
            (targets, run.source, options["target"]["language"]),
        )
        if texts is not None
    ]
    return Null.fitted(np.concatenate(parts))


def _taken(run: Run, side: Side) -> NDArray[np.float64]:
    """The margin of the pair that each searched row of a side has, -inf where it has none."""
    taken = np.full(len(side.searched), -np.inf)
    rows = run.chosen.source if side is run.source else run.chosen.target
    taken[np.searchsorted(side.searched, rows)] = run.chosen.score
    return taken


def _scores(
    run: Run, path: Place, encoder: Encoder, *, base: Side, taken: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What is mined for decoys among the sentences of ``base``."""
    options = run.summary["options"]
    if options["scope"] == "document":
        raise ValueError(f"{path}: decoys have no documents, which the run searched within")
    texts = [line for line in read_lines(path) if line.strip()]
    vectors = encoder.encode(texts)
    with_vector = np.flatnonzero(np.any(vectors, axis=1))
    vectors = unit_rows(vectors[with_vector])
    found, _ = search_both(vectors, unit_rows(base.vectors()), k=options["k"])
    pairs = mine_added(found, base.neighbours, taken, margin=options["margin"])
    if not options["align"]:
        return pairs.scores
    theirs = [base.text(row) for row in base.searched[pairs.rows].tolist()]
    ours = [texts[row] for row in with_vector[pairs.queries].tolist()]
    sides = (ours, theirs) if base is run.target else (theirs, ours)
    assert isinstance(encoder, WordEncoder)  # or the run would not have been
    aligned = align_texts(encoder.words, *sides)
    return aligned_scores(pairs.scores, aligned, usual=run.summary["usual_log_ratio"])


def describe(scores: NDArray[np.float64], null: Null) -> list[tuple[float, float, int, float]]:
    """For each wanted FDR: it, the threshold, the pairs above it, and how many of them are right.

    The last is what is expected, by the probabilities of the pairs.
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
    threshold = -np.inf if fdr is None else threshold_at(scores, null, fdr=fdr)
    kept = int((scores > threshold).sum())
    if not kept:
        raise ValueError(
            f"no threshold has an estimated share of wrong pairs of at most {fdr}; the best has "
            f"{false_discovery_rates(scores, null)[0]:.3f}"
        )
    figures = {
        "score": scores,
        "probability": probabilities(scores, null),
        "fdr": false_discovery_rates(scores, null),
    }
    write_jsonl(run, path, range(kept), figures)
    return kept
