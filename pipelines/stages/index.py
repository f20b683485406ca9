"""The index stages: a FAISS index for each shard, trained once for its whole side.

What is trained (cells, codebooks, projections) is trained on vectors that are chosen by their place
in the side, and shared by all its shards. So a search finds the same in one shard as in many.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from miner.knn.method import CellSpec, CorpusMethod, Exact, IndexSpec, auto_method
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CORPUS, SOURCE, TARGET
from pipelines import progress
from pipelines.options import MiningOptions
from pipelines.references import whole_side
from pipelines.stages.cells import assigned_cells, trained_cells
from pipelines.stages.encode import VECTORS, EmbeddedShard, SideVectors, dropped
from pipelines.stages.rejected import check_rejected, collect_rejected

if TYPE_CHECKING:
    import faiss

logger = logging.getLogger(__name__)

TRAINED, FILLED = "trained.faiss", "index.faiss"


@dataclass(frozen=True, kw_only=True)
class Side:
    """All shards of a side, and how the whole other side is searched.

    ``cells`` are the centroids of a cell join.
    """

    name: str
    method: CorpusMethod
    shards: Sequence[EmbeddedShard]
    cells: Artefact | None


@dataclass(frozen=True, kw_only=True)
class UnindexedShard:
    """A shard and its side's trained, empty index or the centroids of cells, if it has any."""

    embedded: EmbeddedShard
    method: CorpusMethod
    trained: Artefact | None


@dataclass(frozen=True, kw_only=True)
class SearchableShard:
    """A shard that can be searched: through its index or by cells, or exactly where it has none.

    The ids in the index are positions in the shard's vectors; ``cells.npy`` has the cells of each.
    """

    embedded: EmbeddedShard
    method: CorpusMethod
    index: Artefact | None


def plan_sides(options: MiningOptions, shards: Sequence[EmbeddedShard]) -> list[Side]:
    """Both sides, what was left out of them, and how to search them.

    Raises:
        ValueError: no vector of a side can be mined, too much was rejected, or the sides have
            other dimensions.
    """
    from miner.knn.core.rescore import check_search

    sides = {
        name: whole_side(shards, name, lambda embedded: embedded.shard) for name in (SOURCE, TARGET)
    }
    check_rejected(
        options, [collect_rejected(options, name, embedded) for name, embedded in sides.items()]
    )
    for name, embedded in sides.items():
        _check_usable(options.side(name).path, embedded)
    check_search(*(embedded[0].stored_vectors() for embedded in sides.values()), k=options.k)
    method = _choose_method(options, sides)
    every = [shard for embedded in sides.values() for shard in embedded]
    cells = trained_cells(options, method, every) if isinstance(method, CellSpec) else None
    return [Side(name=name, method=method, shards=sides[name], cells=cells) for name in sides]


def _check_usable(corpus: object, shards: Sequence[EmbeddedShard]) -> None:
    counts = dropped(shards)
    if sum(embedded.shard.rows for embedded in shards) == counts.total():
        why = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        raise ValueError(
            f"{corpus}: none of its sentences has a vector that can be mined ({why}); "
            "check the encoder or the embeddings"
        )


def _choose_method(
    options: MiningOptions, sides: Mapping[str, Sequence[EmbeddedShard]]
) -> CorpusMethod:
    if CORPUS not in options.scopes:
        return Exact()
    if options.method is not None:
        return options.method
    rows = {name: len(SideVectors(shards)) for name, shards in sides.items()}
    method = auto_method(rows[SOURCE], rows[TARGET])
    if not isinstance(method, Exact):
        logger.info("index auto: %s x %s sentences: %s", *rows.values(), method)
    return method


def train_side(options: MiningOptions, side: Side) -> list[UnindexedShard]:
    """Train a side's index on vectors at an even stride through the side; seals ``trained``.

    Raises:
        ValueError: the index cannot be trained on this side.
    """
    method = side.method
    trained = _trained(options, side, method) if isinstance(method, IndexSpec) else side.cells
    return [
        UnindexedShard(embedded=embedded, method=side.method, trained=trained)
        for embedded in side.shards
    ]


def _trained(options: MiningOptions, side: Side, spec: IndexSpec) -> Artefact:
    from miner.storage.vectors.indexes import save_index

    key = content_key(
        "train",
        vectors=[embedded.vectors.files[VECTORS] for embedded in side.shards],
        factory=spec.factory,
        build=spec.build,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        index, sample = _train(side, spec)
        save_index(draft, TRAINED, index)
        return {"factory": spec.factory, "sample": sample}

    return produce(options.work_dir / "indexes" / side.name / "trained", key=key, write=write)


def _train(side: Side, spec: IndexSpec) -> tuple[faiss.Index, int]:
    """The trained index, and on how many vectors."""
    import numpy as np

    from miner.knn.faiss_index import (
        FEWEST_POINTS,
        cells_of,
        empty_index,
        train_index,
        training_points,
    )

    vectors = SideVectors(side.shards)
    index = empty_index(spec, vectors.dim)
    count = training_points(index, len(vectors))
    if not count:
        return index, 0
    with progress.stage("train", count, "sentences", side.name) as meter:
        sample = vectors.take(np.arange(count) * len(vectors) // count)
        train_index(index, sample, factory=spec.factory)
        meter.advance(count)
    cells = cells_of(index)
    if count < FEWEST_POINTS * cells:
        logger.warning(
            "index %s: the %s %s sentences are fewer than the %d that FAISS wants for each of %d "
            "cells; less will be found",
            *(spec.factory, f"{count:,}", side.name, FEWEST_POINTS, cells),
        )
    return index, count


def fill_index(options: MiningOptions, shard: UnindexedShard) -> SearchableShard:
    """Add a shard's vectors to its side's trained index, or find their cells.

    Seals ``indexes/SIDE/INDEX``.

    Raises:
        ValueError: the index is of a kind that takes no vectors without ids.
    """
    embedded, trained = shard.embedded, shard.trained
    if trained is None:
        index = None
    elif isinstance(shard.method, CellSpec):
        index = assigned_cells(options, shard.method, embedded, trained)
    else:
        index = _filled(options, embedded, trained)
    return SearchableShard(embedded=embedded, method=shard.method, index=index)


def _filled(options: MiningOptions, embedded: EmbeddedShard, trained: Artefact) -> Artefact:
    key = content_key(
        "fill", trained=trained.files[TRAINED], vectors=embedded.vectors.files[VECTORS]
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        from miner.knn.faiss_index import add_rows
        from miner.storage.vectors.indexes import load_index, save_index

        vectors = embedded.unit_vectors()
        index = load_index(trained.file(TRAINED))
        with progress.stage("index", len(vectors), "sentences", embedded.shard.name) as meter:
            add_rows(index, vectors, factory=trained.facts["factory"])
            meter.advance(len(vectors))
        save_index(draft, FILLED, index)
        return {"rows": len(vectors)}

    return produce(options.work_dir / "indexes" / embedded.shard.name, key=key, write=write)
