"""The command line ``adit map``."""

import argparse
import sys
from pathlib import Path

from encoder.monolingual.options import WordOptions
from miner.commandline import add_common_options, command
from pipelines.cli.arguments import add_texts, given_texts
from pipelines.cli.running import set_up_logging
from pipelines.cli.train import add_fields, given_fields
from pipelines.making_options import ADVERSARIAL, ALONE, IDENTICAL, SIMILARITY, MapOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit map``."""
    parser.epilog = (
        "OUT is for --encoder OUT, with --src-lang and --tgt-lang; OUT/training has the state from "
        "which the same command goes on. docs/new-language.md says which encoder to make of what "
        "text."
    )
    add = parser.add_argument
    add_texts(
        parser,
        "text, as for adit mine, or a .vec file",
        "text of the other language, or a .vec file",
    )
    add(
        "--start",
        default=IDENTICAL,
        metavar="HOW",
        help=f"{IDENTICAL}: by the words that both languages have; {SIMILARITY}: by nothing but "
        f"which words are alike in each of them (may fail); {ADVERSARIAL}: by a network that "
        "learns to recognise mapped words, until it cannot, and self-learning (minutes; may fail; "
        f"needs torch); {ALONE}: by the network's map as it is, as in the paper of that; or a "
        f"file, a word and its translation a line (default: {IDENTICAL})",
    )
    add(
        "--refinements",
        type=int,
        default=MapOptions.refinements,
        metavar="N",
        help="times that the map is fitted anew to mutual nearest neighbours (default: "
        f"{MapOptions.refinements})",
    )
    add("--vec", type=Path, metavar="DIR", help="write the mapped vectors, too: DIR/XX.vec")
    add_fields(parser.add_argument_group("vectors of words"), {"": WordOptions})
    add_common_options(parser)


@command(add_arguments, "adit map")
def map_languages_command(args: argparse.Namespace) -> int:
    """Make an encoder from text of two languages, without translations.

    Learn the vectors of each language's words, and map the source's to the target's.
    """
    monitor = set_up_logging(args)
    if args.refinements < 0:
        raise ValueError(f"--refinements {args.refinements}: must be at least 0")
    from pipelines.run.map_words import map_languages

    mapped = map_languages(
        MapOptions(
            **given_texts(args),
            start=args.start,
            refinements=args.refinements,
            vec=args.vec,
            words=WordOptions(**given_fields(WordOptions, args)),
        ),
        monitor,
    )
    for number, value in enumerate(mapped.rounds):
        sys.stdout.write(f"{args.src_lang}-{args.tgt_lang}\t{number}\tcriterion {value:.4f}\n")
    return 0
