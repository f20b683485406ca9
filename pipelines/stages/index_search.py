"""The search through indexes: a shard's neighbours in the whole other side, without tiles.

All indexes of the other side are asked one after the other, and their candidates are put in order
by their own products, which are comparable as the indexes share what was trained. Only the best are
rescored, at the end: indexes with compressed codes would else find more in more shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from miner.knn.method import IndexSpec
from miner.storage.artefacts import content_key
from pipelines import progress
from pipelines.options import MiningOptions
from pipelines.stages.encode import ROWS, VECTORS, EmbeddedShard, SideVectors
from pipelines.stages.index import FILLED, SearchableShard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from miner.arrays import Neighbours

    Matrix = NDArray[np.float32]

QUERIES = 1 << 14  # searched at a time; between them progress is reported
RESCORED = 1 << 12  # queries whose candidates' vectors are in memory: at most 100 MB at 384 dims


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """A shard whose neighbours are to be looked up in the index of a shard of the other side."""

    embedded: EmbeddedShard
    other: SearchableShard


def lookup_key(options: MiningOptions, lookups: Sequence[Lookup]) -> str:
    """The key of what ``look_up`` finds."""
    first, others = lookups[0], _in_order(lookups)
    return content_key(
        "look up",
        queries=first.embedded.vectors.files[VECTORS],
        others=[
            [*(other.embedded.vectors.files[name] for name in (ROWS, VECTORS)), _digest(other)]
            for other in others
        ],
        search=_spec(first.other).search,
        k=options.k,
    )


def look_up(options: MiningOptions, lookups: Sequence[Lookup]) -> Neighbours:
    """The neighbours of one shard's rows in all shards of the other side; ids are rows of it."""
    import numpy as np

    from miner.arrays import NO_NEIGHBOUR, Neighbours

    others = _in_order(lookups)
    queries = lookups[0].embedded.unit_vectors()
    base = SideVectors([other.embedded for other in others])
    part = lookups[0].embedded.shard.name
    with progress.stage("search", len(queries) * len(base), "similarities", part) as meter:
        candidates = _candidates(queries, others, base, k=options.k, meter=meter)
        found = _rescore(queries, base, candidates, k=min(options.k, len(base)))
    rows = np.concatenate([other.embedded.row_ids() for other in others])
    ids = np.where(found.ids == NO_NEIGHBOUR, NO_NEIGHBOUR, rows[found.ids])
    return Neighbours(ids=ids, cosines=found.cosines)


def _in_order(lookups: Sequence[Lookup]) -> list[SearchableShard]:
    others = [lookup.other for lookup in lookups]
    return sorted(others, key=lambda other: other.embedded.shard.index)


def _spec(other: SearchableShard) -> IndexSpec:
    assert isinstance(other.method, IndexSpec), "looked up in a shard without an index"
    return other.method


def _digest(other: SearchableShard) -> str:
    assert other.index is not None, "looked up in a shard without an index"
    return other.index.files[FILLED]


def _candidates(
    queries: Matrix,
    others: Sequence[SearchableShard],
    base: SideVectors,
    *,
    k: int,
    meter: progress.Meter,
) -> Neighbours:
    """The best candidates by the indexes' own products; ids are positions in ``base``."""
    from miner.arrays import NO_NEIGHBOUR
    from miner.knn.core.rescore import merge
    from miner.knn.faiss_index import CANDIDATES_PER_NEIGHBOUR

    count = min(k * CANDIDATES_PER_NEIGHBOUR, len(base))
    best = _nothing(len(queries), count)
    for other, start, stop in zip(others, base.starts, base.starts[1:], strict=False):
        if len(queries) and start < stop:
            found = _search(queries, other, count=min(count, stop - start), meter=meter)
            found.ids[found.ids != NO_NEIGHBOUR] += start
            best = merge([best, found], k=count)
    return best


def _search(
    queries: Matrix, other: SearchableShard, *, count: int, meter: progress.Meter
) -> Neighbours:
    """Return the candidates of one shard's index; ids are positions in that shard."""
    from miner.knn.faiss_index import search_index, set_breadth
    from miner.knn.gpu.faiss_gpu import on_gpus
    from miner.storage.vectors.indexes import map_index

    assert other.index is not None
    index = map_index(other.index.file(FILLED))
    set_breadth(index, _spec(other))
    index = on_gpus(index, queries[:1], count=count)
    found = _nothing(len(queries), count)
    for start in range(0, len(queries), QUERIES):
        block = slice(start, start + QUERIES)
        part = search_index(index, queries[block], count=count)
        found.ids[block], found.cosines[block] = part.ids, part.cosines
        meter.advance(len(part) * index.ntotal)
    return found


def _rescore(queries: Matrix, base: SideVectors, candidates: Neighbours, *, k: int) -> Neighbours:
    """Return the exact best of the candidates; reads the candidates' vectors from disk."""
    import numpy as np

    from miner.arrays import NO_NEIGHBOUR
    from miner.knn.core.rescore import rescore

    found = _nothing(len(queries), k)
    for start in range(0, len(queries), RESCORED):
        block = slice(start, start + RESCORED)
        ids = candidates.ids[block]
        positions = np.unique(ids[ids != NO_NEIGHBOUR])
        if not len(positions):
            continue  # cells may be empty
        places = np.where(ids == NO_NEIGHBOUR, NO_NEIGHBOUR, np.searchsorted(positions, ids))
        part = rescore(queries[block], base.take(positions), places, k=k)
        found.ids[block] = np.where(part.ids == NO_NEIGHBOUR, NO_NEIGHBOUR, positions[part.ids])
        found.cosines[block] = part.cosines
    return found


def _nothing(rows: int, count: int) -> Neighbours:
    import numpy as np

    from miner.arrays import NO_NEIGHBOUR, Neighbours

    return Neighbours(
        ids=np.full((rows, count), NO_NEIGHBOUR),
        cosines=np.full((rows, count), -np.inf, dtype=np.float32),
    )
