"""The command line ``adit bootstrap``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from miner.commandline import add_common_options, run_command
from miner.storage.places import place
from pipelines.bootstrap_options import BootstrapOptions, RoundOptions
from pipelines.cli.arguments import add_encoder, add_input_format
from pipelines.cli.mine import set_up_logging
from pipelines.cli.train import add_fields, given_fields


def bootstrap_command(argv: Sequence[str] | None = None, prog: str = "adit bootstrap") -> int:
    """Run ``adit bootstrap``; return the exit status."""
    parser = bootstrap_parser(prog)
    args = parser.parse_args(argv)
    return run_command(lambda: _bootstrap(args), parser.prog)


def bootstrap_parser(prog: str) -> argparse.ArgumentParser:
    """Return the parser of ``adit bootstrap``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Mine two corpora, train an encoder on the best pairs, mine with it, and so "
        "on, until no more held-out sentences are each other's nearest.",
        epilog="OUT becomes the best encoder, for --encoder OUT; OUT/rounds has the pairs, the "
        "encoder and the figures of each round. The same command goes on where it was interrupted.",
    )
    add = parser.add_argument
    add("source", type=place, metavar="SRC", help="source corpus, as for adit mine")
    add("target", type=place, metavar="TGT", help="target corpus, likewise")
    add("-o", "--output", type=Path, required=True, metavar="OUT", help="folder to write")
    add_encoder(parser)
    add("--src-lang", required=True, metavar="XX", help="language of SRC (ISO 639)")
    add("--tgt-lang", required=True, metavar="XX", help="language of TGT (ISO 639)")
    add_input_format(parser)
    add(
        "--known",
        type=Path,
        metavar="FILE",
        help="pairs that are known, named as for adit train, to train on in every round, too",
    )
    add_fields(parser.add_argument_group("rounds"), {"": RoundOptions})
    add_common_options(parser)
    return parser


def _bootstrap(args: argparse.Namespace) -> int:
    monitor = set_up_logging(args)
    from pipelines.run.bootstrap import bootstrap

    figures = bootstrap(
        BootstrapOptions(
            source=args.source,
            target=args.target,
            languages=(args.src_lang, args.tgt_lang),
            output=args.output,
            encoder=args.encoder,
            known=args.known,
            input_format=args.input_format,
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
