"""The stages that leave out pairs: unlikely ones, those that filters reject, and near-copies.

Where the options ask for nothing that a stage does, the pairs stay as they are.
"""

import math
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from miner.arrays import IntArray, Mask
from miner.choices import LINES
from miner.filters import Suspects, occurrences, reasons, usual_ratio, usual_script
from miner.judge.prior import LIKELY, MAX_ALIKE, count_kept
from miner.near_copies import HASHES, HELD_BYTES, SIMILARITY, near_copies, signatures
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import PAIRS, REJECTED, SIDES, SOURCE, TARGET
from pipelines.context import RunContext
from pipelines.memory import spare_bytes
from pipelines.options import MiningOptions
from pipelines.references import ChosenPairs
from pipelines.stages.export import completed_pairs, pair_meter

MIN_HELD = 1 << 16


def keep_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Keep the pairs that the options ask for; seals ``kept``.

    These are the first ones: as many as keep to the share ``options.fdr`` of wrong ones, those
    above ``options.threshold``, all, or else those that are more likely right than wrong.
    """
    if not run.options.by_words:
        return chosen
    judged, rule = chosen.pairs, _rule(run.options)
    key = content_key("keep", pairs=judged.files[PAIRS], rule=repr(rule))

    def write(draft: Draft) -> Mapping[str, Any]:
        numbers = pq.read_table(judged.file(PAIRS), columns=["score", "probability"])
        scores, wrong = numbers["score"].to_numpy(), 1 - numbers["probability"].to_numpy()
        kept = count_kept(scores, wrong, *rule)
        _write_some(judged, np.arange(len(scores)) < kept, draft)
        estimate = {
            "by": rule[0],
            "judged": len(scores),
            "pairs": kept,
            "threshold": float(np.nextafter(scores[kept - 1], -np.inf)) if kept else None,
            "wrong": math.fsum(wrong[:kept]),
        }
        alike = judged.facts["probabilities"]["alike"]
        if alike > MAX_ALIKE:
            estimate["doubt"] = (
                f"{alike:.0%} of the likely pairs' sentences would find another that looks like a "
                "translation without theirs; near-copies may be among the pairs"
            )
        return {**judged.facts, "pairs": kept, "kept": estimate}

    return replace(chosen, pairs=produce(run.folder.kept, key=key, write=write))


def _rule(options: MiningOptions) -> tuple[str, float]:
    """Return what decides which pairs are kept."""
    if options.fdr is not None:
        return "fdr", options.fdr
    if options.threshold != -math.inf:
        return "threshold", options.threshold
    keeps_all = options.all or options.top is not None or options.alignment == LINES
    return ("all", 0.0) if keeps_all else ("probability", LIKELY)


def _write_some(pairs: Artefact, kept: Mask, draft: Draft) -> None:
    """Write those of the pairs that are kept."""
    start = 0
    with (
        pq.ParquetFile(pairs.file(PAIRS)) as file,
        draft.file(PAIRS) as path,
        pq.ParquetWriter(path, file.schema_arrow) as writer,
    ):
        for batch in file.iter_batches():
            writer.write_batch(batch.filter(pa.array(kept[start : start + len(batch)])))
            start += len(batch)


def filter_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Part the chosen pairs into those kept and those rejected; seals ``filtered``."""
    options = run.options
    if not options.filters:
        return chosen
    lists = [found.neighbours[options.scope] for found in chosen.shards]
    key = content_key(
        "filter",
        pairs=chosen.pairs.files[PAIRS],
        **chosen.merges_key,
        neighbours=[sorted(artefact.files.items()) for artefact in lists],
        sentences=[found.shard.digest for found in chosen.shards],
        filters=options.filters,
        languages=options.languages,
    )
    pairs = produce(run.folder.filtered, key=key, write=partial(_part, run, chosen))
    return replace(chosen, pairs=pairs)


def _part(run: RunContext, chosen: ChosenPairs, draft: Draft) -> Mapping[str, Any]:
    options = run.options
    schema = pq.read_schema(chosen.pairs.file(PAIRS))
    lists = _lists(chosen, options.scope) if "hub" in options.filters else {}
    counts: Counter[str] = Counter()
    usual: dict[str, Any] = {}
    with (
        draft.file(PAIRS) as kept_path,
        draft.file(REJECTED) as rejected_path,
        pq.ParquetWriter(kept_path, schema) as kept,
        pq.ParquetWriter(rejected_path, schema.append(pa.field("reason", pa.string()))) as rejected,
        pair_meter(run, chosen, PAIRS, "filter") as meter,
    ):
        for table in completed_pairs(run, chosen, PAIRS):
            texts = [table[f"{side}_text"].to_pylist() for side in SIDES]
            usual = usual or {  # by the first block
                "ratio": usual_ratio(*texts),
                "scripts": (usual_script(texts[0]), usual_script(texts[1])),
            }
            suspects = Suspects(
                source=texts[0],
                target=texts[1],
                **usual,
                languages=options.languages,
                lists=[of_side[table[f"{side}_row"]] for side, of_side in lists.items()],
            )
            found = reasons(suspects, options.filters)
            counts.update(name for names in found for name in names.split(","))
            reason = pa.array(found, pa.string())
            judged = table.select(schema.names).append_column("reason", reason)
            kept.write_table(judged.filter(pc.field("reason") == "").select(schema.names))
            rejected.write_table(judged.filter(pc.field("reason") != ""))
            meter.advance(len(table))
    kept_pairs = counts.pop("", 0)
    return {**chosen.pairs.facts, "pairs": kept_pairs, "filters": dict(counts)}


def _lists(chosen: ChosenPairs, scope: str) -> dict[str, IntArray]:
    """Return in how many lists of the other side each row of a side is."""
    counts = {}
    for side, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        rows = chosen.of_side(side)[0].shard.corpus.facts["read"]
        lists = [occurrences(found.load(scope).ids, rows) for found in chosen.of_side(other)]
        counts[side] = np.sum(lists, axis=0)
    return counts


def drop_near_copies(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Leave out the near-copies of better pairs; seals ``distinct``."""
    if not run.options.near_duplicates:
        return chosen
    pairs = chosen.pairs
    key = content_key(
        "near copies",
        pairs=sorted(pairs.files.items()),
        sentences=[found.shard.digest for found in chosen.shards],
        similarity=SIMILARITY,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        with draft.scratch() as scratch:
            found = _signatures(run, chosen, scratch / "signatures")
            copies = near_copies(found, held=max(MIN_HELD, spare_bytes(run.options) // HELD_BYTES))
        _write_some(pairs, ~copies, draft)
        if REJECTED in pairs.files:
            with draft.file(REJECTED) as beside:
                shutil.copyfile(pairs.file(REJECTED), beside)
        left_out = int(copies.sum())
        return {**pairs.facts, "pairs": pairs.facts["pairs"] - left_out, "near_copies": left_out}

    return replace(chosen, pairs=produce(run.folder.distinct, key=key, write=write))


def _signatures(run: RunContext, chosen: ChosenPairs, path: Path) -> NDArray[np.uint32]:
    """Write the signatures of the pairs, uint32 (P, HASHES), and map them into memory."""
    with pair_meter(run, chosen, PAIRS, "near copies") as meter, path.open("wb") as file:
        for table in completed_pairs(run, chosen, PAIRS):
            texts = [table[f"{side}_text"].to_pylist() for side in SIDES]
            file.write(signatures(*texts).data)
            meter.advance(len(table))
    if not path.stat().st_size:
        return np.empty((0, HASHES), np.uint32)
    return np.memmap(path, dtype=np.uint32, mode="r").reshape(-1, HASHES)
