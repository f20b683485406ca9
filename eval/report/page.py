"""The report of a mining run: one page of HTML that needs nothing else, to be read in a browser."""

from __future__ import annotations

import base64
import gzip
import json
from html import escape
from importlib.resources import files

import numpy as np

from eval.report import sections
from eval.report.gold import against_gold_section
from eval.report.sections import TABLE_PAIRS
from eval.runs.gold import Gold
from eval.runs.store import Run
from miner.arrays import AlignedPairs
from miner.fdr import Null, probabilities
from miner.storage.layout import SIDES


def render(run: Run, *, gold: Gold | None = None, null: Null | None = None) -> str:
    """Return the whole page.

    Args:
        run: what it is about.
        gold: the known pairs, if there are any.
        null: of the wrong pairs' scores, if there are decoys.

    Raises:
        ValueError: the run has no pair to show.
    """
    if not len(run.pairs):
        raise ValueError(f"{run.directory}: the run chose no pair; there is nothing to report")
    parts = [
        ("Counts", sections.counts_section(run)),
        ("Scores", sections.scores_section(run, gold, null)),
        *([("Estimated by decoys", sections.estimates_section(run, null))] if null else []),
        *([("Against the known pairs", against_gold_section(run, gold))] if gold else []),
        ("Lengths", sections.lengths_section(run)),
        ("Suspicious pairs", sections.suspicious_section(run)),
        ("Hubs", sections.hubs_section(run)),
        ("Examples from each tenth", sections.examples_section(run)),
        ("Pairs", sections.pairs_section(run)),
    ]
    links = " ".join(f'<a href="#s{at}">{escape(title)}</a>' for at, (title, _) in enumerate(parts))
    body = f"<nav>{links}</nav>" + "".join(
        f'<section><h2 id="s{at}">{escape(title)}</h2>{html}</section>'
        for at, (title, html) in enumerate(parts)
    )
    page = files("eval").joinpath("assets", "report.html").read_text(encoding="utf-8")
    title = " and ".join(str(run.summary[side]["path"]).rpartition("/")[2] for side in SIDES)
    return (
        page.replace("<!--TITLE-->", escape(title))
        .replace("<!--DATA-->", _packed(_columns(run, gold, null)))
        .replace("<!--BODY-->", body)
    )


def _columns(run: Run, gold: Gold | None, null: Null | None) -> dict[str, object]:
    """Return what the table shows, by column; None for those that it has not."""
    shown = run.pairs.take(np.arange(min(TABLE_PAIRS, len(run.pairs))))
    sources, targets = (texts[: len(shown)] for texts in run.texts)
    chances = None if null is None else probabilities(run.pairs.score, null)[: len(shown)]
    return {
        "score": np.round(shown.score, 4).tolist(),
        "score_name": run.score_name,
        "margin": np.round(shown.margin, 4).tolist() if isinstance(shown, AlignedPairs) else None,
        "cosine": np.round(shown.cosine.astype(np.float64), 4).tolist(),
        "source": sources,
        "target": targets,
        "source_id": run.source.ids(shown.source),
        "target_id": run.target.ids(shown.target),
        "chance": None if chances is None else np.round(chances, 4).tolist(),
        "right": gold.judgements.correct[: len(shown)].astype(int).tolist() if gold else None,
    }


def _packed(columns: dict[str, object]) -> str:
    """Return JSON, gzipped, in base64: a browser unpacks it sooner than it would read it plain."""
    text = json.dumps(columns, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed = gzip.compress(text.encode("utf-8", errors="replace"), compresslevel=6, mtime=0)
    return base64.b64encode(packed).decode()
