"""The index stages: a FAISS index for each shard, trained once for its whole side.

What is trained (cells, codebooks, projections) is trained on vectors that are chosen by their place
in the side, and shared by all its shards. So a search finds the same in one shard as in many.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from miner.arrays import evenly
from miner.knn.core.rescore import check_search
from miner.knn.faiss_index import (
    MIN_POINTS,
    add_rows,
    cells_of,
    empty_index,
    train_index,
    training_points,
)
from miner.knn.method import CellSpec, CorpusMethod, Exact, IndexSpec, auto_method
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CORPUS, FILLED, SOURCE, TARGET, TRAINED
from miner.storage.vectors.indexes import read_index, save_index
from pipelines.context import RunContext
from pipelines.options import MiningOptions
from pipelines.references import (
    EmbeddedShard,
    EmbeddedSide,
    SearchableShard,
    SideVectors,
    UnindexedShard,
    whole_sides,
)
from pipelines.stages.encode import dropped
from pipelines.stages.reading.read import collect_rejected
from pipelines.stages.searching.cells import assigned_cells, trained_cells

if TYPE_CHECKING:
    import faiss

logger = logging.getLogger(__name__)


def prepare_sides(run: RunContext, shards: Sequence[EmbeddedShard]) -> list[EmbeddedSide]:
    """Account for what was left out of both sides, and choose how to search them.

    Raises:
        ValueError: no vector of a side can be mined, too much was rejected, or the sides have
            other dimensions.
    """
    options = run.options
    sides = whole_sides(shards)
    collect_rejected(run, sides)
    for name, embedded in sides.items():
        _check_usable(options.side(name).path, embedded)
    source, target = (np.empty((0, embedded[0].dim)) for embedded in sides.values())
    check_search(source, target, k=options.k)
    method = _choose_method(options, sides)
    every = [shard for embedded in sides.values() for shard in embedded]
    cells = trained_cells(run, method, every) if isinstance(method, CellSpec) else None
    return [
        EmbeddedSide(name=name, method=method, shards=sides[name], cells=cells) for name in sides
    ]


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


def train_side(run: RunContext, side: EmbeddedSide) -> list[UnindexedShard]:
    """Train a side's index on vectors at an even stride through the side; seals ``trained``.

    Raises:
        ValueError: the index cannot be trained on this side.
    """
    method = side.method
    trained = _trained(run, side, method) if isinstance(method, IndexSpec) else side.cells
    return [
        UnindexedShard(embedded=embedded, method=side.method, trained=trained)
        for embedded in side.shards
    ]


def _trained(run: RunContext, side: EmbeddedSide, spec: IndexSpec) -> Artefact:
    key = content_key(
        "train",
        vectors=[embedded.content for embedded in side.shards],
        factory=spec.factory,
        build=spec.build,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        index, sample = _train(run, side, spec)
        save_index(draft, TRAINED, index)
        return {"factory": spec.factory, "sample": sample}

    return produce(run.folder.trained(side.name), key=key, write=write)


def _train(run: RunContext, side: EmbeddedSide, spec: IndexSpec) -> tuple[faiss.Index, int]:
    """Return the trained index, and on how many vectors it was trained."""
    vectors = SideVectors(side.shards)
    index = empty_index(spec, vectors.dim)
    count = training_points(index, len(vectors))
    if not count:
        return index, 0
    with run.monitor.stage("train", count, "sentences", side.name) as meter:
        sample = vectors.take(evenly(len(vectors), count))
        train_index(index, sample, factory=spec.factory)
        meter.advance(count)
    cells = cells_of(index)
    if count < MIN_POINTS * cells:
        logger.warning(
            "index %s: the %s %s sentences are fewer than the %d that FAISS wants for each of %d "
            "cells; less will be found",
            *(spec.factory, f"{count:,}", side.name, MIN_POINTS, cells),
        )
    return index, count


def fill_index(run: RunContext, shard: UnindexedShard) -> SearchableShard:
    """Add a shard's vectors to its side's trained index, or find their cells.

    Seals ``indexes/SIDE/INDEX``.

    Raises:
        ValueError: the index is of a kind that takes no vectors without ids.
    """
    embedded, trained = shard.embedded, shard.trained
    if trained is None:
        index = None
    elif isinstance(shard.method, CellSpec):
        index = assigned_cells(run, shard.method, embedded, trained)
    else:
        index = _filled(run, embedded, trained)
    return SearchableShard(embedded=embedded, method=shard.method, index=index)


def _filled(run: RunContext, embedded: EmbeddedShard, trained: Artefact) -> Artefact:
    key = content_key("fill", trained=trained.files[TRAINED], vectors=embedded.content)

    def write(draft: Draft) -> Mapping[str, Any]:
        vectors = embedded.unit_vectors()
        index = read_index(trained.file(TRAINED), mapped=False)
        with run.monitor.stage("index", len(vectors), "sentences", embedded.shard.name) as meter:
            add_rows(index, vectors, factory=trained.facts["factory"])
            meter.advance(len(vectors))
        save_index(draft, FILLED, index)
        return {"rows": len(vectors)}

    return produce(run.folder.index(embedded.shard.name), key=key, write=write)
