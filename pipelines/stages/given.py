"""Rate line i of both corpora as a pair, for ``adit rate``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from miner.arrays import IntArray, Matrix, Pairs
from miner.given import NO_SENTENCE, distinct_pairs, given_pairs
from miner.knn.core.rescore import rescore
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import DUPLICATES, LINES, SIDES
from miner.threads import blocks
from pipelines.context import RunContext
from pipelines.references import ChosenPairs, ShardNeighbours, SideVectors, collect_sides
from pipelines.stages.judge import lists_of
from pipelines.stages.select import write_sorted

BLOCK = 1 << 13  # pairs per block of vectors


def check_lines(run: RunContext, lines: Sequence[int]) -> None:
    """Check that both numbers of ``lines``, of source and target, are equal.

    Raises:
        ValueError: The numbers differ.
    """
    if lines[0] != lines[1]:
        first, second = (run.options.side(side).path for side in SIDES)
        raise ValueError(
            f"{first}: the number of lines is {lines[0]:,}, but {lines[1]:,} in {second}; pass "
            "files whose lines i translate each other"
        )


def rate_lines(run: RunContext, shards: Sequence[ShardNeighbours]) -> ChosenPairs:
    """Score the pairs of line i of both sides by margin, and save them.

    Neighbourhoods are of distinct sentences, as in mining. Pairs above the margin threshold are
    saved, best first, and duplicate pairs once. ``lines.npy`` is the array of ``distinct_pairs``.
    ValueError says that numbers of lines differ, or that a shard is missing or repeated.
    """
    sources, targets = collect_sides(shards).values()
    sides, options = [*sources, *targets], run.options
    corpora = [side[0].shard.corpus for side in (sources, targets)]
    check_lines(run, [corpus.facts["read"] for corpus in corpora])
    key = content_key(
        "rate lines by number",
        vectors=[shard.embedded.content for shard in sides],
        repeats=[corpus.files[DUPLICATES] for corpus in corpora],
        neighbours=[shard.content for shard in sides],
        margin=options.margin,
        threshold=repr(options.margin_threshold),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        base = SideVectors([shard.embedded for shard in targets])
        pairs, usable = distinct_pairs(rows_of_lines(sources), rows_of_lines(targets))
        target_rows = np.concatenate([shard.embedded.row_ids() for shard in targets])
        count = pairs.shape[1]

        def scored() -> Iterator[Pairs]:
            for shard in sources:
                rows = shard.embedded.row_ids()
                ends = np.searchsorted(pairs[0], [rows[0], rows[-1] + 1]) if len(rows) else (0, 0)
                source, target = pairs[:2, slice(*ends)]
                positions = np.searchsorted(rows, source), np.searchsorted(target_rows, target)
                yield given_pairs(
                    source,
                    target,
                    _cosines(SideVectors([shard.embedded]), base, *positions),
                    lists_of(run, [shard], source),
                    lists_of(run, targets, target),
                    margin=options.margin,
                )
                meter.advance(len(source))

        with run.monitor.stage("rate", count, "pairs") as meter:
            kept = write_sorted(draft, scored(), options)
        draft.array(LINES, pairs)
        read = corpora[0].facts["read"]
        lines = {"read": read, "unusable": read - usable, "repeated": usable - count}
        return {"candidates": count, "pairs": kept, "lines": lines}

    rated = produce(run.folder.pairs, key=key, write=write)
    return ChosenPairs(pairs=rated, shards=sides, lines=rated)


def rows_of_lines(side: Sequence[ShardNeighbours]) -> IntArray:
    """Return the row of the sentence in each line of a side, int64 (lines,).

    It is the first equal sentence's for a duplicate, -1 without a vector. ``side`` has all shards.
    """
    corpus = side[0].shard.corpus
    firsts = np.full(corpus.facts["read"], NO_SENTENCE, dtype=np.int64)
    for shard in side:
        rows = shard.embedded.row_ids()
        firsts[rows] = rows
    with pq.ParquetFile(corpus.file(DUPLICATES)) as file:
        for batch in file.iter_batches(columns=["row", "first_row"]):
            firsts[batch["row"].to_numpy()] = firsts[batch["first_row"].to_numpy()]
    return firsts


def _cosines(source: SideVectors, target: SideVectors, rows: IntArray, columns: IntArray) -> Matrix:
    cosines = np.empty(len(rows), dtype=np.float32)
    for block in blocks(len(rows), BLOCK):
        queries, row_places = np.unique(rows[block], return_inverse=True)
        base, places = np.unique(columns[block], return_inverse=True)
        best = rescore(source.take(queries)[row_places], target.take(base), places[:, None], k=1)
        cosines[block] = best.cosines[:, 0]
    return cosines
