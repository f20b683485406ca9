"""The search through indexes: a shard's neighbours in the whole other side, without tiles.

All indexes of the other side are asked one after the other, and their candidates are put in order
by their own products, which are comparable as the indexes share what was trained. Only the best are
rescored, at the end: indexes with compressed codes would else find more in more shards.
"""

from collections.abc import Sequence

import numpy as np

from miner.arrays import NO_NEIGHBOUR, Matrix, Neighbours
from miner.knn.core.rescore import merge, rescore
from miner.knn.faiss_index import CANDIDATES_PER_NEIGHBOUR, search_index, set_breadth
from miner.knn.gpu.faiss_gpu import on_gpus
from miner.knn.method import IndexSpec
from miner.storage.artefacts import content_key
from miner.storage.layout import FILLED
from miner.storage.vectors.indexes import read_index
from pipelines.context import RunContext
from pipelines.progress import Meter
from pipelines.references import EmbeddedShard, SearchableShard, SideVectors

QUERIES = 1 << 14  # searched at a time; between them progress is reported
RESCORED = 1 << 12  # queries whose candidates' vectors are in memory: at most 100 MB at 384 dims


def lookup_key(run: RunContext, embedded: EmbeddedShard, others: Sequence[SearchableShard]) -> str:
    """Return the key of what ``look_up`` finds."""
    return content_key(
        "look up",
        queries=embedded.content,
        others=[[*other.embedded.content, _digest(other)] for other in others],
        search=_spec(others[0]).search,
        k=run.options.k,
    )


def look_up(
    run: RunContext, embedded: EmbeddedShard, others: Sequence[SearchableShard]
) -> Neighbours:
    """Find the neighbours of one shard's rows in the whole other side; ids are rows of it."""
    queries = embedded.unit_vectors()
    base = SideVectors([other.embedded for other in others])
    total = len(queries) * len(base)
    with run.monitor.stage("search", total, "similarities", embedded.shard.name) as meter:
        candidates = _candidates(queries, others, base, k=run.options.k, meter=meter)
        found = _rescore(queries, base, candidates, k=min(run.options.k, len(base)))
    rows = np.concatenate([other.embedded.row_ids() for other in others])
    ids = np.where(found.ids == NO_NEIGHBOUR, NO_NEIGHBOUR, rows[found.ids])
    return Neighbours(ids=ids, cosines=found.cosines)


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
    meter: Meter,
) -> Neighbours:
    """Return the best candidates by the indexes' own products; ids are positions in ``base``."""
    count = min(k * CANDIDATES_PER_NEIGHBOUR, len(base))
    best = Neighbours.none(len(queries), count)
    for other, start, stop in zip(others, base.starts, base.starts[1:], strict=False):
        if len(queries) and start < stop:
            found = _search(queries, other, count=min(count, stop - start), meter=meter)
            found.ids[found.ids != NO_NEIGHBOUR] += start
            best = merge([best, found], k=count)
    return best


def _search(queries: Matrix, other: SearchableShard, *, count: int, meter: Meter) -> Neighbours:
    """Return the candidates of one shard's index; ids are positions in that shard."""
    assert other.index is not None
    index = read_index(other.index.file(FILLED), mapped=True)
    set_breadth(index, _spec(other))
    index = on_gpus(index, queries[:1], count=count)
    found = Neighbours.none(len(queries), count)
    for start in range(0, len(queries), QUERIES):
        block = slice(start, start + QUERIES)
        part = search_index(index, queries[block], count=count)
        found.ids[block], found.cosines[block] = part.ids, part.cosines
        meter.advance(len(part) * index.ntotal)
    return found


def _rescore(queries: Matrix, base: SideVectors, candidates: Neighbours, *, k: int) -> Neighbours:
    """Return the exact best of the candidates; reads the candidates' vectors from disk."""
    found = Neighbours.none(len(queries), k)
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
