"""Embedding a corpus into one file of vectors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from encoder import Precision, load_encoder
from miner.arrays import Matrix
from miner.languages import seen_language
from miner.storage.atomic import check_writable
from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import Rejection
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
    input_format: str,
    dtype: Literal["float16", "float32"],
    language: str | None,
    vocabulary: Path | None,
    pretokenized: bool,
    normalize: bool,
    precision: Precision,
    monitor: Monitor,
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
    accepted = {None, Rejection.BLANK} if pretokenized else {None}
    # Twice through the corpus: the header of an .npy file comes first and holds the row count.
    rows = sum(len(records) for records in open_corpus(corpus, input_format=input_format))
    zero = 0

    def blocks() -> Iterator[Matrix]:
        nonlocal zero
        for records in open_corpus(corpus, input_format=input_format):
            rejected = records.rejected
            good = [row for row in range(len(records)) if rejected.get(row) in accepted]
            texts = ["" if row in rejected else records.texts[row] for row in good]
            vectors = np.zeros((len(records), loaded.dim), dtype=np.float32)
            vectors[good] = loaded.encode(texts, normalize=normalize)
            zero += int((~vectors.any(axis=1)).sum())
            meter.advance(len(vectors))
            yield vectors

    with monitor.stage("encode", rows, "sentences") as meter:
        write_embeddings(output, blocks(), rows=rows, dim=loaded.dim, dtype=dtype)
    return f"{rows:,} x {loaded.dim} {dtype} by {loaded.name}, {zero:,} rows zero"
