"""Choose how to search, and prepare an index or cells for each shard."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from miner.arrays import Matrix, evenly_spaced, load_array
from miner.knn.cells import ProbeRadius, fit_probe_radius, nearest_cells, train_cells
from miner.knn.core.rescore import check_search
from miner.knn.method import (
    POINTS,
    CellSpec,
    CorpusMethod,
    Exact,
    IndexSpec,
    auto_method,
    default_cells,
)
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CELLS, CENTROIDS, CORPUS
from miner.threads import use_all_threads
from pipelines.context import RunContext
from pipelines.options import MiningOptions
from pipelines.references import EmbeddedShard, SearchableShard, SideVectors, collect_sides
from pipelines.stages.encode import count_dropped
from pipelines.stages.reading.read import collect_rejected
from pipelines.stages.searching.recall import recall_samples, sampled_positions, search_sample

logger = logging.getLogger(__name__)

Shards: TypeAlias = Sequence[EmbeddedShard]


def prepare_sides(run: RunContext, shards: Shards) -> list[list[SearchableShard]]:
    """Write rejected records, and choose the search method of both sides.

    Lists of source and of target shards are returned, with the method and any trained cells.
    ValueError says that a side has no usable vector, dimensions differ, a shard is missing or
    repeated, rejected records exceed ``options.max_rejected``, or cells exceed vectors.
    """
    options = run.options
    sides = collect_sides(shards)
    collect_rejected(run, sides)
    for name, embedded in sides.items():
        _check_usable(options.side(name).path, embedded)
    all_shards = [*sides.values()]
    check_search(*(np.empty((0, embedded[0].dim)) for embedded in all_shards), k=options.k)
    rows = [len(SideVectors(embedded)) for embedded in all_shards]
    if options.k > (smallest := min(rows)):
        line = "-k %d: a side has %d sentences, all neighbours of each sentence of the other side"
        logger.info(line, options.k, smallest)
    method = _choose_method(options, rows)
    cells = _trained_cells(run, method, all_shards) if isinstance(method, CellSpec) else None
    return [
        [SearchableShard(embedded=embedded, method=method, index=cells) for embedded in side]
        for side in all_shards
    ]


def _check_usable(corpus: object, shards: Shards) -> None:
    counts = count_dropped(shards)
    if sum(embedded.shard.rows for embedded in shards) == counts.total():
        why = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        raise ValueError(
            f"{corpus}: no sentence has a usable vector ({why}); check the encoder or the "
            "embeddings"
        )


def _choose_method(options: MiningOptions, rows: Sequence[int]) -> CorpusMethod:
    if CORPUS not in options.scopes:
        return Exact()
    if options.method is not None:
        return options.method
    method = auto_method(*rows)
    if not isinstance(method, Exact):
        logger.info("index auto: %s x %s sentences: %s", *rows, method)
    return method


def _trained_cells(run: RunContext, spec: CellSpec, all_shards: Sequence[Shards]) -> Artefact:
    sides = [SideVectors(shards) for shards in all_shards]
    count = spec.count or default_cells(max(map(len, sides)))
    content = [shard.content for shards in all_shards for shard in shards]
    key = content_key("cells in reach", vectors=content, count=count, probes=spec.probes)

    def write(draft: Draft) -> Mapping[str, Any]:
        sample = _sample(sides, POINTS * count)
        with use_all_threads():
            with run.monitor.stage("train", len(sample), "sentences", "cells") as meter:
                centroids = train_cells(sample, count)
                meter.advance(len(sample))
            reach = fit_probe_radius(*_sampled(run, all_shards), centroids, probes=spec.probes)
        draft.array(CENTROIDS, centroids)
        return {"cells": len(centroids), "sample": len(sample), "reach": [*reach]}

    return produce(run.folder.cells, key=key, write=write)


def _sample(sides: Sequence[SideVectors], size: int) -> Matrix:
    total = sum(map(len, sides))
    shares = [min(len(side), -(-size * len(side) // total)) for side in sides]
    parts = zip(sides, shares, strict=True)
    return np.concatenate([side.take(evenly_spaced(len(side), share)) for side, share in parts])


def _sampled(run: RunContext, sides: Sequence[Shards]) -> tuple[Matrix, Matrix]:
    rows, nearest = [], []
    for sample in recall_samples(*sides):
        queries, base = SideVectors(sample.shards), SideVectors(sample.others)
        ids = np.concatenate([part.load()[1].ids[:, 0] for part in search_sample(run, sample)])
        positions, inverse = np.unique(ids, return_inverse=True)
        rows.append(queries.take(sampled_positions(queries)))
        nearest.append(base.take(positions)[inverse])
    return np.concatenate(rows), np.concatenate(nearest)


def train_side(run: RunContext, side: Sequence[SearchableShard]) -> Sequence[SearchableShard]:
    """Train the FAISS index of a side, and return the side's shards with it.

    For other methods, the side is returned. ValueError says that FAISS cannot train the index.
    """
    if not isinstance(method := side[0].method, IndexSpec):
        return side
    from pipelines.stages.searching.index_search import trained_index  # loads FAISS

    trained = trained_index(run, [shard.embedded for shard in side], method)
    return [replace(shard, index=trained) for shard in side]


def fill_index(run: RunContext, shard: SearchableShard) -> SearchableShard:
    """Fill the index of a shard, or find its rows' cells, and save it.

    A shard without ``index`` is returned unchanged. ValueError says that FAISS cannot add vectors.
    """
    if shard.index is None:
        return shard
    if isinstance(shard.method, CellSpec):
        index = _assigned_cells(run, shard.method, shard.embedded, shard.index)
    else:
        from pipelines.stages.searching.index_search import filled_index  # loads FAISS

        index = filled_index(run, shard.embedded, shard.index)
    return replace(shard, index=index)


def _assigned_cells(
    run: RunContext, spec: CellSpec, embedded: EmbeddedShard, cells: Artefact
) -> Artefact:
    key = content_key(
        "assign",
        cells=cells.files[CENTROIDS],
        vectors=embedded.content,
        probes=spec.probes,
        reach=cells.facts["reach"],
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        centroids, reach = load_array(cells.file(CENTROIDS)), ProbeRadius(*cells.facts["reach"])
        find = partial(nearest_cells, centroids=centroids, probes=spec.probes, reach=reach)
        with run.monitor.stage("index", len(embedded), "sentences", embedded.shard.name) as meter:
            blocks = [find(np.empty((0, embedded.dim), dtype=np.float32))]
            for units in embedded.unit_blocks():
                blocks.append(find(units))
                meter.advance(len(units))
        dtype = np.min_scalar_type(-len(centroids))
        draft.array(CELLS, np.concatenate(blocks).astype(dtype))
        return {"cells": len(centroids)}

    return produce(run.folder.index(embedded.shard.name), key=key, write=write)
