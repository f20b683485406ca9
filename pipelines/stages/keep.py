"""Filter pairs, remove near-copies, and keep the pairs that are written."""

import math
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

from miner.arrays import FloatArray, IntArray, Mask
from miner.choices import LINES
from miner.filters import Suspects, occurrences, reasons
from miner.judge.prior import LIKELY, MAX_LOOKALIKE_RATE, count_kept
from miner.near_copies import HASHES, HELD_BYTES, SIMILARITY, near_copies, signatures
from miner.numbers import READING
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import IDENTICAL, PAIRS, REJECTED, SIDES, SOURCE, TARGET
from miner.thresholds import shortest_between
from pipelines.context import RunContext
from pipelines.memory import spare_bytes
from pipelines.options import MiningOptions
from pipelines.references import ChosenPairs
from pipelines.stages.export import MAX_PAIRS, completed_pairs, pair_meter

MIN_HELD = 1 << 16


def _keep_rule(options: MiningOptions) -> tuple[str, float]:
    if not options.scores_by_words:
        return "all", 0.0
    if options.fdr is not None:
        return "fdr", options.fdr
    if options.threshold != -math.inf:
        return "threshold", options.threshold
    keeps_all = options.all or options.top is not None or options.alignment == LINES
    return ("all", 0.0) if keeps_all else ("probability", LIKELY)


def _range_of_rule(run: RunContext, chosen: ChosenPairs) -> range:
    rule = _keep_rule(run.options)
    if rule[0] in ("all", "fdr"):  # a share of wrong pairs depends on all better pairs
        return range(MAX_PAIRS)
    return range(count_kept(*_scores(chosen.pairs, by_words=True), *rule))


def _scores(pairs: Artefact, *, by_words: bool) -> tuple[FloatArray, FloatArray]:
    columns = ["score", *(["probability"] if by_words else [])]
    table = pq.read_table(pairs.file(PAIRS), columns=columns)
    scores = table["score"].to_numpy()
    return scores, 1 - table["probability"].to_numpy() if by_words else np.zeros(len(scores))


def keep_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Keep the pairs that the run writes, and save them.

    ``options.fdr`` or ``threshold`` decides if given. Otherwise, pairs stay by a probability of at
    least 0.5, or all with scores by margin, ``all``, ``top`` or ``adit rate``. Then only the best
    ``top`` stay. With filters, a separate file has the rejected pairs, and those with the same text
    on both sides. It lacks rejected pairs that score lower than the last one kept, unless every
    pair or none is kept. By margin and with neither ``top`` nor filters, ``chosen`` is returned.
    """
    options, pairs = run.options, chosen.pairs
    if not (options.scores_by_words or options.top or options.filters):
        return chosen
    rule = _keep_rule(options)
    key = content_key(
        "keep last",
        pairs=pairs.files[PAIRS],
        rejected=chosen.rejected and chosen.rejected.files[REJECTED],
        identical=chosen.identical and chosen.identical.files[IDENTICAL],
        facts=pairs.facts,
        rule=repr(rule),
        top=options.top,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        scores, wrong = _scores(pairs, by_words=options.scores_by_words)
        in_rule = count_kept(scores, wrong, *rule)
        kept = min(in_rule, options.top or MAX_PAIRS)
        _write_masked(pairs, np.arange(len(scores)) < kept, draft)
        facts, rejected = {**pairs.facts, "pairs": kept}, 0
        if chosen.rejected:
            least = scores[kept - 1] if 0 < kept < len(scores) else -math.inf
            rejected, facts["filters"] = _write_rejected(chosen, least, draft)
        if options.scores_by_words:
            rest = pairs.facts["judged"] - rejected - pairs.facts.get("near_copies", 0)
            by = rule[0] if kept == in_rule else "top"
            facts["kept"] = {"by": by, "judged": rest, **_estimate(chosen, scores, wrong, kept)}
        return facts

    return replace(chosen, pairs=produce(run.folder.kept, key=key, write=write))


def _estimate(
    chosen: ChosenPairs, scores: FloatArray, wrong: FloatArray, kept: int
) -> dict[str, Any]:
    assert chosen.identical is not None
    threshold = None
    if kept and (kept == len(scores) or scores[kept] < scores[kept - 1]):
        judged, _ = _scores(chosen.identical, by_words=True)
        lower = judged[np.searchsorted(-judged, -scores[kept - 1], side="right") :]
        next_score = float(lower[0]) if len(lower) else -math.inf
        threshold = shortest_between(float(scores[kept - 1]), next_score)
    errors = math.fsum(wrong[:kept])
    estimates: dict[str, Any] = {"pairs": kept, "threshold": threshold, "wrong": errors}
    alike = chosen.pairs.facts["probabilities"]["alike"]
    if alike > MAX_LOOKALIKE_RATE:
        estimates["doubt"] = (
            f"the error rate may be unreliable: with their translation removed, {alike:.0%} of the "
            "checked sentences still match a similar sentence, so some pairs may not be "
            "translations"
        )
    return estimates


def _write_rejected(chosen: ChosenPairs, least: float, draft: Draft) -> tuple[int, dict[str, int]]:
    assert chosen.rejected is not None
    rows, counts = 0, Counter[str]()
    with (
        pq.ParquetFile(chosen.rejected.file(REJECTED)) as file,
        draft.file(REJECTED) as path,
        pq.ParquetWriter(path, file.schema_arrow) as writer,
    ):
        for batch in file.iter_batches():
            rejected = batch.filter(pc.greater_equal(batch["score"], least))
            writer.write_batch(rejected)
            rows += len(rejected)
            for names in rejected["reason"].to_pylist():
                counts.update(names.split(","))
        if chosen.identical:
            with pq.ParquetFile(chosen.identical.file(IDENTICAL)) as identical:
                for batch in identical.iter_batches():
                    reason = pa.array(["identical"] * len(batch), pa.string())
                    writer.write_batch(batch.append_column("reason", reason))
    return rows, dict(counts)


def _write_masked(pairs: Artefact, kept: Mask, draft: Draft) -> None:
    start = 0
    with (
        pq.ParquetFile(pairs.file(PAIRS)) as file,
        draft.file(PAIRS) as path,
        pq.ParquetWriter(path, file.schema_arrow) as writer,
    ):
        for batch in file.iter_batches():
            mask = kept[start : start + len(batch)]
            writer.write_batch(batch.slice(0, len(mask)).filter(pa.array(mask)))
            start += len(batch)


def filter_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Apply ``options.filters``, and save kept and rejected pairs.

    Pairs that ``keep_pairs`` would drop by threshold or probability are in neither file. Without
    filters, ``chosen`` is returned unchanged.
    """
    options = run.options
    if not options.filters:
        return chosen
    lists = [shard.neighbours[options.scope] for shard in chosen.shards]
    rows = _range_of_rule(run, chosen)
    key = content_key(
        "filter within",
        pairs=chosen.pairs.files[PAIRS],
        facts=chosen.pairs.facts,
        rows=[rows.start, rows.stop],
        **chosen.merges_key,
        neighbours=[sorted(artefact.files.items()) for artefact in lists],
        sentences=[shard.shard.digest for shard in chosen.shards],
        filters=options.filters,
        numbers=READING,
        languages=run.languages,
    )
    pairs = produce(run.folder.filtered, key=key, write=partial(_filter, run, chosen, rows))
    return replace(chosen, pairs=pairs, rejected=pairs)


def _filter(run: RunContext, chosen: ChosenPairs, rows: range, draft: Draft) -> Mapping[str, Any]:
    options = run.options
    schema = pq.read_schema(chosen.pairs.file(PAIRS))
    lists = _list_counts(chosen, options.scope) if "hub" in options.filters else {}
    typical = None
    passed = 0
    with (
        draft.file(PAIRS) as kept_path,
        draft.file(REJECTED) as rejected_path,
        pq.ParquetWriter(kept_path, schema) as kept,
        pq.ParquetWriter(rejected_path, schema.append(pa.field("reason", pa.string()))) as rejected,
        pair_meter(run, chosen, PAIRS, "filter", limit=rows.stop) as meter,
    ):
        for table in completed_pairs(run, chosen, PAIRS, rows=rows):
            source, target = (table[f"{side}_text"].to_pylist() for side in SIDES)
            # The first block has the best pairs.
            typical = typical or Suspects.of(source, target, languages=run.languages)
            suspects = replace(
                typical,
                source=source,
                target=target,
                lists=[of_side[table[f"{side}_row"]] for side, of_side in lists.items()],
            )
            rejections = reasons(suspects, options.filters)
            passed += rejections.count("")
            reason = pa.array(rejections, pa.string())
            judged = table.select(schema.names).append_column("reason", reason)
            kept.write_table(judged.filter(pc.field("reason") == "").select(schema.names))
            rejected.write_table(judged.filter(pc.field("reason") != ""))
            meter.advance(len(table))
    return {**chosen.pairs.facts, "pairs": passed}


def _list_counts(chosen: ChosenPairs, scope: str) -> dict[str, IntArray]:
    counts = {}
    for side, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        rows = chosen.of_side(side)[0].shard.corpus.facts["read"]
        lists = [occurrences(shard.load(scope).ids, rows) for shard in chosen.of_side(other)]
        counts[side] = np.sum(lists, axis=0)
    return counts


def drop_near_copies(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Remove pairs whose texts are near-copies of a better pair's texts.

    Pairs that ``keep_pairs`` would drop by threshold or probability are also removed. Without
    ``options.near_duplicates``, ``chosen`` is returned unchanged. Errors are of ``signatures``.
    """
    if not run.options.near_duplicates:
        return chosen
    pairs, rows = chosen.pairs, _range_of_rule(run, chosen)
    key = content_key(
        "near copies within",
        pairs=pairs.files[PAIRS],
        facts=pairs.facts,
        rows=[rows.start, rows.stop],
        sentences=[shard.shard.digest for shard in chosen.shards],
        similarity=SIMILARITY,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        with draft.scratch() as scratch:
            hashes = _signatures(run, chosen, rows, scratch / "signatures")
            copies = near_copies(hashes, held=max(MIN_HELD, spare_bytes(run.options) // HELD_BYTES))
        _write_masked(pairs, ~copies, draft)
        count = int(copies.sum())
        return {**pairs.facts, "pairs": len(copies) - count, "near_copies": count}

    return replace(chosen, pairs=produce(run.folder.distinct, key=key, write=write))


def _signatures(
    run: RunContext, chosen: ChosenPairs, rows: range, path: Path
) -> NDArray[np.uint32]:
    stage = pair_meter(run, chosen, PAIRS, "near-copies", limit=rows.stop)
    with stage as meter, path.open("wb") as file:
        for table in completed_pairs(run, chosen, PAIRS, rows=rows):
            texts = [table[f"{side}_text"].to_pylist() for side in SIDES]
            file.write(signatures(*texts).data)
            meter.advance(len(table))
    if not path.stat().st_size:
        return np.empty((0, HASHES), np.uint32)
    return np.memmap(path, dtype=np.uint32, mode="r").reshape(-1, HASHES)
