"""The stages of ``--alignment monotone``: paired documents aligned in order, and scored as pairs.

Documents are aligned whole, some pairs of them in a batch each, from their sentences alone. Only
then are the beads scored, by the margins of the neighbours that were found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from encoder.words import WordEncoder
from miner.arrays import Direction, FloatArray, IntArray, Pairs
from miner.margin import margin_scores
from miner.monotone.blocks import Blocks, merged_blocks, text_blocks
from miner.score_ranges import SortedPairsFile, sort_pairs
from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import BEADS, MERGES, ROWS, SIDES
from miner.storage.pair_tables import MERGE_FIELDS
from pipelines.context import RunContext
from pipelines.references import (
    ChosenPairs,
    DocumentBatch,
    EmbeddedShard,
    ShardNeighbours,
    SideVectors,
    check_complete,
    collect_sides,
)
from pipelines.stages.reading.documents import one_to_one, places_by_value
from pipelines.stages.select import write_sorted

READ_ROWS = 32_768

# Aligned beads: rows of both sides and the cosine of their sums.
_ROWS = pa.list_(pa.int64())
BEAD_FIELDS = pa.schema({"source_rows": _ROWS, "target_rows": _ROWS, "cosine": pa.float32()})


class Sentences(NamedTuple):
    """The sentences of a document, in order; those without a vector have an empty text.

    ``rows`` are those of the corpus, ``positions`` those of the vectors (-1: none).
    """

    rows: IntArray
    positions: IntArray
    texts: list[str]


def cut_documents(run: RunContext, shards: Sequence[ShardNeighbours]) -> list[DocumentBatch]:
    """Cut the list of document pairs into as many batches as there are source shards."""
    sources, targets = collect_sides(shards).values()
    count, both = min(len(sources), len(one_to_one(run))), [*sources, *targets]
    return [DocumentBatch(index=index, of=count, shards=both) for index in range(count)]


def align_documents(run: RunContext, batch: DocumentBatch) -> DocumentBatch:
    """Align the documents of a batch; seals ``beads/NNNNN``, what both sides have a part in."""
    sides = [
        [found.embedded for found in batch.shards if found.shard.side == side] for side in SIDES
    ]
    pairs = one_to_one(run)
    start, stop = (len(pairs) * place // batch.of for place in (batch.index, batch.index + 1))
    mine = pairs[start:stop]
    key = content_key(
        "align documents",
        sentences=[found.shard.digest for found in batch.shards],
        rows=[found.embedded.vectors.files[ROWS] for found in batch.shards],
        pairs=mine,
        maker=[_maker(run, shards) for shards in sides],
        method="affine gaps",  # change it when alignments change
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        source, target = map(_documents, sides, zip(*mine, strict=True))
        known = [names for names in mine if names[0] in source and names[1] in target]
        there = [(source[own], target[other]) for own, other in known]
        total = sum(len(own.rows) for own, _ in there)
        part = f"{batch.index + 1}/{batch.of}" if batch.of > 1 else ""
        found = [BEAD_FIELDS.empty_table()]
        with run.monitor.stage("align documents", total, "sentences", part) as meter:
            for both in there:
                blocks = [_blocks(run, *each) for each in zip(sides, both, strict=True)]
                found.append(_beads(both, blocks))
                meter.advance(len(both[0].rows))
        with draft.file(BEADS) as path:
            pq.write_table(pa.concat_tables(found), path)
        return {}

    return replace(batch, beads=produce(run.folder.beads(batch.index), key=key, write=write))


def _maker(run: RunContext, shards: Sequence[EmbeddedShard]) -> object:
    """Return what makes the vectors of merged sentences."""
    side = shards[0].shard.side
    if run.options.side(side).embeddings is None:
        return run.side_encoder(side).name
    return [embedded.content for embedded in shards]


def _documents(shards: Sequence[EmbeddedShard], names: Sequence[str]) -> dict[str, Sentences]:
    """Read the sentences of those of the documents that there are."""
    wanted = pa.array(names, pa.string())
    parts, start = [], 0
    for embedded in shards:
        known = embedded.row_ids()
        for batch in embedded.shard.batches(["row", "doc", "text"], READ_ROWS):
            table = pa.table(batch).filter(pc.is_in(batch["doc"], wanted))
            rows = table["row"].to_numpy()
            positions = np.where(np.isin(rows, known), start + np.searchsorted(known, rows), -1)
            parts.append(table.append_column("position", pa.array(positions)))
        start += len(known)
    table = pa.concat_tables(parts).combine_chunks()
    if not len(table):
        return {}
    found = {}
    for name, places in places_by_value(table["doc"].combine_chunks()).items():
        own = table.take(pa.array(places))
        texts = pc.if_else(pc.less(own["position"], 0), "", own["text"]).to_pylist()
        found[name] = Sentences(own["row"].to_numpy(), own["position"].to_numpy(), texts)
    return found


def _blocks(run: RunContext, shards: Sequence[EmbeddedShard], document: Sentences) -> Blocks:
    """Make the vectors of merged sentences: of their texts, or sums of what was precomputed."""
    side = shards[0].shard.side
    if run.options.side(side).embeddings is None:
        encoder = run.side_encoder(side)
        is_bag = isinstance(encoder, WordEncoder)
        return text_blocks(document.texts, encoder.encode, is_bag=is_bag)
    vectors = SideVectors(shards)
    has_vector = document.positions >= 0
    units = np.zeros((len(document.rows), vectors.dim), dtype=np.float32)
    units[has_vector] = vectors.take(document.positions[has_vector])
    lengths = np.array([len(text) for text in document.texts], dtype=np.float64)
    return merged_blocks(units, lengths)


def _beads(documents: Sequence[Sentences], blocks: Sequence[Blocks]) -> pa.Table:
    """Align a document and its translation: a table of ``BEAD_FIELDS`` without the gaps."""
    from miner.monotone.align import align  # loads Numba

    beads = [bead for bead in align(*blocks).beads() if all(bead)]
    cosines = [
        np.dot(*(own.vectors[len(at) - 1, at[0]] for own, at in zip(blocks, bead, strict=True)))
        for bead in beads
    ]
    rows = [
        [document.rows[list(bead[place])] for bead in beads]
        for place, document in enumerate(documents)
    ]
    return pa.table([*rows, np.array(cosines, dtype=np.float32)], schema=BEAD_FIELDS)


class _Means:
    """The mean cosine of each row's neighbourhood, of a whole side."""

    def __init__(self, shards: Sequence[ShardNeighbours], side: str, scope: str) -> None:
        found = [shard for shard in shards if shard.shard.side == side]
        self._rows = np.concatenate([shard.embedded.row_ids() for shard in found])
        self._means = np.concatenate([shard.load(scope).means() for shard in found])

    def of(self, beads: pa.ChunkedArray) -> FloatArray:
        """Return the mean over each bead's rows that have a vector; NaN where none has."""
        rows, sizes = pc.list_flatten(beads).to_numpy(), pc.list_value_length(beads).to_numpy()
        places = np.minimum(np.searchsorted(self._rows, rows), len(self._rows) - 1)
        known = self._rows[places] == rows
        bead = np.repeat(np.arange(len(sizes)), sizes)
        sums = np.bincount(bead, np.where(known, self._means[places], 0), minlength=len(sizes))
        counts = np.bincount(bead, known, minlength=len(sizes))
        return np.divide(sums, counts, out=np.full(len(sizes), np.nan), where=counts > 0)


def select_beads(run: RunContext, parts: Sequence[DocumentBatch]) -> ChosenPairs:
    """Score the aligned beads and sort them; seals ``pairs`` with what is merged in them.

    The mean of a merged sentence's neighbourhood is that of its sentences' means.
    """
    parts = sorted(parts, key=lambda part: part.index)
    check_complete([part.index for part in parts], parts[0].of, "document")
    options, shards, scope = run.options, parts[0].shards, run.options.scopes[-1]
    aligned = [part.beads for part in parts if part.beads is not None]
    key = content_key(
        "select beads",
        beads=[part.files[BEADS] for part in aligned],
        neighbours=[sorted(found.neighbours[scope].files.items()) for found in shards],
        rows=[found.embedded.vectors.files[ROWS] for found in shards],
        margin=options.margin,
        threshold=repr(options.margin_threshold),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        means = [_Means(shards, side, scope) for side in SIDES]
        files: list[SortedPairsFile] = []
        beads = 0
        with (
            draft.scratch() as scratch,
            draft.file(MERGES) as path,
            pq.ParquetWriter(path, MERGE_FIELDS) as merges,
        ):
            for part in aligned:
                table = pq.read_table(part.file(BEADS))
                scored = _scored(table, means, options.margin)
                files.append(sort_pairs(scratch / f"{len(files):05d}.npy", scored, Direction.BOTH))
                for side in SIDES:
                    merges.write_table(_merges(table[f"{side}_rows"], side))
                beads += len(table)
            pairs = write_sorted(draft, files, options)
        return {"candidates": beads, "pairs": pairs}

    pairs = produce(run.folder.pairs, key=key, write=write)
    return ChosenPairs(pairs=pairs, shards=shards, merges=pairs)


def _scored(table: pa.Table, means: Sequence[_Means], margin: str) -> Pairs:
    """Score beads as pairs of their first rows; those without any vector on a side are left out."""
    both = [table[f"{side}_rows"] for side in SIDES]
    near = [of_side.of(rows) for of_side, rows in zip(means, both, strict=True)]
    known = ~np.isnan(near).any(axis=0)
    source, target = (pc.list_element(rows, 0).to_numpy()[known] for rows in both)
    cosine, own, other = table["cosine"].to_numpy()[known], near[0][known], near[1][known]
    return Pairs(
        source=source,
        target=target,
        score=margin_scores(cosine, own, other, margin=margin),
        cosine=cosine,
        source_mean=own,
        target_mean=other,
        rank=np.zeros(len(cosine), dtype=np.int32),  # in no list
        direction=np.full(len(cosine), Direction.BOTH, dtype=np.int8),
    )


def _merges(rows: pa.ChunkedArray, side: str) -> pa.Table:
    """Return what sentences of a side's beads are merged: by the first row, of ``MERGE_FIELDS``."""
    rows = rows.filter(pc.greater(pc.list_value_length(rows), 1))
    columns = [pa.array([side] * len(rows), pa.string()), pc.list_element(rows, 0), rows]
    return pa.table(columns, schema=MERGE_FIELDS)
