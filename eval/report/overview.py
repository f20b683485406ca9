"""The first things to know of a run: how many pairs, how good, of which documents."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from eval.runs.calibration import Estimates, by_judge, thresholds
from eval.runs.store import Run
from miner.storage.layout import SIDES

MAX_DOCUMENTS = 50  # pairs of documents that are listed: those with the most pairs


@dataclass(frozen=True, kw_only=True)
class Quality:
    """The estimates of a run's pairs, if there are any, and their source, or why there are none."""

    estimates: Estimates | None
    how: str


def assess(run: Run) -> Quality:
    """Return what the run says of how many pairs are wrong."""
    try:
        return Quality(estimates=by_judge(run), how="by the probability of each pair")
    except ValueError as error:
        why = "No estimate: " + str(error).removeprefix(f"{run.directory}: ")
        return Quality(estimates=None, how=why)


def overview(run: Run, quality: Quality) -> dict[str, Any]:
    """Return the pairs, the estimated share of wrong ones, thresholds, languages and documents."""
    estimates = quality.estimates
    wrong = ("not known", "see below")
    if estimates:
        wrong = f"{1 - float(estimates.probabilities.mean()):.1%}", quality.how
    cards = [
        ("pairs", f"{run.summary['pairs']:,}", _chosen_from(run)),
        ("estimated to be wrong", *wrong),
    ]
    for name in SIDES:
        counts = run.summary[name]
        cards.append((f"{name} sentences", f"{counts['searched']:,}", _language(counts)))
    chosen = [row for row in thresholds(estimates) if row[2]] if estimates else []
    return {"cards": cards, "thresholds": chosen, "documents": _documents(run, estimates)}


def _chosen_from(run: Run) -> str:
    kept = run.summary.get("kept")
    if kept is None or kept["judged"] == kept["pairs"]:
        return f"of {run.summary['candidates']:,} candidates"
    return f"of {kept['judged']:,}; --all writes the others, too"


def _language(counts: dict[str, object]) -> str:
    found = counts.get("language")
    if not isinstance(found, dict) or not (name := found["given"] or found["seen"]):
        return "language not known"
    share = found["share"]
    return f"in {name}" if found["given"] or share is None else f"in {name} ({share:.0%} of them)"


def _documents(
    run: Run, estimates: Estimates | None
) -> tuple[int, list[tuple[tuple[str, str], tuple[int, float]]]] | None:
    """Count the pairs, and the right ones expected, of each pair of documents, if there are any.

    Returns:
        How many pairs of documents there are, and those with the most pairs, with their counts.
    """
    docs = list(zip(*run.docs, strict=True))
    if not any(map(any, docs)):
        return None
    likely = np.ones(len(docs)) if estimates is None else estimates.probabilities
    counts: dict[tuple[str, str], tuple[int, float]] = {}
    for both, chance in zip(docs, likely.tolist(), strict=True):
        pairs, right = counts.get(both, (0, 0.0))
        counts[both] = pairs + 1, right + chance
    best = sorted(counts.items(), key=lambda one: (-one[1][0], one[0]))
    return len(counts), best[:MAX_DOCUMENTS]
