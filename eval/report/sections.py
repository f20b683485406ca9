"""The sections of a run's report, each as HTML."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from eval.report.charts import Chart
from eval.report.figures import decile_ranks, histogram, hubs, spread
from eval.report.overview import Quality
from eval.report.tables import context_table, folded, pair_table, table
from eval.runs.explain import explain
from eval.runs.gold import Gold
from eval.runs.store import Run
from miner.filters import FILTERS, length_odds
from miner.storage.layout import SIDES

TABLE_PAIRS = 60_000  # of more, the best are in the table; charts and counts are of all
DOTS = 2_000
SHOWN_FILTERS = (
    "short",
    "length",
    "copied",
    "numbers",
    "urls",
    "script",
    "hub",
)  # language needs an extra
EXAMPLES = 25


def counts_section(run: Run) -> str:
    """Show what was read, left out and searched on both sides, and how."""
    summary = run.summary
    rows = []
    for side in SIDES:
        counts = summary[side]
        left_out = {**counts["rejected"], **counts["dropped"]}
        rows.append(
            [
                f"{side}: {counts['path']}",
                f"{counts['read']:,}",
                ", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "0",
                f"{counts['duplicates']:,}",
                f"{counts['searched']:,}",
                f"{counts['recall']:.1%}" if "recall" in counts else "all",
            ]
        )
    options = ", ".join(
        f"{name} {'none' if run.options[name] is None else run.options[name]}"
        for name in ("k", "margin", "retrieval", "threshold", "index")
    )
    return (
        table(["side", "read", "left out", "repeated", "searched", "neighbours found"], rows)
        + f"<p><b>{summary['pairs']:,}</b> pairs of {summary['candidates']:,} candidates. "
        f"Encoder {escape(summary['encoder'])}; {escape(options)}; "
        f"Adit {escape(summary['version'])}.</p>"
    )


def about_scores(run: Run) -> str:
    """Explain what a score of the run says."""
    name = run.options["margin"]
    usual = 1 if name == "ratio" else 0
    margin = (
        f"A margin ({name}) above {usual} means that two sentences are nearer to each other than "
        "they are, on average, to their nearest neighbours."
    )
    if name == "absolute":
        margin = "The margin (absolute) is the cosine of the two sentences."
    if run.by_words:
        return (
            "A score is the log of how much likelier what is seen of a pair is in a right one than "
            f"in a wrong one. {margin}"
        )
    return f"Scores are margins. {margin}"


def scores_section(run: Run, gold: Gold | None, quality: Quality) -> str:
    """Draw a histogram of the scores; of the right pairs, too, and of the wrong ones expected."""
    scores = run.pairs.score
    low, high = spread(scores)
    counted = histogram(scores, low=low, high=high)
    edges = np.linspace(low, high, len(counted.counts) + 1)
    likely = quality.probabilities
    wrong = np.histogram(scores, edges, weights=None if likely is None else 1 - likely)[0]
    chart = Chart(
        title="Scores of the pairs",
        x=(low, high),
        y=(0, max(counted.counts)),
        labels=(run.score_name, "pairs (square root)"),
        scale=math.sqrt,
    )
    chart.bars(counted.counts, css="bar")
    if gold:
        right = histogram(scores[gold.judgements.correct], low=low, high=high)
        chart.bars(right.counts, css="bar right")
        chart.upright(gold.best.threshold, css="mark", label="best F1")
    if likely is not None:
        chart.line(list(zip((edges[:-1] + edges[1:]) / 2, wrong, strict=True)), css="line f")
    if (threshold := run.options["threshold"]) is not None:
        chart.upright(max(low, threshold), css="mark", label="threshold")
    quantiles = np.quantile(scores, (0.1, 0.5, 0.9)).tolist()
    return (
        '<p class="key"><i></i>pairs'
        + (' <i class="r"></i>known to be right' if gold else "")
        + (
            ' <i class="f"></i>expected to be wrong, by their probabilities'
            if likely is not None
            else ""
        )
        + f"</p><figure>{chart.svg()}</figure>"
        f"<p>A tenth of the pairs score below {quantiles[0]:.4f}, half below {quantiles[1]:.4f}, "
        f"nine tenths below {quantiles[2]:.4f}.</p>"
    )


def lengths_section(run: Run) -> str:
    """Draw a dot for each of up to ``DOTS`` pairs."""
    places = np.linspace(0, len(run.pairs) - 1, min(DOTS, len(run.pairs))).astype(int).tolist()
    lengths = [
        (float(len(source)), float(len(target))) for source, target in zip(*run.texts, strict=True)
    ]
    most = [max(1.0, max(length[side] for length in lengths)) for side in (0, 1)]
    chart = Chart(
        title="Characters of sources and targets",
        x=(0, most[0]),
        y=(0, most[1]),
        labels=("characters of the source", "of the target"),
    )
    chart.dots([lengths[place] for place in places], css="dot")
    ratios = np.array([(source + 1) / (target + 1) for source, target in lengths])
    return (
        f"<figure>{chart.svg()}</figure><p>{len(places):,} of {len(lengths):,} pairs. The source "
        f"has {float(np.median(ratios)):.2f} times the characters of the target in the median.</p>"
    )


def suspicious_section(run: Run) -> str:
    """Count what each filter would reject, and list what most would reject of the better half."""
    caught = {name: FILTERS[name](run.suspects) for name in SHOWN_FILTERS}
    half = (len(run.pairs) + 1) // 2
    rows = [
        [name, f"{int(mask.sum()):,}", f"{int(mask[:half].sum()):,}"]
        for name, mask in caught.items()
    ]
    reasons = np.sum([mask[:half] for mask in caught.values()], axis=0)
    order = np.lexsort((np.arange(half), -length_odds(run.suspects)[:half], -reasons))[:EXAMPLES]
    return (
        _rejected(run)
        + table(["filter", "would reject of all pairs", "of the better half"], rows)
        + folded(
            "Pairs of the better half that most filters would reject, then those whose lengths "
            "agree least",
            pair_table(run, order.tolist()),
        )
    )


def _rejected(run: Run) -> str:
    """Show what the run's own filters rejected."""
    if run.rejected is None:
        return ""
    counts = ", ".join(f"{name} {count:,}" for name, count in run.summary["filters"].items())
    best = run.rejected.best(EXAMPLES)
    sides = (run.source, run.target)
    texts = (side.pair_texts(best[f"{side.name}_row"].to_numpy()) for side in sides)
    scores = [f"{score:.4f}" for score in best["score"].to_pylist()]
    rows = [list(row) for row in zip(*texts, scores, best["reason"].to_pylist(), strict=True)]
    heads = ["source", "target", run.score_name, "reason"]
    return (
        f"<p>The run's filters rejected <b>{len(run.rejected):,}</b> pairs "
        f"({escape(counts) or 'none'}), which are not among those below.</p>"
        + folded("The best of them", table(heads, rows, texts=2))
    )


def hubs_section(run: Run) -> str:
    """List the sentences in most neighbour lists."""
    rows = []
    for name, side, lists in (
        ("source", run.source, run.lists[0]),
        ("target", run.target, run.lists[1]),
    ):
        for row, count in hubs(lists, most=10):
            rows.append([side.text(row), name, f"{count:,}", side.id(row)])
    return folded(
        "The ten of each side", table(["sentence", "side", "in lists", "id"], rows, texts=1)
    )


def examples_section(run: Run) -> str:
    """Show a pair from the middle of each tenth, and all that its source was near to."""
    parts = []
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
        parts.append(
            f'<h3 dir="auto">{escape(run.source.text(source))}</h3><p>Pair {place + 1:,}, score '
            f"{float(run.pairs.score[place]):.4f}, means {why.source_mean:.4f} and "
            f"{why.target_mean:.4f}</p>"
            + context_table(run, source, target)
            + table(["nearest targets", "cosine", "margin", ""], rows, texts=1)
        )
    return folded("Ten pairs", "".join(parts))


def pairs_section(run: Run, *, has_chances: bool) -> str:
    """Return the frame of the table that the page's script fills."""
    count = min(TABLE_PAIRS, len(run.pairs))
    whole = "All" if count == len(run.pairs) else f"Of {len(run.pairs):,} the best"
    likely = (
        '<label>Probability from <input id="likely" type="number" min="0" max="1" step="any">'
        "</label>"
        if has_chances
        else ""
    )
    return (
        '<form id="filter"><label>Text, id or document <input id="words" type="search"></label>'
        f'<label>{escape(run.score_name.capitalize())} from <input id="least" type="number" '
        'step="any"></label><label>to <input id="most" type="number" step="any"></label>'
        f'{likely}<label>Marked <select id="marked"><option value="">any or none</option>'
        '<option value="none">not yet</option><option>right</option><option>wrong</option>'
        '</select></label></form><div class="bar-of-tools">'
        '<button id="sample" type="button">Sample 50 at random</button>'
        '<button id="all" type="button" hidden>Show all again</button>'
        '<button id="undo" type="button">Undo</button>'
        '<button id="export" type="button">Export marks</button></div>'
        '<p class="note"><span id="judged" role="status"></span> <span id="kept"></span></p>'
        '<p class="note keys">Keys: <kbd>r</kbd> right, <kbd>w</kbd> wrong, the same again takes '
        "the mark away, <kbd>u</kbd> undo, <kbd>j</kbd> <kbd>k</kbd> next and previous pair, "
        "<kbd>n</kbd> <kbd>p</kbd> next and previous page, <kbd>o</kbd> open.</p>"
        f"<p>{whole} {count:,} pairs. "
        '<span id="shown" role="status">The table needs JavaScript.</span></p>'
        '<div class="scroll"><table id="pairs" class="texts">'
        "<thead></thead><tbody></tbody></table></div>"
        '<p class="pages"><button id="back" type="button">Back</button> '
        '<button id="on" type="button">On</button></p>'
    )
