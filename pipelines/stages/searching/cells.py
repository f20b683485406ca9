"""The cells of a cell join: trained once for a run, and found once for each shard's vectors."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miner.arrays import evenly
from miner.knn.cells import Reach, find_reach, nearest_cells, train_cells
from miner.knn.method import POINTS, CellSpec, default_cells
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CELLS, CENTROIDS, SIDES
from miner.threads import all_threads
from pipelines.context import RunContext
from pipelines.references import EmbeddedShard, SearchableShard, SideVectors
from pipelines.stages.searching.recall import recall_samples, sampled_positions, search_sample


def trained_cells(run: RunContext, spec: CellSpec, shards: Sequence[EmbeddedShard]) -> Artefact:
    """Train the cells on vectors at an even stride through both sides; seals ``indexes/cells``.

    Neither the sample nor its order depends on how the sides are cut into shards.

    Raises:
        ValueError: more cells than sentences.
    """
    of_sides = [[shard for shard in shards if shard.shard.side == side] for side in SIDES]
    sides = [SideVectors(side) for side in of_sides]
    count = spec.count or default_cells(max(len(side) for side in sides))
    key = content_key(
        "cells in reach",
        vectors=[shard.content for shard in shards],
        count=count,
        probes=spec.probes,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        sample = _sample(sides, POINTS * count)
        with all_threads():
            with run.monitor.stage("train", len(sample), "sentences", "cells") as meter:
                centroids = train_cells(sample, count)
                meter.advance(len(sample))
            reach = find_reach(*_sampled(run, of_sides), centroids, probes=spec.probes)
        draft.array(CENTROIDS, centroids)
        return {"cells": len(centroids), "sample": len(sample), "reach": [*reach]}

    return produce(run.folder.cells, key=key, write=write)


def _sample(sides: Sequence[SideVectors], size: int) -> NDArray[np.float32]:
    """Return at most ``size`` vectors, each side's share by its number."""
    total = sum(len(side) for side in sides)
    shares = [min(len(side), -(-size * len(side) // total)) for side in sides]
    return np.concatenate(
        [side.take(evenly(len(side), share)) for side, share in zip(sides, shares, strict=True)]
    )


def _sampled(
    run: RunContext, sides: Sequence[Sequence[EmbeddedShard]]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return some rows of both sides, and the nearest on the other side of each: (N, D)."""
    rows, nearest = [], []
    for sample in recall_samples(sides):
        own, other = SideVectors(sample.shards), SideVectors(sample.others)
        ids = np.concatenate([part.load()[1].ids[:, 0] for part in search_sample(run, sample)])
        positions, places = np.unique(ids, return_inverse=True)
        rows.append(own.take(sampled_positions(own)))
        nearest.append(other.take(positions)[places])
    return np.concatenate(rows), np.concatenate(nearest)


def assigned_cells(
    run: RunContext, spec: CellSpec, embedded: EmbeddedShard, cells: Artefact
) -> Artefact:
    """Find the nearest cells of a shard's vectors; seals ``indexes/SIDE/INDEX``.

    ``cells.npy`` is int16 or int32 (n, p), by the fact ``cells``: how many there are.
    """
    key = content_key(
        "assign",
        cells=cells.files[CENTROIDS],
        vectors=embedded.content,
        probes=spec.probes,
        reach=cells.facts["reach"],
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        centroids, reach = np.load(cells.file(CENTROIDS)), Reach(*cells.facts["reach"])
        find = partial(nearest_cells, centroids=centroids, probes=spec.probes, reach=reach)
        with run.monitor.stage("index", len(embedded), "sentences", embedded.shard.name) as meter:
            found = [find(np.empty((0, embedded.dim), dtype=np.float32))]
            for units in embedded.unit_blocks():
                found.append(find(units))
                meter.advance(len(units))
        kind = np.min_scalar_type(-len(centroids))
        draft.array(CELLS, np.concatenate(found).astype(kind))
        return {"cells": len(centroids)}

    return produce(run.folder.index(embedded.shard.name), key=key, write=write)


def assigned_to(searchable: SearchableShard) -> Artefact:
    """Return the cells of a shard's vectors."""
    assert searchable.index is not None, "a cell join needs the cells of every shard"
    return searchable.index


def load_cells(assigned: Artefact) -> NDArray[np.signedinteger]:
    """Map the nearest cells of a shard's vectors into memory."""
    cells: NDArray[np.signedinteger] = np.load(assigned.file(CELLS), mmap_mode="r")
    return cells
