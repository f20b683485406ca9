"""The report of a run as one self-contained page of HTML."""

import base64
import gzip
import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from itertools import chain, count
from typing import Any

import numpy as np
from markupsafe import Markup

from eval.output import load_template
from eval.report import sections
from eval.report.sections import Quality
from eval.runs.calibration import Gold
from eval.runs.side import Side
from eval.runs.store import Run
from miner.arrays import FloatArray, IntArray, JudgedPairs
from miner.judge.network import WordFlags, unmatched_words
from miner.storage.layout import SIDES

TABLE_PAIRS = 60_000  # best pairs in the table; charts and counts use all pairs

Columns = dict[str, object]


def render(run: Run, gold: Gold | None = None) -> str:
    """Return the HTML page about a run, compared with ``gold`` if not None.

    Errors of ``explain`` are raised, because the page explains some pairs.

    Raises:
        ValueError: The run wrote no pairs, its files changed, or an id is repeated.
    """
    if not len(run.pairs):
        raise ValueError(
            f"{run.directory}: the run wrote no pairs to report; rerun its command with --all, "
            "without --threshold, --fdr and --filters"
        )
    quality = sections.assess(run)
    return load_template("report.html").render(
        title=" and ".join(_corpora(run.summary)),
        run=run,
        gold=gold,
        quality=quality,
        shown=min(TABLE_PAIRS, len(run.pairs)),
        sections=sections,
        style=_asset("report.css"),
        script=_asset("report.js"),
        data=_pack(_columns(run, gold, quality)),
    )


def _corpora(summary: Mapping[str, Any]) -> list[str]:
    options = tomllib.loads(summary.get("config", ""))
    paths = [summary[side]["path"] for side in SIDES]
    if "source" in options and "target" not in options:  # adit rate PAIRS
        paths = [options["source"]]
    return [str(path).rpartition("/")[2] for path in paths]


def _asset(name: str) -> Markup:
    return Markup(files("eval").joinpath("assets", name).read_text(encoding="utf-8"))


def _columns(run: Run, gold: Gold | None, quality: Quality) -> Columns:
    shown = run.pairs.take(np.arange(min(TABLE_PAIRS, len(run.pairs))))
    probabilities = quality.estimates.probabilities if quality.estimates else None
    of_sides: Columns = {}
    rows = shown.source, shown.target
    all_of_sides = zip(run.sides, rows, run.pair_ids(shown), run.texts, run.docs, strict=True)
    for side, side_rows, pair_ids, *columns in all_of_sides:
        texts, docs = (column[: len(shown)] for column in columns)
        of_sides[side.name] = texts
        of_sides[f"{side.name}_id"] = [" ".join(ids) for ids in pair_ids]
        of_sides[f"{side.name}_doc"] = docs if any(docs) else None
        of_sides |= _context(side, side_rows, texts) if any(docs) else {}
    of_sides |= _unmatched(run, len(shown))
    return {
        "score": shown.score.tolist(),  # in full: thresholds are compared with it
        "score_name": run.score_name,
        "margin": _rounded(shown.margin) if isinstance(shown, JudgedPairs) else None,
        "cosine": _rounded(shown.cosine.astype(np.float64)),
        "source_mean": _rounded(shown.source_mean),
        "target_mean": _rounded(shown.target_mean),
        "rank": shown.rank.tolist(),
        "chance": None if probabilities is None else _rounded(probabilities[: len(shown)]),
        "right": gold.judgements.correct[: len(shown)].astype(int).tolist() if gold else None,
        **of_sides,
    }


def _context(side: Side, rows: IntArray, texts: list[str]) -> Columns:
    # A position refers to ``texts`` or, beyond its length, to ``SIDE_others``; -1 to none.
    positions = {text: position for position, text in reversed([*enumerate(texts)])} | {"": -1}
    both = side.pair_contexts(rows)
    others = [text for text in dict.fromkeys(chain(*both)) if text not in positions]
    positions |= zip(others, count(len(texts)))
    before, after = ([positions[text] for text in neighbours] for neighbours in both)
    columns = {"others": others, "before": before, "after": after}
    return {f"{side.name}_{name}": column for name, column in columns.items()}


def _unmatched(run: Run, shown: int) -> Columns:
    # Per pair, where words without a counterpart begin and end in each text.
    try:
        makers = run.word_encoders if run.judged is not None else ()
    except (ValueError, ModuleNotFoundError):  # without the run's encoder, nothing is marked
        makers = ()
    if not makers:
        return {}
    texts = [side[:shown] for side in run.texts]
    words = zip(*unmatched_words(makers, *texts), strict=True)
    return {
        f"{side}_unmatched": [spans_of(text, own) for text, own in zip(column, flags, strict=True)]
        for side, column, flags in zip(SIDES, texts, words, strict=True)
    }


def spans_of(text: str, words: WordFlags) -> list[int]:
    """Find where ``text`` has words without a counterpart on the other side.

    ``words`` are all words of the text, from ``unmatched_words``. The result has starts and ends by
    turns. Words not in the text are omitted, and all if lower case changes its length.
    """
    lower, end, ends = text.lower(), 0, []
    if len(lower) != len(text):
        return []
    for word, alone in words:
        if word and (start := lower.find(word.lower(), end)) >= 0:
            end = start + len(word)
            ends += [start, end] if alone else []
    return ends


def _rounded(values: FloatArray) -> list[float]:
    rounded: list[float] = np.round(values, 4).tolist()
    return rounded


def _pack(columns: Columns) -> str:
    # A browser unpacks gzip and base64 faster than it would parse the plain data.
    text = json.dumps(columns, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = gzip.compress(text.encode("utf-8", errors="replace"), compresslevel=6, mtime=0)
    return base64.b64encode(packed).decode()
