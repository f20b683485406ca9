"""The encode stage: a shard's sentences to sealed vectors, by an encoder or from a file."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encoder import Encoder, load_encoder
from encoder.words import WordEncoder
from miner.storage.artefacts import Artefact, Draft, content_key, file_digest, produce
from miner.storage.places import Place, file_state, remove_tree
from miner.storage.remote import RemotePath
from pipelines import progress
from pipelines.options import CorpusOptions, MiningOptions
from pipelines.references import Shard
from pipelines.stages.encode_batches import ENCODE_ROWS, Block, encoded_blocks

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Vectors = NDArray[np.floating]

ROWS, VECTORS, DROPPED = "rows.npy", "vectors.npy", "dropped.parquet"
FAILED = "encoder failed"
ENCODE_NUMBERS = 1 << 22  # of given vectors at a time: with their copies some 64 MB


@dataclass(frozen=True, kw_only=True)
class EmbeddedShard:
    """A shard and its sealed vectors: ``rows.npy`` int64 (n,) and ``vectors.npy`` (n, D).

    ``dropped.parquet`` has the rows without a vector, and why.
    """

    shard: Shard
    vectors: Artefact

    def __len__(self) -> int:
        return self.shard.rows - sum(self.vectors.facts["dropped"].values())

    def row_ids(self) -> NDArray[np.int64]:
        """The rows of the sentences that have a vector, ascending."""
        import numpy as np

        rows: NDArray[np.int64] = np.load(self.vectors.file(ROWS))
        return rows

    def docs(self) -> pa.Array:
        """The documents of those sentences."""
        import numpy as np
        import pyarrow as pa

        sentences = self.shard.read(["row", "doc"])
        has_vector = np.isin(sentences["row"].to_numpy(), self.row_ids())
        return sentences["doc"].combine_chunks().filter(pa.array(has_vector))

    def unit_vectors(self) -> NDArray[np.float32]:
        """Their vectors as unit rows.

        The file is mapped anew for each block, for what was read of a mapping stays in memory.
        """
        import numpy as np

        from miner.knn.core.rescore import unit_rows

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
        self._shards = shards
        self.starts = [0, *accumulate(len(embedded) for embedded in shards)]

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def dim(self) -> int:
        """Dimensions of each vector."""
        return int(self._shards[0].stored_vectors().shape[1])

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors at ascending positions (P,), read from disk, as unit rows (P, D)."""
        import numpy as np

        from miner.knn.core.rescore import unit_rows

        units = np.empty((len(positions), self.dim), dtype=np.float32)
        bounds = np.searchsorted(positions, self.starts)
        for embedded, start, first, last in zip(
            self._shards, self.starts, bounds, bounds[1:], strict=False
        ):
            if first < last:
                stored = embedded.stored_vectors()
                units[first:last] = unit_rows(stored[positions[first:last] - start])
        return units


def dropped(shards: Iterable[EmbeddedShard]) -> Counter[str]:
    """How many sentences of the shards have no vector that can be mined, by reason."""
    counts = Counter[str]()
    for embedded in shards:
        counts.update(embedded.vectors.facts["dropped"])
    return counts


_loading = threading.Lock()


def encoder_of_process(spec: str, language: str | None = None) -> Encoder:
    """The encoder with what it does to a language, loaded once in each process for all threads.

    It is as fast as its vectors stay near float32's.
    """
    with _loading:
        return _prepared(spec, language)


@cache
def _prepared(spec: str, language: str | None) -> Encoder:
    return _load_once(spec).for_language(language)


@cache
def _load_once(spec: str) -> Encoder:
    return load_encoder(spec, precision="auto")


def word_encoder(options: MiningOptions) -> WordEncoder:
    """The run's encoder.

    Raises:
        ValueError: it has no vectors of words.
    """
    encoder = encoder_of_process(options.encoder)
    if not isinstance(encoder, WordEncoder):
        raise ValueError(
            f"--align: the encoder {options.encoder} has no vectors of words; mini has, and "
            "folders that train-encoder made of a bag"
        )
    return encoder


def embed_shard(options: MiningOptions, shard: Shard) -> EmbeddedShard:
    """Encode a shard, or take its vectors from the file given for its side.

    Sentences whose vector is zero or not finite, and those the encoder fails on, have no
    neighbours; they are left out and counted in the facts ``dropped``. Encoded vectors are kept as
    float16, given ones as they are.
    """
    if options.align:
        word_encoder(options)  # what it says should be said before hours of search
    key = content_key("encode", sentences=shard.digest, maker=_maker(options, shard))
    folder = options.work_dir / "embeddings" / shard.name
    batches = folder / "batches"

    def write(draft: Draft) -> Mapping[str, Any]:
        return _write_vectors(shard, _blocks(options, shard, batches), draft)

    embedded = EmbeddedShard(shard=shard, vectors=produce(folder, key=key, write=write))
    remove_tree(batches)
    return embedded


def _maker(options: MiningOptions, shard: Shard) -> object:
    """What decides the vectors of sentences: the encoder, or the given file and how it is read."""
    side = options.side(shard.side)
    if side.embeddings is None:
        return encoder_of_process(options.encoder, side.language).name
    return [_given_content(side.embeddings), shard.corpus.facts["read"], side.dim]


def _given_content(path: Place) -> object:
    """What tells given vectors from others: remote ones are not read for that."""
    state = file_state(path)
    return [str(path), *state] if isinstance(path, RemotePath) else _digest_once(path, *state)


@cache
def _digest_once(path: Path, *state: int) -> str:
    """The digest of a file in this state; all its shards ask for it, and it may be large."""
    return file_digest(path)


def _blocks(options: MiningOptions, shard: Shard, batches: Place) -> Iterator[Block]:
    """The vectors of the shard's sentences, in order, some thousand at a time."""
    side = options.side(shard.side)
    if side.embeddings is None:
        encoder = encoder_of_process(options.encoder, side.language)
        return encoded_blocks(encoder, shard, batches)
    return _given_blocks(side, shard)


def _given_blocks(side: CorpusOptions, shard: Shard) -> Iterator[Block]:
    from miner.storage.vectors.embeddings import open_embeddings

    assert side.embeddings is not None
    lines, rows = shard.corpus.facts["read"], shard.row_ids()
    start = 0
    while start < len(rows):
        # Mapped anew each time, for what was read of a mapping stays in memory.
        given = open_embeddings(side.embeddings, rows=lines, dim=side.dim, corpus=str(side.path))
        stop = start + max(1, min(ENCODE_ROWS, ENCODE_NUMBERS // given.shape[1]))
        yield Block(vectors=given[rows[start:stop]], failed={})
        start = stop


def _write_vectors(shard: Shard, blocks: Iterator[Block], draft: Draft) -> Mapping[str, Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from miner.storage.vectors.embeddings import usable_rows

    usable: list[NDArray[np.bool_]] = []
    why: dict[int, str] = {}  # by position in the shard
    counts = Counter[str]()
    part = shard.name if shard.corpus.facts["shards"] > 1 else ""
    with (
        progress.stage("encode", shard.rows, "sentences", part) as meter,
        draft.rows(VECTORS) as append,
    ):
        start = 0
        for block in blocks:
            mask, reasons = usable_rows(block.vectors)
            for reason, places in reasons.items():
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
        told = pa.array([why[place] for place in lost_places], pa.string())
        lost = pa.table({"row": rows[lost_places], "why": told})
        pq.write_table(lost, path)
    return {"dropped": dict(counts)}
