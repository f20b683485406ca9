"""The report of a mining run: one page of HTML that needs nothing else, to be read in a browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html import escape
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from eval.report import sections
from eval.report.gold import against_gold_section
from eval.report.overview import Quality, assess, overview_section
from eval.report.sections import TABLE_PAIRS
from eval.runs.gold import Gold
from eval.runs.side import Side
from eval.runs.store import Run
from miner.arrays import JudgedPairs
from miner.storage.layout import SIDES


def render(run: Run, *, gold: Gold | None = None) -> str:
    """Return the whole page.

    Args:
        run: what it is about.
        gold: the known pairs, if there are any.

    Raises:
        ValueError: the run has no pair to show.
    """
    if not len(run.pairs):
        raise ValueError(f"{run.directory}: the run chose no pair; there is nothing to report")
    quality = assess(run)
    parts = _sections(run, gold, quality)
    links = " ".join(
        f'<a href="#s{at}">{escape(title)}</a>' for at, (title, *_) in enumerate(parts)
    )
    body = f"<nav>{links}</nav>" + "".join(
        f'<section><h2 id="s{at}">{escape(title)}</h2><p>{about}</p>{html}</section>'
        for at, (title, about, html) in enumerate(parts)
    )
    title = " and ".join(str(run.summary[side]["path"]).rpartition("/")[2] for side in SIDES)
    filled = {
        "TITLE": escape(title),
        "RUN": run.digest,
        "STYLE": _asset("report.css"),
        "SCRIPT": _asset("report.js"),
        "DATA": _packed(_columns(run, gold, quality)),
        "BODY": body,
    }
    # In one pass: what is filled in is not looked at again.
    return re.sub("<!--([A-Z]+)-->", lambda place: filled[place[1]], _asset("report.html"))


def _asset(name: str) -> str:
    return files("eval").joinpath("assets", name).read_text(encoding="utf-8")


def _sections(run: Run, gold: Gold | None, quality: Quality) -> list[tuple[str, str, str]]:
    """Return the title of each section, what a reader has to know of it, and the section."""
    parts = [
        (
            "At a glance",
            "How many pairs there are, and how many of them are wrong, as far as can be estimated.",
            overview_section(run, quality),
        ),
        (
            "Pairs",
            f"Ordered by {run.score_name}; a heading sorts, a row opens. Mark pairs as right or "
            "wrong: <code>adit calibrate --known</code> learns from the "
            "exported marks. To judge the whole, mark a random sample.",
            sections.pairs_section(run, has_chances=quality.probabilities is not None),
        ),
        (
            "Counts",
            "What was read, left out and searched on both sides.",
            sections.counts_section(run),
        ),
        ("Scores", sections.about_scores(run), sections.scores_section(run, gold, quality)),
    ]
    if gold is not None:
        about = (
            "Precision is the share of right pairs among those above a threshold, recall the share "
            "of the known pairs that are found, F1 their harmonic mean. A right pair that is not "
            "among the known ones counts as wrong."
        )
        parts.append(("Compared with known pairs", about, against_gold_section(run, gold)))
    return [
        *parts,
        (
            "Lengths",
            "A dot is a pair. Translations have similar lengths: dots far from the others are "
            "suspicious.",
            sections.lengths_section(run),
        ),
        (
            "Suspicious pairs",
            "How many pairs each of the filters of <code>--filters</code> would reject, and the "
            "pairs to check first.",
            sections.suspicious_section(run),
        ),
        (
            "Hubs",
            "Sentences that are among the nearest neighbours of the most sentences of the other "
            "side. They often match nothing in particular.",
            sections.hubs_section(run),
        ),
        (
            "Examples from best to worst",
            "A pair from the middle of each tenth, with all that its source was compared with.",
            sections.examples_section(run),
        ),
    ]


def _columns(run: Run, gold: Gold | None, quality: Quality) -> dict[str, object]:
    """Return what the table shows, by column; None for those that it has not."""
    shown = run.pairs.take(np.arange(min(TABLE_PAIRS, len(run.pairs))))
    sources, targets = (texts[: len(shown)] for texts in run.texts)
    docs = [documents[: len(shown)] for documents in run.docs]
    chances = quality.probabilities
    around: dict[str, object] = {}
    for side, rows, texts, own in (
        (run.source, shown.source, sources, docs[0]),
        (run.target, shown.target, targets, docs[1]),
    ):
        if any(own):
            around |= _context(side, rows, texts)
    return {
        "score": _rounded(shown.score),
        "score_name": run.score_name,
        "margin": _rounded(shown.margin) if isinstance(shown, JudgedPairs) else None,
        "cosine": _rounded(shown.cosine.astype(np.float64)),
        "source_mean": _rounded(shown.source_mean),
        "target_mean": _rounded(shown.target_mean),
        "rank": shown.rank.tolist(),
        "source": sources,
        "target": targets,
        "source_id": [" ".join(ids) for ids in run.source.pair_ids(shown.source)],
        "target_id": [" ".join(ids) for ids in run.target.pair_ids(shown.target)],
        "source_doc": docs[0] if any(docs[0]) else None,
        "target_doc": docs[1] if any(docs[1]) else None,
        "chance": None if chances is None else _rounded(chances[: len(shown)]),
        "right": gold.judgements.correct[: len(shown)].astype(int).tolist() if gold else None,
        **around,
    }


def _context(side: Side, rows: NDArray[np.int64], texts: list[str]) -> dict[str, object]:
    """Return the sentences before and after those of the table, each text once.

    A place is one in ``texts``, or beyond its end one in the list of others; -1 is none.
    """
    places = {"": -1}
    for place, text in enumerate(texts):
        places.setdefault(text, place)
    others: list[str] = []
    columns: dict[str, object] = {f"{side.name}_others": others}
    for name, around in zip(("before", "after"), side.pair_contexts(rows), strict=True):
        for text in around:
            if text not in places:
                places[text] = len(texts) + len(others)
                others.append(text)
        columns[f"{side.name}_{name}"] = [places[text] for text in around]
    return columns


def _rounded(values: NDArray[np.float64]) -> list[float]:
    rounded: list[float] = np.round(values, 4).tolist()
    return rounded


def _packed(columns: dict[str, object]) -> str:
    """Return JSON, gzipped, in base64: a browser unpacks it sooner than it would read it plain."""
    text = json.dumps(columns, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = gzip.compress(text.encode("utf-8", errors="replace"), compresslevel=6, mtime=0)
    return base64.b64encode(packed).decode()
