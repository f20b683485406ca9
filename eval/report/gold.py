"""The section of a report about known pairs."""

from __future__ import annotations

import itertools

import numpy as np

from eval.report.charts import Chart
from eval.report.figures import gold_curve, spread
from eval.report.tables import folded, pair_table, table
from eval.runs.explain import explain
from eval.runs.gold import Gold
from eval.runs.store import Run

EXAMPLES = 50  # pairs to read of each kind


def against_gold_section(run: Run, gold: Gold) -> str:
    """Show curves, wrong pairs and missing ones."""
    best = gold.best
    curve = gold_curve(gold.judgements)
    low, high = spread(run.pairs.score)
    by_threshold = Chart(
        title="Precision, recall and F1 against the threshold",
        x=(low, high),
        y=(0, 1),
        labels=(f"threshold of the {run.score_name}", ""),
    )
    for css, values in (("p", curve.precision), ("r", curve.recall), ("f", curve.f1)):
        by_threshold.line(list(zip(curve.thresholds, values, strict=True)), css=f"line {css}")
    by_threshold.upright(best.threshold, css="mark", label="best F1")
    both = Chart(
        title="Precision against recall", x=(0, 1), y=(0, 1), labels=("recall", "precision")
    )
    both.line(list(zip(curve.recall, curve.precision, strict=True)), css="line f")
    return (
        f"<p>At the threshold with the best F1, {best.threshold:.4f}: precision "
        f"{best.precision:.2%}, recall {best.recall:.2%}, F1 {best.f1:.2%}; {best.correct:,} of "
        f"{best.extracted:,} pairs are right, {best.found:,} of {best.gold:,} known pairs found."
        '</p><p class="key"><i class="p"></i>precision <i class="r"></i>recall <i class="f"></i>'
        f"F1</p><figure>{by_threshold.svg()}</figure><figure>{both.svg()}</figure>"
        + folded("Wrong pairs above it, best first", _wrong(run, gold))
        + folded("Known pairs that are missing", _missing(run, gold))
    )


def _wrong(run: Run, gold: Gold) -> str:
    above = gold.judgements.scores > gold.best.threshold
    places = np.flatnonzero(above & ~gold.judgements.correct)[:EXAMPLES]
    return pair_table(run, places.tolist())


def _missing(run: Run, gold: Gold) -> str:
    extracted = gold.judgements.scores > gold.best.threshold
    places = np.flatnonzero(extracted & gold.judgements.correct)
    sides = (run.source, run.pairs.source), (run.target, run.pairs.target)
    found = {
        pair
        for ids in zip(*(side.all_ids(rows[places]) for side, rows in sides), strict=True)
        for pair in itertools.product(*ids)
    }
    missing = sorted(gold.known - found)[:EXAMPLES]
    known = [
        side.rows_of(ids)
        for side, ids in zip((run.source, run.target), zip(*missing, strict=True), strict=False)
    ]
    rows = []
    for (source_id, target_id), source, target in zip(missing, *known, strict=True):
        if source is None or target is None:
            rows.append([source_id, target_id, "", "", "not among the sentences of the run"])
            continue
        texts, ids = (run.source.text(source), run.target.text(target)), f"{source_id}\n{target_id}"
        try:
            why = explain(run, source, target)
        except ValueError as error:  # one of them has no vector
            rows.append([*texts, ids, "", f"not mined: {error}"])
            continue
        margin = "" if why.margin is None else f"{why.margin:.4f}"
        rows.append([*texts, ids, margin, why.verdict])
    return table(["source", "target", "ids", "margin", "why"], rows, texts=2)
