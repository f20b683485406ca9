"""Run ``adit map`` and ``adit bootstrap``, which make encoders from text."""

import argparse
import sys
from pathlib import Path

from encoder.monolingual.options import WordOptions
from miner.commandline import add_common_options, command
from pipelines.cli.arguments import add_encoder, add_texts, given_texts
from pipelines.cli.running import set_up_logging
from pipelines.cli.train import add_fields, given_fields
from pipelines.making_options import (
    ADVERSARIAL,
    ALONE,
    IDENTICAL,
    SIMILARITY,
    BootstrapOptions,
    MapOptions,
    RoundOptions,
)


def _add_map(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "OUT is for --encoder OUT, with --src-lang and --tgt-lang; OUT/training has the state from "
        "which the same command goes on. docs/new-language.md says which encoder to make of what "
        "text."
    )
    sides = "text, as for adit mine, or a .vec file", "text of the other language, or a .vec file"
    add_texts(parser, *sides)
    add = parser.add_argument
    text = (
        f"{IDENTICAL}: by the words that both languages have; {SIMILARITY}: by nothing but "
        f"which words are alike in each of them (may fail); {ADVERSARIAL}: by a network that "
        "learns to recognise mapped words, until it cannot, and self-learning (minutes; may fail; "
        f"needs torch); {ALONE}: by the network's map as it is, as in the paper of that; or a "
        f"file, a word and its translation a line (default: {IDENTICAL})"
    )
    add("--start", default=IDENTICAL, metavar="HOW", help=text)
    default = MapOptions.refinements
    text = f"times that the map is fitted anew to mutual nearest neighbours (default: {default})"
    add("--refinements", type=int, default=default, metavar="N", help=text)
    add("--vec", type=Path, metavar="DIR", help="write the mapped vectors, too: DIR/XX.vec")
    add_fields(parser.add_argument_group("vectors of words"), {"": WordOptions})
    add_common_options(parser)


@command(_add_map, "adit map")
def map_command(args: argparse.Namespace) -> int:
    """Make an encoder from text of two languages, without translations.

    Learn the vectors of each language's words, and map the source's to the target's.
    """
    monitor = set_up_logging(args)
    if args.refinements < 0:
        raise ValueError(f"--refinements {args.refinements}: must be at least 0")
    from pipelines.run.map_words import map_languages

    options = MapOptions(
        **given_texts(args),
        start=args.start,
        refinements=args.refinements,
        vec=args.vec,
        words=WordOptions(**given_fields(args, WordOptions)),
    )
    for number, value in enumerate(map_languages(options, monitor)):
        sys.stdout.write(f"{args.src_lang}-{args.tgt_lang}\t{number}\tcriterion {value:.4f}\n")
    return 0


def _add_bootstrap(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "OUT becomes the best encoder, for --encoder OUT; OUT/rounds has the pairs, the encoder "
        "and the figures of each round. The same command goes on where it was interrupted."
    )
    add_texts(parser, "source corpus, as for adit mine", "target corpus, likewise")
    add_encoder(parser)
    text = "pairs that are known, named as for adit train, to train on in every round, too"
    parser.add_argument("--known", type=Path, metavar="FILE", help=text)
    add_fields(parser.add_argument_group("rounds"), {"": RoundOptions})
    add_common_options(parser)


@command(_add_bootstrap, "adit bootstrap")
def bootstrap(args: argparse.Namespace) -> int:
    """Mine two corpora, train an encoder on the best pairs, mine with it, and so on.

    It ends when no more held-out sentences are each other's nearest.
    """
    monitor = set_up_logging(args)
    from pipelines.run.bootstrap import bootstrap as run

    each = RoundOptions(**given_fields(args, RoundOptions))
    known = {"encoder": args.encoder, "known": args.known, "each": each}
    figures = run(BootstrapOptions(**given_texts(args), **known), monitor)
    for number, found in enumerate(figures, start=1):
        sys.stdout.write(
            f"round {number}\t{found['pairs']} pairs\t{found['kept by']}\t"
            f"{found['mutual']} held-out sentences nearest to their nearest\n"
        )
    return 0
