"""Count everything that went into a run, and describe it for its user."""

import dataclasses
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from eval.output import signature
from miner.choices import FREE, LINES, MONOTONE
from miner.commandline import product_version
from miner.judge.prior import LIKELY
from miner.knn.method import AUTO
from miner.storage.artefacts import open_artefact, read_json
from miner.storage.atomic import atomic_file, write_text
from miner.storage.layout import MINED, SIDES, WorkFolder
from miner.storage.places import Place
from miner.wording import counted
from pipelines.context import RunContext
from pipelines.options import Job, MiningOptions
from pipelines.references import ChosenPairs
from pipelines.stages.encode import count_dropped
from pipelines.stages.reading.language import describe_language

# Added to the pairs of documents if they are less than half.
UNPAIRED = "; most documents have no counterpart (use --scope corpus to compare all sentences)"
# Facts of reading a side; ``first_places`` only if it has several files.
COUNTED = ("read", "rejected", "first_rejected", "first_places", "duplicates", "unique")
MIN_SHOWN = 0.05  # seconds of a stage that is listed
# Why a rule does not keep pairs, with the values of the options.
NOT_KEPT = {
    "probability": " with a probability below 0.5; add --all to write them",
    "fdr": "; including them would exceed --fdr {fdr:g}",
    "threshold": " with a score of at most {threshold!r}",
    "top": " after the {pairs:,} best",
}
# Columns of the table of many languages, which has one line per pair.
COLUMNS = ("pair", "source", "target", "candidates", "pairs", "threshold", "wrong")

Summaries: TypeAlias = Mapping[str, Mapping[str, Any]]


def write_summary(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Write or replace ``run.json`` in the work folder, and return ``chosen``.

    OSError, and errors of ``RunContext.encoder_name`` and ``describe_language``, are raised.
    """
    options = run.options
    summary = {
        "version": product_version(),
        "encoder": run.encoder_name,
        "options": json.loads(json.dumps(dataclasses.asdict(options), default=str)),
        **{side: _side(run, chosen, side) for side in SIDES},
        **chosen.pairs.facts,
        "written": chosen.pairs.folder.name,
    }
    summary["config"] = summary["options"].pop("config")
    summary["signature"] = _signature(summary, options)
    if options.pairs_documents:
        summary["documents"] = open_artefact(run.folder.document_pairs).facts
    if options.threshold == -math.inf:  # which JSON cannot write
        summary["options"]["threshold"] = None
    with atomic_file(run.folder.summary) as path:
        # A file name that is not UTF-8 holds half characters; as backslash escapes they are JSON.
        text = json.dumps(summary, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return chosen


def _signature(summary: Mapping[str, Any], options: MiningOptions) -> str:
    recalls = [f"{summary[side]['recall']:.3f}" for side in SIDES if "recall" in summary[side]]
    kept = summary.get("kept", {}).get("by", "all")
    limits = {name: getattr(options, name) for name in ("fdr", "threshold", "top")}
    limits["probability"] = LIKELY
    fields = {
        "encoder": summary["encoder"],
        "judge": summary.get("judge", "none"),
        "margin": options.margin,
        "k": options.k,
        "retrieval": options.retrieval if options.alignment == FREE else options.alignment,
        "index": options.index if options.index != AUTO else "cells" if recalls else "exact",
        **({"recall": "-".join(recalls)} if recalls else {}),
        **removal_fields(options),
        "kept": f"{kept}-{limits[kept]}" if kept in limits else kept,
    }
    return signature("pairs", **fields)


def removal_fields(options: MiningOptions) -> dict[str, str]:
    """Return a signature's ``filters`` and, if used, ``identical``, ``texts``."""
    removed = [*options.filters, *(["near-duplicates"] if options.near_duplicates else [])]
    return {
        "filters": "+".join(removed) or "none",
        **({"identical": "kept"} if options.keep_identical else {}),
        **({"texts": "repaired"} if options.repair else {}),
    }


def _side(run: RunContext, chosen: ChosenPairs, side: str) -> dict[str, Any]:
    parts = chosen.of_side(side)
    shards = [part.embedded for part in parts]
    unusable = count_dropped(shards)
    facts = shards[0].shard.corpus.facts
    account = {
        "path": str(run.options.side(side).path),
        "language": describe_language(run.options, side),
        **{name: facts[name] for name in COUNTED if name in facts},
        "dropped": unusable,
        "searched": facts["unique"] - unusable.total(),
        "columns": shards[0].columns,
    }
    searched = [artefact.facts for part in parts for artefact in part.neighbours.values()]
    if expected := sum(fact.get("recall_wanted", 0) for fact in searched):
        account["recall"] = sum(fact.get("recall_found", 0) for fact in searched) / expected
    return account


def read_summary(work_dir: Place) -> dict[str, Any]:
    """Read a finished run's ``run.json``, with errors of ``read_json``."""
    return read_json(WorkFolder(work_dir).summary)


def describe(summary: Mapping[str, Any], seconds: Mapping[str, float], peak_bytes: int) -> str:
    """Format a run's summary, seconds by stage and peak memory, in lines."""
    lines = [f"{side}: {_describe_side(summary[side])}" for side in SIDES]
    if summary["source"].get("columns"):
        lines.append(f"encoder: {summary['options']['encoder']}")
    if docs := summary.get("documents"):
        lowest = math.floor(100 * docs["lowest"]) / 100
        lines.append(
            f"documents: {counted(docs['pairs'], 'pairs')} of {docs['source']:,} source and "
            f"{docs['target']:,} target documents, lowest score {lowest:.2f}"
            + (UNPAIRED if 2 * docs["pairs"] < min(docs["source"], docs["target"]) else "")
        )
    if lines_read := summary.get("lines"):
        lines.append(
            f"lines: {lines_read['read']:,} read, {lines_read['unusable']:,} rejected, "
            f"{lines_read['repeated']:,} duplicates of an earlier pair"
        )
    candidates = f", from {summary['candidates']:,} candidates (nearest neighbours)"
    is_given = summary.get("options", {}).get("alignment") in (MONOTONE, LINES)
    lines.append(f"pairs: {summary['pairs']:,} written{'' if is_given else candidates}")
    lines += describe_estimates(summary)
    if copies := summary.get("near_copies"):
        lines.append(f"near-duplicates removed: {copies:,}")
    if filters := summary.get("filters"):
        counts = ", ".join(f"{name} {count:,}" for name, count in filters.items())
        lines.append(f"rejected by filters: {counts}")
    lines.append(f"signature: {summary['signature']}")
    lines.append(_costs(seconds, peak_bytes))
    return "\n".join(lines)


def _costs(seconds: Mapping[str, float], peak_bytes: int) -> str:
    listed = {name: spent for name, spent in seconds.items() if spent >= MIN_SHOWN}
    stages = ", ".join(f"{name} {spent:.1f} s" for name, spent in listed.items())
    return f"time: {stages}; peak memory: {peak_bytes / 2**30:.2f} GiB"


def describe_estimates(summary: Mapping[str, Any]) -> list[str]:
    """Describe error rate, doubts and unwritten pairs, [] without the judge."""
    lines = []
    kept = summary.get("kept", {})
    if kept.get("pairs"):
        lines.append(f"estimated error rate: {kept['wrong'] / kept['pairs']:.1%}")
    if kept and (unwritten := kept["judged"] - kept["pairs"]):
        reason = NOT_KEPT.get(kept["by"], "").format(**{**kept, **summary.get("options", {})})
        lines.append(f"not written: {counted(unwritten, 'pairs')}{reason}")
    if kept.get("pairs") and kept.get("doubt"):
        lines.append(f"warning: {kept['doubt']}")
    if identical := summary.get("identical"):
        lines.append(
            f"identical: {counted(identical, 'pairs')}; add --keep-identical to write them"
        )
    return lines


def next_steps(summary: Mapping[str, Any], work_dir: Place | None) -> str:
    """Return a line with the next command or, if no pair is written, a remedy.

    A line with the margin threshold precedes the command if the judge has not scored the pairs.
    ``work_dir`` is None for a temporary work folder.
    """
    review = f"next: {_report(work_dir)}"
    if summary.get("pairs") == 0:
        return f"next: {_remedy(summary)}"
    if summary.get("kept"):
        return review
    return f"threshold: {_threshold(summary['options'])}; margins are not probabilities\n{review}"


def _report(work_dir: Place | None, below: str = "") -> str:
    folder = "DIR" if work_dir is None else shlex.quote(str(work_dir))
    rerun = "rerun with --work-dir DIR, then " if work_dir is None else ""
    return f"{rerun}review the pairs with 'adit report {folder}{below} -o report.html'"


def _threshold(options: Mapping[str, Any]) -> str:
    if options["threshold"] is not None:
        return repr(options["threshold"])
    written = {MONOTONE: "all aligned pairs were written", LINES: "all pairs of lines were written"}
    paired = "sentences without a translation are also paired"
    return f"none, so {written.get(options.get('alignment', ''), paired)}"


def _remedy(summary: Mapping[str, Any]) -> str:
    options = summary["options"]
    if options["fdr"] is not None:
        return "increase --fdr, or omit it"
    if summary.get("filters"):
        return "omit --filters to write the pairs that they reject"
    if options["threshold"] is not None:
        return "lower --threshold, or omit it"
    if summary.get("identical") and not summary["kept"]["judged"]:
        return "add --keep-identical to write the pairs with the same text on both sides"
    if summary.get("kept", {}).get("judged"):
        return "add --all to write the pairs that are probably wrong"
    return "check that the encoder covers both languages ('adit encoders')"


def _describe_side(account: Mapping[str, Any]) -> str:
    rejected = {**account["rejected"], **account["dropped"]}
    first_places = {reason: f"line {row + 1}" for reason, row in account["first_rejected"].items()}
    first_places |= account.get("first_places", {})
    notes = {reason: f", first at {place}" for reason, place in first_places.items()}
    reasons = [f"{count:,} {reason}{notes.get(reason, '')}" for reason, count in rejected.items()]
    return (
        f"{counted(account['read'], 'sentences')} read, {sum(rejected.values()):,} rejected"
        + (f" ({'; '.join(reasons)})" if reasons else "")
        + f", {account['duplicates']:,} duplicates, {account['searched']:,} searched"
        + (f"; approximate search, recall {account['recall']:.1%}" if "recall" in account else "")
    )


def read_summaries(job: Job) -> dict[str, dict[str, Any]]:
    """Read each pair's summary by its name, with errors of ``read_json``."""
    return {pair: read_summary(job.parts[pair].work_dir) for pair in job.pairs}


def write_table(path: Place, summaries: Summaries) -> None:
    """Write or replace a TSV file with header ``COLUMNS``, or raise OSError.

    "source" and "target" count searched sentences. "threshold", "wrong" (a rate) may be empty.
    """
    lines: list[Sequence[object]] = [COLUMNS]
    for pair, summary in summaries.items():
        kept, numbers = summary.get("kept", {}), (summary["candidates"], summary["pairs"])
        wrong = kept["wrong"] / kept["pairs"] if kept.get("pairs") else None
        searched = (summary[side]["searched"] for side in SIDES)
        lines.append([pair, *searched, *numbers, kept.get("threshold"), wrong])
    cells = (["" if cell is None else str(cell) for cell in line] for line in lines)
    write_text(path, "".join("\t".join(line) + "\n" for line in cells))


def describe_many(
    summaries: Summaries, seconds: Mapping[str, float], peak_bytes: int, work_dir: Place | None
) -> str:
    """Format summaries of language pairs, a line each, costs and a next step.

    Pairs are one or more. ``seconds`` are by stage. ``work_dir`` is None for a temporary folder.
    """
    width = max(map(len, summaries))
    lines = []
    for pair, summary in summaries.items():
        source, target = (f"{summary[side]['searched']:,}" for side in SIDES)
        pairs = counted(summary["pairs"], "pairs")
        line = f"{pair:<{width}}  {source} x {target} sentences, {pairs}"
        lines.append("; ".join([line, *describe_estimates(summary)]))
    lines.append(_costs(seconds, peak_bytes))
    pair = next(iter(summaries))
    review = _report(work_dir, f"/{MINED}/{pair}")
    return "\n".join([*lines, f"next: {review}, for example"])
