"""The summary of a run: counts of everything that went in, and how to repeat it."""

import dataclasses
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from miner.choices import LINES, MONOTONE
from miner.commandline import product_version
from miner.storage.artefacts import open_artefact
from miner.storage.atomic import atomic_file, write_text
from miner.storage.layout import MINED, SIDES, WorkFolder
from miner.storage.places import Place
from pipelines.context import RunContext
from pipelines.options import Job
from pipelines.progress import counted
from pipelines.references import ChosenPairs
from pipelines.stages.encode import dropped
from pipelines.stages.reading.language import describe_language

ALONE = "; most have no counterpart, and --scope corpus would compare their sentences, too"
COUNTED = ("read", "rejected", "first_rejected", "duplicates", "unique")  # of a side, by reading
MIN_SHOWN = 0.05  # seconds
# Of the table of many languages, which has a line for each pair.
COLUMNS = ("pair", "source", "target", "candidates", "pairs", "threshold", "wrong")

Summaries: TypeAlias = Mapping[str, Mapping[str, Any]]


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
        **{name: facts[name] for name in COUNTED},
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
    return json.loads(WorkFolder(work_dir).summary.read_text(encoding="utf-8"))


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
    """Say how many of the pairs are likely wrong, and how many others were left out."""
    if not (kept := summary.get("kept")):
        return []
    left_out = kept["judged"] - kept["pairs"]
    if not kept["pairs"]:
        return [f"wrong: none of {left_out:,} pairs is {_wanted(kept['by'])}"]
    share = kept["wrong"] / kept["pairs"]
    lines = [f"wrong: an estimated {share:.1%} of {kept['pairs']:,} pairs"]
    if left_out:
        lines.append(f"left out: {left_out:,} pairs that are not {_wanted(kept['by'])}")
    return [*lines, *([f"beware: {kept['doubt']}"] if kept.get("doubt") else [])]


def _wanted(rule: str) -> str:
    """Return what the pairs are that a rule keeps."""
    return {
        "probability": "more likely right than wrong; --all writes them, too",
        "fdr": "among the best with so few wrong ones",
        "threshold": "above the threshold",
    }[rule]


def next_steps(summary: Mapping[str, Any], work_dir: Place | None) -> str:
    """Return what a run's pairs do and do not say, and the commands that say more."""
    look = f"next: {_report(work_dir)} to look at them"
    if summary.get("pairs") == 0:
        return f"next: {_more_pairs(summary)}"
    if summary.get("kept"):
        return look
    return f"{_meaning(summary['options'])}; margins are not probabilities\n{look}"


def _report(work_dir: Place | None, below: str = "") -> str:
    """Return the command that shows what is in a work folder, or was in one that is gone."""
    if work_dir is None:
        return f"repeat with --work-dir DIR, then 'adit report DIR{below} -o report.html'"
    return f"'adit report {shlex.quote(str(work_dir))}{below} -o report.html'"


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
        return "allow a larger share, or leave out --fdr"
    if summary.get("filters"):
        return "leave out --filters to see what they reject"
    if options["threshold"] is not None:
        return "lower --threshold, or leave it out"
    if summary.get("kept", {}).get("judged"):
        return "add --all to see the pairs that are likely wrong"
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
    write_text(path, "\n".join(lines) + "\n")


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
    look = _report(work_dir, f"/{MINED}/{pair}")
    return "\n".join([*lines, f"next: {look} to look at the pairs of {pair}"])
