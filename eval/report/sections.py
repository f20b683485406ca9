"""The contents of the sections of a run's report; the page's template lays them out."""

import math
from typing import Any

import numpy as np

from eval.report.charts import Chart
from eval.report.figures import decile_ranks, histogram, hubs, spread
from eval.report.overview import Quality
from eval.report.tables import Grid, context_table, pair_table
from eval.runs.explain import explain
from eval.runs.gold import Gold
from eval.runs.store import Run
from miner.filters import FILTERS, length_odds
from miner.storage.layout import SIDES

DOTS = 2_000
SHOWN_FILTERS = ("short", "length", "copied", "numbers", "urls", "script", "hub")  # without extras
EXAMPLES = 25


def counts(run: Run) -> Grid:
    """Return what was read, left out and searched on both sides."""
    rows = []
    for side in SIDES:
        counted = run.summary[side]
        left_out = {**counted["rejected"], **counted["dropped"]}
        rows.append(
            [
                f"{side}: {counted['path']}",
                f"{counted['read']:,}",
                ", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "0",
                f"{counted['duplicates']:,}",
                f"{counted['searched']:,}",
                f"{counted['recall']:.1%}" if "recall" in counted else "all",
            ]
        )
    return Grid(["side", "read", "left out", "repeated", "searched", "neighbours found"], rows)


def scores(run: Run, gold: Gold | None, quality: Quality) -> dict[str, Any]:
    """Return a histogram of the scores; of the right pairs, too, and of the wrong ones expected."""
    found = run.pairs.score
    low, high = spread(found)
    counted = histogram(found, low=low, high=high)
    bars, lines, uprights = [("bar", counted)], [], []
    if gold:
        right = histogram(found[gold.judgements.correct], low=low, high=high)
        bars.append(("bar right", right))
        uprights.append((gold.best.threshold, "best F1"))
    if quality.estimates:
        edges = np.linspace(low, high, len(counted) + 1)
        wrong, _ = np.histogram(found, edges, weights=1 - quality.estimates.probabilities)
        lines.append(("line f", list(zip((edges[:-1] + edges[1:]) / 2, wrong, strict=True))))
    if (threshold := run.options["threshold"]) is not None:
        uprights.append((max(low, threshold), "threshold"))
    chart = Chart(
        title="Scores of the pairs",
        x=(low, high),
        y=(0, max(counted)),
        labels=(run.score_name, "pairs (square root)"),
        scale=math.sqrt,
        bars=bars,
        lines=lines,
        uprights=uprights,
    )
    return {"chart": chart, "quantiles": np.quantile(found, (0.1, 0.5, 0.9)).tolist()}


def lengths(run: Run) -> dict[str, Any]:
    """Return a dot for each of up to ``DOTS`` pairs, and the median ratio of characters."""
    places = np.linspace(0, len(run.pairs) - 1, min(DOTS, len(run.pairs))).astype(int).tolist()
    both = [
        (float(len(source)), float(len(target))) for source, target in zip(*run.texts, strict=True)
    ]
    most = [max(1.0, max(length[side] for length in both)) for side in (0, 1)]
    chart = Chart(
        title="Characters of sources and targets",
        x=(0, most[0]),
        y=(0, most[1]),
        labels=("characters of the source", "of the target"),
        dots=[both[place] for place in places],
    )
    ratios = np.array([(source + 1) / (target + 1) for source, target in both])
    return {"chart": chart, "ratio": float(np.median(ratios))}


def suspicious(run: Run) -> dict[str, Grid]:
    """Count what each filter would reject, and list what most would reject of the better half.

    ``rejected`` are the best pairs that the run's own filters rejected, if it had any.
    """
    caught = {name: FILTERS[name](run.suspects) for name in SHOWN_FILTERS}
    half = (len(run.pairs) + 1) // 2
    rows = [
        [name, f"{int(mask.sum()):,}", f"{int(mask[:half].sum()):,}"]
        for name, mask in caught.items()
    ]
    reasons = np.sum([mask[:half] for mask in caught.values()], axis=0)
    order = np.lexsort((np.arange(half), -length_odds(run.suspects)[:half], -reasons))[:EXAMPLES]
    found = {
        "caught": Grid(["filter", "would reject of all pairs", "of the better half"], rows),
        "listed": pair_table(run, order.tolist()),
    }
    if run.rejected is not None:
        best = run.rejected.best(EXAMPLES)
        sides = (run.source, run.target)
        texts = (side.pair_texts(best[f"{side.name}_row"].to_numpy()) for side in sides)
        margins = [f"{score:.4f}" for score in best["score"].to_pylist()]
        listed = list(zip(*texts, margins, best["reason"].to_pylist(), strict=True))
        heads = ["source", "target", run.score_name, "reason"]
        found["rejected"] = Grid(heads, listed, texts=2)
    return found


def hubs_of(run: Run) -> Grid:
    """Return the sentences in most neighbour lists."""
    rows = [
        [side.text(row), side.name, f"{count:,}", side.id(row)]
        for side, lists in zip((run.source, run.target), run.lists, strict=True)
        for row, count in hubs(lists, most=10)
    ]
    return Grid(["sentence", "side", "in lists", "id"], rows, texts=1)


def examples(run: Run) -> list[dict[str, Any]]:
    """Return a pair from the middle of each tenth, and all that its source was near to."""
    found = []
    for place in decile_ranks(len(run.pairs)):
        source, target = int(run.pairs.source[place]), int(run.pairs.target[place])
        why = explain(run, source, target)
        rows = [
            [
                run.target.text(one.row),
                f"{one.cosine:.4f}",
                f"{one.margin:.4f}",
                "chosen" if one.row == target else "",
            ]
            for one in why.targets
        ]
        found.append(
            {
                "text": run.source.text(source),
                "place": place,
                "score": float(run.pairs.score[place]),
                "why": why,
                "context": context_table(run, source, target),
                "targets": Grid(["nearest targets", "cosine", "margin", ""], rows, texts=1),
            }
        )
    return found
