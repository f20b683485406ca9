"""What a run came to: counts of everything that went in, and how to repeat it."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from miner.commandline import product_version
from miner.storage.atomic import atomic_file
from miner.storage.layout import SOURCE, TARGET
from miner.storage.places import Place
from pipelines.options import MiningOptions
from pipelines.stages.encode import dropped, encoder_of_process
from pipelines.stages.select import Choice

SUMMARY = "run.json"


def write_summary(options: MiningOptions, choice: Choice) -> Choice:
    """Write ``run.json`` into the work directory."""
    encoder = "given" if options.source.embeddings else encoder_of_process(options.encoder).name
    summary = {
        "version": product_version(),
        "encoder": encoder,
        "options": json.loads(json.dumps(dataclasses.asdict(options), default=str)),
        **{side: _side(options, choice, side) for side in (SOURCE, TARGET)},
        **choice.pairs.facts,
    }
    if options.top is not None:
        summary["pairs"] = min(summary["pairs"], options.top)
    if options.threshold == -math.inf:  # which JSON cannot write
        summary["options"]["threshold"] = None
    with atomic_file(options.work_dir / SUMMARY) as path:
        # A file name that is not UTF-8 holds half characters; as backslash escapes they are JSON.
        text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return choice


def _side(options: MiningOptions, choice: Choice, side: str) -> dict[str, Any]:
    """One side's account: read = unique + duplicates + rejected; unique = searched + dropped."""
    shards = [found.embedded for found in choice.shards if found.embedded.shard.side == side]
    without_vector = dropped(shards)
    facts = shards[0].shard.corpus.facts
    return {
        "path": str(options.side(side).path),
        "read": facts["read"],
        "rejected": facts["rejected"],
        "first_rejected": facts["first_rejected"],
        "duplicates": facts["duplicates"],
        "unique": facts["unique"],
        "dropped": without_vector,
        "searched": facts["unique"] - without_vector.total(),
        **_recall(
            [
                artefact.facts
                for found in choice.shards
                if found.embedded in shards
                for artefact in found.neighbours.values()
            ]
        ),
    }


def _recall(facts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of the true neighbours of some rows, the share that an approximate search found."""
    wanted = sum(fact.get("recall_wanted", 0) for fact in facts)
    found = sum(fact.get("recall_found", 0) for fact in facts)
    return {"recall": found / wanted} if wanted else {}


def read_summary(work_dir: Place) -> dict[str, Any]:
    """The summary of the finished run in ``work_dir``."""
    summary: dict[str, Any] = json.loads((work_dir / SUMMARY).read_text(encoding="utf-8"))
    return summary


def describe(summary: Mapping[str, Any], seconds: Mapping[str, float], peak_bytes: int) -> str:
    """The closing lines of a run, for people."""
    lines = [_describe_side(side, summary[side]) for side in (SOURCE, TARGET)]
    lines.append(f"pairs: {summary['pairs']:,} of {summary['candidates']:,} candidates")
    stages = ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items())
    if filters := summary.get("filters"):
        caught = ", ".join(f"{name} {count:,}" for name, count in filters.items())
        lines.append(f"rejected by filters: {caught}")
    lines.append(f"time: {stages}; peak memory {peak_bytes / 2**30:.2f} GiB")
    return "\n".join(lines)


def next_steps(threshold: float, work_dir: Place | None) -> str:
    """Return what a run's pairs do and do not say, and the commands that say more."""
    if threshold == -math.inf:
        meaning = "threshold: none, so sentences without a translation are paired, too"
    else:
        meaning = f"threshold: {threshold:g}"
    folder = "DIR" if work_dir is None else shlex.quote(str(work_dir))
    keep = "repeat with --work-dir DIR, then " if work_dir is None else ""
    return (
        f"{meaning}; scores are not probabilities: the share of wrong pairs depends on the text\n"
        f"next: {keep}'adit report {folder} -o report.html' to look at them, 'adit calibrate "
        f"{folder} --decoys-src FILE --fdr 0.05 -o good.jsonl' to keep pairs "
        "of which an estimated 5% are wrong"
    )


def _describe_side(side: str, told: Mapping[str, Any]) -> str:
    left_out = {**told["rejected"], **told["dropped"]}
    unit = "sentence" if told["read"] == 1 else "sentences"
    reasons = [
        f"{count:,} {reason}" + _first_line(told["first_rejected"].get(reason))
        for reason, count in left_out.items()
    ]
    return (
        f"{side}: {told['read']:,} {unit} read, {sum(left_out.values()):,} dropped"
        + (f" ({'; '.join(reasons)})" if reasons else "")
        + f", {told['duplicates']:,} repeated, {told['searched']:,} searched"
        + (f"; {told['recall']:.1%} of their neighbours found" if "recall" in told else "")
    )


def _first_line(row: int | None) -> str:
    return "" if row is None else f", first in line {row + 1}"
