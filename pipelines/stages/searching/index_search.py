"""Train, fill and search the FAISS indexes of shards.

The division into shards changes no result. ValueError says that FAISS cannot build an index.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import faiss
import numpy as np

from miner.arrays import NO_NEIGHBOUR, Matrix, Neighbours, evenly_spaced
from miner.knn import faiss_index
from miner.knn.core.rescore import merge, rescore
from miner.knn.method import IndexSpec
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import FILLED, TRAINED
from miner.storage.vectors.indexes import read_index, save_index
from miner.threads import blocks
from pipelines.context import RunContext
from pipelines.progress import Meter
from pipelines.references import EmbeddedShard, SearchableShard, SideVectors, to_row_ids

logger = logging.getLogger(__name__)

QUERIES = 1 << 14  # queries per search and progress report
RESCORED = 1 << 12  # queries whose candidates are in memory, at most 100 MB at 384 dimensions


def trained_index(run: RunContext, shards: Sequence[EmbeddedShard], spec: IndexSpec) -> Artefact:
    """Train a side's index, and save it empty, or raise ValueError."""
    content = [embedded.content for embedded in shards]
    side = shards[0].shard.side
    key = content_key("train", vectors=content, factory=spec.factory, build=spec.build)

    def write(draft: Draft) -> Mapping[str, Any]:
        index, sample = _train(run, SideVectors(shards), spec, side)
        save_index(draft, TRAINED, index)
        return {"factory": spec.factory, "sample": sample}

    return produce(run.folder.trained(side), key=key, write=write)


def _train(
    run: RunContext, vectors: SideVectors, spec: IndexSpec, side: str
) -> tuple[faiss.Index, int]:
    index = faiss_index.empty_index(spec, vectors.dim)
    count = faiss_index.training_points(index, len(vectors))
    if not count:
        return index, 0
    with run.monitor.stage("train", count, "sentences", side) as meter:
        sample = vectors.take(evenly_spaced(len(vectors), count))
        faiss_index.train_index(index, sample, factory=spec.factory)
        meter.advance(count)
    cells = faiss_index.cells_of(index)
    if count < faiss_index.MIN_POINTS * cells:
        logger.warning(
            "index %s: the %s %s sentences are fewer than the %d per cell that FAISS needs for %d "
            "cells, so it will find fewer neighbours; use fewer cells",
            *(spec.factory, f"{count:,}", side, faiss_index.MIN_POINTS, cells),
        )
    return index, count


def filled_index(run: RunContext, embedded: EmbeddedShard, trained: Artefact) -> Artefact:
    """Save a side's index with a shard's vectors, or raise ValueError."""
    key = content_key("fill", trained=trained.files[TRAINED], vectors=embedded.content)

    def write(draft: Draft) -> Mapping[str, Any]:
        vectors = embedded.unit_vectors()
        index = read_index(trained.file(TRAINED), mapped=False)
        with run.monitor.stage("index", len(vectors), "sentences", embedded.shard.name) as meter:
            faiss_index.add_rows(index, vectors, factory=trained.facts["factory"])
            meter.advance(len(vectors))
        save_index(draft, FILLED, index)
        return {"rows": len(vectors)}

    return produce(run.folder.index(embedded.shard.name), key=key, write=write)


def lookup_key(run: RunContext, embedded: EmbeddedShard, others: Sequence[SearchableShard]) -> str:
    """Return the ``content_key`` of all inputs of ``look_up``."""
    return content_key(
        "look up",
        queries=embedded.content,
        others=[[*other.embedded.content, _index(other)[0].files[FILLED]] for other in others],
        search=_index(others[0])[1].search,
        k=run.options.k,
    )


def look_up(
    run: RunContext, embedded: EmbeddedShard, others: Sequence[SearchableShard]
) -> Neighbours:
    """Find the k nearest neighbours of a shard's vectors by FAISS indexes.

    ``others`` are all filled shards of the other side, in order. Neighbours are rescored exactly.
    Lists have length k, or the other side's number of vectors if less. Ids are rows, -1 for none.
    """
    queries = embedded.unit_vectors()
    base = SideVectors([other.embedded for other in others])
    total = len(queries) * len(base)
    with run.monitor.stage("search", total, "similarities", embedded.shard.name) as meter:
        candidates = _candidates(queries, others, base, k=run.options.k, meter=meter)
        neighbours = _rescore(queries, base, candidates, k=min(run.options.k, len(base)))
    return to_row_ids(neighbours, np.concatenate([other.embedded.row_ids() for other in others]))


def _index(other: SearchableShard) -> tuple[Artefact, IndexSpec]:
    assert other.index is not None and isinstance(other.method, IndexSpec)
    return other.index, other.method


def _candidates(
    queries: Matrix, others: Sequence[SearchableShard], base: SideVectors, *, k: int, meter: Meter
) -> Neighbours:
    count = min(k * faiss_index.CANDIDATES_PER_NEIGHBOUR, len(base))
    best = Neighbours.empty(len(queries), count)
    for other, (start, stop) in zip(others, pairwise(base.starts), strict=True):
        if len(queries) and start < stop:
            candidates = _search(queries, other, count=min(count, stop - start), meter=meter)
            candidates.ids[candidates.ids != NO_NEIGHBOUR] += start
            best = merge([best, candidates], k=count)
    return best


def _search(queries: Matrix, other: SearchableShard, *, count: int, meter: Meter) -> Neighbours:
    filled, spec = _index(other)
    index = read_index(filled.file(FILLED), mapped=True)
    faiss_index.set_breadth(index, spec)
    index = faiss_index.on_gpus(index, queries[:1], count=count)
    candidates = Neighbours.empty(len(queries), count)
    for block in blocks(len(queries), QUERIES):
        part = faiss_index.search_index(index, queries[block], count=count)
        candidates.ids[block], candidates.cosines[block] = part.ids, part.cosines
        meter.advance(len(part) * index.ntotal)
    return candidates


def _rescore(queries: Matrix, base: SideVectors, candidates: Neighbours, *, k: int) -> Neighbours:
    neighbours = Neighbours.empty(len(queries), k)
    for block in blocks(len(queries), RESCORED):
        ids = candidates.ids[block]
        positions = np.unique(ids[ids != NO_NEIGHBOUR])
        if not len(positions):
            continue  # cells may be empty
        places = np.where(ids == NO_NEIGHBOUR, NO_NEIGHBOUR, np.searchsorted(positions, ids))
        part = to_row_ids(rescore(queries[block], base.take(positions), places, k=k), positions)
        neighbours.ids[block], neighbours.cosines[block] = part.ids, part.cosines
    return neighbours
