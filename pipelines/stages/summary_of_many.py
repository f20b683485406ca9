"""The summary of a run of many languages: a line for each pair."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from miner.storage.atomic import atomic_file
from miner.storage.layout import MINED, SIDES
from miner.storage.places import Place
from pipelines.job import Job
from pipelines.progress import counted
from pipelines.stages.summary import describe_costs, describe_estimates, read_summary

Summaries = Mapping[str, Mapping[str, Any]]

COLUMNS = ("pair", "source", "target", "candidates", "pairs", "threshold", "wrong")


def read_summaries(job: Job) -> dict[str, dict[str, Any]]:
    """Read the summary of each pair of a finished run."""
    return {pair: read_summary(job.parts[pair].work_dir) for pair in job.pairs}


def write_table(path: Place, summaries: Summaries) -> None:
    """Write a line for each pair: sentences of both sides, candidates, pairs, threshold, wrong.

    The last two are the score above which pairs were kept, and the estimated share of wrong ones
    among them; empty where pairs are scored by margin alone.
    """
    lines = ["\t".join(COLUMNS)]
    for pair, summary in summaries.items():
        kept = summary.get("kept", {})
        wrong = kept["wrong"] / kept["pairs"] if kept.get("pairs") else None
        cells = [
            *(summary[side]["searched"] for side in SIDES),
            *(summary[name] for name in ("candidates", "pairs")),
            *(kept.get("threshold"), wrong),
        ]
        lines.append("\t".join([pair, *("" if cell is None else str(cell) for cell in cells)]))
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def describe_many(
    summaries: Summaries, seconds: Mapping[str, float], peak_bytes: int, work_dir: Place | None
) -> str:
    """Return the closing lines of a run, for people."""
    width = max(map(len, summaries))
    lines = []
    for pair, summary in summaries.items():
        source, target = (f"{summary[side]['searched']:,}" for side in SIDES)
        found = counted(summary["pairs"], "pairs")
        line = f"{pair:<{width}}  {source} x {target} sentences, {found}"
        lines.append("; ".join([line, *describe_estimates(summary)]))
    lines.append(describe_costs(seconds, peak_bytes))
    pair = next(iter(summaries))
    folder = "DIR" if work_dir is None else shlex.quote(str(work_dir))
    keep = "repeat with --work-dir DIR, then " if work_dir is None else ""
    look = f"'adit report {folder}/{MINED}/{pair} -o report.html'"
    return "\n".join([*lines, f"next: {keep}{look} to look at the pairs of {pair}"])
