"""The stage of ``adit rate``: line i of both corpora as a pair, in place of those that are mined.

Neighbourhoods are of different sentences, as in mining: a repeated one stands for itself, and a
repeated pair is scored once.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from miner.arrays import Direction, IntArray
from miner.given import NOT_THERE, distinct_pairs, given_pairs
from miner.knn.core.rescore import rescore
from miner.score_ranges import sort_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import DUPLICATES, SIDES
from pipelines import references
from pipelines.context import RunContext
from pipelines.stages.left_out import lists_of
from pipelines.stages.select import write_sorted

BLOCK = 1 << 13  # pairs whose vectors are read at a time


def check_lines(run: RunContext, lines: Sequence[int]) -> None:
    """Raise a ValueError where the corpora are not of as many lines."""
    if lines[0] != lines[1]:
        first, second = (run.options.side(side).path for side in SIDES)
        raise ValueError(
            f"{first} has {lines[0]:,} lines and {second} {lines[1]:,}; line i of one must "
            "translate line i of the other"
        )


def rate_lines(
    run: RunContext, shards: Sequence[references.ShardNeighbours]
) -> references.ChosenPairs:
    """Score the lines of both sides as pairs; seals ``pairs``.

    Raises:
        ValueError: the sides have different numbers of lines.
    """
    sides = [*references.whole_sides(shards).values()]
    corpora = [found[0].shard.corpus for found in sides]
    check_lines(run, [corpus.facts["read"] for corpus in corpora])
    key = content_key(
        "rate lines",
        vectors=[found.embedded.content for side in sides for found in side],
        repeats=[corpus.files[DUPLICATES] for corpus in corpora],
        neighbours=[found.content for side in sides for found in side],
        margin=run.options.margin,
        threshold=repr(run.options.margin_threshold),
    )
    pairs = produce(run.folder.pairs, key=key, write=partial(_rate, run, sides[0], sides[1]))
    return references.ChosenPairs(pairs=pairs, shards=[*sides[0], *sides[1]])


def _rate(
    run: RunContext,
    sources: Sequence[references.ShardNeighbours],
    targets: Sequence[references.ShardNeighbours],
    draft: Draft,
) -> Mapping[str, Any]:
    embedded = [found.embedded for found in targets]
    pairs, whole = distinct_pairs(*(_standing(side) for side in (sources, targets)))
    others = np.concatenate([each.row_ids() for each in embedded])
    files = []
    with run.monitor.stage("rate", pairs.shape[1], "pairs") as meter, draft.scratch() as scratch:
        for number, found in enumerate(sources):
            own = found.embedded.row_ids()
            first, last = np.searchsorted(pairs[0], [own[0], own[-1] + 1]) if len(own) else (0, 0)
            source, target = pairs[:, first:last]
            places = np.searchsorted(own, source), np.searchsorted(others, target)
            scored = given_pairs(
                source,
                target,
                _cosines([found.embedded], embedded, *places),
                lists_of(run, [found], source),
                lists_of(run, targets, target),
                margin=run.options.margin,
            )
            files.append(sort_pairs(scratch / f"{number:05d}.npy", scored, Direction.BOTH))
            meter.advance(len(source))
        kept = write_sorted(draft, files, run.options, threshold=run.options.margin_threshold)
    read = sources[0].shard.corpus.facts["read"]
    lines = {"read": read, "unusable": read - whole, "repeated": whole - pairs.shape[1]}
    return {"candidates": pairs.shape[1], "pairs": kept, "lines": lines}


def _standing(side: Sequence[references.ShardNeighbours]) -> IntArray:
    """Return the row that stands for each line of a side: its own, or that of an equal sentence."""
    corpus = side[0].shard.corpus
    rows = np.full(corpus.facts["read"], NOT_THERE, dtype=np.int64)
    for found in side:
        own = found.embedded.row_ids()
        rows[own] = own
    with pq.ParquetFile(corpus.file(DUPLICATES)) as file:
        for batch in file.iter_batches(columns=["row", "first_row"]):
            rows[batch["row"].to_numpy()] = rows[batch["first_row"].to_numpy()]
    return rows


def _cosines(
    sources: Sequence[references.EmbeddedShard],
    targets: Sequence[references.EmbeddedShard],
    own: IntArray,
    other: IntArray,
) -> NDArray[np.float32]:
    """Return the cosine of each pair of positions in the vectors of both: float32 (P,)."""
    vectors = references.SideVectors(sources), references.SideVectors(targets)
    found = np.empty(len(own), dtype=np.float32)
    for start in range(0, len(own), BLOCK):
        block = slice(start, start + BLOCK)
        units, places = [], []
        for side, positions in zip(vectors, (own[block], other[block]), strict=True):
            distinct, at = np.unique(positions, return_inverse=True)
            units.append(side.take(distinct))
            places.append(at)
        best = rescore(units[0][places[0]], units[1], places[1][:, None], k=1)
        found[block] = best.cosines[:, 0]
    return found
