"""Sentences to vectors in batches: each is sealed when done, and none that fails ends a run."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder import Encoder
from miner.storage.artefacts import Artefact, Draft, content_key, find, produce
from miner.storage.places import Place
from pipelines.references import Shard

logger = logging.getLogger(__name__)

BATCH = "vectors.npy"
ENCODE_ROWS = 8192  # sentences of a batch
WORTH_SEALING = 0.5  # seconds that a batch took: writing it costs about a tenth of that


@dataclass(frozen=True, kw_only=True)
class Block:
    """Vectors (n, D) of consecutive sentences; those at ``failed`` are NaN, for what it says."""

    vectors: NDArray[np.floating]
    failed: Mapping[int, str]


def encoded_blocks(encoder: Encoder, shard: Shard, folder: Place) -> Iterator[Block]:
    """Yield the vectors of the shard's sentences as float16 blocks, in order.

    Each that took long is an artefact in ``folder`` until the whole is sealed.
    """
    resumed = folder.is_dir()
    for number, batch in enumerate(shard.batches(["text"], ENCODE_ROWS)):
        place = folder / f"{number:05d}"
        key = content_key("encode batch", sentences=shard.digest, number=number, maker=encoder.name)
        sealed = find(place, key=key) if resumed else None
        if sealed is not None:
            yield _load(sealed)
            continue
        start = time.perf_counter()
        block = encode_block(encoder, batch["text"].to_pylist())
        if time.perf_counter() - start >= WORTH_SEALING:
            produce(place, key=key, write=partial(_save, block))
        yield block


def _save(block: Block, draft: Draft) -> Mapping[str, Any]:
    draft.array(BATCH, block.vectors)
    return {"failed": {str(position): why for position, why in block.failed.items()}}


def _load(sealed: Artefact) -> Block:
    failed = {int(position): why for position, why in sealed.facts["failed"].items()}
    return Block(vectors=np.load(sealed.file(BATCH)), failed=failed)


def encode_block(encoder: Encoder, texts: Sequence[str]) -> Block:
    """Encode some sentences; where the encoder fails, each half of them on its own.

    So only the sentences that it cannot encode are lost, and a batch that was too large is not.
    """
    try:
        return Block(vectors=encoder.encode(texts).astype(np.float16), failed={})
    except MemoryError:
        raise
    except Exception as error:  # an encoder is any code: whatever it raises is of these sentences
        why = " ".join(f"{type(error).__name__}: {error}".split())
    if len(texts) == 1:
        logger.warning("the encoder failed for one sentence (%s); it is left out", why)
        return Block(vectors=np.full((1, encoder.dim), np.nan, np.float16), failed={0: why})
    half = len(texts) // 2
    first, second = encode_block(encoder, texts[:half]), encode_block(encoder, texts[half:])
    return Block(
        vectors=np.concatenate([first.vectors, second.vectors]),
        failed={**first.failed, **{half + place: why for place, why in second.failed.items()}},
    )
