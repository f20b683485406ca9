"""Run ``adit pair``: which documents of two corpora are translations of each other."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from miner.commandline import add_version, run_command
from miner.storage.places import place
from pipelines.cli.arguments import add_encoder, add_input_format, add_languages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from encoder import Encoder
    from miner.storage.places import Place


def pair_documents_command(argv: Sequence[str] | None = None, prog: str = "adit pair") -> int:
    """Run ``adit pair``; return the exit status."""
    parser = pair_parser(prog)
    args = parser.parse_args(argv)
    return run_command(lambda: _pair(args), parser.prog)


def pair_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of ``adit pair``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Pair the documents of two corpora that are translations of each other, one to "
        "one, by what they say.",
        epilog="OUT is what adit mine takes as --document-pairs: a source and a target document a "
        "line and their score, best first. The vectors of all sentences are held in memory.",
    )
    add = parser.add_argument
    add("source", type=place, metavar="SRC", help="raw documents, or records with doc and text")
    add("target", type=place, metavar="TGT", help="those of the other language")
    add("-o", "--output", type=place, required=True, metavar="OUT", help="the pairs, as text")
    add_encoder(parser)
    add_languages(parser)
    add_input_format(parser)
    add(
        "--threshold",
        type=float,
        default=0.35,  # miner.document_pairing.THRESHOLD, which would load NumPy for --help
        metavar="T",
        help="leave out pairs that score below T (default: 0.35)",
    )
    add_version(parser)
    return parser


def _pair(args: argparse.Namespace) -> int:
    from encoder import load_encoder
    from miner.document_pairing import pair_documents
    from miner.storage.atomic import atomic_file, check_writable

    check_writable(args.output)
    encoder = load_encoder(args.encoder)
    source, target = (
        _documents(path, args.input_format, encoder.for_language(language))
        for path, language in ((args.source, args.src_lang), (args.target, args.tgt_lang))
    )
    found = pair_documents(list(source.values()), list(target.values()), threshold=args.threshold)
    names = list(source), list(target)
    with atomic_file(args.output) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for p, q, score in zip(found.source, found.target, found.scores, strict=True):
            file.write(f"{names[0][p]}\t{names[1][q]}\t{score:.4f}\n")
    return 0


def _documents(path: Place, input_format: str, encoder: Encoder) -> dict[str, NDArray[np.float32]]:
    """The vectors of each document's sentences, by its name."""
    from miner.storage.corpus.filesets import CorpusReader, corpus_files

    texts: dict[str, list[str]] = {}
    files = corpus_files(path, input_format=input_format)
    for records in CorpusReader(files, input_format=input_format):
        for position, (doc, text) in enumerate(zip(records.docs, records.texts, strict=True)):
            if position not in records.rejected and doc:
                texts.setdefault(doc, []).append(text)
    if not texts:
        raise ValueError(
            f"{path}: no sentence is in a document; give raw documents, with --input-format "
            "documents where they are .txt, or records with doc and text"
        )
    for name in texts:
        if "\t" in name or "\n" in name:
            raise ValueError(f"{path}: the document {name!r} has a tab or a line end in its name")
    return {name: encoder.encode(sentences) for name, sentences in texts.items()}
