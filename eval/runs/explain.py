"""Why a pair was mined or not: both neighbour lists, the margin, and what stood in the way."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from eval.runs.side import Side
from eval.runs.store import PairFile, Run
from miner.arrays import NO_NEIGHBOUR
from miner.choices import LINES, MONOTONE
from miner.judge.features import Near, Usual, features, read_texts
from miner.judge.model import load_judge
from miner.margin import margin_scores

SHOWN = 5  # features that spoke for a pair, and against it


class Listed(NamedTuple):
    """A row of the other side in a neighbour list: its cosine, and the margin of that pair."""

    row: int
    cosine: float
    margin: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """All that decided on one pair of rows.

    ``sources`` are what the target has for neighbours, ``targets`` what the source has, nearest
    first; means are those of these lists. ``cosine`` and ``margin`` are None where neither sentence
    is in the other's list: such a pair is never scored. ``line`` is that of a given pair, from 0,
    and None of all others. ``judged`` is what the judge says of the
    pair, None where it was not asked, and ``reasons`` how much each feature raised its score.
    """

    source: int
    target: int
    targets: list[Listed]
    sources: list[Listed]
    source_mean: float
    target_mean: float
    cosine: float | None
    margin: float | None
    line: int | None
    judged: Mapping[str, Any] | None
    reasons: Mapping[str, float]
    verdict: str = ""


def explain(run: Run, source: int, target: int) -> Explanation:
    """Explain a pair of rows; a ValueError names one that was not searched (it had no vector)."""
    source_mean, targets = _listed(run, run.source, source, run.target)
    target_mean, sources = _listed(run, run.target, target, run.source)
    found = [one for one in targets if one.row == target]
    found += [one for one in sources if one.row == source]
    judged = _exact(run.judged, source, target) or _exact(run.identical, source, target)
    why = Explanation(
        source=source,
        target=target,
        targets=targets,
        sources=sources,
        source_mean=source_mean,
        target_mean=target_mean,
        cosine=found[0].cosine if found else None,
        margin=found[0].margin if found else None,
        line=_line(run, source, target),
        judged=judged,
        reasons=_reasons(run, judged) if judged else {},
    )
    return replace(why, verdict=_verdict(run, why))


def _line(run: Run, source: int, target: int) -> int | None:
    if run.options.get("alignment") != LINES or not _exact(run.chosen, source, target):
        return None
    lines = run.lines(np.array([source]), np.array([target]))
    return None if lines is None else int(lines[0])


def _listed(run: Run, side: Side, row: int, other: Side) -> tuple[float, list[Listed]]:
    (position,) = side.positions([row])
    if position < 0:
        raise ValueError(
            f"the {side.name} sentence {side.id(row)!r} has no vector; it was not searched"
        )
    mean, nearest = side.means_at([position]), side.neighbours_at([position])
    there = nearest.ids[0] != NO_NEIGHBOUR
    if not there.any():
        return float(mean[0]), []
    rows, cosines = nearest.ids[0, there], nearest.cosines[0, there]
    means = np.broadcast_to(mean, len(rows)), other.means_at(other.positions(rows))
    margins = margin_scores(cosines, *means, margin=run.options["margin"])
    columns = rows.tolist(), cosines.tolist(), margins.tolist()
    return float(mean[0]), [Listed(*one) for one in zip(*columns, strict=True)]


def _verdict(run: Run, why: Explanation) -> str:
    pair = why.source, why.target
    if mined := _exact(run.output, *pair):
        final = f"{run.score_name} {mined['score']:.4f}"
        line = "" if why.line is None else f"; line {why.line + 1}"
        return f"mined: pair {mined['place'] + 1} of {len(run.output)} by the {final}{line}"
    if _exact(run.identical, *pair):
        return "identical text: not written; add --keep-identical to write it"
    if rejected := _exact(run.rejected, *pair):
        return f"not mined: rejected by the filter {rejected['reason']}"
    if left := _exact(run.chosen if run.judged is None else run.judged, *pair):
        return _left_out(run, left)
    if run.options.get("alignment") == MONOTONE:
        return "not mined: no aligned pair starts with both sentences"
    if run.options.get("alignment") == LINES:
        return "not written: no line has both sentences, or its score is not above the threshold"
    if why.margin is None:
        return f"not mined: neither is among the {run.options['k']} nearest neighbours of the other"
    threshold = run.options["threshold"]
    if threshold is not None and why.margin <= threshold:
        return f"not mined: its margin is not above the threshold {threshold}"
    if rivals := _rivals(run, *pair):
        return f"not mined: {' and '.join(rivals)}"
    best = [
        (other, max(listed, key=lambda one: one.margin))
        for other, listed in ((run.target, why.targets), (run.source, why.sources))
        if listed
    ]
    preferred = (f"{side.id(one.row)!r} (margin {one.margin:.4f})" for side, one in best)
    return f"not mined: the best neighbours are {' and '.join(preferred)}"


def _left_out(run: Run, pair: Mapping[str, Any]) -> str:
    """Explain a pair that was selected and is not written."""
    chosen = run.chosen if run.judged is None else run.judged
    where = f"pair {pair['place'] + 1} of {len(chosen)} by the {run.score_name} {pair['score']:.4f}"
    if "probability" in pair:
        where = f"probability {pair['probability']:.3f}, {where}"
    if "near_copies" in run.summary and (run.pairs.score < pair["score"]).any():
        return f"not written: a near-copy of a better pair; {where}"
    if len(run.output) == run.options.get("top"):
        return f"not written: not among the {len(run.output)} best; {where}"
    return f"not written: {where}"


def _reasons(run: Run, judged: Mapping[str, Any]) -> dict[str, float]:
    merged = run.options.get("alignment") == MONOTONE
    near = Near(*(np.array([judged[name]]) for name in ("cosine", "source_mean", "target_mean")))
    texts = (side.pair_texts(np.array([judged[f"{side.name}_row"]])) for side in run.sides)
    seen = read_texts(run.word_encoders, *texts, languages=run.languages)
    usual = Usual(**run.summary["usual"])
    return load_judge().reasons(features(seen, None if merged else near, usual)[0])


def _exact(pairs: PairFile | None, source: int, target: int) -> dict[str, Any] | None:
    found = pairs.find(source, target) if pairs else ()
    rows = source, target
    return next((one for one in found if (one["source_row"], one["target_row"]) == rows), None)


def _rivals(run: Run, source: int, target: int) -> list[str]:
    chosen = run.chosen.find(source, target)
    return [
        f"its {side.name} was paired with {other.id(pair[f'{other.name}_row'])!r} "
        f"(margin {pair['score']:.4f})"
        for side, other, row in zip(run.sides, run.sides[::-1], (source, target), strict=True)
        for pair in chosen
        if pair[f"{side.name}_row"] == row
    ]


def describe(run: Run, why: Explanation) -> str:
    """Return the explanation for people, in lines."""
    cosine = "unknown" if why.cosine is None else f"{why.cosine:.4f}"
    margin = "none" if why.margin is None else f"{why.margin:.4f}"
    lines = [
        why.verdict,
        f"cosine {cosine}, margin {margin} ({run.options['margin']}), "
        f"means {why.source_mean:.4f} and {why.target_mean:.4f}",
    ]
    if judged := why.judged:
        lines.append(f"probability {judged['probability']:.3f}, score {judged['score']:.4f}")
        order = sorted(why.reasons.items(), key=lambda one: one[1])
        for about, sign, some in (("for", 1, order[::-1]), ("against", -1, order)):
            named = [f"{name} {value:+.2f}" for name, value in some[:SHOWN] if sign * value > 0]
            lines.append(f"{about}: {'; '.join(named) or 'nothing'}")
    rows = why.source, why.target
    ends = zip(run.sides, rows, (why.targets, why.sources), strict=True)
    for (side, row, listed), other, partner in zip(ends, run.sides[::-1], rows[::-1], strict=True):
        before, after = side.context(row)
        lines += ["", *([f"  before: {before}"] if before else [])]
        (ids,) = side.all_ids([row], None if why.line is None else [why.line])
        lines += [f"{ids[0]}  {side.text(row)}", *([f"  after: {after}"] if after else [])]
        lines.append("    cosine  margin")
        lines += [
            f"  {'*' if one.row == partner else ' '} {one.cosine:.4f}  {one.margin:.4f}  "
            f"{other.id(one.row)}  {other.text(one.row)}"
            for one in listed
        ]
    return "\n".join(lines)
