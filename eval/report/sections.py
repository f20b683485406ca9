"""Sections of the report of a run that wrote pairs, for its template."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from eval.report.charts import Chart, decile_ranks, gold_curve, histogram, hubs, spread
from eval.runs.calibration import Estimates, Gold, estimates_from_judge, thresholds
from eval.runs.explain import explain
from eval.runs.side import Side
from eval.runs.store import Run
from miner.arrays import IntArray, JudgedPairs
from miner.filters import FILTERS, length_odds
from miner.storage.layout import SIDES

Section = dict[str, Any]
Documents = tuple[str, str]

DRAWN = 10  # rejected pairs to read per reason
MAX_REASONS = 12  # combinations of filters that are shown
LISTED = 50  # wrong pairs, missing pairs, and document pairs to list
MAX_DOTS = 2_000
# The filters that need no optional dependencies.
SHOWN_FILTERS = ("short", "length", "copied", "numbers", "urls", "script", "hub")
EXAMPLES = 25  # suspicious or rejected pairs to list


class Grid(NamedTuple):
    """A table of text, with ``heads`` and ``rows`` of cells.

    The first ``texts`` columns are sentences, which may run from right to left.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 0


def pair_table(run: Run, positions: Sequence[int]) -> Grid:
    """Tabulate the texts, scores and ids of the pairs at ``positions``."""
    pairs = run.pairs.take(np.array(positions, dtype=np.int64))
    scores = {run.score_name: pairs.score}
    if isinstance(pairs, JudgedPairs):
        scores["margin"] = pairs.margin
    both_ids = zip(*run.pair_ids(pairs), strict=True)
    ids = ("\n".join([*source_ids, *target_ids]) for source_ids, target_ids in both_ids)
    columns = *run.both(Side.pair_texts, pairs), *map(_four_digits, scores.values()), ids
    return Grid(["source", "target", *scores, "ids"], list(zip(*columns, strict=True)), texts=2)


def _four_digits(numbers: Iterable[float]) -> list[str]:
    return [f"{number:.4f}" for number in numbers]


def context_table(run: Run, source: int, target: int) -> Grid:
    """Tabulate a pair of rows with the sentences around it, empty if unknown."""
    sides = list(zip(run.sides, (source, target), strict=True))
    before, after = zip(*(side.context(row) for side, row in sides), strict=True)
    texts = [side.text(row) for side, row in sides]
    rows = [(*before, "before"), (*texts, "pair"), (*after, "after")]
    heads = ["source", "target", "in its documents"]
    return Grid(heads, rows if any(before + after) else [], texts=2)


class Quality(NamedTuple):
    """Estimates of a run's pairs and their method, or None and the reason."""

    estimates: Estimates | None
    how: str


def assess(run: Run) -> Quality:
    """Return the judge's estimates, or None and the message of a ValueError."""
    try:
        return Quality(estimates_from_judge(run), "by the probability of each pair")
    except ValueError as error:
        why = str(error).removeprefix(f"{run.directory}: ")
        return Quality(None, f"No estimate: {why}")


def overview(run: Run, quality: Quality) -> Section:
    """Return the page's overview of a run, for the template.

    Keys are ``cards``, ``thresholds`` and ``documents``. A card is a heading, a figure and a
    remark. Thresholds are the rows of ``calibration.thresholds`` that keep pairs, none without
    estimates. Documents are None if no pair has one. Else they are the number of document pairs,
    and up to 50 of them, most pairs first: names, pairs and correct pairs (estimated, or else all).
    """
    estimates, kept = quality.estimates, run.summary.get("kept")
    note = f"of {run.summary['candidates']:,} candidates"
    if kept is not None and kept["judged"] != kept["pairs"]:
        others = "; --all also writes the others" if kept["by"] == "probability" else " judged"
        note = f"of {kept['judged']:,}{others}"
    error_rate = ("not known", "see below")
    if estimates:
        error_rate = f"{1 - float(estimates.probabilities.mean()):.1%}", quality.how
    cards = [("pairs", f"{run.summary['pairs']:,}", note), ("estimated error rate", *error_rate)]
    for name in SIDES:
        counts = run.summary[name]
        cards.append((f"{name} sentences", f"{counts['searched']:,}", _language(counts)))
    selected = [row for row in thresholds(estimates) if row[2]] if estimates else []
    return {"cards": cards, "thresholds": selected, "documents": _documents(run, estimates)}


def _language(counts: dict[str, object]) -> str:
    counted = counts.get("language")
    if not isinstance(counted, dict) or not (name := counted["given"] or counted["decided"]):
        return "unknown language"
    share = counted["share"]
    return f"in {name}" if counted["given"] or share is None else f"in {name} ({share:.0%} of them)"


def _documents(run: Run, estimates: Estimates | None) -> tuple[int, list[Any]] | None:
    # The number of document pairs, and of the largest their pairs and expected correct pairs.
    docs = list(zip(*run.docs, strict=True))
    if not any(map(any, docs)):
        return None
    probabilities = np.ones(len(docs)) if estimates is None else estimates.probabilities
    counts: dict[Documents, tuple[int, float]] = {}
    for documents, probability in zip(docs, probabilities.tolist(), strict=True):
        pairs, correct = counts.get(documents, (0, 0.0))
        counts[documents] = pairs + 1, correct + probability
    return len(counts), sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))[:LISTED]


def against_gold(run: Run, gold: Gold) -> Section:
    """Return the page's comparison with gold pairs, for the template.

    Keys are ``charts``, ``wrong`` and ``missing``. By the threshold with the best F1, ``wrong``
    tabulates up to 50 of the best wrong pairs, and ``missing`` 50 of the missing pairs, by ids.
    Errors of ``Run.all_ids`` are raised, and of ``explain`` all but ValueError.
    """
    curve = gold_curve(gold.judgements)
    by_threshold = Chart(
        title="Precision, recall and F1 against the threshold",
        x=spread(run.pairs.score),
        labels=(f"threshold of the {run.score_name}", ""),
        lines=[
            ("line p", [(score.threshold, score.precision) for score in curve]),
            ("line r", [(score.threshold, score.recall) for score in curve]),
            ("line f", [(score.threshold, score.f1) for score in curve]),
        ],
        uprights=_best_threshold(gold),
    )
    both = Chart(
        title="Precision against recall",
        labels=("recall", "precision"),
        lines=[("line f", [(score.recall, score.precision) for score in curve])],
    )
    correct = gold.judgements.correct[: gold.best.extracted]
    return {
        "charts": [by_threshold, both],
        "wrong": pair_table(run, np.flatnonzero(~correct)[:LISTED].tolist()),
        "missing": _missing(run, gold, np.flatnonzero(correct)),
    }


def _best_threshold(gold: Gold) -> list[tuple[float, str]]:
    # It is infinite if no pair is correct.
    return [(gold.best.threshold, "best F1")] if gold.best.correct else []


def _missing(run: Run, gold: Gold, extracted: IntArray) -> Grid:
    both = run.all_ids(run.pairs.take(extracted))
    mined_ids = {pair for ids in zip(*both, strict=True) for pair in itertools.product(*ids)}
    missing = sorted(gold.known - mined_ids)[:LISTED]
    columns = zip(run.sides, zip(*missing, strict=True), strict=False)
    rows_of_ids = [side.rows_of(ids) for side, ids in columns]
    rows = []
    for names, source, target in zip(missing, *rows_of_ids, strict=True):
        if source is None or target is None:
            rows.append([*names, "", "", "not among the sentences of the run"])
            continue
        margin = ""
        try:
            why = explain(run, source, target)
        except ValueError as error:  # one of them has no vector
            verdict = f"not mined: {error}"
        else:
            margin, verdict = "" if why.margin is None else f"{why.margin:.4f}", why.verdict
        texts = run.source.text(source), run.target.text(target)
        rows.append([*texts, "\n".join(names), margin, verdict])
    return Grid(["source", "target", "ids", "margin", "why"], rows, texts=2)


def counts(run: Run) -> Grid:
    """Tabulate both sides' counts of records, and the recall of their search."""
    rows = []
    for side in SIDES:
        counted = run.summary[side]
        rejected = {**counted["rejected"], **counted["dropped"]}
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejected.items()) or "0"
        read, *others = (f"{counted[name]:,}" for name in ("read", "duplicates", "searched"))
        recall = f"{counted['recall']:.1%}" if "recall" in counted else "all"
        rows.append([f"{side}: {counted['path']}", read, reasons, *others, recall])
    return Grid(["side", "read", "rejected", "duplicates", "searched", "recall"], rows)


def scores(run: Run, gold: Gold | None, quality: Quality) -> Section:
    """Return the page's chart of scores, for the template.

    Keys are ``chart`` and ``quantiles``, the quantiles 0.1, 0.5 and 0.9 of scores. The chart also
    shows correct pairs if ``gold`` is not None, and expected errors if the quality is estimated.
    """
    values = run.pairs.score
    low, high = spread(values)
    bars_of_all = histogram(values, low=low, high=high)
    bars, lines, uprights = [("bar", bars_of_all)], [], []
    if gold:
        correct = histogram(values[gold.judgements.correct], low=low, high=high)
        bars.append(("bar right", correct))
        uprights += _best_threshold(gold)
    if quality.estimates:
        edges = np.linspace(low, high, len(bars_of_all) + 1)
        errors, _ = np.histogram(values, edges, weights=1 - quality.estimates.probabilities)
        lines.append(("line f", list(zip((edges[:-1] + edges[1:]) / 2, errors, strict=True))))
    if (threshold := run.options["threshold"]) is not None:
        uprights.append((max(low, threshold), "threshold"))
    chart = Chart(
        title="Scores of the pairs",
        x=(low, high),
        y=(0, max(bars_of_all)),
        labels=(run.score_name, "pairs (square root)"),
        scale=math.sqrt,
        bars=bars,
        lines=lines,
        uprights=uprights,
    )
    return {"chart": chart, "quantiles": np.quantile(values, (0.1, 0.5, 0.9)).tolist()}


def lengths(run: Run) -> Section:
    """Return the page's chart of the lengths of texts, for the template.

    Keys are ``chart``, and ``ratio``, the median ratio of source to target characters, each plus 1.
    """
    positions = np.linspace(0, len(run.pairs) - 1, min(MAX_DOTS, len(run.pairs))).astype(int)
    sizes = np.array([[len(text) for text in side] for side in run.texts], dtype=np.float64)
    longest = sizes.max(axis=1, initial=1.0).tolist()
    chart = Chart(
        title="Characters of sources and targets",
        x=(0, longest[0]),
        y=(0, longest[1]),
        labels=("characters of the source", "of the target"),
        dots=sizes[:, positions].T.tolist(),
    )
    return {"chart": chart, "ratio": float(np.median((sizes[0] + 1) / (sizes[1] + 1)))}


def suspicious(run: Run) -> dict[str, Grid]:
    """Return tables of filters and of the pairs that they would reject.

    ``caught`` counts them by filter. ``listed`` has up to 25 pairs of the half with better scores,
    by descending number of filters that reject a pair (maybe 0), then by ``length_odds``.
    """
    masks = {name: FILTERS[name](run.suspects) for name in SHOWN_FILTERS}
    half = (len(run.pairs) + 1) // 2
    rows = [[name, f"{mask.sum():,}", f"{mask[:half].sum():,}"] for name, mask in masks.items()]
    reasons = np.sum([mask[:half] for mask in masks.values()], axis=0)
    order = np.lexsort((np.arange(half), -length_odds(run.suspects)[:half], -reasons))[:EXAMPLES]
    return {
        "caught": Grid(["filter", "would reject of all pairs", "of the better half"], rows),
        "listed": pair_table(run, order.tolist()),
    }


def rejected(run: Run) -> list[tuple[str, int, Grid]]:
    """Return samples of rejected pairs by reason, most frequent reasons first.

    Up to 12 reasons, none without filters, each have a count and a table of up to 10 of the pairs.
    """
    if run.rejected is None:
        return []
    samples = []
    for reason, (count, table) in run.rejected.by_reason(DRAWN).items():
        texts = (side.pair_texts(table[f"{side.name}_row"].to_numpy()) for side in run.sides)
        columns = *texts, _four_digits(table["score"].to_pylist())
        heads = ["source", "target", run.score_name]
        samples.append((reason, count, Grid(heads, list(zip(*columns, strict=True)), texts=2)))
    return sorted(samples, key=lambda sample: -sample[1])[:MAX_REASONS]


def hubs_of(run: Run) -> Grid:
    """Tabulate the (up to 10) sentences per side in the most neighbour lists."""
    rows = [
        [side.text(row), side.name, f"{count:,}", side.id(row)]
        for side, lists in zip(run.sides, run.lists, strict=True)
        for row, count in hubs(lists, most=10)
    ]
    return Grid(["sentence", "side", "in lists", "id"], rows, texts=1)


def examples(run: Run) -> Iterator[Section]:
    """Yield the middle pair of each tenth, best first, for the template.

    Fewer than 10 pairs come once each. Keys are ``text`` (source), ``place`` (from 0), ``score``,
    ``why`` (of ``explain``, whose errors are raised), and the tables ``context`` and ``targets``.
    """
    for position in decile_ranks(len(run.pairs)):
        source, target = int(run.pairs.source[position]), int(run.pairs.target[position])
        why = explain(run, source, target)
        texts = run.target.texts([neighbour.row for neighbour in why.targets])
        rows = [
            [text, f"{cosine:.4f}", f"{margin:.4f}", "chosen" if row == target else ""]
            for text, (row, cosine, margin) in zip(texts, why.targets, strict=True)
        ]
        yield {
            "text": run.source.text(source),
            "place": position,
            "score": float(run.pairs.score[position]),
            "why": why,
            "context": context_table(run, source, target),
            "targets": Grid(["nearest targets", "cosine", "margin", ""], rows, texts=1),
        }
