"""The section of a report about known pairs."""

import itertools
from typing import Any

import numpy as np

from eval.report.charts import Chart
from eval.report.figures import gold_curve, spread
from eval.report.tables import Grid, pair_table
from eval.runs.explain import explain
from eval.runs.gold import Gold
from eval.runs.store import Run

EXAMPLES = 50  # pairs to read of each kind


def against_gold(run: Run, gold: Gold) -> dict[str, Any]:
    """Return curves, wrong pairs and missing ones."""
    curve = gold_curve(gold.judgements)
    figures = {
        "p": [score.precision for score in curve],
        "r": [score.recall for score in curve],
        "f": [score.f1 for score in curve],
    }
    thresholds = [score.threshold for score in curve]
    by_threshold = Chart(
        title="Precision, recall and F1 against the threshold",
        x=spread(run.pairs.score),
        y=(0, 1),
        labels=(f"threshold of the {run.score_name}", ""),
        lines=[
            (f"line {css}", list(zip(thresholds, values, strict=True)))
            for css, values in figures.items()
        ],
        uprights=[(gold.best.threshold, "best F1")],
    )
    both = Chart(
        title="Precision against recall",
        x=(0, 1),
        y=(0, 1),
        labels=("recall", "precision"),
        lines=[("line f", list(zip(figures["r"], figures["p"], strict=True)))],
    )
    above = gold.judgements.scores > gold.best.threshold
    wrong = np.flatnonzero(above & ~gold.judgements.correct)[:EXAMPLES]
    return {
        "charts": [by_threshold, both],
        "wrong": pair_table(run, wrong.tolist()),
        "missing": _missing(run, gold),
    }


def _missing(run: Run, gold: Gold) -> Grid:
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
    return Grid(["source", "target", "ids", "margin", "why"], rows, texts=2)
