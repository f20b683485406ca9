"""Run ``adit report``, ``why`` and ``calibrate``, which read a finished run.

``eval.cli.finished``, which does the work, is imported after parsing, so ``--help`` is quick.
"""

import argparse
from collections.abc import Sequence

from miner.commandline import add_version, run_command
from miner.storage.places import place


def report(argv: Sequence[str] | None, prog: str) -> int:
    """Run ``adit report``; return the exit status."""
    parser = _parser(prog, "Write a web page about a finished run.")
    add = parser.add_argument
    _add_output(parser, "the page, such as report.html")
    add("--gold", type=place, metavar="FILE", help="SOURCE_ID TAB TARGET_ID lines, to score pairs")
    return _run("report", parser, argv)


def why(argv: Sequence[str] | None, prog: str) -> int:
    """Run ``adit why``; return the exit status."""
    parser = _parser(prog, "Show why a pair was mined or not: neighbours, margin, rivals.")
    parser.add_argument("source_id", metavar="SRC_ID", help="id of a source sentence")
    parser.add_argument("target_id", metavar="TGT_ID", help="id of a target sentence")
    return _run("why", parser, argv)


def calibrate(argv: Sequence[str] | None, prog: str) -> int:
    """Run ``adit calibrate``; return the exit status."""
    parser = _parser(
        prog,
        "Show thresholds for shares of wrong pairs, by the probabilities that a run scored by "
        "words has, or by pairs that were marked as right or wrong.",
    )
    _add_output(parser, "pairs with probabilities, .jsonl")
    parser.add_argument(
        "--known",
        type=place,
        metavar="FILE",
        help="marks of a random sample of pairs, as the page of 'adit report' exports them, to "
        "estimate from these; or SOURCE_ID TAB TARGET_ID lines of all right pairs",
    )
    parser.add_argument(
        "--fdr",
        type=_rate,
        metavar="R",
        help="keep as many pairs as possible with an estimated share of at most R wrong, such as "
        "0.05 (default: all pairs)",
    )
    return _run("calibrate", parser, argv)


def _parser(prog: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("directory", type=place, metavar="DIR", help="the --work-dir of the run")
    add_version(parser)
    return parser


def _add_output(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(*("-o", "--output"), type=place, required=True, metavar="FILE", help=what)


def _run(command: str, parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    args = parser.parse_args(argv)

    def run() -> int:
        from eval.cli import finished

        status: int = getattr(finished, command)(args)
        return status

    return run_command(run, parser.prog)


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"expected a share between 0 and 1, not {text!r}")
    return value
