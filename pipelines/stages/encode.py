"""Encode a shard's sentences as sealed vectors, or read them from a file."""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from encoder import Encoder
from encoder.joined import absolute_spec, parse_joined, stored_parts
from miner.arrays import Columns, Mask, load_array
from miner.storage.artefacts import Draft, content_key, find, produce
from miner.storage.layout import DROPPED, ROWS, SIDES, VECTORS
from miner.storage.places import Place, RemotePath, file_state, remove_tree
from miner.storage.vectors.embeddings import open_embeddings, usable_rows
from pipelines.context import RunContext
from pipelines.options import CorpusOptions, Element
from pipelines.references import BLOCK_NUMBERS, EmbeddedShard, Shard
from pipelines.stages.reading.cut import digest_of

logger = logging.getLogger(__name__)

BATCH = "vectors.npy"
ENCODE_ROWS = 8192  # sentences per batch
WORTH_SEALING = 0.5  # seconds per batch; writing the batch costs about a tenth of that
FAILED = "encoder failed"


class Block(NamedTuple):
    """Vectors of consecutive sentences, NaN where the encoder failed.

    ``vectors`` has a row per sentence. ``failed`` has the encoder's error messages by row, from 0.
    """

    vectors: NDArray[np.floating]
    failed: Mapping[int, str]


def _encoded_blocks(encoder: Encoder, shard: Shard, folder: Place) -> Iterator[Block]:
    resumed = folder.is_dir()
    for number, batch in enumerate(shard.batches(["text"], ENCODE_ROWS)):
        path = folder / f"{number:05d}"
        key = content_key("encode batch", sentences=shard.digest, number=number, maker=encoder.name)
        if resumed and (artefact := find(path, key=key)):
            failed = {int(i): why for i, why in artefact.facts["failed"].items()}
            yield Block(load_array(artefact.file(BATCH)), failed)
            continue
        start = time.perf_counter()
        block = encode_block(encoder, batch["text"].to_pylist())
        if time.perf_counter() - start >= WORTH_SEALING:
            produce(path, key=key, write=partial(_save, block))
        yield block


def _save(block: Block, draft: Draft) -> Mapping[str, Any]:
    draft.array(BATCH, block.vectors)
    return {"failed": {str(position): why for position, why in block.failed.items()}}


def encode_block(encoder: Encoder, texts: Sequence[str]) -> Block:
    """Encode one or more sentences, as vectors in float16.

    If the encoder fails, each half is encoded apart. A sentence that fails is logged and gets NaN.

    Raises:
        MemoryError: The process ran out of memory.
    """
    try:
        return Block(encoder.encode(texts).astype(np.float16), failed={})
    except MemoryError:
        raise
    except Exception as error:  # an encoder is any code and may raise anything
        why = " ".join(f"{type(error).__name__}: {error}".split())
    if len(texts) == 1:
        line = "the encoder failed for one sentence (%s), which is rejected; --work-dir lists it"
        logger.warning(line, why)
        return Block(np.full((1, encoder.dim), np.nan, np.float16), failed={0: why})
    half = len(texts) // 2
    first, second = encode_block(encoder, texts[:half]), encode_block(encoder, texts[half:])
    later = {half + i: why for i, why in second.failed.items()}
    return Block(np.concatenate([first.vectors, second.vectors]), failed={**first.failed, **later})


def count_dropped(shards: Iterable[EmbeddedShard]) -> Counter[str]:
    """Count the shards' sentences without a usable vector, by reason."""
    counts = (Counter(embedded.vectors.facts["dropped"]) for embedded in shards)
    return sum(counts, Counter[str]())


def embed_shard(run: RunContext, shard: Shard) -> EmbeddedShard:
    """Encode a shard, or read its vectors from ``embeddings``, and save them.

    Vectors that are zero or not finite, as after an encoder's failure, are dropped, and counted by
    reason in the fact ``dropped``. Encoded vectors are float16, without a joined encoder's weights,
    precomputed ones as in the file. The fact ``parts`` has a joined encoder's dimensions by part.
    Errors are of ``RunContext.encoder``, ``encode_block``, ``digest_of``, ``open_embeddings``.
    """
    folder = run.folder.embeddings(shard.side, shard.index)
    batches, side = folder / "batches", run.options.side(shard.side)
    maker: object  # identity of the encoder, or of the file and its format
    if side.embeddings is None:
        encoder = stored_parts(run.side_encoder(shard.side))
        maker, blocks = encoder.name, _encoded_blocks(encoder, shard, batches)
        parts = getattr(encoder, "parts", ())
    else:
        maker = [_embeddings_identity(side.embeddings), shard.corpus.facts["read"], side.dim]
        blocks, parts = _precomputed_blocks(side, side.embeddings, shard), ()
    key = content_key("encode", sentences=shard.digest, maker=maker)

    def write(draft: Draft) -> Mapping[str, Any]:
        counts = _write_vectors(run, shard, blocks, draft)
        return {"dropped": counts, "parts": {part.spec: part.encoder.dim for part in parts}}

    vectors = produce(folder, key=key, write=write)
    remove_tree(batches)
    return EmbeddedShard(shard=shard, vectors=vectors)


def _embeddings_identity(path: Place) -> object:
    # A remote file is not read to identify it.
    return [str(path), *file_state(path)] if isinstance(path, RemotePath) else digest_of(path)


def _precomputed_blocks(side: CorpusOptions, path: Place, shard: Shard) -> Iterator[Block]:
    lines, rows = shard.corpus.facts["read"], shard.row_ids()
    start = 0
    while start < len(rows):
        # A new mapping for each block, because pages that were read stay in memory.
        stored = open_embeddings(path, rows=lines, dim=side.dim, corpus=str(side.path))
        stop = start + max(1, min(ENCODE_ROWS, BLOCK_NUMBERS // stored.shape[1]))
        yield Block(stored[rows[start:stop]], failed={})
        start = stop


def _write_vectors(
    run: RunContext, shard: Shard, blocks: Iterator[Block], draft: Draft
) -> Mapping[str, int]:
    usable: list[Mask] = []
    failures: dict[int, str] = {}
    counts = Counter[str]()
    side = "" if run.part else shard.side
    label = shard.name if shard.corpus.facts["shards"] > 1 else side
    with (
        run.monitor.stage("encode", shard.rows, "sentences", label) as meter,
        draft.rows(VECTORS) as append,
    ):
        start = 0
        for block in blocks:
            mask, unusable = usable_rows(block.vectors)
            for reason, positions in unusable.items():
                for i in positions.tolist():
                    failure = block.failed.get(i)
                    counts[reason if failure is None else FAILED] += 1
                    failures[start + i] = reason if failure is None else f"{FAILED}: {failure}"
            usable.append(mask)
            append(block.vectors[mask])
            meter.advance(len(block.vectors))
            start += len(block.vectors)
    rows = shard.row_ids()
    draft.array(ROWS, rows[np.concatenate(usable)])
    lost_positions = sorted(failures)
    reasons = pa.array([failures[i] for i in lost_positions], pa.string())
    with draft.file(DROPPED) as path:
        pq.write_table(pa.table({"row": rows[lost_positions], "why": reasons}), path)
    return dict(counts)


def share_corpora(run: RunContext, shards: Sequence[EmbeddedShard]) -> list[Element]:
    """Return each pair's name and its shards, sources first.

    ``shards`` are of all corpora. Copies have their side in the pair, and its encoder's columns.
    """
    return [Element(pair, _both_sides(run.for_part(pair), shards)) for pair in run.job.pairs]


def _both_sides(run: RunContext, shards: Sequence[EmbeddedShard]) -> list[EmbeddedShard]:
    return [
        replace(
            embedded,
            shard=replace(embedded.shard, side=side),
            columns=_columns(run.options.encoder, embedded.vectors.facts["parts"]),
        )
        for side in SIDES
        for embedded in shards
        if embedded.shard.corpus.folder.name == run.folder.corpus(side)
    ]


def _columns(encoder: str, widths: Mapping[str, int]) -> tuple[Columns, ...]:
    widths = {absolute_spec(spec): width for spec, width in widths.items()}  # as on engines
    stops = dict(zip(widths, accumulate(widths.values()), strict=True))
    return tuple(
        Columns(stops[part.spec] - widths[part.spec], stops[part.spec], part.weight)
        for part in (parse_joined(absolute_spec(encoder)) if widths else ())
    )
