"""The encode stage: a shard's sentences to sealed vectors, by an encoder or from a file.

Each batch of sentences is sealed when done, and none that fails ends a run. The vectors of a corpus
are then shared by all pairs that it is in.
"""

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
from encoder.joined import parse_joined
from miner.arrays import Columns, Mask
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
ENCODE_ROWS = 8192  # sentences of a batch
WORTH_SEALING = 0.5  # seconds that a batch took: writing it costs about a tenth of that
FAILED = "encoder failed"


class Block(NamedTuple):
    """Vectors (n, D) of consecutive sentences; those at ``failed`` are NaN, for what it says."""

    vectors: NDArray[np.floating]
    failed: Mapping[int, str]


def _encoded_blocks(encoder: Encoder, shard: Shard, folder: Place) -> Iterator[Block]:
    """Yield the vectors of the shard's sentences as float16 blocks, in order.

    Each that took long is an artefact in ``folder`` until the whole is sealed.
    """
    resumed = folder.is_dir()
    for number, batch in enumerate(shard.batches(["text"], ENCODE_ROWS)):
        place = folder / f"{number:05d}"
        key = content_key("encode batch", sentences=shard.digest, number=number, maker=encoder.name)
        if resumed and (sealed := find(place, key=key)):
            failed = {int(position): why for position, why in sealed.facts["failed"].items()}
            yield Block(np.load(sealed.file(BATCH)), failed)
            continue
        start = time.perf_counter()
        block = encode_block(encoder, batch["text"].to_pylist())
        if time.perf_counter() - start >= WORTH_SEALING:
            produce(place, key=key, write=partial(_save, block))
        yield block


def _save(block: Block, draft: Draft) -> Mapping[str, Any]:
    draft.array(BATCH, block.vectors)
    return {"failed": {str(position): why for position, why in block.failed.items()}}


def encode_block(encoder: Encoder, texts: Sequence[str]) -> Block:
    """Encode some sentences; where the encoder fails, each half of them on its own.

    So only the sentences that it cannot encode are lost, and a batch that was too large is not.
    """
    try:
        return Block(encoder.encode(texts).astype(np.float16), failed={})
    except MemoryError:
        raise
    except Exception as error:  # an encoder is any code: whatever it raises is of these sentences
        why = " ".join(f"{type(error).__name__}: {error}".split())
    if len(texts) == 1:
        logger.warning("the encoder failed for one sentence (%s), which is rejected", why)
        return Block(np.full((1, encoder.dim), np.nan, np.float16), failed={0: why})
    half = len(texts) // 2
    first, second = encode_block(encoder, texts[:half]), encode_block(encoder, texts[half:])
    later = {half + place: why for place, why in second.failed.items()}
    return Block(np.concatenate([first.vectors, second.vectors]), failed={**first.failed, **later})


def dropped(shards: Iterable[EmbeddedShard]) -> Counter[str]:
    """Count the sentences of the shards that have no vector that can be mined, by reason."""
    counts = (Counter(embedded.vectors.facts["dropped"]) for embedded in shards)
    return sum(counts, Counter[str]())


def embed_shard(run: RunContext, shard: Shard) -> EmbeddedShard:
    """Encode a shard, or take its vectors from the file given for its side.

    Sentences whose vector is zero or not finite, and those the encoder fails on, have no
    neighbours; they are left out and counted in the facts ``dropped``. Encoded vectors are kept as
    float16, precomputed ones as they are. Those of a joined encoder are kept without weights, so
    that several pairs may share them; the fact ``parts`` says how wide each part is.
    """
    folder = run.folder.embeddings(shard.side, shard.index)
    batches, side = folder / "batches", run.options.side(shard.side)
    maker: object  # what decides the vectors: the encoder, or the file and how it is read
    if side.embeddings is None:
        encoder = run.stored_encoder(shard.side)
        maker, blocks = encoder.name, _encoded_blocks(encoder, shard, batches)
        parts = getattr(encoder, "parts", ())
    else:
        maker = [_content(side.embeddings), shard.corpus.facts["read"], side.dim]
        blocks, parts = _precomputed_blocks(side, side.embeddings, shard), ()
    key = content_key("encode", sentences=shard.digest, maker=maker)

    def write(draft: Draft) -> Mapping[str, Any]:
        counts = _write_vectors(run, shard, blocks, draft)
        return {"dropped": counts, "parts": {part.spec: part.encoder.dim for part in parts}}

    vectors = produce(folder, key=key, write=write)
    remove_tree(batches)
    return EmbeddedShard(shard=shard, vectors=vectors)


def _content(path: Place) -> object:
    """Return what identifies precomputed embeddings: remote ones are not read for that."""
    return [str(path), *file_state(path)] if isinstance(path, RemotePath) else digest_of(path)


def _precomputed_blocks(side: CorpusOptions, path: Place, shard: Shard) -> Iterator[Block]:
    """Yield the vectors of the shard's sentences, in order, some thousand at a time."""
    lines, rows = shard.corpus.facts["read"], shard.row_ids()
    start = 0
    while start < len(rows):
        # Mapped anew each time, for what was read of a mapping stays in memory.
        stored = open_embeddings(path, rows=lines, dim=side.dim, corpus=str(side.path))
        stop = start + max(1, min(ENCODE_ROWS, BLOCK_NUMBERS // stored.shape[1]))
        yield Block(stored[rows[start:stop]], failed={})
        start = stop


def _write_vectors(
    run: RunContext, shard: Shard, blocks: Iterator[Block], draft: Draft
) -> Mapping[str, int]:
    """Write the vectors that can be mined, and what others lack; return how many do, by that."""
    usable: list[Mask] = []
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
    lost = sorted(why)
    reasons = pa.array([why[place] for place in lost], pa.string())
    with draft.file(DROPPED) as path:
        pq.write_table(pa.table({"row": rows[lost], "why": reasons}), path)
    return dict(counts)


def share_corpora(run: RunContext, shards: Sequence[EmbeddedShard]) -> list[Element]:
    """Return the shards of each pair of corpora; those of a corpus go to all its pairs."""
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
    """Return where the parts of a pair's encoder lie in vectors of parts of these dimensions."""
    stops = dict(zip(widths, accumulate(widths.values()), strict=True))
    return tuple(
        Columns(stops[part.spec] - widths[part.spec], stops[part.spec], part.weight)
        for part in (parse_joined(encoder) if widths else ())
    )
