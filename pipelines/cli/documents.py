"""Run ``adit pair`` and ``adit split``, and decide how to mine documents.

Both commands print the errors of users, and return the status of ``run_command``.
"""

import argparse
import logging
import sys
from collections.abc import Sequence

from miner.choices import FREE, MONOTONE
from miner.commandline import command, parse_threshold
from miner.language_codes import base_language, parse_option
from miner.storage.layout import CORPUS, DOCUMENT, DOCUMENT_PAIRS, WorkFolder
from miner.storage.places import Place, place
from miner.storage.streams import split_compression
from pipelines.cli import arguments, running
from pipelines.cli.running import supports_pipes
from pipelines.options import MiningOptions, check_files

logger = logging.getLogger(__name__)

SUFFIXES = (".jsonl", ".parquet")


def decide_documents(args: argparse.Namespace, corpora: Sequence[Place] = ()) -> None:
    """Set the options on documents that ``args`` leave open, in place.

    ``corpora``, source first, get the format "documents" instead of "auto" if they are folders of
    documents. If all are, at least one, and retrieval, index, vectors, ``--plan`` and options on
    documents are defaults, the alignment becomes "monotone", otherwise "free". The scope becomes
    "corpus" if free without document pairs, otherwise "document". Pairs "auto" become None. Errors
    of ``holds_documents`` are raised.

    Raises:
        ValueError: The scope is "corpus", but document pairs or "auto" are given.
    """
    sides = zip(("src", "tgt"), corpora, strict=False)
    are_documents = [_is_documents(args, *side) for side in sides]
    if args.document_pairs is not None and args.scope == CORPUS:
        raise ValueError("--document-pairs conflicts with --scope corpus; omit one of them")
    asked = (args.scope, args.document_pairs, args.alignment, args.margin_scope)
    is_default = args.retrieval == MiningOptions.retrieval and args.index == MiningOptions.index
    is_open = is_default and asked == (None,) * 4 and not (args.src_embeddings or args.plan)
    if are_documents and all(are_documents) and is_open:
        args.alignment = MONOTONE
        logger.info(
            "both inputs are folders of documents: pairing documents and aligning their sentences "
            "in order; use --scope corpus to compare all sentences instead"
        )
    args.alignment = args.alignment or FREE
    is_free = args.document_pairs is None and args.alignment == FREE
    args.scope = args.scope or (CORPUS if is_free else DOCUMENT)
    if args.document_pairs == arguments.AUTO_PAIRS:
        args.document_pairs = None


def _is_documents(args: argparse.Namespace, side: str, corpus: Place) -> bool:
    from miner.storage.documents.split import holds_documents, looks_like_a_document

    chosen = getattr(args, f"{side}_format") or args.input_format
    is_text = corpus.is_file() and split_compression(corpus)[0] in ("", ".txt")
    if chosen == "auto" and is_text and looks_like_a_document(corpus):
        logger.warning(
            "%s: looks like a document, not like one sentence per line; use --input-format "
            "documents to split it into sentences",
            corpus,
        )
    is_folder = chosen in ("auto", "documents") and corpus.is_dir() and holds_documents(corpus)
    if is_folder:
        setattr(args, f"{side}_format", "documents")
    return is_folder


def add_pairing(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit pair``, and defaults for ``mining_options``."""
    parser.epilog = (
        "OUT is the input of 'adit mine --document-pairs': one source document, target document "
        "and score per line, best first. 'adit mine --document-pairs auto' finds the same pairs."
    )
    sides = "folder or file of documents, or records with doc and text", "the same, translated"
    arguments.add_corpora(parser, *sides)
    arguments.add_output(
        parser, "output file for the pairs, as text (.gz and .zst compress)", ending="text"
    )
    arguments.add_encoder(parser)
    arguments.add_languages(parser, default=arguments.DETECTED)
    arguments.add_input_formats(parser)
    add, low = parser.add_argument, MiningOptions.document_threshold
    text = f"keep pairs that score at least T; the highest score is 1 (default: {low})"
    add("--threshold", dest="document_threshold", type=parse_threshold, metavar="T", help=text)
    parser.set_defaults(document_threshold=low, work_dir=None, runner=None, scope=DOCUMENT)


@command(add_pairing, "adit pair")
@supports_pipes("source", "target", ending="tsv")
def pair_command(args: argparse.Namespace) -> int:
    """Pair each document with at most one translation, by content and name."""
    from miner.storage.artefacts import open_artefact
    from miner.storage.atomic import atomic_file, check_writable
    from miner.storage.pairs import open_compressed, output_format
    from pipelines.options import job_of
    from pipelines.run.mining import run_steps
    from pipelines.run.steps import PAIRING

    _, compression = output_format(args.output)
    check_writable(args.output)
    for side, corpus in (("src", args.source), ("tgt", args.target)):
        _is_documents(args, side, corpus)  # sets the formats
    sides = running.sides_of(args)
    check_files([side.path for side in sides if not side.path.is_dir()], args.output)
    with running.work_dir_of(args) as work_dir:
        run_steps(job_of(running.mining_options(args, work_dir, *sides)), PAIRING)
        pairs = open_artefact(WorkFolder(work_dir).document_pairs).file(DOCUMENT_PAIRS)
        with atomic_file(args.output) as path, open_compressed(path, compression) as file:
            file.write(pairs.read_bytes())
    return 0


def _add_split(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "IN is a file, or a folder with files at any depth: .txt, .md, .html; JSON lines and "
        "Parquet with whole documents in 'text', including Wikipedia's Cirrus dumps; WARC and WET "
        "archives; MediaWiki's XML dumps. Web pages, archives and XML dumps need pip install "
        "'bitext-adit[documents]'. .gz, .xz, .zst and .bz2 are decompressed. Unreadable documents "
        "are rejected and counted."
    )
    add = parser.add_argument
    add("documents", type=place, metavar="IN", help="raw documents: a file, or a folder of files")
    text = "output file for sentences with id, doc, text and language: .jsonl (also .gz), .parquet"
    arguments.add_output(parser, text, ending=".jsonl")
    text = (
        "language of IN, such as de; decides whether a number and full stop, as in '1. Mai', can "
        "end a sentence (default: they cannot)"
    )
    add("--lang", type=parse_option, metavar="XX", help=text)
    add("-q", "--quiet", action="store_true", help="print errors only, not counts")


@command(_add_split, "adit split")
@supports_pipes(ending="jsonl")
def split_command(args: argparse.Namespace) -> int:
    """Split raw documents into sentences, as a corpus for mining.

    Raises:
        ValueError: Printed, not raised: the suffix of OUT is unknown, or IN has no sentence.
    """
    from miner.storage.atomic import atomic_file, check_writable
    from miner.storage.documents import split
    from miner.storage.pairs import open_compressed, output_format
    from miner.storage.writers import FORMATS, Origin
    from miner.storage.writers.formats import WRITERS

    suffix, compression = output_format(args.output)
    if suffix not in SUFFIXES or (compression and not FORMATS[suffix].compresses):
        raise ValueError(f"{args.output}: unknown format; end it in {' or '.join(SUFFIXES)}")
    check_writable(args.output)
    counts = split.SplitCounts()
    documents = split.read_documents(split.document_files(args.documents))
    language = args.lang and base_language(args.lang)
    tables = split.split_documents(documents, counts, language=language)
    with atomic_file(args.output) as path, open_compressed(path, compression) as file:
        WRITERS[FORMATS[suffix].name]([file], tables, split.SPLIT_FIELDS, Origin())
        if not counts.sentences:
            raise ValueError(
                f"{args.documents}: no sentences ({counts.describe()}); pass documents with text"
            )
    if not args.quiet:
        sys.stderr.write(f"{running.shown_output(args)}: {counts.describe()}\n")
    return 0
