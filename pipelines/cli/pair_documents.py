"""Run ``adit pair``: which documents of two corpora are translations of each other."""

import argparse

from miner.commandline import command
from miner.storage.layout import DOCUMENT, DOCUMENT_PAIRS, WorkFolder
from pipelines.cli.arguments import (
    add_corpora,
    add_encoder,
    add_input_formats,
    add_languages,
    add_output,
)
from pipelines.cli.pipes import through_pipes
from pipelines.cli.running import mining_options, sides_of, work_dir_of
from pipelines.options import MiningOptions, check_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit pair``."""
    parser.epilog = (
        "OUT is what adit mine takes as --document-pairs: a source and a target document a line "
        "and their score, best first. 'adit mine --document-pairs auto' finds the same."
    )
    sides = "raw documents, or records with doc and text", "those of the other language"
    add_corpora(parser, *sides)
    add_output(parser, "the pairs, as text", ending="text")
    add_encoder(parser)
    add_languages(parser)
    add_input_formats(parser)
    parser.add_argument(
        "--threshold",
        dest="document_threshold",
        type=float,
        default=MiningOptions.document_threshold,
        metavar="T",
        help=f"leave out pairs that score below T (default: {MiningOptions.document_threshold})",
    )
    parser.set_defaults(work_dir=None, runner=None, scope=DOCUMENT)


@command(add_arguments, "adit pair")
@through_pipes("source", "target", ending="tsv")
def pair_documents_command(args: argparse.Namespace) -> int:
    """Pair the documents of two corpora that are translations of each other, one to one.

    They are paired by what they say and by their names.
    """
    from miner.storage.artefacts import open_artefact
    from miner.storage.atomic import atomic_file, check_writable
    from pipelines.job import job_of
    from pipelines.run.mining import run_steps
    from pipelines.run.steps import PAIRING

    check_writable(args.output)
    source, target = sides_of(args)
    check_files([side.path for side in (source, target) if not side.path.is_dir()], args.output)
    with work_dir_of(args) as work_dir:
        options = mining_options(args, work_dir, source, target)
        run_steps(job_of(options), PAIRING)
        found = open_artefact(WorkFolder(options.work_dir).document_pairs).file(DOCUMENT_PAIRS)
        with atomic_file(args.output) as temporary:
            temporary.write_bytes(found.read_bytes())
    return 0
