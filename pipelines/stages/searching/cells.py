"""The cells of a cell join: trained once for a run, and found once for each shard's vectors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miner.knn.cells import nearest_cells, train_cells
from miner.knn.method import POINTS, CellSpec, default_cells
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CELLS, CENTROIDS, SIDES
from miner.threads import all_threads
from pipelines.context import RunContext
from pipelines.references import EmbeddedShard, SearchableShard, SideVectors


def trained_cells(run: RunContext, spec: CellSpec, shards: Sequence[EmbeddedShard]) -> Artefact:
    """Train the cells on vectors at an even stride through both sides; seals ``indexes/cells``.

    Neither the sample nor its order depends on how the sides are cut into shards.

    Raises:
        ValueError: more cells than sentences.
    """
    sides = [SideVectors([shard for shard in shards if shard.shard.side == side]) for side in SIDES]
    count = spec.count or default_cells(max(len(side) for side in sides))
    key = content_key("even cells", vectors=[shard.content for shard in shards], count=count)

    def write(draft: Draft) -> Mapping[str, Any]:
        sample = _sample(sides, POINTS * count)
        meters = run.monitor.stage("train", len(sample), "sentences", "cells")
        with meters as meter, all_threads():
            centroids = train_cells(sample, count)
            meter.advance(len(sample))
        draft.array(CENTROIDS, centroids)
        return {"cells": len(centroids), "sample": len(sample)}

    return produce(run.folder.cells, key=key, write=write)


def _sample(sides: Sequence[SideVectors], size: int) -> NDArray[np.float32]:
    """Return at most ``size`` vectors, each side's share by its number."""
    total = sum(len(side) for side in sides)
    shares = [min(len(side), -(-size * len(side) // total)) for side in sides]
    return np.concatenate(
        [
            side.take(np.arange(share) * len(side) // max(1, share))
            for side, share in zip(sides, shares, strict=True)
        ]
    )


def assigned_cells(
    run: RunContext, spec: CellSpec, embedded: EmbeddedShard, cells: Artefact
) -> Artefact:
    """Find the nearest cells of a shard's vectors; seals ``indexes/SIDE/INDEX``.

    ``cells.npy`` is int16 or int32 (n, probes), by the fact ``cells``: how many there are.
    """
    key = content_key(
        "assign",
        cells=cells.files[CENTROIDS],
        vectors=embedded.content,
        probes=spec.probes,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        centroids = np.load(cells.file(CENTROIDS))
        with run.monitor.stage("index", len(embedded), "sentences", embedded.shard.name) as meter:
            found = [np.empty((0, min(spec.probes, len(centroids))), dtype=np.int64)]
            for units in embedded.unit_blocks():
                found.append(nearest_cells(units, centroids, probes=spec.probes))
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
