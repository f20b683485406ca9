"""The last stages: score and select pairs, then write them with their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from pipelines import progress
from pipelines.embedding import ROWS
from pipelines.options import SOURCE, TARGET, MiningOptions
from pipelines.reading import DUPLICATES, Shard
from pipelines.searching import ShardNeighbours

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from miner.arrays import Neighbours, Pairs

PAIRS = "pairs.parquet"
EXPORT_ROWS = 32_768


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The chosen pairs, sealed as rows and scores, best first, and what they were chosen from."""

    pairs: Artefact
    shards: Sequence[ShardNeighbours]


def select_pairs(options: MiningOptions, shards: Sequence[ShardNeighbours]) -> Choice:
    """Score all candidates and choose among them; seals ``pairs``."""
    from miner.selection import candidate_pairs, select

    ordered = sorted(shards, key=lambda found: found.embedded.shard.index)
    sources = [found for found in ordered if found.embedded.shard.side == SOURCE]
    targets = [found for found in ordered if found.embedded.shard.side == TARGET]
    key = content_key(
        "select",
        neighbours=[sorted(found.neighbours.files.items()) for found in (*sources, *targets)],
        rows=[found.embedded.vectors.files[ROWS] for found in (*sources, *targets)],
        margin=options.margin,
        retrieval=options.retrieval,
        threshold=repr(options.threshold),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        import pyarrow.parquet as pq

        with progress.stage("select", None, "candidates") as meter:
            (source_ids, forward), (target_ids, backward) = _whole(sources), _whole(targets)
            candidates = candidate_pairs(
                forward,
                backward,
                source_ids=source_ids,
                target_ids=target_ids,
                margin=options.margin,
            )
            chosen = select(candidates, retrieval=options.retrieval, threshold=options.threshold)
            meter.advance(len(candidates))
            with draft.file(PAIRS) as path:
                pq.write_table(_numbers(chosen), path)
        return {"candidates": len(candidates), "pairs": len(chosen)}

    pairs = produce(options.work_dir / "pairs", key=key, write=write)
    return Choice(pairs=pairs, shards=ordered)


def _whole(shards: Sequence[ShardNeighbours]) -> tuple[NDArray[np.int64], Neighbours]:
    """One side's rows and their neighbours, ascending by row."""
    import numpy as np

    from miner.arrays import Neighbours

    parts = [found.load() for found in shards]
    return np.concatenate([found.embedded.row_ids() for found in shards]), Neighbours(
        ids=np.concatenate([part.ids for part in parts]),
        cosines=np.concatenate([part.cosines for part in parts]),
    )


def _numbers(pairs: Pairs) -> pa.Table:
    """What the output says of pairs but for their sentences."""
    import numpy as np
    import pyarrow as pa

    from miner.arrays import Direction

    names = np.array(["", *(direction.name.lower() for direction in Direction)])
    return pa.table(
        {
            "score": pairs.score,
            "source_row": pairs.source,
            "target_row": pairs.target,
            "cosine": pairs.cosine,
            "source_mean": pairs.source_mean,
            "target_mean": pairs.target_mean,
            "rank": pairs.rank,
            "direction": names[pairs.direction],
        }
    )


def export_pairs(options: MiningOptions, choice: Choice) -> Choice:
    """Write the chosen pairs with their sentences to ``options.output``."""
    import pyarrow.parquet as pq

    from miner.storage.pairs import write_pairs

    numbers = pq.read_table(choice.pairs.file(PAIRS))
    shards = [found.embedded.shard for found in choice.shards]
    sentences = {
        side: _Sentences([shard for shard in shards if shard.side == side])
        for side in (SOURCE, TARGET)
    }

    def batches() -> Iterator[pa.Table]:
        for start in range(0, len(numbers), EXPORT_ROWS):
            table = numbers.slice(start, EXPORT_ROWS)
            for side, texts in sentences.items():
                for name, column in texts.of(table[f"{side}_row"].to_numpy()).items():
                    table = table.append_column(f"{side}_{name}", column)
            meter.advance(len(table))
            yield table

    with progress.stage("export", len(numbers), "pairs") as meter:
        write_pairs(options.output, batches())
    return choice


class _Sentences:
    """One side's sentences by row."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._table = _large(
            pa.concat_tables(shard.read(["row", "id", "doc", "text"]) for shard in shards)
        )
        self._rows = self._table["row"].to_numpy()
        repeats = _large(pq.read_table(shards[0].corpus.file(DUPLICATES)))
        first_rows = repeats["first_row"].to_numpy()
        by_first = np.argsort(first_rows, kind="stable")
        self._first_rows = first_rows[by_first]
        self._repeated_ids = repeats["id"].take(by_first)

    def of(self, rows: NDArray[np.int64]) -> dict[str, pa.Array]:
        """Columns ``id``, ``doc``, ``text`` and ``duplicates`` of the sentences at ``rows``."""
        import numpy as np
        import pyarrow as pa

        found = self._table.take(np.searchsorted(self._rows, rows))
        starts = np.searchsorted(self._first_rows, rows, side="left")
        counts = np.searchsorted(self._first_rows, rows, side="right") - starts
        offsets = np.concatenate([[0], np.cumsum(counts)])
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
        ids = self._repeated_ids.take(positions).combine_chunks()
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids)
        return {name: found[name] for name in ("id", "doc", "text")} | {"duplicates": lists}


def _large(table: pa.Table) -> pa.Table:
    """With 64-bit offsets into its strings: taking rows of a column past 2 GiB needs them."""
    import pyarrow as pa

    strings = [
        pa.field(field.name, pa.large_string()) if field.type == pa.string() else field
        for field in table.schema
    ]
    return table.cast(pa.schema(strings))
