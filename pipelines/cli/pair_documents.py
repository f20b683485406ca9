"""Run ``adit pair``: which documents of two corpora are translations of each other."""

import argparse
import tempfile
from pathlib import Path

from miner.commandline import add_version, command
from miner.storage.layout import DOCUMENT, DOCUMENT_PAIRS, WorkFolder
from miner.storage.places import place
from miner.storage.remote import RemotePath
from pipelines.cli.arguments import (
    add_encoder,
    add_input_formats,
    add_languages,
    add_output,
    formats_of,
)
from pipelines.cli.pipes import through_pipes
from pipelines.options import CorpusOptions, MiningOptions, check_files


def pair_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of ``adit pair``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Pair the documents of two corpora that are translations of each other, one to "
        "one, by what they say and by their names.",
        epilog="OUT is what adit mine takes as --document-pairs: a source and a target document a "
        "line and their score, best first. 'adit mine --document-pairs auto' finds the same.",
    )
    add = parser.add_argument
    add("source", type=place, metavar="SRC", help="raw documents, or records with doc and text")
    add("target", type=place, metavar="TGT", help="those of the other language")
    add_output(parser, "the pairs, as text", ending="text")
    add_encoder(parser)
    add_languages(parser)
    add_input_formats(parser)
    add(
        "--threshold",
        type=float,
        default=MiningOptions.document_threshold,
        metavar="T",
        help=f"leave out pairs that score below T (default: {MiningOptions.document_threshold})",
    )
    add_version(parser)
    return parser


@command(pair_parser, "adit pair")
@through_pipes("source", "target", ending="tsv")
def pair_documents_command(args: argparse.Namespace) -> int:
    """Run ``adit pair``; return the exit status."""
    from miner.storage.artefacts import open_artefact
    from miner.storage.atomic import atomic_file, check_writable
    from pipelines.job import job_of
    from pipelines.run.mining import run_steps
    from pipelines.run.steps import PAIRING

    check_writable(args.output)
    corpora, languages = (args.source, args.target), (args.src_lang, args.tgt_lang)
    source, target = (
        CorpusOptions(path=path, language=language, input_format=input_format)
        for path, language, input_format in zip(corpora, languages, formats_of(args), strict=True)
    )
    check_files([side.path for side in (source, target) if not side.path.is_dir()], args.output)
    is_remote = isinstance(args.output, RemotePath)
    beside = None if is_remote else args.output.parent
    with tempfile.TemporaryDirectory(prefix=f".{args.output.name}-", dir=beside) as folder:
        options = MiningOptions(
            source=source,
            target=target,
            output=args.output,
            work_dir=Path(folder),
            encoder=args.encoder,
            scope=DOCUMENT,
            document_threshold=args.threshold,
        )
        run_steps(job_of(options), PAIRING)
        found = open_artefact(WorkFolder(options.work_dir).document_pairs).file(DOCUMENT_PAIRS)
        with atomic_file(args.output) as temporary:
            temporary.write_bytes(found.read_bytes())
    return 0
