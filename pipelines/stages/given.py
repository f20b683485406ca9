"""The stage of ``adit rate``: line i of both corpora as a pair, in place of those that are mined.

Neighbourhoods are of different sentences, as in mining: the first of equal ones stands for all, and
a repeated pair is scored once. ``lines.npy`` says which line was the first to have a pair.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from miner.arrays import Direction, IntArray, Matrix
from miner.given import NO_SENTENCE, distinct_pairs, given_pairs
from miner.knn.core.rescore import rescore
from miner.score_ranges import sort_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import DUPLICATES, LINES, SIDES
from miner.threads import blocks
from pipelines.context import RunContext
from pipelines.references import ChosenPairs, ShardNeighbours, SideVectors, collect_sides
from pipelines.stages.judge import lists_of
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


def rate_lines(run: RunContext, shards: Sequence[ShardNeighbours]) -> ChosenPairs:
    """Score the lines of both sides as pairs; seals ``pairs``. Checks as ``check_lines`` does."""
    sources, targets = collect_sides(shards).values()
    both, margin, threshold = [*sources, *targets], run.options.margin, run.options.margin_threshold
    corpora = [side[0].shard.corpus for side in (sources, targets)]
    check_lines(run, [corpus.facts["read"] for corpus in corpora])
    key = content_key(
        "rate lines by number",
        vectors=[found.embedded.content for found in both],
        repeats=[corpus.files[DUPLICATES] for corpus in corpora],
        neighbours=[found.content for found in both],
        margin=margin,
        threshold=repr(threshold),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        base = SideVectors([found.embedded for found in targets])
        pairs, whole = distinct_pairs(_standing(sources), _standing(targets))
        others = np.concatenate([found.embedded.row_ids() for found in targets])
        count, files = pairs.shape[1], []
        with run.monitor.stage("rate", count, "pairs") as meter, draft.scratch() as scratch:
            for number, found in enumerate(sources):
                own = found.embedded.row_ids()
                ends = np.searchsorted(pairs[0], [own[0], own[-1] + 1]) if len(own) else (0, 0)
                source, target = pairs[:2, slice(*ends)]
                places = np.searchsorted(own, source), np.searchsorted(others, target)
                scored = given_pairs(
                    source,
                    target,
                    _cosines(SideVectors([found.embedded]), base, *places),
                    lists_of(run, [found], source),
                    lists_of(run, targets, target),
                    margin=margin,
                )
                files.append(sort_pairs(scratch / f"{number:05d}.npy", scored, Direction.BOTH))
                meter.advance(len(source))
            kept = write_sorted(draft, files, run.options)
        draft.array(LINES, pairs)
        read = corpora[0].facts["read"]
        lines = {"read": read, "unusable": read - whole, "repeated": whole - count}
        return {"candidates": count, "pairs": kept, "lines": lines}

    rated = produce(run.folder.pairs, key=key, write=write)
    return ChosenPairs(pairs=rated, shards=both, lines=rated)


def _standing(side: Sequence[ShardNeighbours]) -> IntArray:
    """Return the row that stands for each line of a side: its own, or that of an equal sentence."""
    corpus = side[0].shard.corpus
    rows = np.full(corpus.facts["read"], NO_SENTENCE, dtype=np.int64)
    for found in side:
        own = found.embedded.row_ids()
        rows[own] = own
    with pq.ParquetFile(corpus.file(DUPLICATES)) as file:
        for batch in file.iter_batches(columns=["row", "first_row"]):
            rows[batch["row"].to_numpy()] = rows[batch["first_row"].to_numpy()]
    return rows


def _cosines(source: SideVectors, target: SideVectors, own: IntArray, other: IntArray) -> Matrix:
    """Return the cosine of each pair of positions in the vectors of both: float32 (P,)."""
    found = np.empty(len(own), dtype=np.float32)
    for block in blocks(len(own), BLOCK):
        queries, at = np.unique(own[block], return_inverse=True)
        base, places = np.unique(other[block], return_inverse=True)
        best = rescore(source.take(queries)[at], target.take(base), places[:, None], k=1)
        found[block] = best.cosines[:, 0]
    return found
