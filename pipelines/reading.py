"""The read stage: a corpus to shards of unique sentences, with every record accounted for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from miner.storage.artefacts import Artefact, Draft, content_key, produce
from miner.storage.corpus import CorpusError, open_corpus
from miner.storage.sentences import (
    CorpusCounts,
    duplicates_schema,
    duplicates_table,
    sentences_schema,
    sentences_table,
    unique_sentences,
)
from miner.storage.streams import split_compression
from pipelines import progress
from pipelines.options import MiningOptions

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

DUPLICATES = "duplicates.parquet"
HASH_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A run of consecutive sentences of one side: file ``index`` of that side's read artefact.

    ``rows`` sentences are in it.
    """

    side: str
    index: int
    rows: int
    corpus: Artefact

    @property
    def name(self) -> str:
        """``side/index``: its place in the folders of the later stages."""
        return f"{self.side}/{self.index:05d}"

    @property
    def digest(self) -> str:
        """SHA-256 of its sentences file."""
        return self.corpus.files[_shard_file(self.index)]

    def read(self, columns: list[str]) -> pa.Table:
        """Columns of its sentences: ``row``, ``id``, ``doc``, ``text``."""
        import pyarrow.parquet as pq

        return pq.read_table(self.corpus.file(_shard_file(self.index)), columns=columns)

    def batches(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """The same, at most ``rows`` sentences at a time."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.corpus.file(_shard_file(self.index))) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns)

    def text_bytes(self) -> int:
        """About how many bytes its sentences take in memory."""
        import pyarrow.parquet as pq

        metadata = pq.read_metadata(self.corpus.file(_shard_file(self.index)))
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        return sum(group.total_byte_size for group in groups)

    def row_ids(self) -> NDArray[np.int64]:
        """The rows of its sentences in the corpus, ascending."""
        rows: NDArray[np.int64] = self.read(["row"])["row"].to_numpy()
        return rows


def _shard_file(index: int) -> str:
    return f"{index:05d}.parquet"


def read_side(options: MiningOptions, side: str) -> list[Shard]:
    """Read, clean, deduplicate and shard one side; seals ``sentences/SIDE``.

    The artefact's facts are ``read``, ``duplicates``, ``rejected`` and ``first_rejected`` (by
    reason) and ``shards``, the number of sentences in each.

    Raises:
        CorpusError: the corpus cannot be read, or no sentence of it can be mined.
    """
    corpus = options.side(side)
    digest, lines = _fingerprint(corpus.path)
    key = content_key(
        "read",
        corpus=digest,
        suffixes=split_compression(corpus.path),
        input_format=corpus.input_format,
        keep_duplicates=options.keep_duplicates,
        rows_per_shard=options.rows_per_shard,
    )

    def write(draft: Draft) -> Mapping[str, Any]:
        return _write_shards(options, side, lines, draft)

    artefact = produce(options.work_dir / "sentences" / side, key=key, write=write)
    return [
        Shard(side=side, index=index, rows=rows, corpus=_part(artefact, index))
        for index, rows in enumerate(artefact.facts["shards"])
    ]


def _part(corpus: Artefact, index: int) -> Artefact:
    """The artefact with only the files that a shard needs, so that references stay small."""
    files = {name: corpus.files[name] for name in (_shard_file(index), DUPLICATES)}
    return replace(corpus, files=files)


def _fingerprint(path: Path) -> tuple[str, int | None]:
    """SHA-256 of a file's bytes, and its number of lines unless it is compressed or Parquet."""
    suffix, compression = split_compression(path)
    digest, lines = hashlib.sha256(), 0
    try:
        with path.open("rb") as stream:
            while block := stream.read(HASH_BYTES):
                digest.update(block)
                lines += block.count(b"\n")
    except OSError:
        return "", None  # open_corpus says what is wrong with it
    return digest.hexdigest(), None if compression or suffix == ".parquet" else lines


def _write_shards(
    options: MiningOptions, side: str, lines: int | None, draft: Draft
) -> Mapping[str, Any]:
    import pyarrow.parquet as pq

    corpus = options.side(side)
    counts = CorpusCounts()
    shards: list[int] = []
    with (
        draft.file(DUPLICATES) as path,
        pq.ParquetWriter(path, duplicates_schema()) as duplicates,
        progress.stage("read", lines, "lines") as meter,
    ):

        def kept_tables() -> Iterator[pa.Table]:
            nonlocal counts
            batches = open_corpus(corpus.path, input_format=corpus.input_format)
            for sentences in unique_sentences(batches, keep_duplicates=options.keep_duplicates):
                duplicates.write_table(duplicates_table(sentences))
                counts += CorpusCounts.of(sentences)
                meter.advance(sentences.read)
                yield sentences_table(sentences)

        cut = _cut(kept_tables(), options.rows_per_shard)
        for index, pieces in groupby(cut, key=itemgetter(0)):
            shards.append(0)
            with (
                draft.file(_shard_file(index)) as shard_path,
                pq.ParquetWriter(shard_path, sentences_schema()) as shard,
            ):
                for _, piece in pieces:
                    shard.write_table(piece)
                    shards[index] += len(piece)
    if not counts.kept:
        why = ", ".join(f"{count} {reason}" for reason, count in counts.rejected.items())
        raise CorpusError(
            f"{corpus.path}: none of its {counts.read} sentences can be mined ({why})"
        )
    return {
        "read": counts.read,
        "duplicates": counts.duplicates,
        "rejected": dict(counts.rejected),
        "first_rejected": dict(counts.first_rejected),
        "shards": shards,
    }


def _cut(tables: Iterable[pa.Table], rows: int) -> Iterator[tuple[int, pa.Table]]:
    """The same rows in pieces, none empty, each with the shard (of ``rows`` rows) it belongs to."""
    written = 0
    for table in tables:
        while len(table):
            piece = table.slice(0, rows - written % rows)
            yield written // rows, piece
            written += len(piece)
            table = table.slice(len(piece))
