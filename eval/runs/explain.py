"""Why a pair was mined or not: both neighbour lists, the margin, and what stood in the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eval.runs.side import Side
from eval.runs.store import Run
from miner.arrays import NO_NEIGHBOUR, AlignedPairs, Pairs
from miner.margin import margin_scores


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A row of the other side in a neighbour list: its cosine, and the margin of that pair."""

    row: int
    cosine: float
    margin: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """All that decided on one pair of rows.

    ``sources`` are what the target has for neighbours, ``targets`` what the source has, nearest
    first; means are those of these lists. ``cosine`` and ``margin`` are None where neither sentence
    is in the other's list: such a pair is never scored. ``aligned`` holds the pair itself, of a run
    with ``--align`` that put it out.
    """

    source: int
    target: int
    targets: list[Listed]
    sources: list[Listed]
    source_mean: float
    target_mean: float
    cosine: float | None
    margin: float | None
    aligned: AlignedPairs | None
    verdict: str


def explain(run: Run, source: int, target: int) -> Explanation:
    """Explain the pair of a source row and a target row.

    Raises:
        ValueError: a row was not searched (it had no vector).
    """
    own_mean, targets = _listed(run, run.source, source, run.target)
    other_mean, sources = _listed(run, run.target, target, run.source)
    found = [listed for listed in targets if listed.row == target]
    found += [listed for listed in sources if listed.row == source]
    margin = found[0].margin if found else None
    place = _place(run.pairs, source, target)
    aligned = None
    if isinstance(run.pairs, AlignedPairs) and place is not None:
        aligned = run.pairs.take(np.array([place]))
    return Explanation(
        source=source,
        target=target,
        targets=targets,
        sources=sources,
        source_mean=own_mean,
        target_mean=other_mean,
        cosine=found[0].cosine if found else None,
        margin=margin,
        aligned=aligned,
        verdict=_verdict(run, source, target, margin, targets, sources),
    )


def _listed(run: Run, side: Side, row: int, other: Side) -> tuple[float, list[Listed]]:
    """Return a row's mean and its neighbours."""
    (position,) = side.positions([row])
    if position < 0:
        raise ValueError(
            f"the {side.name} sentence {side.id(row)!r} has no vector; it was not searched"
        )
    mean = side.means_at([position])
    nearest = side.neighbours_at([position])
    there = nearest.ids[0] != NO_NEIGHBOUR
    if not there.any():
        return float(mean[0]), []
    rows, cosines = nearest.ids[0, there], nearest.cosines[0, there]
    means = np.broadcast_to(mean, len(rows)), other.means_at(other.positions(rows))
    margins = margin_scores(cosines, *means, margin=run.options["margin"])
    columns = rows.tolist(), cosines.tolist(), margins.tolist()
    return float(mean[0]), [
        Listed(row=found, cosine=cosine, margin=margin)
        for found, cosine, margin in zip(*columns, strict=True)
    ]


def _verdict(
    run: Run,
    source: int,
    target: int,
    margin: float | None,
    targets: list[Listed],
    sources: list[Listed],
) -> str:
    place = _place(run.pairs, source, target)
    if place is not None:
        final = f"{run.score_name} {float(run.pairs.score[place]):.4f}"
        return f"mined: pair {place + 1} of {len(run.pairs)} by the {final}"
    rejected, reasons = run.rejected
    place = _place(rejected, source, target)
    if place is not None:
        return f"not mined: rejected by the filter {reasons[place]}"
    if margin is None:
        return f"not mined: neither is among the {run.options['k']} nearest of the other"
    threshold = run.options["threshold"]
    if run.options["align"]:
        below = _place(run.chosen, source, target) is not None
    else:
        below = threshold is not None and margin <= threshold
    if below:
        return f"not mined: its {run.score_name} is not above the threshold {threshold}"
    rivals = _rivals(run, source, target)
    if rivals:
        return f"not mined: {' and '.join(rivals)}"
    preferred = [
        f"{names.id(best.row)!r} (margin {best.margin:.4f})"
        for listed, names in ((targets, run.target), (sources, run.source))
        if listed
        for best in [max(listed, key=lambda one: one.margin)]
    ]
    return f"not mined: the best of its lists are {' and '.join(preferred)}"


def _place(pairs: Pairs, source: int, target: int) -> int | None:
    places = np.flatnonzero((pairs.source == source) & (pairs.target == target))
    return int(places[0]) if len(places) else None


def _rivals(run: Run, source: int, target: int) -> list[str]:
    """Describe the chosen pairs that have one of the two sentences."""
    rivals, pairs = [], run.chosen
    for rows, row, others, side, other in (
        (pairs.source, source, pairs.target, run.source, run.target),
        (pairs.target, target, pairs.source, run.target, run.source),
    ):
        rivals += [
            f"its {side.name} was paired with {other.id(int(others[place]))!r} "
            f"(margin {float(pairs.score[place]):.4f})"
            for place in np.flatnonzero(rows == row).tolist()
        ]
    return rivals


def describe(run: Run, explanation: Explanation) -> str:
    """Return the explanation for people, in lines."""
    margin, cosine = explanation.margin, explanation.cosine
    lines = [
        explanation.verdict,
        f"cosine {'unknown' if cosine is None else f'{cosine:.4f}'}, "
        f"margin {'none' if margin is None else f'{margin:.4f}'} ({run.options['margin']}), "
        f"means {explanation.source_mean:.4f} and {explanation.target_mean:.4f}",
    ]
    if (aligned := explanation.aligned) is not None:
        lines.append(
            f"aligned score {aligned.score[0]:.4f} from margin {aligned.margin[0]:.4f}, coverage "
            f"{aligned.coverage[0]:.4f}, imbalance {aligned.imbalance[0]:.4f}, "
            f"{aligned.unmatched[0]} unmatched numbers"
        )
    for side, row, listed, other, partner in (
        (run.source, explanation.source, explanation.targets, run.target, explanation.target),
        (run.target, explanation.target, explanation.sources, run.source, explanation.source),
    ):
        lines += ["", f"{side.id(row)}  {side.text(row)}", "    cosine  margin"]
        lines += [
            f"  {'*' if one.row == partner else ' '} {one.cosine:.4f}  {one.margin:.4f}  "
            f"{other.id(one.row)}  {other.text(one.row)}"
            for one in listed
        ]
    return "\n".join(lines)
