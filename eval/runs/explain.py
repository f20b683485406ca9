"""Why a pair was mined or not: both neighbour lists, the margin, and what stood in the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eval.runs.store import Run, Side
from miner.arrays import NO_NEIGHBOUR
from miner.margin import margin_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from miner.arrays import Pairs


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A row of the other side in a neighbour list: its cosine, and the margin of that pair."""

    row: int
    cosine: float
    score: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """All that decided on one pair of rows.

    ``sources`` are what the target has for neighbours, ``targets`` what the source has, nearest
    first; means are those of these lists. ``cosine`` and ``score`` are None where neither sentence
    is in the other's list: such a pair is never scored.
    """

    source: int
    target: int
    targets: list[Listed]
    sources: list[Listed]
    source_mean: float
    target_mean: float
    cosine: float | None
    score: float | None
    verdict: str


def explain(run: Run, source: int, target: int) -> Explanation:
    """Explain the pair of a source row and a target row.

    Raises:
        ValueError: a row was not searched (it had no vector).
    """
    margin = run.summary["options"]["margin"]
    means = run.source.means, run.target.means
    own_mean = float(means[0][_position(run.source, source, "source")])
    other_mean = float(means[1][_position(run.target, target, "target")])
    targets = _listed(run.source, source, own_mean, run.target, means[1], margin)
    sources = _listed(run.target, target, other_mean, run.source, means[0], margin)
    found = [listed for listed in targets if listed.row == target]
    found += [listed for listed in sources if listed.row == source]
    score = found[0].score if found else None
    return Explanation(
        source=source,
        target=target,
        targets=targets,
        sources=sources,
        source_mean=own_mean,
        target_mean=other_mean,
        cosine=found[0].cosine if found else None,
        score=score,
        verdict=_verdict(run, source, target, score, targets, sources),
    )


def _position(side: Side, row: int, name: str) -> int:
    place = int(np.searchsorted(side.searched, row))
    if place == len(side.searched) or side.searched[place] != row:
        raise ValueError(f"the {name} sentence {side.id(row)!r} has no vector; it was not searched")
    return place


def _listed(
    side: Side, row: int, mean: float, other: Side, other_means: NDArray[np.float64], margin: str
) -> list[Listed]:
    place = int(np.searchsorted(side.searched, row))
    ids, cosines = side.neighbours.ids[place], side.neighbours.cosines[place]
    there = ids != NO_NEIGHBOUR
    ids, cosines = ids[there], cosines[there]
    theirs = other_means[np.searchsorted(other.searched, ids)]
    scores = margin_scores(cosines, np.full(len(ids), mean), theirs, margin=margin)
    columns = ids.tolist(), cosines.tolist(), scores.tolist()
    return [
        Listed(row=found, cosine=cosine, score=score)
        for found, cosine, score in zip(*columns, strict=True)
    ]


def _verdict(
    run: Run,
    source: int,
    target: int,
    score: float | None,
    targets: list[Listed],
    sources: list[Listed],
) -> str:
    place = _place(run.pairs, source, target)
    if place is not None:
        final = float(run.pairs.score[place])
        return f"mined: pair {place + 1} of {len(run.pairs)}, with the score {final:.4f}"
    place = _place(run.rejected, source, target)
    if place is not None:
        return f"not mined: rejected by the filter {run.reasons[place]}"
    options = run.summary["options"]
    if score is None:
        return f"not mined: neither is among the {options['k']} nearest of the other"
    threshold = options["threshold"]
    if options["align"]:
        below = _place(run.chosen, source, target) is not None
    else:
        below = threshold is not None and score <= threshold
    if below:
        return f"not mined: its score is not above the threshold {threshold}"
    rivals = _rivals(run, source, target)
    if rivals:
        return f"not mined: {' and '.join(rivals)}"
    preferred = [
        f"{names.id(best.row)!r} ({best.score:.4f})"
        for listed, names in ((targets, run.target), (sources, run.source))
        for best in [max(listed, key=lambda one: one.score)]
    ]
    return f"not mined: the best of its lists are {' and '.join(preferred)}"


def _place(pairs: Pairs, source: int, target: int) -> int | None:
    places = np.flatnonzero((pairs.source == source) & (pairs.target == target))
    return int(places[0]) if len(places) else None


def _rivals(run: Run, source: int, target: int) -> list[str]:
    """The chosen pairs that have one of the two sentences."""
    rivals, pairs = [], run.chosen
    for name, rows, row, others, side in (
        ("source", pairs.source, source, pairs.target, run.target),
        ("target", pairs.target, target, pairs.source, run.source),
    ):
        rivals += [
            f"its {name} was paired with {side.id(int(others[place]))!r} "
            f"({float(pairs.score[place]):.4f})"
            for place in np.flatnonzero(rows == row).tolist()
        ]
    return rivals


def describe(run: Run, explanation: Explanation) -> str:
    """The explanation for people, in lines."""
    score, cosine = explanation.score, explanation.cosine
    lines = [
        explanation.verdict,
        f"cosine {'unknown' if cosine is None else f'{cosine:.4f}'}, "
        f"score {'none' if score is None else f'{score:.4f}'} "
        f"({run.summary['options']['margin']} margin), "
        f"means {explanation.source_mean:.4f} and {explanation.target_mean:.4f}",
    ]
    for side, row, listed, other, partner in (
        (run.source, explanation.source, explanation.targets, run.target, explanation.target),
        (run.target, explanation.target, explanation.sources, run.source, explanation.source),
    ):
        lines += ["", f"{side.id(row)}  {side.text(row)}", "    cosine   score"]
        lines += [
            f"  {'*' if one.row == partner else ' '} {one.cosine:.4f}  {one.score:.4f}  "
            f"{other.id(one.row)}  {other.text(one.row)}"
            for one in listed
        ]
    return "\n".join(lines)
