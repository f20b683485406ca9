"""The command ``adit train-judge``, which trains the pair classifier."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from miner.commandline import command, parse_names
from miner.extras import require

if TYPE_CHECKING:
    from eval.judge.synthetic_corpora import LabelledCorpora


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``adit train-judge``."""
    add_sources(parser)
    text = "output file for the judge, such as judge.safetensors"
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=text)


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
    for corpus in gather(corpora_of(args)):
        examples.append(corpus)
        count, correct = len(corpus.right), int(corpus.right.sum())
        print_line(f"{corpus.world}: {count:,} mined pairs, {correct:,} correct")
    facts = {
        "encoders": ENCODERS,
        "excluded": sorted(args.exclude),
        "pairs": sum(len(corpus.right) for corpus in examples),
        "right": sum(int(corpus.right.sum()) for corpus in examples),
    }
    train(examples).save(args.output, facts)
    return 0


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options of training data that ``corpora_of`` reads."""
    add = parser.add_argument
    text = "folder of parallel text, as for adit train, that no encoder was trained on"
    add("parallel", type=Path, metavar="DIR", help=text)
    text = "language pairs to make corpora of, such as de-en,fr-en; DIR and --among contain them"
    add("--pairs", type=parse_names, action="extend", required=True, metavar="XX-YY,...", help=text)
    text = (
        "further language pairs, only of DIR, to make smaller corpora of, from up to 4,000 "
        "sentence pairs each (default: none)"
    )
    add("--more", type=parse_names, action="extend", default=[], metavar="XX-YY,...", help=text)
    text = "folder of other parallel text, whose sentences are added without their translations"
    add("--among", type=Path, required=True, metavar="DIR", help=text)
    text = "folder of comparable corpora: xx-en/xx-en.SPLIT.xx, .en and .gold, as for adit evaluate"
    add("--bucc", type=Path, required=True, metavar="DIR", help=text)
    text = "corpora to skip in both folders of parallel text, as for adit train (default: none)"
    add("--exclude", type=parse_names, action="extend", default=[], metavar="NAME,...", help=text)


def corpora_of(args: argparse.Namespace) -> "Iterator[LabelledCorpora]":
    """Load the corpora of ``add_sources``'s options by ``labelled_corpora``."""
    from eval.judge.synthetic_corpora import labelled_corpora

    options = {"among": args.among, "bucc": args.bucc, "exclude": frozenset(args.exclude)}
    return labelled_corpora(args.parallel, args.pairs, more=args.more, **options)
