"""The search stage: tiles of source by target shards to sealed neighbours of every shard."""

from __future__ import annotations

import functools
import itertools
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from pipelines import progress
from pipelines.embedding import ROWS, VECTORS, EmbeddedShard, dropped
from pipelines.options import SOURCE, TARGET, MiningOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from miner.arrays import Neighbours

logger = logging.getLogger(__name__)

# Past this many similarities (a million sentences a side) exact search takes hours on a laptop.
EXACT_SIMILARITIES = 10**12


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Two shards to be searched against each other, by ``exact`` or a FAISS factory string.

    ``part`` says which tile of how many, such as ``2/6``; empty for a single one.
    """

    source: EmbeddedShard
    target: EmbeddedShard
    method: str
    part: str


@dataclass(frozen=True, kw_only=True)
class Partial:
    """One side's neighbours from one tile: files ``SIDE.ids.npy`` and ``SIDE.cosines.npy``."""

    embedded: EmbeddedShard
    tile: Artefact


@dataclass(frozen=True, kw_only=True)
class ShardNeighbours:
    """A shard's neighbours in the whole other side, sealed: ids are rows of the corpus."""

    embedded: EmbeddedShard
    neighbours: Artefact

    def load(self) -> Neighbours:
        """The neighbours of the rows of ``embedded.row_ids()``."""
        return _load(self.neighbours, self.embedded.shard.side)


def plan_tiles(options: MiningOptions, shards: Sequence[EmbeddedShard]) -> list[Tile]:
    """Every source shard with every target shard, and how to search them.

    Raises:
        ValueError: no vector of a side can be mined.
    """
    sides = {
        side: sorted(
            (embedded for embedded in shards if embedded.shard.side == side),
            key=lambda embedded: embedded.shard.index,
        )
        for side in (SOURCE, TARGET)
    }
    for side, embedded in sides.items():
        _check_usable(options.side(side).path, embedded)
    method = _choose_method(options, sides)
    tiles = list(itertools.product(sides[SOURCE], sides[TARGET]))
    return [
        Tile(
            source=source,
            target=target,
            method=method,
            part=f"{number}/{len(tiles)}" if len(tiles) > 1 else "",
        )
        for number, (source, target) in enumerate(tiles, start=1)
    ]


def _check_usable(corpus: Path, shards: Sequence[EmbeddedShard]) -> None:
    counts = dropped(shards)
    if sum(embedded.shard.rows for embedded in shards) == counts.total():
        why = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        raise ValueError(
            f"{corpus}: none of its sentences has a vector that can be mined ({why}); "
            "check the encoder or the embeddings"
        )


def _choose_method(options: MiningOptions, sides: Mapping[str, Sequence[EmbeddedShard]]) -> str:
    if options.index != "auto":
        return options.index
    rows = {side: sum(embedded.shard.rows for embedded in shards) for side, shards in sides.items()}
    largest = max(embedded.shard.rows for shards in sides.values() for embedded in shards)
    method = auto_method(rows[SOURCE], rows[TARGET], largest=largest)
    if method != "exact":
        logger.info("index auto: %s x %s sentences are searched by %s", *rows.values(), method)
    return method


def auto_method(sources: int, targets: int, *, largest: int) -> str:
    """What ``--index auto`` is for so many sentences; the ``largest`` shard holds so many."""
    if sources * targets <= EXACT_SIMILARITIES:
        return "exact"
    cells = 1 << round(math.log2(4 * math.sqrt(largest)))  # the FAISS guidelines' 4 sqrt(n)
    return f"IVF{cells},Flat"


def search_tile(options: MiningOptions, tile: Tile) -> list[Partial]:
    """Both directions of one tile; ids are rows of the corpora."""
    source, target = tile.source, tile.target
    key = content_key(
        "search",
        source=[source.vectors.files[name] for name in (ROWS, VECTORS)],
        target=[target.vectors.files[name] for name in (ROWS, VECTORS)],
        k=options.k,
        method=tile.method,
    )
    name = f"{source.shard.index:05d}-{target.shard.index:05d}"

    def write(draft: Draft) -> Mapping[str, Any]:
        forward, backward = _search(options, tile)
        _save(draft, SOURCE, forward, ids=target.row_ids())
        _save(draft, TARGET, backward, ids=source.row_ids())
        return {"method": tile.method}

    artefact = produce(options.work_dir / "tiles" / name, key=key, write=write)
    return [Partial(embedded=source, tile=artefact), Partial(embedded=target, tile=artefact)]


def _search(options: MiningOptions, tile: Tile) -> tuple[Neighbours, Neighbours]:
    source, target = tile.source.unit_vectors(), tile.target.unit_vectors()
    similarities = len(source) * len(target)
    with progress.stage("search", similarities, "similarities", tile.part) as meter:
        if tile.method == "exact":
            from miner.knn.exact import search_both

            return search_both(
                source,
                target,
                k=options.k,
                precision=options.product_precision,
                progress=meter.advance,
            )
        from miner.knn.faiss_index import search_index_both

        found = search_index_both(source, target, factory=tile.method, k=options.k)
        meter.advance(similarities)
        return found


def merge_partials(options: MiningOptions, partials: Sequence[Partial]) -> ShardNeighbours:
    """One shard's neighbours in the whole other side from those in each of its shards."""
    from miner.knn.rescore import merge

    embedded = partials[0].embedded
    side = embedded.shard.side
    names = [f"{side}.ids.npy", f"{side}.cosines.npy"]
    parts = sorted([partial.tile.files[name] for name in names] for partial in partials)

    def write(draft: Draft) -> Mapping[str, Any]:
        loaded = (_load(partial.tile, side) for partial in partials)  # two at a time in memory
        merged = functools.reduce(lambda one, two: merge([one, two], k=options.k), loaded)
        _save(draft, side, merged, ids=None)
        return {}

    key = content_key("merge", parts=parts, k=options.k)
    folder = options.work_dir / "neighbours" / embedded.shard.name
    return ShardNeighbours(embedded=embedded, neighbours=produce(folder, key=key, write=write))


def _save(
    draft: Draft, side: str, neighbours: Neighbours, *, ids: NDArray[np.int64] | None
) -> None:
    """Write neighbours; ``ids`` maps positions to rows of the corpus."""
    import numpy as np

    from miner.arrays import NO_NEIGHBOUR

    found = neighbours.ids
    if ids is not None:
        found = np.where(found == NO_NEIGHBOUR, NO_NEIGHBOUR, ids[found])
    draft.array(f"{side}.ids.npy", found)
    draft.array(f"{side}.cosines.npy", neighbours.cosines)


def _load(artefact: Artefact, side: str) -> Neighbours:
    import numpy as np

    from miner.arrays import Neighbours

    return Neighbours(
        ids=np.load(artefact.file(f"{side}.ids.npy")),
        cosines=np.load(artefact.file(f"{side}.cosines.npy")),
    )
