"""Run ``adit train-judge``, which trains the judge of pairs (``eval.judge``)."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from miner.commandline import command, parse_names
from miner.extras import require

if TYPE_CHECKING:
    from eval.judge.worlds import World


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit train-judge``."""
    add_sources(parser)
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, metavar="FILE", help="output file")


@command(add_arguments, "adit train-judge")
def train_judge(args: argparse.Namespace) -> int:
    """Retrain the judge, which scores whether a mined pair is correct.

    It learns from corpora made of parallel text, and from comparable corpora with gold pairs.
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
    text = "folder of parallel text that no encoder was trained on"
    add("parallel", type=Path, metavar="DIR", help=text)
    text = "language pairs of DIR to use"
    add("--pairs", type=parse_names, action="extend", required=True, metavar="XX-YY,...", help=text)
    text = "folder of monolingual text, mixed in on one side as distractors"
    add("--among", type=Path, required=True, metavar="DIR", help=text)
    text = "folder of comparable corpora in BUCC's layout"
    add("--bucc", type=Path, required=True, metavar="DIR", help=text)
    text = "corpora to exclude"
    add("--exclude", type=parse_names, action="extend", default=[], metavar="NAMES", help=text)


def worlds_of(args: argparse.Namespace) -> "Iterator[World]":
    """Return the corpora to learn from, as the options say."""
    from eval.judge.worlds import worlds

    others = {"among": args.among, "bucc": args.bucc, "exclude": frozenset(args.exclude)}
    return worlds(args.parallel, args.pairs, **others)
