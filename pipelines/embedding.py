"""The encode stage: a shard's sentences to sealed vectors, by an encoder or from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
ENCODE_NUMBERS = 1 << 22  # of given vectors at a time: with their copies some 64 MB


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
        """Their vectors as unit rows.

        The file is mapped anew for each block, for what was read of a mapping stays in memory.
        """
        import numpy as np

        from miner.knn.rescore import unit_rows

        rows, dim = self.stored_vectors().shape
        units = np.empty((rows, dim), dtype=np.float32)
        size = max(1, ENCODE_NUMBERS // dim)
        for start in range(0, rows, size):
            block = slice(start, start + size)
            units[block] = unit_rows(self.stored_vectors()[block])
        return units

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
    """The encoder, loaded once in each process, as fast as its vectors stay near float32's."""
    return load_encoder(spec, precision="auto")


@cache
def encoder_for_language(spec: str, language: str | None) -> Encoder:
    """The same encoder with the preprocessing that it has for a language."""
    return encoder_of_process(spec).for_language(language)


def embed_shard(options: MiningOptions, shard: Shard) -> EmbeddedShard:
    """Encode a shard, or take its vectors from the file given for its side.

    Sentences whose vector is zero or not finite have no neighbours; they are left out and counted
    in the facts ``dropped``. Encoded vectors are kept as float16, given ones as they are.
    """
    key = content_key("encode", sentences=shard.digest, maker=_maker(options, shard))
    folder = options.work_dir / "embeddings" / shard.name

    def write(draft: Draft) -> Mapping[str, Any]:
        return _write_vectors(shard, _vectors(options, shard), draft)

    return EmbeddedShard(shard=shard, vectors=produce(folder, key=key, write=write))


def _maker(options: MiningOptions, shard: Shard) -> object:
    """What decides the vectors of sentences: the encoder, or the given file and how it is read."""
    side = options.side(shard.side)
    if side.embeddings is None:
        return encoder_for_language(options.encoder, side.language).name
    found = side.embeddings.stat()
    digest = _digest_once(side.embeddings, found.st_ino, found.st_size, found.st_mtime_ns)
    return [digest, shard.corpus.facts["read"], side.dim]


@cache
def _digest_once(path: Path, *state: int) -> str:
    """The digest of a file in this state; all its shards ask for it, and it may be large."""
    return file_digest(path)


def _vectors(options: MiningOptions, shard: Shard) -> Iterator[Vectors]:
    """The vectors of the shard's sentences, in order, some thousand at a time."""
    import numpy as np

    side = options.side(shard.side)
    if side.embeddings is None:
        encoder = encoder_for_language(options.encoder, side.language)
        for batch in shard.batches(["text"], ENCODE_ROWS):
            yield encoder.encode(batch["text"].to_pylist()).astype(np.float16)
        return
    from miner.storage.embeddings import open_embeddings

    lines, rows = shard.corpus.facts["read"], shard.row_ids()
    start = 0
    while start < len(rows):
        # Mapped anew each time, for what was read of a mapping stays in memory.
        given = open_embeddings(side.embeddings, rows=lines, dim=side.dim, corpus=str(side.path))
        stop = start + max(1, min(ENCODE_ROWS, ENCODE_NUMBERS // given.shape[1]))
        yield given[rows[start:stop]]
        start = stop


def _write_vectors(shard: Shard, vectors: Iterator[Vectors], draft: Draft) -> Mapping[str, Any]:
    import numpy as np

    from miner.storage.embeddings import usable_rows

    usable = []
    counts = Counter[str]()
    with (
        progress.stage("encode", shard.rows, "sentences") as meter,
        draft.rows(VECTORS) as append,
    ):
        for block in vectors:
            mask, reasons = usable_rows(block)
            counts.update({reason: len(positions) for reason, positions in reasons.items()})
            usable.append(mask)
            append(block[mask])
            meter.advance(len(block))
    draft.array(ROWS, shard.row_ids()[np.concatenate(usable)])
    return {"dropped": dict(counts)}
