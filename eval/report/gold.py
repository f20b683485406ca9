"""The section of a report about known pairs."""

from __future__ import annotations

import numpy as np

from eval.report.charts import Chart
from eval.report.figures import gold_curve, spread
from eval.report.tables import folded, ids_of, pair_table, table
from eval.runs.explain import explain
from eval.runs.gold import Gold
from eval.runs.store import Run

EXAMPLES = 50  # pairs to read of each kind


def against_gold_section(run: Run, gold: Gold) -> str:
    """Curves, wrong pairs and missing ones."""
    best = gold.best
    curve = gold_curve(gold.judgements)
    low, high = spread(run.pairs.score)
    by_threshold = Chart(
        title="Precision, recall and F1 against the threshold",
        x=(low, high),
        y=(0, 1),
        labels=("threshold", ""),
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
    found = {
        (source, target)
        for place in np.flatnonzero(extracted & gold.judgements.correct).tolist()
        for source in run.source.all_ids(int(run.pairs.source[place]))
        for target in run.target.all_ids(int(run.pairs.target[place]))
    }
    rows = []
    for source_id, target_id in sorted(gold.known - found)[:EXAMPLES]:
        source = run.source.row_by_id.get(source_id)
        target = run.target.row_by_id.get(target_id)
        if source is None or target is None:
            rows.append([source_id, target_id, "", "", "not among the sentences of the run"])
            continue
        told = explain(run, source, target)
        score = "" if told.score is None else f"{told.score:.4f}"
        texts = run.source.text(source), run.target.text(target)
        rows.append([*texts, ids_of(run, source, target), score, told.verdict])
    return table(["source", "target", "ids", "score", "why"], rows, texts=2)
