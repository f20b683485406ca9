"""The encode stage: a shard's sentences to sealed vectors, by an encoder or from a file."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from miner.storage.artefacts import Draft, content_key, produce
from miner.storage.layout import DROPPED, ROWS, VECTORS
from miner.storage.places import Place, file_state, remove_tree
from miner.storage.remote import RemotePath
from miner.storage.vectors.embeddings import open_embeddings, usable_rows
from pipelines.context import RunContext
from pipelines.options import CorpusOptions
from pipelines.references import BLOCK_NUMBERS, EmbeddedShard, Shard
from pipelines.stages.encode_batches import ENCODE_ROWS, Block, encoded_blocks
from pipelines.stages.reading.cut import digest_of

FAILED = "encoder failed"


def dropped(shards: Iterable[EmbeddedShard]) -> Counter[str]:
    """Count the sentences of the shards that have no vector that can be mined, by reason."""
    counts = Counter[str]()
    for embedded in shards:
        counts.update(embedded.vectors.facts["dropped"])
    return counts


def embed_shard(run: RunContext, shard: Shard) -> EmbeddedShard:
    """Encode a shard, or take its vectors from the file given for its side.

    Sentences whose vector is zero or not finite, and those the encoder fails on, have no
    neighbours; they are left out and counted in the facts ``dropped``. Encoded vectors are kept as
    float16, precomputed ones as they are. Those of a joined encoder are kept without weights, so
    that several pairs may share them; the fact ``parts`` says how wide each part is.
    """
    key = content_key("encode", sentences=shard.digest, maker=_maker(run, shard))
    folder = run.folder.embeddings(shard.side, shard.index)
    batches = folder / "batches"

    blocks = _blocks(run, shard, batches)
    vectors = produce(folder, key=key, write=partial(_write_vectors, run, shard, blocks))
    remove_tree(batches)
    return EmbeddedShard(shard=shard, vectors=vectors)


def _maker(run: RunContext, shard: Shard) -> object:
    """Return what decides the vectors: the encoder, or the file of vectors and how it is read."""
    side = run.options.side(shard.side)
    if side.embeddings is None:
        return run.stored_encoder(shard.side).name
    return [_content(side.embeddings), shard.corpus.facts["read"], side.dim]


def _content(path: Place) -> object:
    """Return what identifies precomputed embeddings: remote ones are not read for that."""
    return [str(path), *file_state(path)] if isinstance(path, RemotePath) else digest_of(path)


def _blocks(run: RunContext, shard: Shard, batches: Place) -> Iterator[Block]:
    """Yield the vectors of the shard's sentences, in order, some thousand at a time."""
    side = run.options.side(shard.side)
    if side.embeddings is None:
        return encoded_blocks(run.stored_encoder(shard.side), shard, batches)
    return _precomputed_blocks(side, shard)


def _precomputed_blocks(side: CorpusOptions, shard: Shard) -> Iterator[Block]:
    assert side.embeddings is not None
    lines, rows = shard.corpus.facts["read"], shard.row_ids()
    start = 0
    while start < len(rows):
        # Mapped anew each time, for what was read of a mapping stays in memory.
        stored = open_embeddings(side.embeddings, rows=lines, dim=side.dim, corpus=str(side.path))
        stop = start + max(1, min(ENCODE_ROWS, BLOCK_NUMBERS // stored.shape[1]))
        yield Block(vectors=stored[rows[start:stop]], failed={})
        start = stop


def _write_vectors(
    run: RunContext, shard: Shard, blocks: Iterator[Block], draft: Draft
) -> Mapping[str, Any]:
    usable: list[NDArray[np.bool_]] = []
    why: dict[int, str] = {}  # by position in the shard
    counts = Counter[str]()
    part = shard.name if shard.corpus.facts["shards"] > 1 else ""
    with (
        run.monitor.stage("encode", shard.rows, "sentences", part) as meter,
        draft.rows(VECTORS) as append,
    ):
        start = 0
        for block in blocks:
            mask, unusable = usable_rows(block.vectors)
            for reason, places in unusable.items():
                for place in places.tolist():
                    failure = block.failed.get(place)
                    counts[reason if failure is None else FAILED] += 1
                    why[start + place] = reason if failure is None else f"{FAILED}: {failure}"
            usable.append(mask)
            append(block.vectors[mask])
            meter.advance(len(block.vectors))
            start += len(block.vectors)
    rows = shard.row_ids()
    draft.array(ROWS, rows[np.concatenate(usable)])
    with draft.file(DROPPED) as path:
        lost_places = sorted(why)
        reasons = pa.array([why[place] for place in lost_places], pa.string())
        lost = pa.table({"row": rows[lost_places], "why": reasons})
        pq.write_table(lost, path)
    return {"dropped": dict(counts), "parts": _widths(run, shard.side)}


def _widths(run: RunContext, side: str) -> dict[str, int]:
    """Return the dimensions of the parts of a joined encoder, in their order."""
    if run.options.side(side).embeddings is not None:
        return {}
    parts = getattr(run.stored_encoder(side), "parts", ())
    return {part.spec: part.encoder.dim for part in parts}
