"""Embed a corpus into one file of vectors, for ``adit embed``."""

import argparse
from collections.abc import Iterator

import numpy as np

from encoder import load_encoder
from miner.arrays import Matrix
from miner.language_codes import base_language
from miner.languages import seen_language
from miner.storage.atomic import check_writable
from miner.storage.corpus.entities import escaped_levels, unescape, unescape_records
from miner.storage.corpus.reader import open_corpus
from miner.storage.corpus.records import Rejection
from miner.storage.vectors.embeddings import write_embeddings
from miner.wording import counted
from pipelines.options import check_files
from pipelines.progress import Monitor
from pipelines.stages.reading.language import language_sample


def embed_file(args: argparse.Namespace, monitor: Monitor) -> str:
    """Encode each record of a corpus as a row of ``args.output``.

    ``args`` are of ``add_embedding``, with files instead of pipes. The returned line describes the
    rows. Rejected records are zero rows, except for blank lines of pretokenised corpora. ValueError
    says that the corpus, the encoder or an option cannot be used, OSError that a file cannot be
    read or written, ModuleNotFoundError that the encoder needs a package.
    """
    check_files([args.corpus], args.output)
    check_writable(args.output)
    as_is, language, form = args.pretokenized, args.lang, args.input_format
    loaded = load_encoder(
        args.encoder, vocabulary=args.vocab, pretokenized=as_is, precision=args.precision
    )
    escapes = 0
    if not as_is:
        texts = language_sample(args.corpus, form)
        escapes = escaped_levels(texts)
        language = language or seen_language([unescape(text, escapes) for text in texts])
    loaded = loaded.for_language(language and base_language(language))
    accepted = {None, Rejection.BLANK} if as_is else {None}
    # The corpus is read twice, because the header of an .npy file contains the number of rows.
    rows = sum(len(records) for records in open_corpus(args.corpus, input_format=form))
    zero = 0

    def blocks() -> Iterator[Matrix]:
        nonlocal zero
        for records in unescape_records(open_corpus(args.corpus, input_format=form), escapes):
            rejected = records.rejected
            usable = [row for row in range(len(records)) if rejected.get(row) in accepted]
            texts = ["" if row in rejected else records.texts[row] for row in usable]
            vectors = np.zeros((len(records), loaded.dim), dtype=np.float32)
            vectors[usable] = loaded.encode(texts, normalize=not args.no_normalize)
            zero += int((~vectors.any(axis=1)).sum())
            meter.advance(len(vectors))
            yield vectors

    with monitor.stage("encode", rows, "sentences") as meter:
        write_embeddings(args.output, blocks(), rows=rows, dim=loaded.dim, dtype=args.dtype)
    size = f"{counted(rows, 'rows')} of {loaded.dim} {args.dtype} numbers"
    return f"{size} by {loaded.name}, {counted(zero, 'rows')} of zeros"
