"""The command line ``adit bootstrap``."""

import argparse
import sys
from pathlib import Path

from miner.commandline import add_common_options, command
from pipelines.cli.arguments import add_encoder, add_texts, given_texts
from pipelines.cli.running import set_up_logging
from pipelines.cli.train import add_fields, given_fields
from pipelines.making_options import BootstrapOptions, RoundOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit bootstrap``."""
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


@command(add_arguments, "adit bootstrap")
def bootstrap_command(args: argparse.Namespace) -> int:
    """Mine two corpora, train an encoder on the best pairs, mine with it, and so on.

    It ends when no more held-out sentences are each other's nearest.
    """
    monitor = set_up_logging(args)
    from pipelines.run.bootstrap import bootstrap

    figures = bootstrap(
        BootstrapOptions(
            **given_texts(args),
            encoder=args.encoder,
            known=args.known,
            each=RoundOptions(**given_fields(RoundOptions, args)),
        ),
        monitor,
    )
    for number, each_round in enumerate(figures, start=1):
        sys.stdout.write(
            f"round {number}\t{each_round['pairs']} pairs\t{each_round['kept by']}\t"
            f"{each_round['mutual']} held-out sentences nearest to their nearest\n"
        )
    return 0
