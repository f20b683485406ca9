"""Pair the documents of both sides that are translations of each other."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from miner.arrays import IntArray, Matrix, load_array
from miner.document_pairing import DocumentPairs, pair_sides
from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.layout import DOCUMENT_PAIRS, DOCUMENT_SIZES, DOCUMENT_SUMS, SIDES
from pipelines.context import RunContext
from pipelines.references import EmbeddedShard, SideVectors, collect_sides
from pipelines.stages.reading.documents import rows_by_document


class ShardedDocuments:
    """The documents of a side in shards, in the order of first sentences.

    Each has a vector or more, and may span several shards. The argument ``sums`` has the artefacts
    that ``sum_documents`` saved, one per shard in order.

    Attributes:
        names: Name of each of the d documents.
        sizes: Number of vectors of each document, int64 (d,).
        sums: Sum of each document's unit vectors, float64 (d, dimensions).
    """

    def __init__(self, shards: Sequence[EmbeddedShard], sums: Sequence[Artefact]) -> None:
        self._vectors = SideVectors(shards)
        table = pa.concat_tables([pq.read_table(part.file(DOCUMENT_SIZES)) for part in sums])
        names = table["name"].combine_chunks().dictionary_encode()
        self.names: Sequence[str] = names.dictionary.to_pylist()
        number, count = names.indices.to_numpy(), len(self.names)
        sizes = np.bincount(number, weights=table["size"].to_numpy(), minlength=count)
        self.sizes = sizes.astype(np.int64)
        self.sums = np.zeros((count, self._vectors.dim))
        start = 0
        for part in sums:
            array = load_array(part.file(DOCUMENT_SUMS), mmap_mode="r")
            self.sums[number[start : start + len(array)]] += array  # one sum per name
            start += len(array)
        # The positions of all vectors by document, and where in them each document begins.
        order = pa.array(self.names, pa.string())
        documents = [pc.index_in(part.docs(), order).fill_null(-1).to_numpy() for part in shards]
        self._order = np.argsort(np.concatenate(documents), kind="stable").astype(np.int64)
        first = len(self._order) - self.sizes.sum()
        self._starts = first + np.cumsum([0, *self.sizes.tolist()])

    def sentences(self, documents: IntArray) -> list[Matrix]:
        """Read the unit vectors of each of some documents, numbered as ``names``.

        They are float32 (sentences, dimensions), a matrix per document. ``documents`` is not empty.
        """
        spans = [slice(self._starts[i], self._starts[i + 1]) for i in documents]
        positions = np.concatenate([self._order[span] for span in spans])
        order = np.argsort(positions)
        units = self._vectors.take(positions[order], places=order)
        return np.split(units, np.cumsum(self.sizes[documents])[:-1])


def sum_documents(run: RunContext, embedded: EmbeddedShard) -> EmbeddedShard:
    """Save the sums of documents' unit vectors, and return the shard."""
    _sums(run, embedded)
    return embedded


def _sums(run: RunContext, embedded: EmbeddedShard) -> Artefact:
    key = content_key("sum documents", sentences=embedded.shard.digest, vectors=embedded.content)

    def write(draft: Draft) -> Mapping[str, Any]:
        documents = rows_by_document(embedded)
        units = embedded.unit_vectors()
        sums = np.empty((len(documents), units.shape[1]))
        for document, rows in enumerate(documents.values()):
            units[rows].sum(axis=0, dtype=np.float64, out=sums[document])
        draft.array(DOCUMENT_SUMS, sums)
        sizes = [len(rows) for rows in documents.values()]
        with draft.file(DOCUMENT_SIZES) as path:
            table = pa.table({"name": pa.array(documents, pa.string()), "size": sizes})
            pq.write_table(table, path)
        return {"documents": len(documents)}

    return produce(run.folder.document_sums(embedded.shard.name), key=key, write=write)


def pair_documents(run: RunContext, shards: Sequence[EmbeddedShard]) -> Sequence[EmbeddedShard]:
    """Pair the documents of both sides, save the list, and return ``shards``.

    ValueError says that no documents match, dimensions differ, a name has a tab or line end, or
    shards are incomplete.
    """
    options, sides = run.options, collect_sides(shards)
    sums = {side: [_sums(run, embedded) for embedded in parts] for side, parts in sides.items()}
    key = content_key(
        "pair documents",
        sums=[sorted(part.files.items()) for parts in sums.values() for part in parts],
        vectors=[embedded.content for parts in sides.values() for embedded in parts],
        threshold=options.document_threshold,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        source, target = (ShardedDocuments(sides[side], sums[side]) for side in SIDES)
        meter.advance(len(source.names) + len(target.names))
        pairs = pair_sides(source, target, threshold=options.document_threshold)
        if not len(pairs):
            raise ValueError(
                f"{options.source.path}: no document matches a document of {options.target.path} "
                f"with a score of {options.document_threshold:g} or more; pass translated "
                "documents, lower --threshold of 'adit pair', or use 'adit mine --scope corpus'"
            )
        with draft.file(DOCUMENT_PAIRS) as path:
            path.write_text("".join(_lines(source, target, pairs)), encoding="utf-8")
        documents = {"source": len(source.names), "target": len(target.names)}
        return {**documents, "pairs": len(pairs), "lowest": float(pairs.scores[-1])}

    with run.monitor.stage("pair", None, "documents") as meter:
        produce(run.folder.document_pairs, key=key, write=write)
    return shards


def _lines(source: ShardedDocuments, target: ShardedDocuments, pairs: DocumentPairs) -> list[str]:
    lines = []
    for p, q, score in zip(pairs.source, pairs.target, pairs.scores, strict=True):
        names = source.names[p], target.names[q]
        for name in names:
            if "\t" in name or "\n" in name or "\r" in name:
                raise ValueError(
                    f"document {name!r}: its name contains a tab or a line end; rename it"
                )
        lines.append(f"{names[0]}\t{names[1]}\t{score:.4f}\n")
    return lines
