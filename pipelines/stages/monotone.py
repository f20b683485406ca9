"""Align paired documents in order, and score their beads as pairs."""

from collections.abc import Iterator, Mapping, Sequence
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
    find_rows,
)
from pipelines.stages.reading.documents import one_to_one_pairs, positions_by_value
from pipelines.stages.select import write_sorted

# Aligned beads: rows of both sides and the cosine of their sums.
_ROWS = pa.list_(pa.int64())
BEAD_FIELDS = pa.schema({"source_rows": _ROWS, "target_rows": _ROWS, "cosine": pa.float32()})


class Sentences(NamedTuple):
    """The n sentences of a document, in order.

    ``rows`` in the corpus and ``positions`` of vectors in the side, -1 without one, are int64 (n,).
    Texts without a vector are "".
    """

    rows: IntArray
    positions: IntArray
    texts: list[str]


def cut_documents(run: RunContext, shards: Sequence[ShardNeighbours]) -> list[DocumentBatch]:
    """Divide the document pairs into batches, at most one per source shard.

    ValueError says that a document is in several pairs, the list is empty or malformed, or a shard
    is missing or repeated. OSError says that the list cannot be read.
    """
    sources, targets = collect_sides(shards).values()
    count, sides = min(len(sources), len(one_to_one_pairs(run))), [*sources, *targets]
    return [DocumentBatch(index=index, total=count, shards=sides) for index in range(count)]


def align_documents(run: RunContext, batch: DocumentBatch) -> DocumentBatch:
    """Align a batch of documents, and save beads that have both sides.

    Document pairs that lack a document are skipped. The batch with ``beads`` is returned. Errors
    are of ``cut_documents`` and ``RunContext.encoder``.
    """
    sides = [[part.embedded for part in batch.shards if part.shard.side == side] for side in SIDES]
    pairs = one_to_one_pairs(run)
    start, stop = (len(pairs) * index // batch.total for index in (batch.index, batch.index + 1))
    names = pairs[start:stop]
    key = content_key(
        "align documents",
        sentences=[part.shard.digest for part in batch.shards],
        rows=[part.embedded.vectors.files[ROWS] for part in batch.shards],
        pairs=names,
        maker=[_vector_maker(run, shards) for shards in sides],
        method="counted gaps and merges",  # change it when alignments change
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        source, target = map(_documents, sides, zip(*names, strict=True))
        documents = [(source[p], target[q]) for p, q in names if p in source and q in target]
        total = sum(len(document.rows) for document, _ in documents)
        label = f"{batch.index + 1}/{batch.total}" if batch.total > 1 else ""
        tables = [BEAD_FIELDS.empty_table()]
        with run.monitor.stage("align documents", total, "sentences", label) as meter:
            for pair in documents:
                blocks = [_blocks(run, *side) for side in zip(sides, pair, strict=True)]
                tables.append(_beads(pair, blocks))
                meter.advance(len(pair[0].rows))
        with draft.file(BEADS) as path:
            pq.write_table(pa.concat_tables(tables), path)
        return {}

    return replace(batch, beads=produce(run.folder.beads(batch.index), key=key, write=write))


def _vector_maker(run: RunContext, shards: Sequence[EmbeddedShard]) -> object:
    side = shards[0].shard.side
    if run.options.side(side).embeddings is None:
        return run.side_encoder(side).name
    return [embedded.content for embedded in shards]


def _documents(shards: Sequence[EmbeddedShard], names: Sequence[str]) -> dict[str, Sentences]:
    listed_names = pa.array(names, pa.string())
    parts, start = [], 0
    for embedded in shards:
        ids = embedded.row_ids()
        for batch in embedded.shard.batches(["row", "doc", "text"]):
            table = pa.table(batch).filter(pc.is_in(batch["doc"], listed_names))
            rows = table["row"].to_numpy()
            positions = np.where(np.isin(rows, ids), start + np.searchsorted(ids, rows), -1)
            parts.append(table.append_column("position", pa.array(positions)))
        start += len(ids)
    table = pa.concat_tables(parts).combine_chunks()
    documents = {}
    for name, places in positions_by_value(table["doc"].combine_chunks()).items():
        lines = table.take(pa.array(places))
        texts = pc.if_else(pc.less(lines["position"], 0), "", lines["text"]).to_pylist()
        documents[name] = Sentences(lines["row"].to_numpy(), lines["position"].to_numpy(), texts)
    return documents


def _blocks(run: RunContext, shards: Sequence[EmbeddedShard], document: Sentences) -> Blocks:
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
    from miner.monotone.align import align  # loads Numba

    beads = [bead for bead in align(*blocks).beads() if all(bead)]
    cosines = [
        np.dot(*(side.vectors[len(p) - 1, p[0]] for side, p in zip(blocks, bead, strict=True)))
        for bead in beads
    ]
    rows = [
        [document.rows[list(bead[index])] for bead in beads]
        for index, document in enumerate(documents)
    ]
    return pa.table([*rows, np.array(cosines, dtype=np.float32)], schema=BEAD_FIELDS)


class _NeighbourhoodMeans:
    def __init__(self, shards: Sequence[ShardNeighbours], side: str, scope: str) -> None:
        of_side = [shard for shard in shards if shard.shard.side == side]
        self._rows = np.concatenate([shard.embedded.row_ids() for shard in of_side])
        self._means = np.concatenate([shard.load(scope).means() for shard in of_side])

    def of_beads(self, beads: pa.ChunkedArray) -> FloatArray:
        rows, sizes = pc.list_flatten(beads).to_numpy(), pc.list_value_length(beads).to_numpy()
        mask, positions = find_rows(self._rows, rows)
        bead = np.repeat(np.arange(len(sizes)), sizes)[mask]
        sums = np.bincount(bead, self._means[positions], minlength=len(sizes))
        counts = np.bincount(bead, minlength=len(sizes))
        return np.divide(sums, counts, out=np.full(len(sizes), np.nan), where=counts > 0)


def select_beads(run: RunContext, parts: Sequence[DocumentBatch]) -> ChosenPairs:
    """Score the beads of all batches by margin, and save them as pairs.

    A merged sentence's neighbourhood mean is that of its sentences with vectors. Its first row
    represents it, and ``merges`` has all its rows. Beads without a vector on a side, or not above
    the margin threshold, are not saved. ValueError says that a batch is missing or repeated.
    """
    parts = sorted(parts, key=lambda part: part.index)
    check_complete([part.index for part in parts], parts[0].total, "batches of documents")
    options, shards, scope = run.options, parts[0].shards, run.options.scopes[-1]
    aligned = [part.beads for part in parts if part.beads is not None]
    key = content_key(
        "select beads",
        beads=[part.files[BEADS] for part in aligned],
        neighbours=[sorted(shard.neighbours[scope].files.items()) for shard in shards],
        rows=[shard.embedded.vectors.files[ROWS] for shard in shards],
        margin=options.margin,
        threshold=repr(options.margin_threshold),
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        means = [_NeighbourhoodMeans(shards, side, scope) for side in SIDES]
        beads = 0

        def scored() -> Iterator[Pairs]:
            nonlocal beads
            for part in aligned:
                table = pq.read_table(part.file(BEADS))
                for side in SIDES:
                    merges.write_table(_merges(table[f"{side}_rows"], side))
                beads += len(table)
                yield _score_beads(table, means, options.margin)

        with draft.file(MERGES) as path, pq.ParquetWriter(path, MERGE_FIELDS) as merges:
            pairs = write_sorted(draft, scored(), options)
        return {"candidates": beads, "pairs": pairs}

    pairs = produce(run.folder.pairs, key=key, write=write)
    return ChosenPairs(pairs=pairs, shards=shards, merges=pairs)


def _score_beads(table: pa.Table, sides: Sequence[_NeighbourhoodMeans], margin: str) -> Pairs:
    beads = [table[f"{side}_rows"] for side in SIDES]
    means = [side.of_beads(rows) for side, rows in zip(sides, beads, strict=True)]
    mask = ~np.isnan(means).any(axis=0)
    source, target = (pc.list_element(rows, 0).to_numpy()[mask] for rows in beads)
    source_means, target_means = (values[mask] for values in means)
    cosine = table["cosine"].to_numpy()[mask]
    return Pairs(
        source=source,
        target=target,
        score=margin_scores(cosine, source_means, target_means, margin=margin),
        cosine=cosine,
        source_mean=source_means,
        target_mean=target_means,
        rank=np.zeros(len(cosine), dtype=np.int32),  # in no list
        direction=np.full(len(cosine), Direction.BOTH, dtype=np.int8),
    )


def _merges(rows: pa.ChunkedArray, side: str) -> pa.Table:
    rows = rows.filter(pc.greater(pc.list_value_length(rows), 1))
    columns = [pa.array([side] * len(rows), pa.string()), pc.list_element(rows, 0), rows]
    return pa.table(columns, schema=MERGE_FIELDS)
