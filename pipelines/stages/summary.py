"""The summary of a run: counts of everything that went in, and how to repeat it."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from miner.choices import LINES, MONOTONE
from miner.commandline import product_version
from miner.storage.artefacts import open_artefact
from miner.storage.atomic import atomic_file
from miner.storage.layout import SIDES, WorkFolder
from miner.storage.places import Place
from pipelines.context import RunContext
from pipelines.progress import counted
from pipelines.references import ChosenPairs
from pipelines.stages.encode import dropped
from pipelines.stages.language import describe_language
from pipelines.stages.rate import advise

ALONE = "; most have no counterpart, and --scope corpus would compare their sentences, too"
MIN_SHOWN = 0.05  # seconds


def write_summary(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Write ``run.json`` into the work directory."""
    options = run.options
    summary = {
        "version": product_version(),
        "encoder": run.encoder_name,
        "options": json.loads(json.dumps(dataclasses.asdict(options), default=str)),
        **{side: _side(run, chosen, side) for side in SIDES},
        **chosen.pairs.facts,
    }
    if options.pairs_documents:
        summary["documents"] = open_artefact(run.folder.document_pairs).facts
    if advice := advise(run, chosen):
        summary["advice"] = advice
    if options.top is not None:
        summary["pairs"] = min(summary["pairs"], options.top)
    if options.threshold == -math.inf:  # which JSON cannot write
        summary["options"]["threshold"] = None
    with atomic_file(run.folder.summary) as path:
        # A file name that is not UTF-8 holds half characters; as backslash escapes they are JSON.
        text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return chosen


def _side(run: RunContext, chosen: ChosenPairs, side: str) -> dict[str, Any]:
    """Count a side: read = unique + duplicates + rejected, and unique = searched + dropped."""
    found = chosen.of_side(side)
    shards = [each.embedded for each in found]
    without_vector = dropped(shards)
    facts = shards[0].shard.corpus.facts
    return {
        "path": str(run.options.side(side).path),
        "language": describe_language(run.options, side),
        "read": facts["read"],
        "rejected": facts["rejected"],
        "first_rejected": facts["first_rejected"],
        "duplicates": facts["duplicates"],
        "unique": facts["unique"],
        "dropped": without_vector,
        "searched": facts["unique"] - without_vector.total(),
        "columns": shards[0].columns,
        **_recall([artefact.facts for each in found for artefact in each.neighbours.values()]),
    }


def _recall(facts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of some rows' true neighbours that an approximate search found."""
    wanted = sum(fact.get("recall_wanted", 0) for fact in facts)
    found = sum(fact.get("recall_found", 0) for fact in facts)
    return {"recall": found / wanted} if wanted else {}


def read_summary(work_dir: Place) -> dict[str, Any]:
    """Read the summary of the finished run in ``work_dir``."""
    summary: dict[str, Any] = json.loads(WorkFolder(work_dir).summary.read_text(encoding="utf-8"))
    return summary


def describe(summary: Mapping[str, Any], seconds: Mapping[str, float], peak_bytes: int) -> str:
    """Return the closing lines of a run, for people."""
    lines = [_describe_side(side, summary[side]) for side in SIDES]
    if summary["source"].get("columns"):
        lines.append(f"encoder: {summary['options']['encoder']}")
    if found := summary.get("documents"):
        lines.append(
            f"documents: {found['pairs']:,} pairs of {found['source']:,} source and "
            f"{found['target']:,} target documents, with scores from {found['lowest']:.2f}"
            + (ALONE if 2 * found["pairs"] < min(found["source"], found["target"]) else "")
        )
    if given := summary.get("lines"):
        lines.append(
            f"lines: {given['read']:,}, of which {given['unusable']:,} lack a sentence and "
            f"{given['repeated']:,} repeat an earlier pair"
        )
    lines.append(f"pairs: {summary['pairs']:,} of {summary['candidates']:,} candidates")
    lines += describe_estimates(summary)
    if copies := summary.get("near_copies"):
        lines.append(f"near-copies left out: {copies:,}")
    if filters := summary.get("filters"):
        caught = ", ".join(f"{name} {count:,}" for name, count in filters.items())
        lines.append(f"rejected by filters: {caught}")
    lines.append(describe_costs(seconds, peak_bytes))
    return "\n".join(lines)


def describe_costs(seconds: Mapping[str, float], peak_bytes: int) -> str:
    """Return the line of the time and the memory that a run took."""
    shown = {name: spent for name, spent in seconds.items() if spent >= MIN_SHOWN}
    stages = ", ".join(f"{name} {spent:.1f} s" for name, spent in shown.items())
    return f"time: {stages}; peak memory {peak_bytes / 2**30:.2f} GiB"


def describe_estimates(summary: Mapping[str, Any]) -> list[str]:
    """Say how many pairs are wrong, and the threshold that would leave few, where known."""
    found = summary.get("fdr") or summary.get("advice")
    if not found:
        return []
    if why := found.get("refused"):
        return [f"wrong: {why.partition(':')[0]}"]
    if not found["pairs"]:
        return [f"wrong: no threshold has an estimated share of at most {found['wanted']:.1%}"]
    if "fdr" in summary:
        return [f"wrong: {_share(found)} of the {found['pairs']:,} pairs above the threshold"]
    return [
        f"wrong: most of those below {found['threshold']:.4f}; above it {_share(found)} of "
        f"{found['pairs']:,} pairs"
    ]


def _share(estimate: Mapping[str, Any]) -> str:
    low, high = estimate["interval"]
    return f"an estimated {estimate['share']:.1%} (95% interval {low:.1%} to {high:.1%})"


def next_steps(summary: Mapping[str, Any], work_dir: Place | None) -> str:
    """Return what a run's pairs do and do not say, and the commands that say more."""
    options, advice = summary["options"], summary.get("advice", {})
    folder = "DIR" if work_dir is None else shlex.quote(str(work_dir))
    keep = "repeat with --work-dir DIR, then " if work_dir is None else ""
    look = f"{keep}'adit report {folder} -o report.html' to look at them"
    if summary.get("pairs") == 0:
        return f"next: {_more_pairs(summary)}"
    if options["fdr"] is not None:
        return f"next: {look}"
    if advice.get("pairs"):
        return (
            f"{_meaning(options)}\n"
            f"next: add --fdr {advice['wanted']:g} to the command to keep those "
            f"{advice['pairs']:,} pairs, each with its probability; {look}"
        )
    decoys = f"'adit calibrate {folder} --decoys-src FILE --fdr 0.05 -o good.jsonl'"
    fdr = "add --fdr 0.05 to the command to keep pairs of which an estimated 5% are wrong, or "
    return (
        f"{_meaning(options)}; scores are not probabilities: the share of wrong pairs depends on "
        f"the text\nnext: {look}; {'' if advice else fdr}{decoys} to estimate it by sentences "
        "without a translation"
    )


def _meaning(options: Mapping[str, Any]) -> str:
    if options["threshold"] is not None:
        return f"threshold: {options['threshold']:g}"
    if options.get("alignment") == MONOTONE:
        return "threshold: none, so all that is aligned was written"
    if options.get("alignment") == LINES:
        return "threshold: none, so all pairs of lines were written"
    return "threshold: none, so sentences without a translation are paired, too"


def _more_pairs(summary: Mapping[str, Any]) -> str:
    """Return what to do where no pair was written."""
    options = summary["options"]
    if options["fdr"] is not None:
        return "leave out --fdr to see all pairs, or allow a larger share"
    if summary.get("filters"):
        return "leave out --filters to see what they reject"
    if options["threshold"] is not None:
        return "lower --threshold, or leave it out"
    return "check that both corpora are what the encoder covers ('adit encoders')"


def _describe_side(side: str, account: Mapping[str, Any]) -> str:
    left_out = {**account["rejected"], **account["dropped"]}
    reasons = [
        f"{count:,} {reason}" + _first_line(account["first_rejected"].get(reason))
        for reason, count in left_out.items()
    ]
    return (
        f"{side}: {counted(account['read'], 'sentences')} read, {sum(left_out.values()):,} dropped"
        + (f" ({'; '.join(reasons)})" if reasons else "")
        + f", {account['duplicates']:,} repeated, {account['searched']:,} searched"
        + (f"; {account['recall']:.1%} of their neighbours found" if "recall" in account else "")
    )


def _first_line(row: int | None) -> str:
    return "" if row is None else f", first in line {row + 1}"
