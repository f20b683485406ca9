"""Embedding a corpus into one file of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from encoder import load_encoder
from miner.storage.atomic import check_writable
from miner.storage.corpus import Records, open_corpus
from miner.storage.embeddings import write_embeddings
from pipelines import progress
from pipelines.options import check_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from encoder import Encoder


def embed_file(
    corpus: Path,
    output: Path,
    *,
    encoder: str,
    input_format: str = "auto",
    dtype: Literal["float16", "float32"] = "float32",
) -> str:
    """Encode every record of ``corpus`` to one row of ``output``; returns a line that tells of it.

    Rejected records and sentences without any token are zero rows.

    Raises:
        ValueError, OSError: the corpus, the encoder or the output cannot be used.
    """
    check_files([corpus], output)
    check_writable(output)
    loaded = load_encoder(encoder)
    # Twice through the corpus: the header of an .npy file comes first and holds the row count.
    rows = sum(len(records) for records in open_corpus(corpus, input_format=input_format))
    zero = 0

    def blocks() -> Iterator[NDArray[np.float32]]:
        nonlocal zero
        for records in open_corpus(corpus, input_format=input_format):
            vectors = _embed_records(loaded, records)
            zero += int((~vectors.any(axis=1)).sum())
            meter.advance(len(vectors))
            yield vectors

    with progress.stage("encode", rows, "sentences") as meter:
        write_embeddings(output, blocks(), rows=rows, dim=loaded.dim, dtype=dtype)
    return f"{output}: {rows:,} x {loaded.dim} {dtype} by {loaded.name}, {zero:,} rows zero"


def _embed_records(encoder: Encoder, records: Records) -> NDArray[np.float32]:
    vectors = np.zeros((len(records), encoder.dim), dtype=np.float32)
    good = [position for position in range(len(records)) if position not in records.rejected]
    vectors[good] = encoder.encode([records.texts[position] for position in good])
    return vectors
