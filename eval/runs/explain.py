"""Explanations of why a pair was mined or was not."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from eval.runs.side import Side
from eval.runs.store import PairFile, Run
from miner.arrays import NO_NEIGHBOUR
from miner.choices import LINES, MONOTONE
from miner.judge.facts import facts_of, name_differences
from miner.judge.features import NeighbourhoodStats, RunStatistics, compute_features, read_texts
from miner.judge.model import bundled_judge
from miner.judge.network import words_without_counterpart
from miner.margin import margin_scores

SHOWN = 5  # features to list for a pair, and against it


class ListEntry(NamedTuple):
    """A neighbour's row on its side, cosine, and margin of the pair with it."""

    row: int
    cosine: float
    margin: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Facts that explain why a pair of rows was mined or was not.

    Attributes:
        source, target: rows of the sentences.
        targets, sources: neighbours of the source, and of the target, nearest first.
        source_mean, target_mean: neighbourhood means, with which margins are computed.
        cosine: cosine of the pair, None if neither sentence is a neighbour of the other.
        margin: margin of the pair, None if ``cosine`` is.
        line: the pair's first input line, from 0; None if not chosen or no lines were rated.
        judged: the pair's item of ``PairFile.find``; None if the judge did not score the pair.
        reasons: how much each feature raised the judge's score; empty if ``judged`` is None, as are
            ``contradictions`` and both lists of ``unmatched``.
        contradictions: pairs of English words that only one side says, "" for none, source first.
        unmatched: words of the source and of the target without a counterpart.
        verdict: one line of text on whether and why the pair was mined.
    """

    source: int
    target: int
    targets: list[ListEntry]
    sources: list[ListEntry]
    source_mean: float
    target_mean: float
    cosine: float | None
    margin: float | None
    line: int | None
    judged: Mapping[str, Any] | None
    reasons: Mapping[str, float] = field(default_factory=dict)
    contradictions: Sequence[tuple[str, str]] = ()
    unmatched: tuple[Sequence[str], Sequence[str]] = ((), ())
    verdict: str = ""


def explain(run: Run, source: int, target: int) -> Explanation:
    """Explain why the pair of a source and a target row was mined or not.

    Raises errors of ``run.word_encoders``, and ValueError if a file changed or a row has no vector.
    """
    source_mean, targets = _read_list(run, run.source, source, run.target)
    target_mean, sources = _read_list(run, run.target, target, run.source)
    hits = [neighbour for neighbour in targets if neighbour.row == target]
    hits += [neighbour for neighbour in sources if neighbour.row == source]
    judged = _find_pair(run.judged, source, target) or _find_pair(run.identical, source, target)
    why = Explanation(
        source=source,
        target=target,
        targets=targets,
        sources=sources,
        source_mean=source_mean,
        target_mean=target_mean,
        cosine=hits[0].cosine if hits else None,
        margin=hits[0].margin if hits else None,
        line=_line_of_pair(run, source, target),
        judged=judged,
    )
    why = _compare_words(run, why, judged) if judged else why
    return replace(why, verdict=_verdict(run, why))


def _line_of_pair(run: Run, source: int, target: int) -> int | None:
    if run.options.get("alignment") != LINES or not _find_pair(run.chosen, source, target):
        return None
    lines = run.lines(np.array([source]), np.array([target]))
    return None if lines is None else int(lines[0])


def _read_list(run: Run, side: Side, row: int, other: Side) -> tuple[float, list[ListEntry]]:
    (position,) = side.positions([row])
    if position < 0:
        raise ValueError(
            f"{side.path}: the {side.name} sentence {side.id(row)!r} has no vector, so it was not "
            "searched; pass another id"
        )
    mean, nearest = side.means_at([position]), side.neighbours_at([position])
    is_neighbour = nearest.ids[0] != NO_NEIGHBOUR
    if not is_neighbour.any():
        return float(mean[0]), []
    rows, cosines = nearest.ids[0, is_neighbour], nearest.cosines[0, is_neighbour]
    means = np.broadcast_to(mean, len(rows)), other.means_at(other.positions(rows))
    margins = margin_scores(cosines, *means, margin=run.options["margin"])
    columns = rows.tolist(), cosines.tolist(), margins.tolist()
    return float(mean[0]), [ListEntry(*values) for values in zip(*columns, strict=True)]


def _verdict(run: Run, why: Explanation) -> str:
    pair = why.source, why.target
    if mined := _find_pair(run.output, *pair):
        final = f"{run.score_name} {mined['score']:.4f}"
        line = "" if why.line is None else f"; line {why.line + 1}"
        return f"mined: pair {mined['place'] + 1} of {len(run.output)} by the {final}{line}"
    if _find_pair(run.identical, *pair):
        return "identical text: not written; add --keep-identical to write it"
    if rejected := _find_pair(run.rejected, *pair):
        return f"not mined: rejected by the filter {rejected['reason']}"
    if unwritten := _find_pair(run.chosen if run.judged is None else run.judged, *pair):
        return _explain_unwritten(run, unwritten)
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
        (side, max(neighbours, key=lambda neighbour: neighbour.margin))
        for side, neighbours in ((run.target, why.targets), (run.source, why.sources))
        if neighbours
    ]
    preferred = (f"{side.id(hit.row)!r} (margin {hit.margin:.4f})" for side, hit in best)
    return f"not mined: the best neighbours are {' and '.join(preferred)}"


def _explain_unwritten(run: Run, pair: Mapping[str, Any]) -> str:
    chosen = run.chosen if run.judged is None else run.judged
    rank = f"pair {pair['place'] + 1} of {len(chosen)} by the {run.score_name} {pair['score']:.4f}"
    if "probability" in pair:
        rank = f"probability {pair['probability']:.3f}, {rank}"
    if "near_copies" in run.summary and (run.pairs.score < pair["score"]).any():
        return f"not written: a better pair has nearly the same texts; {rank}"
    if len(run.output) == run.options.get("top"):
        return f"not written: not among the {len(run.output)} best; {rank}"
    return f"not written: {rank}"


def _compare_words(run: Run, why: Explanation, judged: Mapping[str, Any]) -> Explanation:
    is_merged = run.options.get("alignment") == MONOTONE
    columns = (np.array([judged[name]]) for name in ("cosine", "source_mean", "target_mean"))
    stats = None if is_merged else NeighbourhoodStats(*columns)
    saved = run.summary["usual"]
    required = {one.name for one in fields(RunStatistics) if one.default is MISSING}
    usual = RunStatistics(**{name: saved[name] for name in sorted({*required, *saved})})
    makers = run.word_encoders
    texts = [side.pair_texts([judged[f"{side.name}_row"]]) for side in run.sides]
    pairs = read_texts(makers, *texts, languages=run.languages, is_given=usual.is_given)
    features = compute_features(pairs, stats, usual)[0]
    reasons = bundled_judge(is_given=usual.is_given).feature_contributions(features)
    facts = facts_of(makers)
    source, target = (maker.words(side) for maker, side in zip(makers, texts, strict=True))
    has_words = len(source.ids) and len(target.ids)
    contradictions = name_differences(source, target, facts) if facts and has_words else []
    (unmatched,) = zip(*words_without_counterpart(makers, *texts), strict=True)
    return replace(why, reasons=reasons, contradictions=contradictions, unmatched=unmatched)


def _find_pair(pairs: PairFile | None, source: int, target: int) -> dict[str, Any] | None:
    pairs_of_rows = pairs.find(source, target) if pairs else ()
    rows = source, target
    return next((p for p in pairs_of_rows if (p["source_row"], p["target_row"]) == rows), None)


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
    """Format an explanation as lines of text, the verdict first.

    A repeated id or a changed file of the run raises ValueError.
    """
    cosine = "unknown" if why.cosine is None else f"{why.cosine:.4f}"
    margin = "none" if why.margin is None else f"{why.margin:.4f}"
    lines = [
        why.verdict,
        f"cosine {cosine}, margin {margin} ({run.options['margin']}), "
        f"neighbourhood means {why.source_mean:.4f} (source) and {why.target_mean:.4f} (target)",
    ]
    if judged := why.judged:
        lines.append(f"probability {judged['probability']:.3f}, score {judged['score']:.4f}")
        order = sorted(why.reasons.items(), key=lambda item: item[1])
        for heading, sign, ranked in (("for", 1, order[::-1]), ("against", -1, order)):
            parts = [f"{name} {value:+.2f}" for name, value in ranked[:SHOWN] if sign * value > 0]
            lines.append(f"log odds {heading} it: {'; '.join(parts) or 'nothing'}")
    if why.contradictions:
        both = (f"{one or 'nothing'} / {other or 'nothing'}" for one, other in why.contradictions)
        lines.append(f"contradictions: {'; '.join(both)}")
    if any(why.unmatched):
        both = (", ".join(words) or "none" for words in why.unmatched)
        lines.append(f"words without a counterpart: {' / '.join(both)}")
    rows = why.source, why.target
    ends = zip(run.sides, rows, (why.targets, why.sources), strict=True)
    for (side, row, hits), other, partner in zip(ends, run.sides[::-1], rows[::-1], strict=True):
        before, after = side.context(row)
        lines += ["", *([f"  before: {before}"] if before else [])]
        (ids,) = side.all_ids([row], None if why.line is None else [why.line])
        lines += [f"{ids[0]}  {side.text(row)}", *([f"  after: {after}"] if after else [])]
        lines.append("    cosine  margin")
        lines += [
            f"  {'*' if hit.row == partner else ' '} {hit.cosine:.4f}  {hit.margin:.4f}  "
            f"{other.id(hit.row)}  {other.text(hit.row)}"
            for hit in hits
        ]
    return "\n".join(lines)
