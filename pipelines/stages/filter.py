"""The filter stage: of the chosen pairs, those that no filter rejects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import SOURCE, TARGET
from pipelines.options import MiningOptions
from pipelines.stages.export import completed_pairs
from pipelines.stages.merge import ShardNeighbours
from pipelines.stages.select import PAIRS, REJECTED, Choice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def filter_pairs(options: MiningOptions, choice: Choice) -> Choice:
    """Part the chosen pairs into those kept and those rejected; seals ``filtered``.

    The first block of pairs says what ratio of lengths is usual. Without filters the choice stays
    as it is.
    """
    if not options.filters:
        return choice
    shards, scope = [found.embedded.shard for found in choice.shards], options.scope
    key = content_key(
        "filter",
        pairs=choice.pairs.files[PAIRS],
        neighbours=[sorted(found.neighbours[scope].files.items()) for found in choice.shards],
        sentences=[shard.digest for shard in shards],
        filters=options.filters,
        languages=options.languages,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        return _part(options, choice, draft)

    return replace(choice, pairs=produce(options.work_dir / "filtered", key=key, write=write))


def _part(options: MiningOptions, choice: Choice, draft: Draft) -> Mapping[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from miner.filters import Suspects, reasons, usual_ratio

    schema = pq.read_schema(choice.pairs.file(PAIRS))
    lists = _lists(choice, options.scope) if "hub" in options.filters else {}
    counts: Counter[str] = Counter()
    ratio = None
    with (
        draft.file(PAIRS) as kept_path,
        draft.file(REJECTED) as rejected_path,
        pq.ParquetWriter(kept_path, schema) as kept,
        pq.ParquetWriter(rejected_path, schema.append(pa.field("reason", pa.string()))) as rejected,
    ):
        for table in completed_pairs(options, choice, PAIRS, "filter"):
            source, target = (table[f"{side}_text"].to_pylist() for side in (SOURCE, TARGET))
            if ratio is None:
                ratio = usual_ratio(source, target)
            suspects = Suspects(
                source=source,
                target=target,
                ratio=ratio,
                languages=options.languages,
                lists=[of_side[table[f"{side}_row"]] for side, of_side in lists.items()],
            )
            found = reasons(suspects, options.filters)
            counts.update(name for names in found for name in names.split(","))
            judged = table.select(schema.names).append_column(
                "reason", pa.array(found, pa.string())
            )
            kept.write_table(judged.filter(pc.field("reason") == "").select(schema.names))
            rejected.write_table(judged.filter(pc.field("reason") != ""))
    kept_pairs = counts.pop("", 0)
    return {**choice.pairs.facts, "pairs": kept_pairs, "filters": dict(counts)}


def _lists(choice: Choice, scope: str) -> dict[str, NDArray[np.int64]]:
    """How many neighbour lists of the other side each row of a side is in."""
    import numpy as np

    from miner.filters import occurrences

    counts = {}
    for side, other in ((SOURCE, TARGET), (TARGET, SOURCE)):
        rows = next(_of_side(choice, side)).embedded.shard.corpus.facts["read"]
        lists = [occurrences(found.load(scope).ids, rows) for found in _of_side(choice, other)]
        counts[side] = np.sum(lists, axis=0)
    return counts


def _of_side(choice: Choice, side: str) -> Iterator[ShardNeighbours]:
    return (found for found in choice.shards if found.embedded.shard.side == side)
