"""The merge stage: the neighbours of each shard, from all tiles that it was in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import CORPUS, DOCUMENT, SOURCE, TARGET
from pipelines.options import MiningOptions
from pipelines.references import check_whole, whole_side
from pipelines.stages.encode import EmbeddedShard
from pipelines.stages.index_search import Lookup, look_up, lookup_key
from pipelines.stages.recall import is_measured, measure_recall

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from miner.arrays import Neighbours


@dataclass(frozen=True, kw_only=True)
class Partial:
    """A shard's neighbours from one tile: its files ``SIDE.INDEX.ids.npy`` and ``...cosines.npy``.

    They are in the shards ``others`` of the ``of`` that the other side has. These are ``measured``
    against where the recall of an approximate search is to be told, else that is empty.
    """

    embedded: EmbeddedShard
    others: range
    of: int
    measured: Sequence[EmbeddedShard]
    scope: str
    tile: Artefact


@dataclass(frozen=True, kw_only=True)
class ShardNeighbours:
    """A shard's neighbours on the other side by scope, sealed: ids are rows of the corpus."""

    embedded: EmbeddedShard
    neighbours: Mapping[str, Artefact]

    def load(self, scope: str) -> Neighbours:
        """The neighbours of the rows of ``embedded.row_ids()``."""
        return load_list(self.neighbours[scope].file, self.embedded.shard.side)


def find_neighbours(
    options: MiningOptions, parts: Sequence[Partial] | Sequence[Lookup]
) -> ShardNeighbours:
    """One shard's neighbours on the whole other side, from its parts in all tiles."""
    return ShardNeighbours(
        embedded=parts[0].embedded,
        neighbours={scope: _neighbours(options, parts, scope) for scope in options.scopes},
    )


def _neighbours(
    options: MiningOptions, parts: Sequence[Partial] | Sequence[Lookup], scope: str
) -> Artefact:
    embedded = parts[0].embedded
    side = embedded.shard.side
    partials = [part for part in parts if isinstance(part, Partial) and part.scope == scope]
    lookups = [part for part in parts if isinstance(part, Lookup) and scope == CORPUS]
    if lookups:
        lookups = whole_side(lookups, _other(side), lambda part: part.other.embedded.shard)
    else:
        partials = sorted(partials, key=lambda part: part.others.start)
        found = [index for part in partials for index in part.others]
        check_whole(found, partials[0].of if partials else 1, _other(side))
    key = lookup_key(options, lookups) if lookups else _merge_key(options, partials)

    def write(draft: Draft) -> Mapping[str, Any]:
        found = look_up(options, lookups) if lookups else _merge(options, partials)
        save_list(draft.array, side, found)
        others = [part.other.embedded for part in lookups]
        for part in partials:
            others += part.measured if part.tile.facts["approximate"] else []
        if not others or not is_measured(embedded):
            return {}
        return measure_recall(embedded, others, found, k=options.k)

    folder = options.work_dir / "neighbours" / f"{embedded.shard.name}{scope_suffix(scope)}"
    return produce(folder, key=key, write=write)


def _other(side: str) -> str:
    return TARGET if side == SOURCE else SOURCE


def scope_suffix(scope: str) -> str:
    """What ends the names of artefacts that are of a scope."""
    return "-documents" if scope == DOCUMENT else ""


def _merge_key(options: MiningOptions, partials: Sequence[Partial]) -> str:
    parts = sorted(
        [part.tile.files[f"{list_name(part.embedded)}.{kind}.npy"] for kind in ("ids", "cosines")]
        for part in partials
    )
    approximate = any(part.tile.facts["approximate"] for part in partials)
    return content_key("merge", parts=parts, k=options.k, approximate=approximate)


def _merge(options: MiningOptions, partials: Sequence[Partial]) -> Neighbours:
    lists = (load_list(part.tile.file, list_name(part.embedded)) for part in partials)
    return merged(lists, k=options.k)


def merged(lists: Iterable[Neighbours], *, k: int) -> Neighbours:
    """The k best of several lists of the same rows; two are in memory at a time."""
    from miner.knn.core.rescore import merge

    return functools.reduce(lambda one, two: merge([one, two], k=k), lists)


def list_name(embedded: EmbeddedShard) -> str:
    """What a shard's list is called in the tiles that it was in."""
    return f"{embedded.shard.side}.{embedded.shard.index:05d}"


def save_list(save: Callable[[str, NDArray[Any]], None], name: str, neighbours: Neighbours) -> None:
    """Save a list of neighbours by a function that saves arrays by name."""
    save(f"{name}.ids.npy", neighbours.ids)
    save(f"{name}.cosines.npy", neighbours.cosines)


def load_list(file: Callable[[str], Path], name: str) -> Neighbours:
    """A list of neighbours; the function says where its files are."""
    import numpy as np

    from miner.arrays import Neighbours

    ids, cosines = (np.load(file(f"{name}.{kind}.npy")) for kind in ("ids", "cosines"))
    return Neighbours(ids=ids, cosines=cosines)
