"""The encode stage: a shard's sentences to sealed vectors, by an encoder or from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encoder import Encoder, load_encoder
from miner.storage.artefacts import Artefact, Draft, content_key, file_digest, produce
from pipelines import progress
from pipelines.options import MiningOptions
from pipelines.reading import Shard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.floating]

ROWS, VECTORS = "rows.npy", "vectors.npy"
ENCODE_ROWS = 8192  # sentences at a time: progress is reported this often


@dataclass(frozen=True, kw_only=True)
class EmbeddedShard:
    """A shard and its sealed vectors: ``rows.npy`` int64 (n,) and ``vectors.npy`` (n, D)."""

    shard: Shard
    vectors: Artefact

    def row_ids(self) -> NDArray[np.int64]:
        """The rows of the sentences that have a vector, ascending."""
        import numpy as np

        rows: NDArray[np.int64] = np.load(self.vectors.file(ROWS))
        return rows

    def unit_vectors(self) -> NDArray[np.float32]:
        """Their vectors as unit rows."""
        from miner.knn.rescore import unit_rows

        return unit_rows(self.stored_vectors())

    def stored_vectors(self) -> Vectors:
        """Their vectors as they are on disk, mapped into memory."""
        import numpy as np

        vectors: Vectors = np.load(self.vectors.file(VECTORS), mmap_mode="r")
        return vectors


class SideVectors:
    """The vectors of a whole side, numbered through its shards whatever these are.

    ``starts[i]`` is the position of shard i's first vector; the last entry is their number.
    """

    def __init__(self, shards: Sequence[EmbeddedShard]) -> None:
        self._stored = [embedded.stored_vectors() for embedded in shards]
        self.starts = [0, *accumulate(len(stored) for stored in self._stored)]

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def dim(self) -> int:
        """Dimensions of each vector."""
        return int(self._stored[0].shape[1])

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at ascending positions (P,), read from disk, as unit rows (P, D)."""
        import numpy as np

        from miner.knn.rescore import unit_rows

        units = np.empty((len(positions), self.dim), dtype=np.float32)
        bounds = np.searchsorted(positions, self.starts)
        for stored, start, first, last in zip(
            self._stored, self.starts, bounds, bounds[1:], strict=False
        ):
            units[first:last] = unit_rows(stored[positions[first:last] - start])
        return units


def dropped(shards: Iterable[EmbeddedShard]) -> Counter[str]:
    """How many sentences of the shards have no vector that can be mined, by reason."""
    counts = Counter[str]()
    for embedded in shards:
        counts.update(embedded.vectors.facts["dropped"])
    return counts


@cache
def encoder_of_process(spec: str) -> Encoder:
    """The encoder, loaded once in each process."""
    return load_encoder(spec)


def embed_shard(options: MiningOptions, shard: Shard) -> EmbeddedShard:
    """Encode a shard, or take its vectors from the file given for its side.

    Sentences whose vector is zero or not finite have no neighbours; they are left out and counted
    in the facts ``dropped``. Encoded vectors are kept as float16, given ones as they are.
    """
    key = content_key("encode", sentences=shard.digest, maker=_maker(options, shard))
    folder = options.work_dir / "embeddings" / shard.name

    def write(draft: Draft) -> Mapping[str, Any]:
        return _write_vectors(shard, _vectors_of(options, shard), draft)

    return EmbeddedShard(shard=shard, vectors=produce(folder, key=key, write=write))


def _maker(options: MiningOptions, shard: Shard) -> object:
    """What decides the vectors of sentences: the encoder, or the given file and how it is read."""
    side = options.side(shard.side)
    if side.embeddings is None:
        return encoder_of_process(options.encoder).name
    found = side.embeddings.stat()
    digest = _digest_once(side.embeddings, found.st_ino, found.st_size, found.st_mtime_ns)
    return [digest, shard.corpus.facts["read"], side.dim]


@cache
def _digest_once(path: Path, *state: int) -> str:
    """The digest of a file in this state; all its shards ask for it, and it may be large."""
    return file_digest(path)


def _vectors_of(options: MiningOptions, shard: Shard) -> Callable[[int, int], Vectors]:
    """A function from (start, stop) to the vectors of those sentences of the shard."""
    import numpy as np

    side = options.side(shard.side)
    if side.embeddings is not None:
        from miner.storage.embeddings import open_embeddings

        lines = shard.corpus.facts["read"]
        given = open_embeddings(side.embeddings, rows=lines, dim=side.dim, corpus=str(side.path))
        rows = shard.row_ids()
        return lambda start, stop: given[rows[start:stop]]
    encoder = encoder_of_process(options.encoder)
    texts = shard.read(["text"])["text"]
    return lambda start, stop: encoder.encode(texts[start:stop].to_pylist()).astype(np.float16)


def _write_vectors(
    shard: Shard, vectors: Callable[[int, int], Vectors], draft: Draft
) -> Mapping[str, Any]:
    import numpy as np

    from miner.storage.embeddings import usable_rows

    usable, blocks = [], []
    counts = Counter[str]()
    with progress.stage("encode", shard.rows, "sentences") as meter:
        for start in range(0, shard.rows, ENCODE_ROWS):
            block = vectors(start, min(start + ENCODE_ROWS, shard.rows))
            mask, reasons = usable_rows(block)
            counts.update({reason: len(positions) for reason, positions in reasons.items()})
            usable.append(mask)
            blocks.append(block[mask])
            meter.advance(len(block))
    draft.array(ROWS, shard.row_ids()[np.concatenate(usable)])
    draft.array(VECTORS, np.concatenate(blocks))
    return {"dropped": dict(counts)}
