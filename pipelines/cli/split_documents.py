"""Run ``adit split``: raw documents to a corpus of sentences."""

import argparse
import sys
from pathlib import PurePath

from miner.commandline import command
from miner.storage.places import place
from pipelines.cli.arguments import add_output
from pipelines.cli.pipes import shown_output, through_pipes

SUFFIXES = (".jsonl", ".parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit split``."""
    parser.epilog = (
        "IN is a file, or a folder with files in it and below: .txt, .md, .html; JSON lines and "
        "Parquet with whole documents in 'text', Wikipedia's Cirrus dumps among them; WARC and WET "
        "archives; MediaWiki's XML dumps. .gz, .xz, .zst and .bz2 are decompressed. A document "
        "that cannot be read is counted and left out."
    )
    add = parser.add_argument
    add("documents", type=place, metavar="IN", help="documents: a file, or a folder")
    add_output(
        parser, "sentences with id, doc, text and language: .jsonl or .parquet", ending=".jsonl"
    )
    text = "language (ISO 639-1): whether '1. Mai' is one sentence (default: it is)"
    add("--lang", metavar="XX", help=text)
    add("-q", "--quiet", action="store_true", help="print no counts")


@command(add_arguments, "adit split")
@through_pipes(ending="jsonl")
def split_documents_command(args: argparse.Namespace) -> int:
    """Split raw documents into sentences, as a corpus for mining."""
    from miner.storage.atomic import atomic_file, check_writable
    from miner.storage.documents.split import (
        SPLIT_FIELDS,
        SplitCounts,
        document_files,
        read_documents,
        split_documents,
    )
    from miner.storage.writers import FORMATS, Origin

    suffix = PurePath(str(args.output)).suffix
    if suffix not in SUFFIXES:
        raise ValueError(f"{args.output}: use a suffix of {', '.join(SUFFIXES)}")
    check_writable(args.output)
    counts = SplitCounts()
    documents = read_documents(document_files(args.documents))
    tables = split_documents(documents, counts, language=args.lang)
    with atomic_file(args.output) as temporary, open(temporary, "wb") as file:
        FORMATS[suffix].load().write([file], tables, SPLIT_FIELDS, Origin())
        if not counts.sentences:
            raise ValueError(f"{args.documents}: no sentences ({counts.describe()})")
    if not args.quiet:
        sys.stderr.write(f"{shown_output(args)}: {counts.describe()}\n")
    return 0
