"""Embedding a corpus into one file of vectors."""

from collections.abc import Iterator, Set
from pathlib import Path
from typing import Literal

import numpy as np

from encoder import Encoder, Precision, load_encoder
from miner.arrays import Matrix
from miner.languages import seen_language
from miner.storage.atomic import check_writable
from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import Records, Rejection
from miner.storage.places import Place
from miner.storage.vectors.embeddings import write_embeddings
from pipelines.options import check_files
from pipelines.progress import Monitor
from pipelines.stages.reading.language import beginning


def embed_file(
    corpus: Place,
    output: Place,
    *,
    encoder: str,
    input_format: str = "auto",
    dtype: Literal["float16", "float32"] = "float32",
    language: str | None = None,
    vocabulary: Path | None = None,
    pretokenized: bool = False,
    normalize: bool = True,
    precision: Precision = "float32",
    monitor: Monitor | None = None,
) -> str:
    """Encode every record of ``corpus`` to one row of ``output``; return a line to print.

    Rejected records and sentences without any token are zero rows. Of ``pretokenized`` lines, blank
    ones are sentences without tokens, which LASER's networks have a vector for.

    Raises:
        ValueError, OSError: the corpus, the encoder or the output cannot be used.
    """
    check_files([corpus], output)
    check_writable(output)
    loaded = load_encoder(
        encoder, vocabulary=vocabulary, pretokenized=pretokenized, precision=precision
    )
    if language is None and not pretokenized:
        language = seen_language(beginning(corpus, input_format))
    loaded = loaded.for_language(language)
    accepted = {Rejection.BLANK} if pretokenized else set[Rejection]()
    # Twice through the corpus: the header of an .npy file comes first and holds the row count.
    rows = sum(len(records) for records in open_corpus(corpus, input_format=input_format))
    zero = 0

    def blocks() -> Iterator[Matrix]:
        nonlocal zero
        for records in open_corpus(corpus, input_format=input_format):
            vectors = _encoded(records, loaded, accepted, normalize=normalize)
            zero += int((~vectors.any(axis=1)).sum())
            meter.advance(len(vectors))
            yield vectors

    with (monitor or Monitor()).stage("encode", rows, "sentences") as meter:
        write_embeddings(output, blocks(), rows=rows, dim=loaded.dim, dtype=dtype)
    return f"{rows:,} x {loaded.dim} {dtype} by {loaded.name}, {zero:,} rows zero"


def _encoded(
    records: Records, loaded: Encoder, accepted: Set[Rejection], *, normalize: bool
) -> Matrix:
    """Encode some records; those that are rejected, unless that is accepted, are zero rows."""
    good = [row for row in range(len(records)) if records.rejected.get(row) in {None, *accepted}]
    vectors = np.zeros((len(records), loaded.dim), dtype=np.float32)
    texts = ["" if row in records.rejected else records.texts[row] for row in good]
    vectors[good] = loaded.encode(texts, normalize=normalize)
    return vectors
