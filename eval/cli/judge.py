"""Run ``adit train-judge``, which trains the judge of pairs (``eval.judge``)."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from miner.commandline import add_version, names, run_command
from miner.extras import require

if TYPE_CHECKING:
    from eval.judge.training import Sources


def train_judge(argv: Sequence[str] | None, prog: str) -> int:
    """Run ``adit train-judge``; return the exit status."""
    args = _parser(prog).parse_args(argv)

    def run() -> int:
        require("sklearn")
        from eval.judge.training import ENCODERS, gather
        from eval.judge.training import train_judge as train
        from eval.output import print_line

        examples = []
        for one in gather(sources_of(args)):
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

    return run_command(run, prog)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Train the judge that says how likely a mined pair is right, on corpora made "
        "of parallel text and on comparable corpora with gold.",
    )
    add_sources(parser)
    parser.add_argument(
        *("-o", "--output"), type=Path, required=True, metavar="FILE", help="the model"
    )
    add_version(parser)
    return parser


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add what ``sources_of`` takes."""
    add = parser.add_argument
    add("parallel", type=Path, metavar="DIR", help="parallel text that no encoder was trained on")
    add(
        "--pairs",
        type=names,
        action="extend",
        required=True,
        metavar="XX-YY,...",
        help="language pairs of it",
    )
    add("--among", type=Path, required=True, metavar="DIR", help="text to put among it, one-sided")
    add("--bucc", type=Path, required=True, metavar="DIR", help="comparable corpora, BUCC's layout")
    add(
        "--exclude",
        type=names,
        action="extend",
        default=[],
        metavar="NAMES",
        help="corpora to leave out",
    )


def sources_of(args: argparse.Namespace) -> "Sources":
    """Return where examples come from, as the options say."""
    from eval.judge.training import Sources

    return Sources(
        parallel=args.parallel,
        pairs=args.pairs,
        among=args.among,
        bucc=args.bucc,
        exclude=frozenset(args.exclude),
    )
