"""Commands ``adit report``, ``why`` and ``calibrate``, which print errors."""

import argparse

from miner.commandline import command, parse_number
from miner.storage.places import place
from miner.wording import counted


def _add_run(parser: argparse.ArgumentParser, output: str | None = None) -> None:
    add = parser.add_argument
    text = "--work-dir of a finished run (of --languages: its subfolder mined/XX-YY)"
    add("directory", type=place, metavar="DIR", help=text)
    if output:
        add("-o", "--output", type=place, required=True, metavar="FILE", help=output)


def _add_report(parser: argparse.ArgumentParser) -> None:
    _add_run(parser, "output file for the web page, such as report.html")
    text = "known translations, SOURCE_ID TAB TARGET_ID lines, to show precision and recall"
    parser.add_argument("--gold", type=place, metavar="FILE", help=text)


@command(_add_report, "adit report")
def report(args: argparse.Namespace) -> int:
    """Write or replace a web page about a finished run."""
    from eval.data.bucc import read_gold
    from eval.report.page import render
    from eval.runs.calibration import Gold
    from eval.runs.store import open_run
    from miner.storage.atomic import write_text

    run = open_run(args.directory)
    gold = Gold.of(run, read_gold(args.gold)) if args.gold else None
    write_text(args.output, render(run, gold))
    return 0


def _add_why(parser: argparse.ArgumentParser) -> None:
    _add_run(parser)
    for side, corpus in (("source", "SRC"), ("target", "TGT")):
        text = f"id of a {side} sentence, or its line number, from 1, if {corpus} has no ids"
        parser.add_argument(f"{side}_id", metavar=f"{corpus}_ID", help=text)


@command(_add_why, "adit why")
def why(args: argparse.Namespace) -> int:
    """Show why a pair was or was not mined, with neighbours and rivals.

    Raises:
        ValueError: Printed, with status 2 returned: an id is unknown, not unique or without vector.
    """
    from eval.output import print_line
    from eval.runs.explain import describe, explain
    from eval.runs.store import open_run

    run = open_run(args.directory)
    rows = []
    for side, sentence_id in zip(run.sides, (args.source_id, args.target_id), strict=True):
        (row,) = side.rows_of([sentence_id])
        if row is None:
            raise ValueError(
                f"{run.directory}: no usable {side.name} sentence with the id {sentence_id!r}; "
                f"pass an id such as {side.first_id!r}, or look for it in the folder's rejected/"
            )
        rows.append(row)
    print_line(describe(run, explain(run, *rows)))
    return 0


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    _add_run(parser, "output file for pairs with probabilities; must end in .jsonl")
    text = (
        "labels to estimate from: marks of a random sample of 30 or more pairs, as exported from "
        "the page of 'adit report', or SOURCE_ID TAB TARGET_ID lines of all correct pairs "
        "(default: the probabilities of the run, which needs --score words)"
    )
    parser.add_argument("--known", type=place, metavar="FILE", help=text)
    text = (
        "write as many pairs as possible with an estimated share of wrong pairs of at most R, such "
        "as 0.05, above 0 and below 1 (default: all pairs)"
    )
    parser.add_argument("--fdr", type=_rate, metavar="R", help=text)


def _rate(text: str) -> float:
    if not 0 < parse_number(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a share between 0 and 1, not {text!r}")
    return float(text)


@command(_add_calibrate, "adit calibrate")
def calibrate(args: argparse.Namespace) -> int:
    """Show thresholds of error rates, and write pairs with probabilities.

    With --known, probabilities are estimated from labelled pairs. Without it, they are the run's,
    which must be scored by words.

    Raises:
        ValueError: Printed, with status 2 returned: the run lacks pairs, or --output is not .jsonl.
    """
    from eval.output import Table, print_line
    from eval.runs import calibration
    from eval.runs.store import open_run

    if args.output.suffix != ".jsonl":
        raise ValueError(f"{args.output}: the output is JSON lines; name it with .jsonl")
    run = open_run(args.directory)
    if not len(run.pairs):
        raise ValueError(
            f"{args.directory}: the run wrote no pairs to calibrate; rerun its command with --all, "
            "without --threshold, --fdr and --filters"
        )
    if args.known:
        estimates = calibration.estimates_from_marks(run, calibration.read_labels(args.known, run))
    else:
        estimates = calibration.estimates_from_judge(run)
    table = Table("error rate", [f"{run.score_name} above", "pairs", "correct", "95% interval"])
    print_line(table.header)
    for wanted, threshold, kept, correct, interval in calibration.thresholds(estimates):
        print_line(table.row(f"{wanted:.0%}", repr(threshold), kept, f"{correct:.0f}", interval))
    kept = calibration.write_calibrated(run, estimates, args.output, fdr=args.fdr)
    print_line(f"{kept:,} of {counted(len(run.pairs), 'pairs')} written")
    return 0
