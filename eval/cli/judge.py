"""Run ``adit train-judge``, which trains the judge of pairs (``eval.judge``)."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from miner.commandline import command, names
from miner.extras import require

if TYPE_CHECKING:
    from eval.judge.worlds import World


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit train-judge``."""
    add_sources(parser)
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, metavar="FILE", help="the model")


@command(add_arguments, "adit train-judge")
def train_judge(args: argparse.Namespace) -> int:
    """Train the judge that says how likely a mined pair is right.

    It learns from corpora made of parallel text and from comparable corpora with gold.
    """
    require("sklearn")
    from eval.judge.training import ENCODERS, gather
    from eval.judge.training import train_judge as train
    from eval.output import print_line

    examples = []
    for one in gather(worlds_of(args)):
        examples.append(one)
        print_line(f"{one.world}: {len(one.right):,} pairs, {int(one.right.sum()):,} right")
    facts = {
        "encoders": ENCODERS,
        "excluded": sorted(args.exclude),
        "pairs": sum(len(one.right) for one in examples),
        "right": sum(int(one.right.sum()) for one in examples),
    }
    train(examples).save(args.output, facts)
    return 0


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add what ``worlds_of`` takes."""
    add = parser.add_argument
    add("parallel", type=Path, metavar="DIR", help="parallel text that no encoder was trained on")
    text = "language pairs of it"
    add("--pairs", type=names, action="extend", required=True, metavar="XX-YY,...", help=text)
    add("--among", type=Path, required=True, metavar="DIR", help="text to put among it, one-sided")
    add("--bucc", type=Path, required=True, metavar="DIR", help="comparable corpora, BUCC's layout")
    text = "corpora to leave out"
    add("--exclude", type=names, action="extend", default=[], metavar="NAMES", help=text)


def worlds_of(args: argparse.Namespace) -> "Iterator[World]":
    """Return the corpora to learn from, as the options say."""
    from eval.judge.worlds import worlds

    others = {"among": args.among, "bucc": args.bucc, "exclude": frozenset(args.exclude)}
    return worlds(args.parallel, args.pairs, **others)
