"""The filter stage: of the chosen pairs, those that no filter rejects."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from miner.filters import Suspects, occurrences, reasons, usual_ratio, usual_script
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import PAIRS, REJECTED, SIDES, SOURCE, TARGET
from pipelines.context import RunContext
from pipelines.references import ChosenPairs
from pipelines.stages.export import completed_pairs, pair_meter


def filter_pairs(run: RunContext, chosen: ChosenPairs) -> ChosenPairs:
    """Part the chosen pairs into those kept and those rejected; seals ``filtered``.

    The first block of pairs says what ratio of lengths is usual. Without filters the pairs stay
    as they are.
    """
    options = run.options
    if not options.filters:
        return chosen
    shards, scope = [found.shard for found in chosen.shards], options.scope
    key = content_key(
        "filter",
        pairs=chosen.pairs.files[PAIRS],
        **chosen.merges_key,
        neighbours=[sorted(found.neighbours[scope].files.items()) for found in chosen.shards],
        sentences=[shard.digest for shard in shards],
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
    ratio: float | None = None
    scripts: tuple[str | None, str | None] = (None, None)
    with (
        draft.file(PAIRS) as kept_path,
        draft.file(REJECTED) as rejected_path,
        pq.ParquetWriter(kept_path, schema) as kept,
        pq.ParquetWriter(rejected_path, schema.append(pa.field("reason", pa.string()))) as rejected,
        pair_meter(run, chosen, PAIRS, "filter") as meter,
    ):
        for table in completed_pairs(run, chosen, PAIRS):
            source, target = (table[f"{side}_text"].to_pylist() for side in SIDES)
            if ratio is None:
                ratio = usual_ratio(source, target)
                scripts = usual_script(source), usual_script(target)
            suspects = Suspects(
                source=source,
                target=target,
                ratio=ratio,
                languages=options.languages,
                scripts=scripts,
                lists=[of_side[table[f"{side}_row"]] for side, of_side in lists.items()],
            )
            found = reasons(suspects, options.filters)
            counts.update(name for names in found for name in names.split(","))
            judged = table.select(schema.names).append_column(
                "reason", pa.array(found, pa.string())
            )
            kept.write_table(judged.filter(pc.field("reason") == "").select(schema.names))
            rejected.write_table(judged.filter(pc.field("reason") != ""))
            meter.advance(len(table))
    kept_pairs = counts.pop("", 0)
    return {**chosen.pairs.facts, "pairs": kept_pairs, "filters": dict(counts)}


def _lists(chosen: ChosenPairs, scope: str) -> dict[str, NDArray[np.int64]]:
    counts = {}
    for side, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        rows = chosen.of_side(side)[0].shard.corpus.facts["read"]
        lists = [occurrences(found.load(scope).ids, rows) for found in chosen.of_side(other)]
        counts[side] = np.sum(lists, axis=0)
    return counts
