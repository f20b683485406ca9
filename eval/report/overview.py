"""What a person wants to know of a run first: how many pairs, how good, of which documents."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from eval.report.tables import folded
from eval.runs.calibration import Estimates, by_judge, thresholds
from eval.runs.store import Run
from miner.storage.layout import SIDES

MAX_DOCUMENTS = 50  # pairs of documents that are listed: those with the most pairs


@dataclass(frozen=True, kw_only=True)
class Quality:
    """What is estimated of a run's P pairs, or why nothing is.

    ``probabilities`` is float64 (P,), how likely each pair is right, None if not known;
    ``estimates`` are for thresholds; ``how`` names their source, or says why there are none.
    """

    probabilities: NDArray[np.float64] | None
    estimates: Estimates | None
    how: str


def assess(run: Run) -> Quality:
    """Return what the run says of how many pairs are wrong."""
    try:
        estimates = by_judge(run)
    except ValueError as error:
        why = "No estimate: " + str(error).removeprefix(f"{run.directory}: ")
        return Quality(probabilities=None, estimates=None, how=why)
    return Quality(
        probabilities=estimates.probabilities,
        estimates=estimates,
        how="by the probability of each pair",
    )


def overview_section(run: Run, quality: Quality) -> str:
    """Show the pairs, the estimated share of wrong ones, thresholds, languages and documents."""
    sides = [run.summary[side] for side in SIDES]
    cards = [
        ("pairs", f"{run.summary['pairs']:,}", _chosen_from(run)),
        ("estimated to be wrong", *_wrong(quality)),
        *(
            (f"{name} sentences", f"{counts['searched']:,}", _language(counts))
            for name, counts in zip(SIDES, sides, strict=True)
        ),
    ]
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd><b>{escape(figure)}</b>{escape(about)}</dd></div>"
        for name, figure, about in cards
    )
    why = "" if quality.probabilities is not None else f"<p>{escape(quality.how)}</p>"
    cards_and_why = f'<dl class="cards">{shown}</dl>{why}'
    return cards_and_why + _thresholds(quality) + _documents(run, quality)


def _chosen_from(run: Run) -> str:
    kept = run.summary.get("kept")
    if kept is None or kept["judged"] == kept["pairs"]:
        return f"of {run.summary['candidates']:,} candidates"
    return f"of {kept['judged']:,}; --all writes the others, too"


def _wrong(quality: Quality) -> tuple[str, str]:
    if quality.probabilities is None:
        return "not known", "see below"
    return f"{1 - float(quality.probabilities.mean()):.1%}", quality.how


def _language(counts: dict[str, object]) -> str:
    found = counts.get("language")
    if not isinstance(found, dict) or not (name := found["given"] or found["seen"]):
        return "language not known"
    share = found["share"]
    return f"in {name}" if found["given"] or share is None else f"in {name} ({share:.0%} of them)"


def _thresholds(quality: Quality) -> str:
    """List thresholds; a button shows the pairs above each."""
    if quality.estimates is None:
        return ""
    rows = [
        f"<tr><td class=whole>{wanted:.0%}</td><td class=whole>{threshold:.4f}</td>"
        f"<td class=whole>{kept:,}</td><td class=whole>{kept - right:,.0f}</td>"
        f'<td class=tools><button type="button" disabled data-least="{threshold!r}">show'
        "</button></td></tr>"
        for wanted, threshold, kept, right, _ in thresholds(quality.estimates)
        if kept
    ]
    if not rows:
        return "<p>No threshold leaves a fifth of wrong pairs or less, by the estimates.</p>"
    heads = ("wrong at most", "threshold", "pairs above it", "of these wrong", "")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        "<h3>Thresholds to choose from</h3>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></div>"
    )


def _documents(run: Run, quality: Quality) -> str:
    """List the documents that the pairs are from, if there are any."""
    docs = list(zip(*run.docs, strict=True))
    if not any(map(any, docs)):
        return ""
    likely = np.ones(len(docs)) if quality.probabilities is None else quality.probabilities
    counts: dict[tuple[str, str], tuple[int, float]] = {}
    for both, chance in zip(docs, likely.tolist(), strict=True):
        pairs, right = counts.get(both, (0, 0.0))
        counts[both] = pairs + 1, right + chance
    best = sorted(counts.items(), key=lambda one: (-one[1][0], one[0]))[:MAX_DOCUMENTS]
    is_known = quality.probabilities is not None
    rows = "".join(
        f"<tr><td>{escape(source)}</td><td>{escape(target)}</td><td class=whole>{pairs:,}</td>"
        + (f"<td class=whole>{1 - right / pairs:.1%}</td>" if is_known else "")
        + f'<td class=tools><button type="button" disabled data-words="{escape(source)}">show'
        "</button></td></tr>"
        for (source, target), (pairs, right) in best
    )
    heads = ["source document", "target document", "pairs", *(["wrong"] if is_known else []), ""]
    head = "".join(f"<th>{name}</th>" for name in heads)
    title = f"{len(counts):,} pairs of documents" + (
        f", the {MAX_DOCUMENTS} with the most pairs" if len(counts) > MAX_DOCUMENTS else ""
    )
    return folded(
        title,
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        "</div>",
    )
